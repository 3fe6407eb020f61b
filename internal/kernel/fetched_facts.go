package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// MaxShown is the largest request that a fact or a judge is given, in bytes.
const MaxShown = 256 << 10

// maxFetchedText bounds what one record keeps of all facts together, in bytes.
const maxFetchedText = 8 << 10

// fetchFacts fetches the facts that the rules on the request name (D3): before K8
// is asked, under no lock, and only those of rules that judge here. What cannot be
// fetched fails the rules that name it.
func (j *judgement) fetchFacts(ctx context.Context) {
	if j.contract == nil || j.doc == nil {
		return
	}
	if d := j.req.Deadline; !d.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, d)
		defer stop()
	}
	j.fetched, j.keptFetched = j.fetchNamed(ctx, j.pol.Rules.Facts(j.req.Boundary, j.ruleKinds()...))
}

// fetchForOutput fetches those of the rules on what came out, and of the
// contract's predicates.
func (j *judgement) fetchForOutput(ctx context.Context) {
	if !j.asksOutput() {
		return
	}
	names := j.pol.Rules.Facts(j.req.Boundary, constitution.OnOutput)
	for _, p := range j.contract.Checks {
		names = append(names, p.Facts...)
	}
	slices.Sort(names)
	j.fetchedOut, j.keptOut = j.fetchNamed(ctx, slices.Compact(names))
}

func (j *judgement) fetchNamed(ctx context.Context, names []string) (got map[string]constitution.Fetched, recorded []ledger.Fetched) {
	if len(names) == 0 || j.pol.Facts == nil {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			j.k.log.Error("facts could not be fetched", "crossing", j.id, "panic", fmt.Sprint(r))
			got, recorded = nil, nil
		}
	}()
	ctx, cancel := deadline.After(ctx, gateTime)
	defer cancel()
	got = j.pol.Facts.Fetch(ctx, names, j.forFacts)
	for _, name := range names {
		if err := got[name].Err; err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			j.k.log.Warn("a fact could not be fetched; the rules that name it fail", "fact", name, "crossing", j.id, "why", j.k.quote(err.Error(), 256))
		}
	}
	if j.looks {
		return got, nil
	}
	return got, j.k.recordFetched(got)
}

// FactRequest is what a fact that hangs on the request is given, as JSON: all of
// it is data that an agent may have chosen.
type FactRequest struct {
	Boundary  string        `json:"boundary"`
	Operation string        `json:"operation,omitempty"`
	Risk      holdfast.Risk `json:"risk"`
	Tenant    string        `json:"tenant_id"`
	Principal string        `json:"principal"`
	Agent     string        `json:"agent"`
	Kind      string        `json:"kind,omitempty"`
	Session   string        `json:"session,omitempty"`
	// Payload is the payload, redacted.
	Payload json.RawMessage `json:"payload"`
}

func (j *judgement) forFacts() ([]byte, error) {
	if len(j.req.Payload) > MaxShown {
		return nil, fmt.Errorf("the request has more than %d bytes", MaxShown)
	}
	res, err := j.k.redact.JSON(j.doc.Canonical())
	if err != nil {
		return nil, err
	}
	return json.Marshal(FactRequest{Boundary: j.req.Boundary, Operation: j.contract.Operation, Risk: j.risk(), Tenant: j.who.Tenant,
		Principal: j.who.Principal, Agent: j.who.Agent, Kind: j.who.Kind, Session: j.who.Session, Payload: res.Out})
}

// recordFetched is what a record keeps of facts: enough to judge again by those
// that are short and hang on nothing that an agent sent.
func (k *Kernel) recordFetched(all map[string]constitution.Fetched) []ledger.Fetched {
	var out []ledger.Fetched
	left := maxFetchedText
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(out) == ledger.MaxFetched {
			break
		}
		f := all[name]
		r := ledger.Fetched{Name: name}
		if f.Err != nil {
			r.Why = k.quote(f.Err.Error(), 256)
		} else {
			r.Seal = k.past.Seal("fact", string(f.Text))
			if r.Text = k.keepable(&f); len(r.Text) > left {
				r.Text = ""
			}
			left -= len(r.Text)
		}
		out = append(out, r)
	}
	return out
}

// keepable is the text of a fact that may stand in a record, or nothing.
func (k *Kernel) keepable(f *constitution.Fetched) string {
	if f.PerRequest || len(f.Text) > ledger.MaxFetchedText {
		return ""
	}
	res, err := k.redact.JSON(f.Text)
	if err != nil || res.Found() {
		return ""
	}
	return string(f.Text)
}
