package kernel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Where redaction and ledger meet: everything that is written passes here.

// maxWalls is how many walls a record names.
const maxWalls = 32

func (k *Kernel) mask(s string) []byte { return k.records.Mask(s) }

func (k *Kernel) quote(s string, n int) string { return k.records.Quote(s, n) }

// beginLeaf is the record that is durable before the act.
func (j *judgement) beginLeaf(parent inside) (*ledger.Begin, ledger.Leaf, error) {
	c := j.contract
	b := ledger.Begin{
		ID: j.id, TenantID: j.who.Tenant, Correlation: j.correlation, Timestamp: j.at,
		Boundary: c.Boundary, Caller: visible.ReplaceUnprintable(j.who.Principal), Roles: j.who.Roles,
		Agent: j.who.Name(), Owner: j.owner(), AgentKind: j.who.Kind, Session: j.who.Session, Intent: j.who.Intent,
		Chain: j.who.Chain, Tier: j.who.Tier, Parent: parent.id, Risk: j.risk().String(),
		ExactHash: j.exact(), Key: j.key(), Policy: j.pol.Version, SchemaID: j.recordedSchema(),
		Required: c.Permissions, Granted: j.granted.List(), Confidence: j.score,
		Deadline: j.req.Deadline.UTC().Truncate(time.Microsecond), Traceparent: j.traceparent,
		Weakened: j.pol.contracts.LoosenedFor(j.contract),
		Facts:    j.judged(),
	}
	if j.scope != "" {
		b.Until = j.now.Add(j.claimFor())
	}
	for _, r := range j.rates {
		b.Rates = append(b.Rates, ledger.Rate{Key: r.Key, Limit: int64(r.Limit), Window: r.Window.Microseconds(), Name: r.Name})
	}
	if h := &j.human; h.Approved {
		yes := true
		b.Approved, b.Review, b.Reviewer = &yes, h.Review.ID, h.Review.Reviewer
	}
	if rule := j.human.Rule; rule != nil {
		yes := true
		b.Approved, b.Review, b.Reviewer = &yes, rule.Name(), visible.ReplaceUnprintable(rule.Reviewer())
	}
	for _, d := range j.draws {
		b.Draws = append(b.Draws, recordedDraw(d))
	}
	if b.Deadline.IsZero() || j.req.Deadline.IsZero() {
		b.Deadline = time.Time{}
	}
	b.Past = j.k.past.Marks(j.sights)
	b.Model, b.Sub = j.reservedModel(), j.subAgent()
	part, err := j.requestPart(&b)
	if err == nil && j.feats != nil {
		err = j.feats.err
	}
	if err != nil {
		return nil, ledger.Leaf{}, err
	}
	leaf, err := j.k.records.Leaf(ledger.KindBegin, j.who.Tenant, j.id, j.at, &b, part)
	return &b, leaf, err
}

// requestPart is the payload for the begin's erasable part. One that the frontend noted for
// people is not kept: the entry keeps the note.
func (j *judgement) requestPart(b *ledger.Begin) (part []byte, err error) {
	if j.pol.ForgetRequests || len(j.req.Noted) > 0 || j.doc == nil {
		return nil, nil
	}
	part, b.PartHash, err = j.k.records.Request(j.doc.Canonical())
	return part, err
}

func (j *judgement) recordedSchema() string {
	if j.contract == nil || j.contract.Input == nil {
		return ""
	}
	return j.contract.SchemaName()
}

// sealEntry stamps an entry and makes its leaf.
func (k *Kernel) sealEntry(e *ledger.Entry, part []byte) (ledger.Leaf, error) {
	e.CreatedAt = k.instant()
	e.DurationUS = max(0, e.CreatedAt.Sub(e.Timestamp).Microseconds())
	return k.records.Leaf(ledger.KindEntry, e.TenantID, e.ID, e.CreatedAt, e, part)
}

// appendEntry appends an entry and its leaf. Transactions run one after
// another, and entries stand in the order of their created_at (spec 003 section
// 1.7, invariant 4): one that another has overtaken since it was sealed, which
// is done outside the transaction because it takes long, is sealed again.
func (k *Kernel) appendEntry(tx Tx, e *ledger.Entry, leaf ledger.Leaf) (err error) {
	if at := leaf.At.UnixMicro(); at <= k.entered.Load() {
		if leaf, err = k.sealEntry(e, leaf.Part); err != nil {
			return err
		}
	}
	k.entered.Store(leaf.At.UnixMicro())
	_, err = tx.Append(leaf)
	return err
}

// entryLeaf is the crossing's one entry, with its leaf.
func (c *crossing) entryLeaf(end *ending, used []int64) (*ledger.Entry, ledger.Leaf, error) {
	e, part, err := c.entry(end, used)
	if err != nil {
		return nil, ledger.Leaf{}, err
	}
	leaf, err := c.k.sealEntry(e, part)
	return e, leaf, err
}

