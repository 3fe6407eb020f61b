package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// joined is the part of one feature in a crossing.
type joined struct {
	f    *feature
	part Part
	// err is why it could not fetch what it needs.
	err error
}

// participation is what features have to do with one crossing.
type participation struct {
	view    View
	parts   []joined
	noted   noted
	records []ledger.FeatureFacts
	// err is why the parts could not be recorded.
	err error
}

// joinFeatures asks the features for their parts, and takes over what these claim.
func (j *judgement) joinFeatures(tx Tx) error {
	if j.contract == nil || j.isUnruled() {
		return nil
	}
	for _, f := range j.k.features.all {
		if f.joins == nil {
			continue
		}
		if j.feats == nil {
			j.feats = &j.participation
			j.feats.view = j.featureView()
		}
		part, err := f.joins.Join(&notingReader{Tx: tx, n: &j.feats.noted}, j.viewOf(f))
		if err != nil {
			return fmt.Errorf("feature %s: %w", f.spec.Name, err)
		}
		if part == nil {
			continue
		}
		j.feats.parts = append(j.feats.parts, joined{f: f, part: part})
		if c, ok := part.(Claimer); ok {
			if err := j.addClaims(f.spec.Name, c.Claims()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *judgement) featureView() View {
	return View{Boundary: j.req.Boundary, Who: &j.who, Token: j.req.Token, Contract: &j.contract.Contract, Doc: j.doc,
		Extra: j.beside, Size: len(j.req.Payload) + len(j.req.Beside), Exact: j.exact(), Risk: j.risk(), Now: j.now,
		Draws: j.draws, Looks: j.looks}
}

// viewOf returns the view as one feature sees it.
func (j *judgement) viewOf(f *feature) *View {
	v := &j.feats.view
	v.Prepared = j.pol.prepared[f.spec.Name]
	return v
}

// addClaims adds what a feature claims to what K3 reserves.
func (j *judgement) addClaims(feature string, c Claims) error {
	for _, d := range c.Draws {
		if !strings.HasPrefix(d.Key, ClaimKey(feature)) {
			return fmt.Errorf("feature %s: the counter %.64q is not its own", feature, d.Key)
		}
	}
	for _, r := range c.Rates {
		if !strings.HasPrefix(r.Key, ClaimKey(feature)) {
			return fmt.Errorf("feature %s: the rate %.64q is not its own", feature, r.Key)
		}
	}
	if len(c.Raised) > 0 {
		j.draws = slices.Clone(j.draws) // the view has those of before
	}
	for _, r := range c.Raised {
		if r.Amount < 0 {
			return fmt.Errorf("feature %s: a limit that is raised by %d", feature, r.Amount)
		}
		for i := range j.draws {
			if d := &j.draws[i]; d.Key == r.Key && d.Window == r.Window && (r.Name == "" || r.Name == d.Name) {
				d.Limit = budget.AddCapped(d.Limit, r.Amount)
			}
		}
	}
	j.draws, j.rates = append(slices.Clip(j.draws), c.Draws...), append(j.rates, c.Rates...)
	return nil
}

// mayHoldByFeature reports whether a feature has a part at any gate, which may ask for a
// person.
func (j *judgement) mayHoldByFeature() bool {
	return j.feats != nil && slices.ContainsFunc(j.feats.parts, func(p joined) bool { return len(p.f.spec.Gates) > 0 })
}

// fetchParts lets the parts fetch what they need at a gate.
func (j *judgement) fetchParts(ctx context.Context, g holdfast.Gate) {
	if j.feats == nil || len(j.feats.parts) == 0 || j.replay != nil || j.doc == nil {
		return
	}
	j.feats.view.Answered = j.human.IsAnswered()
	ctx = within(ctx, inside{id: j.id, correlation: j.correlation, traceparent: j.traceparent, child: true,
		tasks: j.tasks})
	for i := range j.feats.parts {
		p := &j.feats.parts[i]
		if f, ok := p.part.(Fetcher); ok && slices.Contains(p.f.spec.Gates, g) {
			facts := j.facts()
			j.feats.view.Facts = &facts
			p.err = j.fetchPart(ctx, p.f, f, g)
		}
	}
}

func (j *judgement) fetchPart(ctx context.Context, of *feature, f Fetcher, g holdfast.Gate) (err error) {
	defer func() {
		if r := recover(); r != nil {
			j.k.log.Error("a feature panicked", "feature", of.spec.Name, "panic", fmt.Sprint(r))
			err = errors.New("it panicked")
		}
	}()
	return f.Fetch(ctx, g, j.viewOf(of))
}

// ruleKinds returns the kinds of rules that are evaluated for the request.
func (j *judgement) ruleKinds() []constitution.On {
	on := []constitution.On{constitution.OnRequest}
	for _, p := range j.joinedParts() {
		if u, ok := p.part.(FactUser); ok {
			on = append(on, u.RuleKinds()...)
		}
	}
	return on
}

// findNote returns what a part has for the caller.
func (j *judgement) findNote() json.RawMessage {
	for _, p := range j.joinedParts() {
		if n, ok := p.part.(Noter); ok {
			return n.Note()
		}
	}
	return nil
}

// joinOpinions returns the opinion of a gate: its own and those of the features' parts. The
// most severe one leads, and is given the reasons of those after it that do not outrank it.
// What the gate denies is evaluated by no part, except next to the rules of K8.
func (j *judgement) joinOpinions(ctx context.Context, g holdfast.Gate, op holdfast.Opinion) holdfast.Opinion {
	if j.feats == nil || j.exemptsParts(g) || op.Verdict == holdfast.Deny && !(g == holdfast.K8 && j.ruled) {
		return op
	}
	for i := range j.feats.parts {
		if p := &j.feats.parts[i]; slices.Contains(p.f.spec.Gates, g) {
			op = j.joinOpinion(op, j.evaluatePart(ctx, g, p))
		}
	}
	return op
}

// resolveHold returns the opinion of a gate that asks for a person: the answer, or a hold.
func (j *judgement) resolveHold(g holdfast.Gate, op holdfast.Opinion) holdfast.Opinion {
	if op.Verdict != holdfast.Hold {
		return op
	}
	if j.replay != nil {
		return allow(g, "READY", "replay", "what was settled is given back; nothing is done")
	}
	if j.factErr != nil {
		j.human.Err = j.factErr
	}
	return j.human.Resolve(g, op.Rule, op.Why, j.reason)
}

// exemptsParts reports whether the features' parts have no say at a gate, as the gate itself.
func (j *judgement) exemptsParts(g holdfast.Gate) bool {
	return g == holdfast.K7 && (j.replay != nil || j.own != nil && j.own.Unasked != "")
}

func (j *judgement) evaluatePart(ctx context.Context, g holdfast.Gate, p *joined) holdfast.Opinion {
	if p.err != nil {
		return deny(g, holdfast.KindOf(p.err), "the feature "+p.f.spec.Name+" failed: "+j.k.quote(p.err.Error(), 256), "")
	}
	facts := j.facts()
	j.feats.view.Facts, j.feats.view.Granted = &facts, j.granted
	op := p.part.Evaluate(ctx, g, j.viewOf(p.f))
	op.Gate, op.Rule = g, cmp.Or(op.Rule, p.f.spec.Name)
	if op.Verdict == holdfast.Deny && op.Why == "" {
		op.Why = "the feature " + p.f.spec.Name + " gave no opinion"
	}
	return op
}

// joinOpinion joins the opinion of a part to that of its gate so far.
func (j *judgement) joinOpinion(op, more holdfast.Opinion) holdfast.Opinion {
	switch {
	case op.Verdict == holdfast.Deny:
	case holdfast.Worst(op.Verdict, more.Verdict) != op.Verdict:
		j.reason = ""
		return more
	case more.Why != "":
		op.Why += "; " + more.Why
		j.reason = ""
	}
	return op
}

// recordParts keeps what the parts decided by, for the begin or the entry of a denial.
func (j *judgement) recordParts() {
	if j.feats == nil {
		return
	}
	j.feats.records, j.feats.err = nil, nil
	for _, p := range j.feats.parts {
		r, ok := p.part.(Recorder)
		if !ok {
			continue
		}
		text, err := j.k.records.FeatureText(r.Record())
		if err != nil {
			j.feats.err = errors.Join(j.feats.err, fmt.Errorf("feature %s: cannot record its part: %w",
				p.f.spec.Name, err))
			continue
		}
		j.feats.records = append(j.feats.records, ledger.FeatureFacts{Name: p.f.spec.Name, Text: text})
	}
}

// Recalled is what a feature thinks of a recorded crossing.
type Recalled struct {
	Feature  string
	Opinions []holdfast.Opinion // at the gates of its Spec
}

// Recall evaluates again what features decided of a crossing, from its record alone: the
// facts of its begin, or of the entry of a denial. v is the request as the record has it. A
// feature that recorded nothing is left out; one that is not among fs is an error.
func Recall(fs []Feature, facts []ledger.FeatureFacts, v *View) ([]Recalled, error) {
	var out []Recalled
	for _, r := range facts {
		i := slices.IndexFunc(fs, func(f Feature) bool { return f.Spec().Name == r.Name })
		if i < 0 {
			return nil, fmt.Errorf("cannot evaluate the record again: no feature %.64q", r.Name)
		}
		recaller, ok := fs[i].(Recaller)
		if !ok {
			return nil, fmt.Errorf("cannot evaluate the record again: the feature %s recalls nothing", r.Name)
		}
		part, err := recaller.Recall(json.RawMessage(r.Text))
		if err != nil {
			return nil, fmt.Errorf("cannot evaluate the record of %s again: %w", r.Name, err)
		}
		again := Recalled{Feature: r.Name}
		for _, g := range fs[i].Spec().Gates {
			op := part.Evaluate(context.Background(), g, v)
			op.Gate = g
			again.Opinions = append(again.Opinions, op)
		}
		out = append(out, again)
	}
	return out, nil
}

// errOtherRows says that what a feature had read changed before the crossing began.
var errOtherRows = errors.New("what a feature knows changed while the request was evaluated")

// maxNoted bounds what the features may read of one crossing, so that it can be read again.
const maxNoted = 1000

// noted is what joins have read.
type noted struct {
	rows    []notedRow
	scans   []notedScan
	agents  []notedAgent
	reviews []notedReview
	n       int
}

type notedRow struct {
	def     *table.Def
	key     []any
	version int64 // 0 if the row was absent
}

type notedScan struct {
	def  *table.Def
	in   table.Range
	rows []notedRow
}

type notedAgent struct {
	tenant, name string
	agent        holdfast.Agent // zero if not found
}

type notedReview struct {
	id     string
	review review.Review // zero if not found
}

func (n *noted) countRead(more int) error {
	if n.n += more; n.n > maxNoted {
		return fmt.Errorf("a feature reads more than %d rows for one request", maxNoted)
	}
	return nil
}

// notingReader is the Reader of a join. What it reads of the ledger and of counters is not
// noted.
type notingReader struct {
	Tx
	n *noted
}

func (r *notingReader) Row(d *table.Def, key []any) (table.Row, error) {
	row, err := r.Tx.Row(d, key)
	if err == nil || errors.Is(err, ErrNotFound) {
		r.n.rows = append(r.n.rows, notedRow{d, slices.Clone(key), row.Version})
		err = cmp.Or(r.n.countRead(1), err)
	}
	return row, err
}

func (r *notingReader) Scan(d *table.Def, in table.Range, fn func(table.Row) error) error {
	in.Prefix = slices.Clone(in.Prefix)
	s := notedScan{def: d, in: in}
	var rows []table.Row
	err := r.Tx.Scan(d, in, func(row table.Row) error {
		s.rows = append(s.rows, notedRow{d, row.Key, row.Version})
		rows = append(rows, row)
		return r.n.countRead(1)
	})
	if err != nil {
		return err
	}
	r.n.scans = append(r.n.scans, s)
	for i := range rows {
		if err := fn(rows[i]); err != nil {
			return err
		}
	}
	return r.n.countRead(1)
}

func (r *notingReader) Agent(tenant, name string) (holdfast.Agent, error) {
	a, err := r.Tx.Agent(tenant, name)
	if err == nil || errors.Is(err, ErrNotFound) {
		r.n.agents = append(r.n.agents, notedAgent{tenant, name, a})
		err = cmp.Or(r.n.countRead(1), err)
	}
	return a, err
}

func (r *notingReader) Review(id string) (review.Review, error) {
	v, err := r.Tx.Review(id)
	if err == nil || errors.Is(err, ErrNotFound) {
		r.n.reviews = append(r.n.reviews, notedReview{id, v})
		err = cmp.Or(r.n.countRead(1), err)
	}
	return v, err
}

// checkUnchanged returns errOtherRows if anything that joins have read is different now.
func (n *noted) checkUnchanged(tx Tx) error {
	for _, was := range n.rows {
		now, err := tx.Row(was.def, was.key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if now.Version != was.version {
			return errOtherRows
		}
	}
	for _, was := range n.scans {
		var now []notedRow
		err := tx.Scan(was.def, was.in, func(row table.Row) error {
			now = append(now, notedRow{was.def, row.Key, row.Version})
			return nil
		})
		if err != nil {
			return err
		}
		if !slices.EqualFunc(was.rows, now, func(a, b notedRow) bool {
			return a.version == b.version &&
				slices.Equal(a.key, b.key)
		}) {
			return errOtherRows
		}
	}
	for _, was := range n.agents {
		now, err := tx.Agent(was.tenant, was.name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if now != was.agent {
			return errOtherRows
		}
	}
	for _, was := range n.reviews {
		now, err := tx.Review(was.id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if !reflect.DeepEqual(now, was.review) {
			return errOtherRows
		}
	}
	return nil
}
