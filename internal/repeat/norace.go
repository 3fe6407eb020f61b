//go:build !race

package repeat

// watched says that the race detector looks on.
const watched = false