func (c *crossing) entry(end *ending, used []int64) (*ledger.Entry, []byte, error) {
	j := c.j
	e := j.skeleton(c.parent)
	e.Outcome, e.ReplayOf, e.ExitCode = end.outcome, end.replayOf, exitCode(end)
	if r := end.out.Ran; r != nil {
		e.Run, e.Sandbox = visible.Shorten(r.State), excerpt.Of(r.Sandbox, 256)
		for _, w := range r.Walls[:min(len(r.Walls), maxWalls)] {
			e.Walls = append(e.Walls, visible.Shorten(w))
		}
	}
	if e.Passed = end.evaluated; e.Passed == nil {
		e.Passed = gateBool(j, holdfast.K8)
	}
	if c.begin != nil {
		e.Unstarted = end.unstarted
		// The rest stands in the begin.
		e.BeginSeq, e.Facts = &c.begin.Seq, ledger.Facts{Predicates: j.contract.Predicates, Fetched: j.keptOut}
		if j.scope != "" && !end.unstarted {
			e.Until = c.k.now().Add(j.pol.replayFor())
		}
	}
	if end.err == nil {
		e.State = holdfast.Idle
	} else {
		fault(e, end.err)
	}
	for i := range e.Uses {
		if c.begin != nil {
			e.Uses[i].Used = &used[i]
		}
	}
	if e.Sub = j.subAgent(); c.begin != nil {
		e.Model = c.chargedModel(end)
	}
	part, err := c.result(e, end)
	return e, part, err
}

// skeleton is what the judgement alone knows of the entry.
func (j *judgement) skeleton(parent inside) *ledger.Entry {
	e := &ledger.Entry{
		ID: j.id, TenantID: j.tenant(), Correlation: j.correlation, Timestamp: j.at,
		Boundary: j.recordedBoundary(), Caller: visible.ReplaceUnprintable(orNobody(j.who.Principal)),
		Roles: j.who.Roles,
		Valid: gateBool(j, holdfast.K1), Authorized: gateBool(j, holdfast.K2), WithinBudget: gateBool(j, holdfast.K3),
		Confidence: j.score, Agent: j.who.Name(), Owner: j.owner(), AgentKind: j.who.Kind, Session: j.who.Session, Intent: j.who.Intent,
		Chain: j.who.Chain, Tier: j.who.Tier, Parent: parent.id, ExactHash: j.exact(), Policy: j.pol.Version,
		Traceparent: j.traceparent, Weakened: j.pol.contracts.LoosenedFor(j.contract),
		Opinions: ledger.Compact(j.opinions),
		State:    holdfast.Faulted, Facts: j.judged(),
	}
	e.Spoken, e.More = record.ListSpoken(j.spoke)
	if key := j.key(); key != "" {
		e.Key = &key
	}
	if j.contract != nil {
		e.Risk = j.risk().String()
		if id := j.recordedSchema(); id != "" {
			e.SchemaID = &id
		}
	}
	if _, asked := j.asked(holdfast.K2); asked && j.contract != nil {
		e.Required, e.Granted = j.contract.Permissions, j.granted.List()
	}
	h := &j.human
	if h.Approved {
		yes := true
		e.Approved = &yes
	}
	if h.Rule != nil {
		yes := true
		e.Approved, e.Review, e.Reviewer = &yes, h.Rule.Name(), visible.ReplaceUnprintable(h.Rule.Reviewer())
	} else if h.Review != nil && (h.Approved || h.Review.State == review.Rejected) {
		e.Review, e.Reviewer = h.Review.ID, h.Review.Reviewer
	}
	j.bounds(e)
	return e
}

// judged is what the request was judged by, so that it can be judged again
// from the ledger alone. What was judged of nobody is left out.
func (j *judgement) judged() ledger.Facts {
	f := ledger.Facts{Clock: behind(j.now, j.at), Scope: j.scope, Threshold: j.limit, Fetched: j.keptFetched}
	if j.whoErr == nil {
		f.TokenID, f.TokenExpires = j.who.TokenID, j.who.Expires
	}
	if j.whoErr == nil && j.factErr == nil {
		f.Level = j.agent.Level.String()
	}
	if j.human.Approved {
		f.Governs = j.human.Policy
	}
	if j.feats != nil {
		f.Features = j.feats.records
	}
	return f
}

// behind is the clock, if a record's time lies more than a second ahead of it.
func behind(now, at time.Time) time.Time {
	if at.Sub(now) <= time.Second {
		return time.Time{}
	}
	return now.UTC().Truncate(time.Microsecond)
}

