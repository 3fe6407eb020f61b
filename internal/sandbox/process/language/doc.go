// Package language finds the languages that this machine can run, each with its profile
// of system calls, and makes the root file systems that their programs see: private
// copies of an interpreter and of what it needs.
package language
