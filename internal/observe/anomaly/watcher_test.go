package anomaly

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// halter counts halts, and sets the latch.
type halter struct {
	latch *latch.Latch
	halts atomic.Int64
}

// Halt implements Kernel.
func (h *halter) Halt(who, why string) (int, error) {
	h.halts.Add(1)
	_, err := h.latch.SetFirst(who, why, time.Now())
	return 0, err
}

// Respond implements Kernel.
func (h *halter) Respond(context.Context, holdfast.Secret, watch.Finding, int) (respond.Responded, error) {
	return respond.Responded{}, nil
}

// TestD41a_NoRoomHaltsOnce: however many find no room, everything is halted once; and
// what halts everything is answered before all that waits.
func TestD41a_NoRoomHaltsOnce(t *testing.T) {
	l, err := latch.New(filepath.Join(t.TempDir(), "HALT"))
	if err != nil {
		t.Fatal(err)
	}
	h := &halter{latch: l}
	w := New(Options{Latch: l, Kernel: func() Kernel { return h }, Log: slog.New(slog.DiscardHandler)}, watch.Limits{})
	w.mu.Lock()
	for i := range maxFindings + 10 {
		w.add(
			&watch.Finding{Condition: watch.Loop, Response: watch.Pause, Tenant: holdfast.Local, Agent: fmt.Sprint(i)},
		)
	}
	w.add(&watch.Finding{Condition: watch.Loop, Response: watch.Halt, Tenant: holdfast.Local, Agent: "7"})
	if first := w.order[0]; first.agent != "7" || len(w.order) != maxFindings {
		t.Errorf("%+v is first of %d", first, len(w.order))
	}
	if !w.halting {
		t.Error("no one halts")
	}
	w.mu.Unlock()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		halted := l.Halted() && !w.halting
		w.mu.Unlock()
		if halted {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is not halted")
		}
	}
	if n := h.halts.Load(); n != 1 {
		t.Errorf("halted %d times", n)
	}
}

// TestOwnCrossingsAreNoAction: Holdfast's own crossings are not watched.
func TestOwnCrossingsAreNoAction(t *testing.T) {
	w := New(Options{}, watch.Limits{})
	for agent, boundary := range map[string]string{Agent: "watch/pause",
		snapshot.Agent: snapshot.BoundaryPrefix + "commit"} {
		if _, ok := w.seen(&ledger.Entry{TenantID: holdfast.Local, Agent: agent, Boundary: boundary}); ok {
			t.Errorf("%s at %s is watched", agent, boundary)
		}
	}
}

// TestD41a_FloodOfFindings: however many are found, those that wait are bounded, one
// for an agent and a condition, and crossings are not held up by them; where what
// must be answered finds no room everything is halted.
func TestD41a_FloodOfFindings(t *testing.T) {
	w := New(Options{}, watch.Limits{})
	more := testrepeat.Times(2*maxFindings, 10)
	for i := range maxFindings + more {
		w.Take(
			[]watch.Finding{{Condition: watch.Outlier, Response: watch.Record, Tenant: "local", Agent: fmt.Sprint(i)}},
		)
	}
	if len(w.waiting) != maxFindings || len(w.order) != maxFindings || w.lost != int64(more) {
		t.Errorf("%d wait, %d in order, %d lost", len(w.waiting), len(w.order), w.lost)
	}
	// What must be answered takes the place of what is only recorded.
	for range 100 {
		w.Take([]watch.Finding{{Condition: watch.Loop, Response: watch.Pause, Tenant: "local", Agent: "ada"}})
	}
	f := w.waiting[findingKey{"local", "ada", watch.Loop, false}]
	if f == nil || f.times != 100 || len(w.waiting) != maxFindings {
		t.Errorf("%+v, %d wait", f, len(w.waiting))
	}
	// The milder one that is found later does not take back what was to be done.
	w.Take([]watch.Finding{{Condition: watch.Loop, Response: watch.Record, Tenant: "local", Agent: "ada"}})
	if f := w.waiting[findingKey{"local", "ada", watch.Loop, false}]; f.Response != watch.Pause {
		t.Errorf("%+v", f)
	}
}

// TestAttackWatch_halt_waits_for_nobody: what halts everything is answered before all
// that waits, however much does.
func TestAttackWatch_halt_waits_for_nobody(t *testing.T) {
	w := New(Options{}, watch.Limits{})
	for i := range maxFindings - 1 {
		w.Take([]watch.Finding{{Condition: watch.Loop, Response: watch.Pause, Tenant: "local", Agent: fmt.Sprint(i)}})
	}
	w.Take([]watch.Finding{{Condition: watch.LatchFailed, Response: watch.Halt}})
	if first := w.order[0]; first.condition != watch.LatchFailed {
		t.Errorf("first comes %+v", first)
	}
	w = New(Options{}, watch.Limits{})
	w.Take([]watch.Finding{{Condition: watch.LedgerFailed, Response: watch.Record}, {Condition: watch.Loop,
		Response: watch.Pause, Agent: "a"}, {Condition: watch.LatchFailed, Response: watch.Record}})
	w.Take([]watch.Finding{{Condition: watch.LatchFailed, Response: watch.Halt}})
	if first := w.order[0]; first.condition != watch.LatchFailed || len(w.order) != 3 {
		t.Errorf("in order: %+v", w.order)
	}
}

// TestD41a_RestartKnowsWhatWasOnlyRecorded: what people were spared before a restart is
// not taken for what they were told.
func TestD41a_RestartKnowsWhatWasOnlyRecorded(t *testing.T) {
	m, ok := happened(&ledger.Event{Name: respond.EventAnomaly, TenantID: holdfast.Local,
		Data: []byte(`{"condition":"rapid_actions","response":"record","agent":"ada","why":"haste","times":1}`)})
	if !ok || m.told == nil || m.told.Response != watch.Record || m.told.Why != "haste" {
		t.Errorf("%+v", m.told)
	}
}

// TestD41a_WhatWasFoundLastIsSaidLast: of a condition that comes and goes faster than is
// answered, the last that is said is how it stands.
func TestD41a_WhatWasFoundLastIsSaidLast(t *testing.T) {
	is := watch.Finding{Condition: watch.Rapid, Response: watch.Alert, Tenant: holdfast.Local, Agent: "ada"}
	ended, other := is, is
	ended.Cleared, ended.Response, other.Agent = true, watch.Record, "bea"
	for name, found := range map[string][]watch.Finding{"it holds": {is, ended, other, is},
		"it ended": {ended, is, other, ended}} {
		w := New(Options{}, watch.Limits{})
		for i := range found {
			w.Take(found[i : i+1])
		}
		var order []bool
		for _, k := range w.order {
			if k.agent == "ada" {
				order = append(order, k.cleared)
			}
		}
		if want := found[3].Cleared; len(w.order) != 3 || len(order) != 2 || order[0] == want || order[1] != want {
			t.Errorf("%s: %+v", name, w.order)
		}
	}
}
