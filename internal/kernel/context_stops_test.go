package kernel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

func TestLease(t *testing.T) {
	w := newWorld(t, "")
	x, out, err := w.k.Enter(t.Context(), w.req("test/cost", `{}`), time.Minute)
	if err != nil || out.State != holdfast.Active {
		t.Fatalf("%v %+v", err, out)
	}
	out, err = x.Exit(holdfast.Output{Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 3}}, nil)
	if err != nil || out.State != holdfast.Idle {
		t.Fatalf("%v %+v", err, out)
	}
	if _, err = x.Exit(holdfast.Output{}, nil); holdfast.KindOf(err) != holdfast.KindAbandoned {
		t.Fatalf("a second exit: %v", err)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || *es[0].Uses[0].Used != 3 {
		t.Fatalf("%+v", es)
	}
}

func TestLeaseRunsOut(t *testing.T) {
	w := newWorld(t, "")
	x, _, err := w.k.Enter(t.Context(), w.req("test/low", `{}`), 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-x.Context().Done()
	for range 500 {
		if len(w.entries(holdfast.Local)) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 1 || es[0].Outcome != ledger.Abandoned || es[0].ErrorKind != holdfast.KindAbandoned {
		t.Fatalf("%+v", es)
	}
	_, err = x.Exit(holdfast.Output{}, nil)
	wants(t, err, holdfast.KindAbandoned)
}

func TestHaltCutsAndRefuses(t *testing.T) {
	w := newWorld(t, "")
	started := make(chan struct{})
	got := make(chan error, 1)
	req := w.req("test/low", `{}`)
	go func() {
		_, err := w.k.Cross(context.Background(), req, func(ctx context.Context) (holdfast.Output, error) {
			close(started)
			<-ctx.Done()
			return holdfast.Output{}, ctx.Err()
		})
		got <- err
	}()
	<-started
	n, err := w.k.Halt("carol", "smoke")
	if err != nil || n != 1 {
		t.Fatalf("cut %d, %v", n, err)
	}
	wants(t, <-got, holdfast.KindHalted)
	_, err = w.cross(w.req("test/low", `{}`))
	wants(t, err, holdfast.KindHalted)
	if strings.Contains(err.Error(), "smoke") || strings.Contains(err.Error(), "carol") {
		t.Fatalf("an agent reads who halted, or why: %v", err)
	}
	es := w.entries(holdfast.Local)
	if len(es) != 2 || es[0].Outcome != ledger.Halted || es[1].Outcome != ledger.Denied {
		t.Fatalf("%+v", es)
	}
	if evs := w.events(holdfast.Local, "halted"); len(evs) != 1 || evs[0].Who != "carol" || !strings.Contains(string(evs[0].Data), "smoke") {
		t.Fatalf("who halted, and why, is not recorded: %+v", evs)
	}
	forged := w.sign(operator.Statement{Act: operator.Resume})
	forged.Signature[0] ^= 1
	wants(t, w.k.Resume(forged), holdfast.KindPermission)
	word := w.sign(operator.Statement{Act: operator.Resume, Reason: "fire is out"})
	if err := w.k.Resume(word); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cross(w.req("test/low", `{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Halt("carol", "again"); err != nil {
		t.Fatal(err)
	}
	wants(t, w.k.Resume(word), holdfast.KindConflict)
}

func TestPauseOneAgent(t *testing.T) {
	w := newWorld(t, "")
	if _, err := w.cross(w.req("test/low", `{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Pause(holdfast.Local, "alice", "carol", "odd"); err != nil {
		t.Fatal(err)
	}
	_, err := w.cross(w.req("test/low", `{}`))
	wants(t, err, holdfast.KindPaused)
	other := w.req("test/low", `{}`)
	other.Token = w.who("dave")
	if _, err := w.cross(other); err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Unpause(holdfast.Local, w.sign(operator.Statement{Act: operator.Unpause, Subject: "alice"})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cross(w.req("test/low", `{}`)); err != nil {
		t.Fatal(err)
	}
}

// A lease ends at the request's deadline, however long it was asked for.
func TestLeaseEndsAtTheDeadline(t *testing.T) {
	w := newWorld(t, "")
	req := w.req("test/low", `{}`)
	req.Deadline = w.now().Add(200 * time.Millisecond)
	x, _, err := w.k.Enter(t.Context(), req, kernel.MaxLease)
	if err != nil {
		t.Fatal(err)
	}
	if left := x.Expires().Sub(w.now()); left > time.Second {
		t.Fatalf("the lease lasts %v past a deadline in 200 ms", left)
	}
	select {
	case <-x.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the lease outlived the deadline")
	}
}
