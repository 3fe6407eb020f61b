//go:build endure

package testrepeat

// Enduring reports whether the tests were built to do everything in full.
const Enduring = true
