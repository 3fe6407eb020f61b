// Package relay carries bytes and signals between the caller's standard descriptors and
// those of a program in a workspace.
package relay
