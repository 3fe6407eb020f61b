package kernel

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// measureVerify measures the verification of a ledger that many crossings wrote, from
// the database and from an export, per second of processor time, beside
// SHA-256 over the same records; and the memory it takes.
func measureVerify(b *measure.Run) (_ []measure.Figure, err error) {
	s, err := fixture.OpenState(b, "verify")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Daemon.Close()) }()
	if err := fillLedger(s, b); err != nil {
		return nil, err
	}
	l, err := writeExport(s, b)
	if err != nil {
		return nil, err
	}
	hashed, err := perSecond(l.leaves, l.hash)
	if err != nil {
		return nil, err
	}
	l.records = nil
	onExport, err := perSecond(l.leaves, func() error { return l.verify(l.file) })
	if err != nil {
		return nil, err
	}
	onStore, err := verifyStore(s, b)
	if err != nil {
		return nil, err
	}
	whole, err := peakHeap(func() error { return l.verify(l.file) })
	if err != nil {
		return nil, err
	}
	half, err := peakHeap(func() error { return l.verify(l.half) })
	f := measure.Figure{Name: "ledger verify, export", Measured: onExport / 1000, Unit: "k leaves/s/core", Target: ">= 300 k"}
	f = f.RatioTo(hashed/1000, "sha256")
	f.Met = f.Measured >= 300
	g := measure.Figure{Name: "ledger verify, database", Measured: onStore / 1000, Unit: "k leaves/s/core", Target: ">= 100 k"}
	g = g.RatioTo(hashed/1000, "sha256")
	g.Met = g.Measured >= 100
	m := measure.Figure{Name: "  memory of verifying the export", Measured: whole, Unit: "MB", Target: "constant"}
	m = m.RatioTo(half, "half of it")
	m.Met = m.Measured <= 1.2*m.Beside+1
	return []measure.Figure{f, g, m}, err
}

// fillLedger lets 64 callers cross for a while.
func fillLedger(s *fixture.State, b *measure.Run) error {
	reqs, err := s.NewRequests(fixture.Order, fixture.NewPayload(), 64, 1)
	if err != nil {
		return err
	}
	_, err = measure.Drive(64, b.Span(3*time.Second), func(caller int) error {
		_, err := s.Daemon.Kernel.Cross(b.Ctx, reqs[caller], fixture.Succeed)
		return err
	})
	return err
}

// exported is an export on disk, and one of the first half of its leaves.
type exported struct {
	file, half string
	key        *ledger.Verifier
	leaves     int64
	records    [][]byte
}

// exportedCrossings is how many crossings an export holds: more than twice
// those that a verifier remembers.
const exportedCrossings = 40_000

// writeExport writes an export as `ledger export` does, of crossings like the one
// that was made.
func writeExport(s *fixture.State, b *measure.Run) (*exported, error) {
	signer, err := ledger.GenerateKey(rand.Reader, s.Daemon.Runtime())
	if err != nil {
		return nil, err
	}
	like, err := makeSample(s, b)
	if err != nil {
		return nil, err
	}
	l := &exported{file: filepath.Join(b.Dir, "export"), half: filepath.Join(b.Dir, "export-half"), key: signer.Verifier(), leaves: 2 * exportedCrossings}
	leaves := make([]ledger.Stored, 0, l.leaves)
	var whole, half ledger.Tree
	for i := range int64(exportedCrossings) {
		pair, err := Another(like, 2*i)
		if err != nil {
			return nil, err
		}
		for _, leaf := range pair {
			l.records, leaves = append(l.records, leaf.Record), append(leaves, leaf)
			whole.Append(leaf.Hash)
			if i < exportedCrossings/2 {
				half.Append(leaf.Hash)
			}
		}
	}
	tenant := like[0].Tenant
	return l, errors.Join(l.write(l.file, whole.Head(tenant), leaves), l.write(l.half, half.Head(tenant), leaves[:l.leaves/2]))
}

// Another makes another crossing of one, whose begin stands at seq.
func Another(like []ledger.Stored, seq int64) ([]ledger.Stored, error) {
	begin, err := ledger.ParseBegin(like[0].Record)
	if err != nil {
		return nil, err
	}
	entry, err := ledger.ParseEntry(like[1].Record)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	begin.ID, entry.ID, entry.BeginSeq = id.String(), id.String(), &seq
	out := slices.Clone(like)
	for i, r := range []interface {
		AppendJSON([]byte) ([]byte, error)
	}{begin, entry} {
		l := &out[i]
		if l.Record, err = r.AppendJSON(nil); err != nil {
			return nil, err
		}
		l.Seq, l.Crossing, l.Hash = seq+int64(i), id.String(), ledger.LeafHash(l.Record)
	}
	return out, nil
}

func (l *exported) write(file string, h ledger.Head, leaves []ledger.Stored) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	e := ledger.NewExporter(f, l.key)
	err = e.Tenant(h, nil, func(fn func(ledger.Stored) error) error {
		for _, leaf := range leaves {
			if err := fn(leaf); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, e.Close(), f.Close())
}

func (l *exported) hash() error {
	for _, r := range l.records {
		sha256.Sum256(r)
	}
	return nil
}

func (l *exported) verify(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = (&ledger.ExportVerifier{Key: l.key}).Verify(f)
	return err
}

// verifyStore returns how many leaves of the database are verified in a second
// of processor time.
func verifyStore(s *fixture.State, b *measure.Run) (speed float64, err error) {
	err = s.Daemon.Store().View(b.Ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(heads, func(h ledger.Head) bool { return h.Tenant == "tenant-0" })
		if i < 0 {
			return errors.New("nothing was written")
		}
		h := heads[i]
		speed, err = perSecond(h.Size, func() error {
			_, err := ledger.VerifyStore(h, nil, func(fn func(ledger.Stored) error) error { return tx.Leaves(h.Tenant, 0, h.Size, fn) })
			return err
		})
		return err
	})
	return speed, err
}

// perSecond goes through the leaves three times and returns the best, per
// second of processor time.
func perSecond(leaves int64, do func() error) (float64, error) {
	best := 0.0
	for range 3 {
		from := measure.ProcessorTime()
		if err := do(); err != nil {
			return 0, err
		}
		best = max(best, float64(leaves)/max(1e-9, (measure.ProcessorTime()-from).Seconds()))
	}
	return best, nil
}

// peakHeap is by how much the heap grows while do runs, in MB. Garbage is
// collected early, so that what is seen is what is in use.
func peakHeap(do func() error) (float64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	base := measure.HeapInUse()
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				peak.Store(max(peak.Load(), measure.HeapInUse()))
			}
		}
	}()
	err := do()
	close(stop)
	<-stopped
	top := max(peak.Load(), measure.HeapInUse())
	return float64(top-min(base, top)) / 1e6, err
}
