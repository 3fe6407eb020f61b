package egress

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

func TestEgress_State_RateAndBudget(t *testing.T) {
	w := newEgress(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Rate: 2}, {Name: "other.test", Ports: []uint16{tls}, Unit: domain.Bytes}}
		},
		policy: func(p *kernel.Policy) {
			p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Boundary: "egress/other.test", Resource: holdfast.BytesOut, Amount: 3000, Source: "test"})
		},
	})
	first := time.Now()
	for range 2 {
		w.passed(w.send("GET", w.url("good.test"), ""))
	}
	w.entries(2)
	got := w.send("GET", w.url("good.test"), "")
	w.refused(got, 429)
	retry, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if took := int(time.Since(first) / time.Second); err != nil || retry < 60-took-1 || retry > 60 {
		t.Errorf("Retry-After is %q %d s after the first of two", got.Header.Get("Retry-After"), took)
	}
	w.last(3, "egress/good.test", holdfast.KindRateLimit)
	w.passed(w.send("POST", w.url("other.test"), strings.Repeat("a", 1000)))
	w.entries(4)
	got = w.send("POST", w.url("other.test"), strings.Repeat("a", 2500))
	if w.refused(got, 402); got.Header.Get("Retry-After") != "" {
		t.Error("a budget that never resets has a Retry-After")
	}
	w.last(5, "egress/other.test", holdfast.KindBudgetExceeded)
	if n := len(w.up.requests()); n != 3 {
		t.Errorf("the server saw %d requests, want 3", n)
	}
}

func TestEgress_State_HeldForAPersonAndHalted(t *testing.T) {
	high := holdfast.High
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}}, {Name: "other.test", Ports: []uint16{tls}, Risk: &high}}
	}})
	got := w.send("POST", w.url("other.test"), "send this", "Content-Type", "text/plain")
	w.refused(got, 428)
	if !strings.Contains(got.Text, "holdfast review approve ") && !strings.Contains(got.Text, "review: ") {
		t.Errorf("the hold says %q", got.Text)
	}
	again := w.send("POST", w.url("other.test"), "send this", "Content-Type", "text/plain")
	handle := func(s string) string { _, s, _ = strings.Cut(s, "review: "); s, _, _ = strings.Cut(s, "\n"); return s }
	if a, b := handle(got.Text), handle(again.Text); a == "" || a != b {
		t.Errorf("the same request was held as %q and %q", a, b)
	}
	w.untouched()
	w.must(w.latch.Set("test", "stop", time.Now()))
	got = w.send("GET", w.url("good.test"), "")
	if w.refused(got, 503); got.Header.Get("Retry-After") != "" {
		t.Errorf("nobody knows when a halt ends, and Retry-After is %q", got.Header.Get("Retry-After"))
	}
	w.untouched()
}

// A budget with a window says when the window ends, where the request fits into
// the next one.
func TestEgress_State_RetryAfterIsTheEndOfTheBudgetsWindow(t *testing.T) {
	w := newEgress(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Unit: domain.Bytes}}
		},
		policy: func(p *kernel.Policy) {
			p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Boundary: "egress/good.test", Resource: holdfast.BytesOut, Amount: 3000, Window: 24 * time.Hour, Source: "test"})
		},
	})
	w.passed(w.send("POST", w.url("good.test"), strings.Repeat("a", 2000)))
	w.entries(1)
	day := 24 * time.Hour
	left := func() int { return int((day - time.Duration(time.Now().UnixNano())%day) / time.Second) }
	most := left()
	got := w.send("POST", w.url("good.test"), strings.Repeat("a", 2000))
	least := left()
	if w.refused(got, 402); most < least {
		return // a day ended in between
	}
	if retry, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || retry < least || retry > most+1 {
		t.Errorf("Retry-After is %q, and the window ends in %d s", got.Header.Get("Retry-After"), most)
	}
	got = w.send("POST", w.url("good.test"), strings.Repeat("a", 4000))
	if w.refused(got, 402); got.Header.Get("Retry-After") != "" {
		t.Errorf("a request that no window has room for is told to come again in %s s", got.Header.Get("Retry-After"))
	}
}

func TestEgress_State_AnswersAreWithheldUntilTheyAreJudged(t *testing.T) {
	w := newEgress(t, setup{policy: func(p *kernel.Policy) {
		for i := range p.Contracts {
			if p.Contracts[i].Boundary == "egress/good.test" {
				p.Contracts[i].OutputSchema = json.RawMessage(`{"type":"object","properties":{"text":{"not":{"pattern":"forbidden"}}}}`)
				p.Contracts[i].Predicates = []string{"output_schema_conformance"}
			}
		}
	}})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "hello, "+r.URL.Path) })
	got := w.send("GET", w.url("good.test")+"fine", "")
	w.passed(got)
	if got.Text != "hello, /fine" {
		t.Errorf("the answer is %q", got.Text)
	}
	w.entries(1)
	got = w.send("GET", w.url("good.test")+"forbidden", "")
	w.refused(got, 403)
	if strings.Contains(got.Text, "hello") {
		t.Errorf("what is withheld was given: %q", got.Text)
	}
	w.last(2, "egress/good.test", holdfast.KindEvalFailure)
}

func TestEgress_State_AClientThatGoesAwayEndsTheExchange(t *testing.T) {
	w := newEgress(t, setup{})
	gone := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: one\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", w.url("good.test"), nil)
	w.must(err)
	resp, err := w.client().Do(r)
	w.must(err)
	resp.Body.Read(make([]byte, 1))
	cancel()
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(longest):
		t.Fatal("the server was not told that nobody listens any more")
	}
	w.last(1, "egress/good.test", holdfast.KindCanceled)
}
