package sqlite

import (
	"os"
)

// A commit that makes the log longer also has to bring the file's new length
// to disk, which about doubles its time; one that writes over what is there
// already has not. So zeros stand ahead of where the log ends.
const (
	firstBytes  = 256 << 10 // ahead of the log of a store that hardly anything was written to
	runwayBytes = 8 << 20   // ahead of the log when it begins
	runwayStep  = 256 << 10 // written between two syncs, so that a commit that waits for them waits briefly
)

// zeros is what a runway is made of. Nothing writes to it.
var zeros [runwayStep]byte

// lengthen appends zeros to the log until it is n bytes longer, at most to what
// a log ever needs. The file is open for appending, so that the zeros stand
// behind all that SQLite has written, whenever it did. SQLite reads a frame of
// zeros as the log's end. Nothing depends on it: on an error the log grows as
// it is written.
func lengthen(log string, n int64) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for range n / runwayStep {
		info, err := f.Stat()
		if err != nil || info.Size() >= logBytes+runwayBytes {
			return
		}
		if _, err := f.Write(zeros[:]); err != nil {
			return
		}
		if err := f.Sync(); err != nil {
			return
		}
	}
}
