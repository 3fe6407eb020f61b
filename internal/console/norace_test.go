//go:build !race

package console

// entries is how long the long ledger is.
const entries = 100_000
