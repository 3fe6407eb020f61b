package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// summaries ends the proxy and the minute, and gives what the ledger then holds
// of refusals without records: who, recorded, unrecorded.
func (w *world) summaries() []string {
	w.t.Helper()
	w.must(w.p.Close(context.Background()))
	w.mu.Lock()
	w.offset += time.Minute
	w.mu.Unlock()
	for range 2 { // the second has nothing left to say
		_, err := w.k.Sweep()
		w.must(err)
	}
	var out []string
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			err := tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				if s.Kind != ledger.KindEvent {
					return nil
				}
				e, err := ledger.ParseEvent(s.Record)
				if err == nil && e.Name == "denials_summarised" {
					var n struct{ Recorded, Unrecorded int }
					err = json.Unmarshal(e.Data, &n)
					out = append(out, fmt.Sprintf("%s/%s %d %d", h.Tenant, e.Subject, n.Recorded, n.Unrecorded))
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return out
}

// crowd waits until n were turned away.
func (w *world) crowd(n int64) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d were turned away", n), func() bool { return w.p.Snapshot().Crowded >= n })
}

// TestAttack_ConnectionsThatAreTurnedAwayAreCounted: a flood of connections
// leaves one event in the ledger with their number, whatever the listener told
// the kernel in between; without a token it is nobody's.
func TestAttack_ConnectionsThatAreTurnedAwayAreCounted(t *testing.T) {
	const flood = 60
	for name, c := range map[string]struct {
		token func(*world) (holdfast.Secret, error)
		want  string
	}{
		"an agent's": {func(w *world) (holdfast.Secret, error) { return w.who("mallory") }, holdfast.Local + "/mallory 0 120"},
		"nobody's":   {func(*world) (holdfast.Secret, error) { return holdfast.Secret{}, io.EOF }, holdfast.Unverified + "/- 0 120"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEgress(t, setup{config: func(c *Config) { c.MaxConns = 2 }})
			l := w.port()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				w.p.Explicit(l, Caller{Token: func() (holdfast.Secret, error) { return c.token(w) }})
			}()
			t.Cleanup(func() { l.Close(); <-ended })
			for range 2 {
				w.dial(l.Addr().String())
			}
			for round := range int64(2) {
				for range flood {
					w.dial(l.Addr().String())
				}
				w.crowd((round + 1) * flood)
				if round == 0 {
					time.Sleep(awayTold + 100*time.Millisecond)
				}
			}
			if got := w.summaries(); !slices.Equal(got, []string{c.want}) {
				t.Errorf("the ledger says %q, want %q", got, c.want)
			}
		})
	}
}

// TestAttack_RequestsThatAreTurnedAwayAreCounted: so do requests beyond those
// that one caller may have under way.
func TestAttack_RequestsThatAreTurnedAwayAreCounted(t *testing.T) {
	w := newEgress(t, setup{})
	w.plain.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for range maxAtOnce {
		io.WriteString(w.dial(w.open), get(w.plainHost(), "/"))
	}
	w.until("all places are taken", func() bool { return len(w.plain.requests()) >= maxAtOnce })
	const more = 30
	for i := range more {
		if r := say(w.dial(w.open), get(w.plainHost(), "/")); r == nil || r.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("request %d beyond the bound: %+v", i, r)
		}
	}
	if got, want := w.summaries(), []string{fmt.Sprintf("%s/alice 0 %d", holdfast.Local, more)}; !slices.Equal(got, want) {
		t.Errorf("the ledger says %q, want %q", got, want)
	}
}
