package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// verify measures the verification of a ledger that many crossings wrote, from
// the database and from an export, per second of processor time, beside
// SHA-256 over the same records; and the memory it takes.
func (b *bench) verify() (_ []figure, err error) {
	s, err := b.open("verify")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	if err := s.fill(b); err != nil {
		return nil, err
	}
	l, err := s.export(b)
	if err != nil {
		return nil, err
	}
	hashed := l.repeat(b, l.hash)
	onExport := l.repeat(b, l.verifyExport)
	onStore := l.repeat(b, func() error { return s.verifyStore(b) })
	err = errors.Join(hashed.err, onExport.err, onStore.err)
	f := figure{Name: "ledger verify, export", Measured: onExport.perSecond / 1000, Unit: "k leaves/s/core", Target: ">= 300 k"}
	f = f.ratioTo(hashed.perSecond/1000, "sha256")
	f.Met = f.Measured >= 300
	g := figure{Name: "ledger verify, database", Measured: onStore.perSecond / 1000, Unit: "k leaves/s/core", Target: ">= 100 k"}
	g = g.ratioTo(hashed.perSecond/1000, "sha256")
	g.Met = g.Measured >= 100
	m := figure{Name: "  memory of verifying the export", Measured: onExport.heap, Unit: "MB", Target: "constant"}
	m = m.ratioTo(onExport.quarter, "a quarter of it")
	m.Met = m.Measured <= 1.5*m.Beside+1
	return []figure{f, g, m}, err
}

// fill lets 64 callers cross for a while.
func (s *benchState) fill(b *bench) error {
	reqs, err := s.requests(benchOrder, benchPayload(), 64, 1)
	if err != nil {
		return err
	}
	_, err = drive(64, b.span(4*time.Second), func(caller int) error {
		_, err := s.d.Kernel.Cross(b.ctx, reqs[caller], done)
		return err
	})
	return err
}

// exported is an export on disk, and another of a quarter of the leaves.
type exported struct {
	file, quarter string
	key           *ledger.Verifier
	leaves        int64
	records       [][]byte
}

func (s *benchState) export(b *bench) (*exported, error) {
	signer, err := ledger.GenerateKey(rand.Reader, s.d.Runtime())
	if err != nil {
		return nil, err
	}
	l := &exported{file: filepath.Join(b.dir, "export"), quarter: filepath.Join(b.dir, "export-quarter"), key: signer.Verifier()}
	err = s.d.Store().View(b.ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(heads, func(h ledger.Head) bool { return h.Tenant == "tenant-0" })
		if i < 0 {
			return errors.New("nothing was written")
		}
		h := heads[i]
		l.leaves = h.Size
		var tree ledger.Tree
		err = tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
			if s.Seq < h.Size/4 {
				tree.Append(s.Hash)
			}
			l.records = append(l.records, slices.Clone(s.Record))
			return nil
		})
		return errors.Join(err, l.write(tx, l.file, h), l.write(tx, l.quarter, tree.Head(h.Tenant)))
	})
	return l, err
}

func (l *exported) write(tx kernel.Tx, file string, h ledger.Head) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	e := ledger.NewExporter(f, l.key)
	err = e.Tenant(h, nil, func(fn func(ledger.Stored) error) error { return tx.Leaves(h.Tenant, 0, h.Size, fn) })
	return errors.Join(err, e.Close(), f.Close())
}

func (l *exported) hash() error {
	for _, r := range l.records {
		sha256.Sum256(r)
	}
	return nil
}

func (l *exported) verifyExport() error { return l.verifyFile(l.file) }

func (l *exported) verifyFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = (&ledger.ExportVerifier{Key: l.key}).Verify(io.Reader(f))
	return err
}

func (s *benchState) verifyStore(b *bench) error {
	return s.d.Store().View(b.ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if h.Tenant != "tenant-0" {
				continue
			}
			_, err := ledger.VerifyStore(h, nil, func(fn func(ledger.Stored) error) error { return tx.Leaves(h.Tenant, 0, h.Size, fn) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// reading is what going through all leaves came to.
type reading struct {
	perSecond     float64 // of processor time
	heap, quarter float64 // MB above what was there before, of all and of a quarter
	err           error
}

// repeat goes through the leaves three times and takes the best.
func (l *exported) repeat(b *bench, do func() error) reading {
	var r reading
	for range 3 {
		from := processorTime()
		if r.err = do(); r.err != nil {
			return r
		}
		r.perSecond = max(r.perSecond, float64(l.leaves)/(processorTime()-from).Seconds())
	}
	if r.heap, r.err = peakHeap(l.verifyExport); r.err == nil {
		r.quarter, r.err = peakHeap(func() error { return l.verifyFile(l.quarter) })
	}
	return r
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakHeap is by how much the heap grows while do runs, in MB.
func peakHeap(do func() error) (float64, error) {
	runtime.GC()
	base := heapNow()
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
				peak.Store(max(peak.Load(), heapNow()))
			}
		}
	}()
	err := do()
	close(stop)
	<-stopped
	top := max(peak.Load(), heapNow())
	return float64(top-min(base, top)) / 1e6, err
}

func heapNow() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
