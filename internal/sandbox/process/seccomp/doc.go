// Package seccomp has the profiles of system calls of the process tier (decisions D16 to
// D18): what passes, what is refused and what is an attempt to escape, the kernel's filter
// for each, and the same as rules for filters that are made elsewhere.
package seccomp
