//go:build !linux

// Package copies keeps private copies that several processes use; here nothing is
// run of which there would be any.
package copies
