package snapshot

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// spare is how much room is left alone, in bytes: the ledger stands on the same disk,
// and without room for it everything is refused. Of a small disk it is a sixteenth.
const spare = 256 << 20

// Room is an error where the disk that dir is on would have too little room left
// with need bytes more on it. Errors: InternalError disk/full.
func Room(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("how much room there is in %s cannot be known: %w", dir, err)
	}
	block := int64(st.Bsize)
	free, stays := int64(st.Bavail)*block, min(spare, int64(st.Blocks)*block/16)
	if need <= free-stays {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "disk/full",
		Why:  fmt.Sprintf("there is no room in %s: up to %d bytes are needed, %d are free, and %d of them are the ledger's", dir, need, free, stays),
		Hint: "make room there"}
}

// full names the error of a state without room.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "disk/full", Why: "there is no room left for versions", Hint: "make room where the state is", Err: err}
	}
	return err
}