// bounds fills the k3_ columns with the resource that refused, else the tightest,
// and k3_all with every one (D14b). Where the counters could not be read they stay empty: nobody
// knows what was used before.
func (j *judgement) bounds(e *ledger.Entry) {
	if j.factErr != nil || j.roomErr != nil {
		return
	}
	for i, d := range j.draws {
		e.Uses = append(e.Uses, ledger.Use{Draw: recordedDraw(d), Before: j.usedBefore(i)})
	}
	i := j.shown()
	if i < 0 {
		return
	}
	d, before := j.draws[i], j.usedBefore(i)
	res := string(d.Resource)
	e.ResourceType, e.BudgetLimit, e.UsageBefore, e.Requested = &res, &d.Limit, &before, &d.Amount
}

// kept is the text that an entry keeps: what came out; of what failed what the
// hand says of it, else what the door noted of the request, else the error's text,
// which the entry has without its kind anyway.
func (c *crossing) kept(end *ending) []byte {
	out, noted := end.out.Body, c.j.req.Noted
	switch {
	case len(out) > 0 && (end.err == nil || end.answered):
		return out
	case len(noted) > 0 && record.IsShort(noted):
		return noted
	case end.err != nil:
		return []byte(end.err.Error())
	}
	return nil
}

// result puts what is kept into the entry's erasable part.
func (c *crossing) result(e *ledger.Entry, end *ending) ([]byte, error) {
	text := c.kept(end)
	if len(text) == 0 {
		return nil, nil
	}
	r, err := c.k.records.Result(text)
	if err != nil {
		return nil, err
	}
	e.Applied, e.ContainsPII, e.ResultHash = r.Rules, r.Found, &r.Hash
	return r.Part, nil
}

// fault notes why a crossing did not end well.
func fault(e *ledger.Entry, err error) {
	e.State, e.ErrorKind = holdfast.Faulted, holdfast.KindOf(err)
	he, ok := asError(err)
	if !ok {
		return
	}
	e.Why, e.Rule = he.Why, he.Rule
	if he.Gate != holdfast.GateHalt || stands(he.Kind) {
		g := he.Gate
		e.Gate = &g
	}
}

// exitCode is the ledger's exit_code: 0 is success.
func exitCode(end *ending) int64 {
	switch {
	case end.err == nil:
		return int64(end.out.ExitCode)
	case end.out.ExitCode > 0:
		return int64(end.out.ExitCode)
	}
	return 1
}

// gateBool is a gate's column: nil where the gate was not asked (D14b).
func gateBool(j *judgement, g holdfast.Gate) *bool {
	v, asked := j.asked(g)
	if !asked {
		return nil
	}
	ok := v == holdfast.Allow
	return &ok
}

// recordedBoundary is the boundary's name as it may be written: what no
// contract lists is an agent's own text, and is masked and bounded.
func (j *judgement) recordedBoundary() string {
	if j.contract != nil {
		return j.contract.Boundary
	}
	return visible.ReplaceUnprintable(orNobody(j.k.quote(j.req.Boundary, 128)))
}

func orNobody(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// walError makes a store's failure K6's error; coded errors stay.
func walError(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := asError(err); coded {
		return err
	}
	e := &holdfast.Error{Kind: holdfast.KindWALWrite, Gate: holdfast.K6, Why: "the ledger could not be written", Hint: "see `holdfast doctor`", Err: err}
	if errors.Is(err, ErrPoisoned) {
		e.Why, e.Hint = "the ledger failed to write and takes nothing until it is reopened", "mend the disk, then restart holdfast; it replays what is durable"
	}
	return e
}

// withCrossing stamps the crossing's id on an error, on a copy.
func withCrossing(err error, id string) error {
	e, ok := asError(err)
	if !ok {
		return err
	}
	own := *e
	own.Crossing = id
	return &own
}

// signal logs a refusal as loud as the document wants it (D14c).
func (k *Kernel) signal(j *judgement, op holdfast.Opinion) {
	s := holdfast.SignalOf(op.Gate, op.Kind)
	k.log.Log(context.Background(), s.Level, "refused", "trace", s.Event, "crossing", j.id, "boundary", j.recordedBoundary(),
		"agent", j.who.Name(), "gate", op.Gate.String(), "kind", string(op.Kind), "why", string(k.mask(op.Why)))
	if op.Kind == holdfast.KindProhibited {
		k.notify(Notice{Level: "error", Event: "prohibited_tried", Tenant: j.tenant(), Agent: j.who.Name(),
			Boundary: j.recordedBoundary(), Crossing: j.id, Why: op.Why})
	}
}

// failed logs an act that failed as loud as the document wants it (003 3.1). No
// gate ended it: the hand did, or who answered it.
func (k *Kernel) failed(j *judgement, kind holdfast.Kind, err error) {
	s := holdfast.SignalOf(holdfast.GateHalt, kind)
	why, rule := "", ""
	if e, ok := asError(err); ok {
		why, rule = e.Why, e.Rule
	}
	k.log.Log(context.Background(), s.Level, "failed", "trace", s.Event, "crossing", j.id, "boundary", j.recordedBoundary(),
		"agent", j.who.Name(), "by", cmp.Or(rule, "act"), "kind", string(kind), "why", string(k.mask(why)))
}
