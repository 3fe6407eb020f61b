package server

// sweep does nothing: this system shows no process's environment to another.
func sweep(string) int { return 0 }

// SweepLost does nothing, for the same reason.
func SweepLost() int { return 0 }

// startOf is not known here.
func startOf(int) string { return "" }
