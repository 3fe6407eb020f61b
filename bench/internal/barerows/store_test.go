package barerows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The measure is a durable crossing: a begin of about 700 bytes with two
// draws, and an entry of about 1100 bytes that settles them, by callers who
// each wait for both. Beside it stands the bare thing: the same callers, the
// same group commit, two rows of the same bytes under the same key and unique
// constraint, on one connection as SQLite comes (it copies its own log back).

// engine is what is measured: do brings one crossing to disk.
type engine interface {
	do(caller int, crossing string) error
	Close() error
}

type whole struct {
	*sqlite.Store
	tenants      int
	begin, entry redact.Record
}

func sealed(t testing.TB, size int) redact.Record {
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Seal(fmt.Appendf(nil, `{"v":%q}`, bytes.Repeat([]byte("ab "), (size-8)/3)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *whole) do(caller int, crossing string) error {
	tenant := fmt.Sprint("tenant", caller%f.tenants)
	agent := fmt.Sprint("agent", caller)
	ds := []budget.Draw{
		{Key: tenant + "/llm_tokens", Resource: holdfast.LLMTokens, Amount: 500, Limit: 1 << 50},
		{Key: tenant + "/" + agent + "/llm_tokens", Resource: holdfast.LLMTokens, Amount: 500, Limit: 1 << 50},
	}
	ctx := context.Background()
	now := time.Now()
	err := f.Update(ctx, func(tx kernel.Tx) error {
		if r, err := tx.Draw(ds); r != nil || err != nil {
			return errors.Join(err, fmt.Errorf("refused: %+v", r))
		}
		_, err := tx.Append(ledger.Leaf{Tenant: tenant, Kind: ledger.KindBegin, Crossing: crossing, At: now, Record: f.begin})
		return err
	})
	if err != nil {
		return err
	}
	return f.Update(ctx, func(tx kernel.Tx) error {
		if err := tx.Settle(ds, []int64{400, 400}); err != nil {
			return err
		}
		_, err := tx.Append(ledger.Leaf{Tenant: tenant, Kind: ledger.KindEntry, Crossing: crossing, At: now, Record: f.entry})
		return err
	})
}

// bare is rows of the same bytes in a Rows.
type bare struct {
	*Rows
	tenants      int
	begin, entry []byte
}

func openBare(t testing.TB, path string, tenants int, begin, entry []byte) *bare {
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return &bare{b, tenants, begin, entry}
}

func (b *bare) do(caller int, crossing string) error {
	tenant := int64(caller%b.tenants) + 1
	if err := b.Put(tenant, 1, crossing, b.begin); err != nil {
		return err
	}
	return b.Put(tenant, 2, crossing, b.entry)
}

// result is one run.
type result struct {
	perSecond float64
	p50, p99  time.Duration
}

// drive lets the callers cross for that long.
func drive(t testing.TB, e engine, callers int, d time.Duration) result {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	from := time.Now()
	for c := range callers {
		wg.Go(func() {
			var mine []time.Duration
			for time.Since(from) < d {
				id := uuid.Must(uuid.NewV7()).String()
				at := time.Now()
				if err := e.do(c, id); err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, time.Since(at))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(from)
	if len(all) == 0 {
		return result{}
	}
	slices.Sort(all)
	return result{float64(len(all)) / took.Seconds(), all[len(all)/2], all[len(all)*99/100]}
}

// BenchmarkCrossings prints crossings per second beside bare, the median of
// five interleaved runs.
func BenchmarkCrossings(b *testing.B) {
	for _, c := range []struct{ callers, tenants int }{{64, 1}, {64, 8}, {1, 1}} {
		b.Run(fmt.Sprintf("callers=%d/tenants=%d", c.callers, c.tenants), func(b *testing.B) {
			for range b.N {
				compare(b, c.callers, c.tenants)
			}
		})
	}
}

func compare(b *testing.B, callers, tenants int) {
	begin, entry := sealed(b, 700), sealed(b, 1100)
	var ratios, tails, lone, rate, bareRate []float64
	var ours, theirs result
	for run := range 5 {
		dir := b.TempDir()
		f := &whole{openStore(b, dir), tenants, begin, entry}
		ba := openBare(b, filepath.Join(dir, "bare.db"), tenants, begin.Bytes(), entry.Bytes())
		for i := range 2 {
			if (run+i)%2 == 0 {
				ours = drive(b, f, callers, 1500*time.Millisecond)
			} else {
				theirs = drive(b, ba, callers, 1500*time.Millisecond)
			}
		}
		if err := errors.Join(f.Close(), ba.Close()); err != nil {
			b.Fatal(err)
		}
		b.Logf("ours %.0f/s p50 %v p99 %v, bare %.0f/s p50 %v p99 %v", ours.perSecond, ours.p50, ours.p99, theirs.perSecond, theirs.p50, theirs.p99)
		ratios = append(ratios, ours.perSecond/theirs.perSecond)
		tails = append(tails, float64(ours.p99)/float64(theirs.p99))
		lone = append(lone, float64(ours.p50-theirs.p50)/1e6)
		rate, bareRate = append(rate, ours.perSecond), append(bareRate, theirs.perSecond)
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(tails), "p99-ratio")
	b.ReportMetric(median(lone), "p50-more-ms")
	b.ReportMetric(median(rate), "crossings/s")
	b.ReportMetric(median(bareRate), "bare/s")
}

// BenchmarkWhole is the store alone, to be profiled.
func BenchmarkWhole(b *testing.B) {
	f := &whole{openStore(b, b.TempDir()), 1, sealed(b, 700), sealed(b, 1100)}
	defer f.Close()
	for range b.N {
		r := drive(b, f, 64, 4*time.Second)
		b.ReportMetric(r.perSecond, "crossings/s")
	}
}

func openStore(t testing.TB, dir string) *sqlite.Store {
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "store.db")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
