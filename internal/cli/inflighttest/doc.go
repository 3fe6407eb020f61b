// Package inflighttest has one of everything that can be in flight: tool calls over
// stdio and HTTP, programs, code, downloads, tunnels and models' answers, against a
// daemon that is a process of its own, and tells when the last effect of each was
// where it does something. The tests of the command and the benchmarks use it, and
// its MCP client and server.
package inflighttest
