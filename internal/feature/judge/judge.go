package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Name is the feature's, and that of its section of a policy, which is Judges.
const Name = "judge"

// Judge scores an action before it is done (spec 001, layer 2; D37).
type Judge interface {
	// Score returns the five criteria, or an error: then there is no score, and the
	// request is denied. It ends by ctx.
	Score(ctx context.Context, r Request) (review.Scores, error)
}

// Made is a Judge of something that can change while its policy does not, such as the file
// of a program.
type Made interface {
	// Made returns 64 hex digits over what it is made of now.
	Made() (string, error)
}

// Configured is a judge as a policy has it.
type Configured struct {
	Judge Judge
	// Version is 64 hex digits over all that the judge is made of: a score is kept for
	// one version alone.
	Version string
	// Pure says that it needs no I/O: it is called in place, and its scores are not
	// kept. Any other is called in a child crossing of the boundary BoundaryPrefix with
	// its name, which the policy lists.
	Pure bool
}

// version returns the version for which a score is kept.
func (c *Configured) version() (string, error) {
	m, ok := c.Judge.(Made)
	if !ok {
		return c.Version, nil
	}
	now, err := m.Made()
	return c.Version + " " + now, err
}

// Judges are those that contracts name.
type Judges map[string]Configured

// FromPolicy returns the judges of a policy.
func FromPolicy(p *kernel.Policy) Judges {
	all, _ := p.Sections[Name].(Judges)
	return all
}

// Request is what a judge is given, one that needs I/O as JSON: all of it is data that an
// agent may have chosen.
type Request struct {
	Boundary  string        `json:"boundary"`
	Operation string        `json:"operation,omitempty"`
	Risk      holdfast.Risk `json:"risk"`
	Tenant    string        `json:"tenant_id"`
	Agent     string        `json:"agent"`
	Kind      string        `json:"kind,omitempty"`
	// Both are redacted.
	Payload json.RawMessage `json:"payload"`
	Beside  json.RawMessage `json:"beside,omitempty"`
	// Facts are what rules see, for a judge that needs no I/O.
	Facts constitution.Facts `json:"-"`
}

// Feature has the judges that contracts name score each request (D37).
type Feature struct{ host kernel.Host }

// New returns the feature.
func New(h kernel.Host) kernel.Feature { return &Feature{h} }

// Tables returns the tables of the feature.
func Tables() []*table.Def { return []*table.Def{judgeScores.Def()} }

// Spec implements kernel.Feature.
func (*Feature) Spec() kernel.Spec {
	return kernel.Spec{Name: Name, Tables: Tables(), Gates: []holdfast.Gate{holdfast.K7},
		Boundaries: []kernel.Reserved{{Prefix: BoundaryPrefix, Why: "only Holdfast itself asks its judges",
			Hint:    "cross the boundary that names the judge",
			Unasked: "a judge is asked, which is put to nobody", Unrated: true}}}
}

// Prepare implements kernel.Preparer: it refuses a contract whose judge does not exist.
func (*Feature) Prepare(section any, p *kernel.Policy) (any, error) {
	all, _ := section.(Judges)
	for i := range p.Contracts {
		c := &p.Contracts[i]
		if c.Judge == "" {
			continue
		}
		j := all[c.Judge]
		if j.Judge == nil || j.Version == "" || strings.HasPrefix(c.Boundary, BoundaryPrefix) {
			err := &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Rule: c.Source,
				Why: fmt.Sprintf("there is no judge %q for it", excerpt.Of(c.Judge, 64))}
			return nil, fmt.Errorf("%s: contract %s: %w", c.Source, c.Boundary, err)
		}
	}
	return all, nil
}

// Join implements kernel.Joiner: the feature takes part in a crossing whose contract names
// a judge, unless it is refused anyway.
func (f *Feature) Join(_ kernel.Reader, v *kernel.View) (kernel.Part, error) {
	if v.Contract.Judge == "" || v.Risk == holdfast.Prohibited {
		return nil, nil
	}
	return &part{feature: f, known: known{Judge: v.Contract.Judge, Source: v.Contract.Source}}, nil
}

// Recall implements kernel.Recaller.
func (*Feature) Recall(record json.RawMessage) (kernel.Part, error) {
	p := &part{}
	return p, json.Unmarshal(record, &p.known)
}

// part takes part in one crossing.
type part struct {
	feature *Feature
	known
}

// known is what K7's opinion is of, as records have it.
type known struct {
	Judge  string         `json:"judge"`
	Source string         `json:"source,omitempty"`
	Scores *review.Scores `json:"scores,omitempty"`
	// Problem is why the judge gave no scores. Unasked says that the judge may not be called now,
	// as in a check; Answered that a person has answered already.
	Problem  string `json:"problem,omitempty"`
	Unasked  bool   `json:"unasked,omitempty"`
	Answered bool   `json:"answered,omitempty"`
}

// Record implements kernel.Recorder.
func (p *part) Record() any { return p.known }

