package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// table is a kernel that decides by a table of boundaries, with the verdicts
// of D37 by risk, D11's holds by exact bytes, and replay by supplied key. It
// keeps no ledger; everything that the gateway sees of a kernel is here.
type table struct {
	mu        sync.Mutex
	contracts map[string]holdfast.Contract
	risks     map[string]holdfast.Risk // set by a person, over the hints
	withhold  map[string]bool          // K8 fails for these
	approved  map[string]bool          // reviews
	reviews   map[string]string        // boundary+payload to review
	settled   map[string]*holdfast.Output
	crossings int
	requests  []holdfast.Request
	seen      []holdfast.Contract
	outputs   []holdfast.Output
	actErrs   []error
	fail      error                        // Observe's error
	listed    map[string]holdfast.Contract // what a person wrote down
	decided   map[string]bool
	changed   chan struct{} // closed when a review is decided
	active    int
}

func newTable() *table {
	return &table{contracts: map[string]holdfast.Contract{}, risks: map[string]holdfast.Risk{},
		withhold: map[string]bool{}, approved: map[string]bool{}, reviews: map[string]string{},
		settled: map[string]*holdfast.Output{}, listed: map[string]holdfast.Contract{},
		decided: map[string]bool{}, changed: make(chan struct{})}
}

func (k *table) Observe(_ context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return nil, k.fail
	}
	out := make([]holdfast.Contract, len(cs))
	for i, c := range cs {
		k.seen = append(k.seen, c)
		if r, ok := k.risks[c.Boundary]; ok {
			c.Risk = r
		}
		k.contracts[c.Boundary] = c
		out[i] = c
	}
	return out, nil
}

func deny(g holdfast.Gate, kind holdfast.Kind, why, hint string) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Verdict: holdfast.Deny, Kind: kind, Rule: "table:1", Why: why, Hint: hint}
}

// judge returns the deciding opinion. The caller holds mu.
func (k *table) judge(r holdfast.Request, o *holdfast.Outcome) holdfast.Opinion {
	c, ok := k.contracts[r.Boundary]
	if l, listed := k.find(r.Boundary); listed {
		c, ok = l, true
	}
	if risk, set := k.risks[r.Boundary]; set {
		c.Risk = risk
	}
	key := r.Boundary + "\x00" + string(r.Payload)
	if r.Beside != nil {
		key += "\x00" + string(r.Beside)
	}
	switch {
	case len(r.Denials) > 0:
		return r.Denials[0]
	case r.Token.Reveal() != "good":
		return deny(holdfast.K2, holdfast.KindExpiredToken, "the token has expired", "ask for a new one")
	case !ok:
		return deny(holdfast.K2, holdfast.KindNoBoundary, fmt.Sprintf("no boundary %q", r.Boundary), "list the tools first")
	case c.Risk == holdfast.Prohibited:
		return deny(holdfast.K7, holdfast.KindProhibited, "this tool is forbidden", "use another")
	case c.Risk != holdfast.High || k.approved[k.reviews[key]]:
		delete(k.approved, k.reviews[key])
		return holdfast.Opinion{Gate: holdfast.K7, Verdict: holdfast.Allow}
	}
	if k.reviews[key] == "" {
		k.reviews[key] = fmt.Sprintf("r%d", len(k.reviews)+1)
	}
	o.Review, o.Expires = k.reviews[key], time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	return holdfast.Opinion{Gate: holdfast.K7, Verdict: holdfast.Hold, Rule: "risk HIGH", Why: "risk HIGH is always put to a person"}
}

func (k *table) Cross(ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error) {
	k.mu.Lock()
	k.crossings++
	r.Payload = bytes.Clone(r.Payload)
	k.requests = append(k.requests, r)
	o := &holdfast.Outcome{Crossing: fmt.Sprintf("c%d", k.crossings), Boundary: r.Boundary}
	op := k.judge(r, o)
	o.Verdict, o.Opinions = op.Verdict, []holdfast.Opinion{op}
	settled := k.settled[r.Boundary+"\x00"+r.IdempotencyKey]
	k.mu.Unlock()
	if op.Verdict != holdfast.Allow {
		return o, op.Err()
	}
	if r.IdempotencyKey != "" && settled != nil {
		o.Output, o.Replayed = settled, true
		return o, nil
	}
	k.count(1)
	out, err := act(context.WithValue(ctx, traceKey{}, "00-"+o.Crossing))
	k.count(-1)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outputs, k.actErrs = append(k.outputs, out), append(k.actErrs, err)
	if err != nil {
		var e *holdfast.Error
		if errors.As(err, &e) {
			e.Crossing = o.Crossing
		}
		return o, err
	}
	if k.withhold[r.Boundary] {
		o.Verdict, o.Opinions = holdfast.Deny, []holdfast.Opinion{deny(holdfast.K8, holdfast.KindEvalFailure, "the output breaks a predicate", "")}
		return o, o.Opinions[0].Err()
	}
	o.Output = &out
	if r.IdempotencyKey != "" {
		k.settled[r.Boundary+"\x00"+r.IdempotencyKey] = &out
	}
	return o, nil
}

// Listed says what a person wrote down, by name or pattern.
func (k *table) Listed(boundary string) (holdfast.Contract, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.find(boundary)
}

// find returns the longest name or pattern that lists a boundary. The caller
// holds mu.
func (k *table) find(boundary string) (holdfast.Contract, bool) {
	best, ok := "", false
	for name := range k.listed {
		fits := name == boundary || strings.HasSuffix(name, "*") && strings.HasPrefix(boundary, strings.TrimSuffix(name, "*"))
		if fits && (best == boundary || len(name) > len(best)) {
			best, ok = name, true
		}
		if name == boundary {
			best = name
			break
		}
	}
	return k.listed[best], ok
}

func (k *table) Withholds(boundary string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.contracts[boundary]
	return !ok || k.withhold[boundary] || c.OutputSchema != nil
}

// Await waits for decide.
func (k *table) Await(ctx context.Context, review string) error {
	for {
		k.mu.Lock()
		done, changed := k.decided[review], k.changed
		k.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// decide ends the wait for a review, with a person's yes or no.
func (k *table) decide(review string, yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.approved[review], k.decided[review] = yes, true
	close(k.changed)
	k.changed = make(chan struct{})
}

type traceKey struct{}

func trace(ctx context.Context) string { t, _ := ctx.Value(traceKey{}).(string); return t }

func (k *table) count(d int) { k.mu.Lock(); k.active += d; k.mu.Unlock() }

// goodToken is a source of tokens that the table takes.
func goodToken(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }
