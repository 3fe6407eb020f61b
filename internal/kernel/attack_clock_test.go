package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// An honest ledger under a clock that jumps both ways, with halts, pauses,
// approvals, revocations, replays, leases and erasures among concurrent
// crossings: neither verifier may call it bad.
func TestAttackFalseAlarmClockJumps(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("ATTACK_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	jumps := 0
	if os.Getenv("ATTACK_STEADY") != "" {
		jumps = 3
	}
	w := newWorld(t, "", unlimited)
	rng := rand.New(rand.NewPCG(seed, 7))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(g)))
		wg.Go(func() {
			bs := []string{"test/low", "test/medium", "test/high", "test/never", "test/schema", "test/perm", "test/spawn", "test/cost", "test/cost", "test/declared", "test/scored",
				"test/replay", "test/replay", "test/output", "test/rate", "test/rate", "agent/step", "test/unfunded", "test/slow"}
			for {
				select {
				case <-stop:
					return
				default:
				}
				name := []string{"alice", "zed", "amy"}[r.IntN(3)]
				req := holdfast.Request{Boundary: bs[r.IntN(len(bs))], Payload: fmt.Appendf(nil, `{"n":%d}`, r.IntN(3)), Token: w.who(name)}
				if r.IntN(8) == 0 {
					req.IdempotencyKey = fmt.Sprint("k", r.IntN(3))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(20))*time.Millisecond)
				switch r.IntN(6) {
				case 0:
					x, _, err := w.k.Enter(t.Context(), req, time.Duration(1+r.IntN(10))*time.Millisecond)
					if err == nil && x != nil { // a replay has no crossing
						time.Sleep(time.Duration(r.IntN(12)) * time.Millisecond)
						_, _ = x.Exit(holdfast.Output{Body: []byte(`{"ok":true}`)}, nil)
					}
				case 1:
					_, _ = w.k.Cross(ctx, req, func(ctx context.Context) (holdfast.Output, error) {
						time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond)
						return holdfast.Output{Body: []byte(`{"ok":1}`)}, nil
					})
				case 2:
					_, _ = w.k.Cross(t.Context(), req, func(context.Context) (holdfast.Output, error) {
						return holdfast.Output{}, errors.New("it failed")
					})
				default:
					_, _ = w.k.Cross(t.Context(), req, ok)
				}
				cancel()
			}
		})
	}
	for range testrepeat.Times(120, 60) {
		time.Sleep(time.Duration(rng.IntN(6)) * time.Millisecond)
		switch n := rng.IntN(9); max(n, jumps) {
		case 0:
			w.advance(time.Duration(rng.IntN(7200)-3600) * time.Second)
		case 1:
			w.advance(time.Duration(rng.IntN(60)-30) * time.Hour)
		case 2:
			w.advance(-time.Duration(rng.IntN(90)) * time.Second)
		case 3, 4:
			rs, _ := w.k.Reviews(t.Context(), "", review.Pending)
			if len(rs) > 0 {
				act := []string{operator.Approve, operator.Approve, operator.Reject}[rng.IntN(3)]
				_, _ = w.k.Decide(w.say(act, rs[rng.IntN(len(rs))].ID, "x"))
			}
		case 5:
			_, _ = w.k.Halt("carol", "x")
			_ = w.k.Resume(w.sign(operator.Statement{Act: operator.Resume}))
		case 6:
			_, _ = w.k.Pause(holdfast.Local, "zed", "carol", "x")
			_, _ = w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "zed"}))
		case 7:
			_ = w.k.Trust(holdfast.Local, w.sign(operator.Statement{Act: operator.Trust, Subject: "amy", Value: []string{"baseline", "medium", "high"}[rng.IntN(3)]}))
		case 8:
			_, _ = w.erasure.Erase(holdfast.Local, w.sign(operator.Statement{Act: operator.Erase, Subject: "before " + w.now().Add(time.Hour).UTC().Format(time.RFC3339), Value: "all"}))
		}
	}
	close(stop)
	wg.Wait()
	time.Sleep(20 * time.Millisecond)
	verifyStore(t, w)
	_, found := judgedAgain(t, w)
	for _, f := range found {
		w.leaves(f.Tenant, func(s ledger.Stored) {
			if s.Crossing == f.Crossing {
				t.Logf("leaf %d: %s", s.Seq, s.Record)
			}
		})
	}
	r := nothingWrong(t, w)
	t.Logf("%+v", r.Totals)
}
