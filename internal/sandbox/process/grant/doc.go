// Package grant opens the work tree that a run may write, and the repository that belongs
// to it: what the run must not change there, and what it made that git would execute.
package grant
