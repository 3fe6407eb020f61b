package server

import (
	"crypto/rand"
	"os"
	"strconv"
)

// markName is the variable that every server gets and hands on to what it
// starts. By it they are found again when the server is gone.
const markName = "HOLDFAST_CHILD"

// newMark returns a value that nobody has and nobody can guess, so that no
// process is taken for a server's that is none. It names this process by its
// number and its start, for SweepLost.
func newMark() string {
	pid := os.Getpid()
	return strconv.Itoa(pid) + "-" + startOf(pid) + "-" + rand.Text()
}
