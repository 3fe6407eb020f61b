//go:build race

package console

// entries is how long the long ledger is: the race detector makes one entry take
// as long as a hundred.
const entries = 5_000
