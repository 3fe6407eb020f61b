package sqlite

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

func (tx *updateTx) PutReplay(r kernel.Replay) error {
	if tx.over {
		return errOver
	}
	if err := okReplay(&r); err != nil {
		return err
	}
	b := tx.b
	if b.replays == nil {
		b.replays = make(map[string]kernel.Replay)
	}
	before, had := b.replays[r.Key]
	b.replays[r.Key] = r
	tx.undone(func() {
		if had {
			b.replays[r.Key] = before
		} else {
			delete(b.replays, r.Key)
		}
	})
	return nil
}

func okReplay(r *kernel.Replay) error {
	if len(r.Sealed) == 0 || len(r.Sealed) > maxSealed || len(r.Exact) > maxKey || len(r.Crossing) > maxKey {
		return fmt.Errorf("replay of crossing %q: a sealed result of %d bytes (1 to %d)", r.Crossing, len(r.Sealed), maxSealed)
	}
	return okName("the replay's key", r.Key)
}

// replay is what is kept under the key, expired or not.
func (tx *updateTx) replay(key string) (kernel.Replay, bool, error) {
	for _, b := range [...]*batch{tx.b, tx.s.fly} {
		if b == nil {
			continue
		}
		if r, ok := b.replays[key]; ok {
			return r, true, nil
		}
	}
	r, ok, err := readReplay(tx.s.side, key)
	return r, ok && !r.Expires.Before(tx.dropped()), err
}

// dropped is the time before which replays of the database are gone.
func (tx *updateTx) dropped() time.Time {
	var at time.Time
	for _, b := range tx.layers() {
		if b.dropped.After(at) {
			at = b.dropped
		}
	}
	return at
}

func (tx *updateTx) Replay(key string) (kernel.Replay, error) {
	if tx.over {
		return kernel.Replay{}, errOver
	}
	r, ok, err := tx.replay(key)
	return liveReplay(r, ok, err, key, tx.s.now())
}

func liveReplay(r kernel.Replay, ok bool, err error, key string, now time.Time) (kernel.Replay, error) {
	if err == nil && (!ok || !now.Before(r.Expires)) {
		err = notFound("replay %.16q", key)
	}
	if err != nil {
		return kernel.Replay{}, err
	}
	r.Expires, r.Sealed = utc(r.Expires), bytes.Clone(r.Sealed)
	return r, nil
}

func (tx *updateTx) DropReplays(now time.Time) (int, error) {
	if tx.over {
		return 0, errOver
	}
	now = utc(now)
	from := tx.dropped()
	n := int64(0)
	if now.After(from) {
		low := int64(math.MinInt64)
		if !from.IsZero() {
			low = micros(from)
		}
		var err error
		if n, err = tx.s.side.Scalar("SELECT count(*) FROM replay WHERE expires >= ? AND expires < ?", low,
			micros(now)); err != nil {
			return 0, err
		}
	}
	over := make(map[string]kernel.Replay)
	for _, b := range tx.layers() {
		maps.Copy(over, b.replays)
	}
	for key, r := range over {
		old, ok, err := readReplay(tx.s.side, key)
		if err != nil {
			return 0, err
		}
		if ok && old.Expires.Before(now) && !old.Expires.Before(from) {
			n--
		}
		if r.Expires.Before(now) {
			n++
		}
	}
	if n > 0 {
		tx.drop(now)
	}
	return int(n), nil
}

// drop removes what expired before now from the batch, and lets the commit
// remove it from the database.
func (tx *updateTx) drop(now time.Time) {
	b := tx.b
	was, wasDropped := maps.Clone(b.replays), b.dropped
	maps.DeleteFunc(b.replays, func(_ string, r kernel.Replay) bool { return r.Expires.Before(now) })
	if now.After(b.dropped) {
		b.dropped = now
	}
	tx.undone(func() { b.replays, b.dropped = was, wasDropped })
}
