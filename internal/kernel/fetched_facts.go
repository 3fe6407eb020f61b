package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// MaxShown is the largest request that a fact or a judge is given, in bytes.
const MaxShown = 256 << 10

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
	return got, j.k.records.Fetched(got, func(text string) string { return j.k.past.Seal("fact", text) })
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