// Fetch implements kernel.Fetcher: it has the judge score the request.
func (p *part) Fetch(ctx context.Context, _ holdfast.Gate, v *kernel.View) error {
	if v.Answered {
		p.Answered = true
		return nil
	}
	s, err := p.feature.scoreRequest(ctx, p.Judge, v)
	if err == nil {
		err = s.Check() // whatever the judge is, or the store has kept
	}
	switch host := p.feature.host; {
	case errors.Is(err, errUnasked):
		p.Unasked = true
	case err != nil:
		p.Problem = host.Quote(explainFailure(err), 256)
		host.Log().Error("a judge gave no scores", "judge", p.Judge, "boundary", v.Contract.Boundary,
			"err", host.Quote(causes(err), 1024))
	default:
		p.Scores = &s
	}
	return nil
}

// Evaluate implements kernel.Part: what the scores mean, or the denial without scores.
func (p *part) Evaluate(_ context.Context, g holdfast.Gate, _ *kernel.View) holdfast.Opinion {
	op := holdfast.Opinion{Gate: g, Verdict: holdfast.Hold, Rule: p.Source}
	named := "the judge " + p.Judge
	switch {
	case p.Answered:
		op.Why = named + " asks a person"
	case p.Unasked:
		op.Why = named + " is asked when the request is made"
	case p.Scores == nil:
		op.Verdict, op.Kind, op.State = holdfast.Deny, holdfast.KindConfidence, "FAULTED"
		op.Why = named + " gave no scores"
		if p.Problem != "" {
			op.Why += ": " + p.Problem
		}
		op.Hint = "the request is refused until the judge can be used; the log has the cause"
	default:
		op.Why = named + " gives " + p.Scores.String()
		if not := p.Scores.Unsafe(); not != "" {
			op.Why += ": " + not
		} else {
			op.Verdict = holdfast.Allow
		}
	}
	return op
}

// errUnasked says that a judge would have to be called, and nothing may be done.
var errUnasked = errors.New("the judge was not asked")

func (f *Feature) scoreRequest(ctx context.Context, name string, v *kernel.View) (s review.Scores, err error) {
	defer func() {
		if r := recover(); r != nil {
			f.host.Log().Error("a judge panicked", "judge", name, "panic", fmt.Sprint(r))
			err = errors.New("it failed")
		}
	}()
	all, _ := v.Prepared.(Judges)
	by := all[name]
	if by.Judge == nil {
		return s, errors.New("there is no such judge")
	}
	r := Request{Boundary: v.Facts.Boundary, Operation: v.Contract.Operation, Risk: v.Risk, Tenant: v.Who.Tenant,
		Agent: v.Who.Agent, Kind: v.Who.Kind}
	if by.Pure {
		r.Facts = *v.Facts
		ctx, cancel := context.WithTimeout(ctx, pureTime)
		defer cancel()
		return by.Judge.Score(ctx, r)
	}
	version, err := by.version()
	if err != nil {
		return s, err
	}
	key := r.key(v.Exact, version)
	if s, ok := f.keptScore(ctx, key, v.Now); ok {
		return s, nil
	}
	if v.Looks {
		return s, errUnasked
	}
	if err := f.redactRequest(v, &r); err != nil {
		return s, err
	}
	if s, err = f.crossToJudge(ctx, name, by.Judge, v.Token, r); err != nil {
		return s, err
	}
	if now, err := by.version(); err != nil || now != version {
		return s, nil // it is unknown which of the two gave them
	}
	if err := f.keepScore(ctx, key, s, v.Now); err != nil {
		f.host.Log().Warn("a judge's scores could not be kept", "boundary", r.Boundary, "err", err)
	}
	return s, nil
}

// redactRequest puts the redacted payload into what a judge is given.
func (f *Feature) redactRequest(v *kernel.View, r *Request) (err error) {
	if v.Size > kernel.MaxShown {
		return fmt.Errorf("the request has more than %d bytes, which is put to no judge", kernel.MaxShown)
	}
	if r.Payload, err = f.host.Redact(v.Doc.Canonical()); err == nil && v.Extra != nil {
		r.Beside, err = f.host.Redact(v.Extra.Canonical())
	}
	return err
}

// crossToJudge is the child crossing in which a judge does its I/O: on the same token and in
// the same flow, one level deep, before the request that it scores takes anything (D37).
func (f *Feature) crossToJudge(ctx context.Context, name string, by Judge, token holdfast.Secret,
	r Request) (s review.Scores, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return s, err
	}
	req := holdfast.Request{Boundary: BoundaryPrefix + name, Payload: body, Token: token}
	_, err = f.host.Cross(ctx, req, func(ctx context.Context) (holdfast.Output, error) {
		scores, err := by.Score(ctx, r)
		if err == nil {
			err = scores.Check()
		}
		if err != nil {
			return holdfast.Output{}, err
		}
		s = scores
		out, err := json.Marshal(s)
		return holdfast.Output{Body: out}, err
	})
	if err != nil {
		return review.Scores{}, err
	}
	return s, nil
}

// causes returns an error with what it wraps, for the log: the text of a holdfast.Error is
// without its cause.
func causes(err error) string {
	text := err.Error()
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		if _, own := err.(*holdfast.Error); own {
			text += ": " + inner.Error()
		}
	}
	return text
}

// explainFailure returns what an agent may read of an error.
func explainFailure(err error) string {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return e.Why
	}
	return err.Error()
}
