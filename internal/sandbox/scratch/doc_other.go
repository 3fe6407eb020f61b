//go:build !linux

// Package scratch brings files out of the folder that a run could write; here
// nothing runs.
package scratch
