package constitution

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// The severities. Info and warn are recorded, hold asks a person, block and
// critical deny. Block is the default.
const (
	SeverityInfo     = "info"
	SeverityWarn     = "warn"
	SeverityBlock    = "block"
	SeverityCritical = "critical"
	SeverityHold     = "hold"
)

// Set is a constitution: compiled rules in the files' order. It never changes
// after Load and may be used by many goroutines. The zero Set and a nil *Set
// deny everything that they are asked.
type Set struct {
	loaded  bool
	rules   []*rule
	by      map[On][]*rule
	named   map[string]*rule
	version string
	// seers has one past function of each ID, users the rules that ask it.
	seers []*Past
	users map[string][]*rule
	// factual are the rules that name facts.
	factual []*rule
}

type rule struct {
	info          Info
	message, hint string
	expr          *expression
	prefix        string
	glob          bool
	pasts         []*Past
	facts         []string
}

func (s *Set) add(r *rule) {
	s.rules = append(s.rules, r)
	s.by[r.info.On] = append(s.by[r.info.On], r)
	s.named[r.info.ID] = r
	if len(r.facts) > 0 {
		s.factual = append(s.factual, r)
	}
	for _, p := range r.pasts {
		if s.users == nil {
			s.users = map[string][]*rule{}
		}
		if s.users[p.ID] == nil {
			s.seers = append(s.seers, p)
		}
		s.users[p.ID] = append(s.users[p.ID], r)
	}
}

func (s *Set) hash() string {
	parts := make([]string, 0, len(s.rules))
	for _, r := range s.rules {
		parts = append(parts, r.info.Version)
	}
	return digest(parts...)
}

// Version is the SHA-256 over the versions of all rules in their order, 64 hex
// digits. It does not depend on files' names, comments or layout.
func (s *Set) Version() string {
	if s == nil {
		return ""
	}
	return s.version
}

// Rules describes every rule, in the files' order.
func (s *Set) Rules() []Info {
	if s == nil || len(s.rules) == 0 {
		return nil
	}
	out := make([]Info, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, r.info)
	}
	return out
}

// Weakened returns one sentence for every rule that is written down but not
// enforced, and for every rule whose own failure lets the action through.
func (s *Set) Weakened() []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, r := range s.rules {
		if r.info.On == OnSpawn {
			out = append(out, fmt.Sprintf("rule %s (%s) is on spawn, which nothing in this version asks", r.info.ID, r.info.Where))
		}
		if r.observes() {
			out = append(out, fmt.Sprintf("rule %s (%s) only observes: what it forbids is done and recorded", r.info.ID, r.info.Where))
		}
		if r.passes() {
			out = append(out, fmt.Sprintf("rule %s (%s) passes when it fails: an error of the rule lets the action through", r.info.ID, r.info.Where))
		}
	}
	return out
}

func (s *Set) warnings() []string {
	var out []string
	for _, r := range s.rules {
		if r.info.On == OnSpawn {
			out = append(out, fmt.Sprintf("%s: %s is on spawn, which nothing in this version asks", r.info.Where, r.info.ID))
		}
		if r.observes() {
			out = append(out, fmt.Sprintf("%s: %s has mode observe and stops nothing", r.info.Where, r.info.ID))
		}
		if r.passes() {
			out = append(out, fmt.Sprintf("%s: %s has on_error pass: its own failure lets the action through", r.info.Where, r.info.ID))
		}
	}
	return out
}

func (r *rule) observes() bool { return r.info.Mode == "observe" }
func (r *rule) passes() bool   { return r.info.OnError == "pass" }

func (r *rule) matches(boundary string) bool {
	if r.glob {
		return len(boundary) >= len(r.prefix) && boundary[:len(r.prefix)] == r.prefix
	}
	return boundary == r.prefix
}

// Judge asks every rule for that kind whose boundary pattern matches, and
// returns those that spoke, in the rules' order. All rules of one call share
// MaxJudgeCost. It ends by ctx: the rule that had no time left denies with
// ErrTimeout and the rules after it are not asked. Judge changes nothing and
// keeps nothing of f.
func (s *Set) Judge(ctx context.Context, on On, f Facts) []Finding {
	if s == nil || !s.loaded {
		return []Finding{unloaded("no constitution was loaded")}
	}
	if !on.known() {
		return []Finding{unloaded(fmt.Sprintf("there are no rules on %q", string(on)))}
	}
	act := &facts{Facts: f, on: on, ctx: ctx, left: MaxJudgeCost}
	rules := s.by[on]
	blind := s.blind(act)
	if len(blind) > 0 {
		rules = s.rules // a rule that judges elsewhere may be blind here
	}
	var out []Finding
	for _, r := range rules {
		violated, err := false, blind[r]
		if err == nil {
			if r.info.On != on || !r.matches(f.Boundary) {
				continue
			}
			violated, err = act.judge(r)
		}
		if err != nil {
			failed := r.errored(err)
			out = append(out, failed)
			// Time and budget do not come back. A rule that only
			// observes cannot end the asking, or it would let pass
			// what the rules after it refuse.
			if failed.Verdict == holdfast.Deny && (errors.Is(err, failure.ErrTimeout) || act.left == 0) {
				return out
			}
			continue
		}
		if violated {
			out = append(out, r.spoke())
		}
	}
	return out
}

// judge asks one rule and takes what it cost from what is left, past functions'
// own expressions included.
func (a *facts) judge(r *rule) (bool, error) {
	if err := a.lacks(r); err != nil {
		return false, err
	}
	a.rule, a.inner = r, 0
	violated, cost, err := r.expr.judge(a.ctx, a, a.left)
	a.left -= min(cost, a.left)
	a.left -= min(a.inner, a.left)
	return violated, err
}

// blind finds the rules whose past functions cannot see the request that is
// being judged: it would become history that they cannot read, so it is refused
// by them, wherever else they judge.
func (s *Set) blind(act *facts) map[*rule]error {
	if act.on != OnRequest || len(s.seers) == 0 {
		return nil
	}
	sights := act.Sights
	if sights == nil {
		sights = s.See(act.ctx, act.Facts)
	}
	var out map[*rule]error
	fail := func(p *Past, err error) {
		if out == nil {
			out = map[*rule]error{}
		}
		for _, r := range s.users[p.ID] {
			if out[r] == nil {
				out[r] = err
			}
		}
	}
	seen := map[string]bool{}
	for _, sight := range sights {
		act.left -= min(sight.cost, act.left)
		seen[sight.Past.ID] = true
		if sight.Err != nil {
			fail(sight.Past, sight.Err)
		}
	}
	for _, p := range s.seers {
		if p.Match(act.Boundary) && !seen[p.ID] {
			fail(p, &failure.Failure{Kind: failure.ErrEval, Text: "nobody looked at the request for " + p.Text})
		}
	}
	return out
}

func unloaded(why string) Finding {
	return Finding{Rule: "constitution", Severity: SeverityCritical, Verdict: holdfast.Deny,
		Message: why, Err: &failure.Failure{Kind: failure.ErrEval, Text: why}}
}

// spoke is the finding of a violation.
func (r *rule) spoke() Finding {
	f := Finding{Rule: r.info.ID, Version: r.info.Version, Where: r.info.Where, Severity: r.info.Severity, Message: r.message, Hint: r.hint}
	switch {
	case r.observes():
		f.Verdict, f.Observed = holdfast.Allow, true
	case r.info.Severity == SeverityInfo || r.info.Severity == SeverityWarn:
		f.Verdict = holdfast.Allow
	case r.info.Severity == SeverityHold:
		f.Verdict = holdfast.Hold
	}
	return f
}

// errored is the finding of a rule's own failure: a denial, whatever its
// severity, but for the two weakenings that are asked for by name (D3).
func (r *rule) errored(err error) Finding {
	f := Finding{Rule: r.info.ID, Version: r.info.Version, Where: r.info.Where, Severity: r.info.Severity, Err: err,
		Message: "the rule failed: " + err.Error(), Hint: failure.HintFor(err)}
	switch {
	case r.observes():
		f.Verdict, f.Observed = holdfast.Allow, true
	case r.passes():
		f.Verdict, f.Passed = holdfast.Allow, true
	}
	return f
}

// judge evaluates a condition and returns what it cost, which for a failure
// may be less than was truly spent but never less than one.
func (e *expression) judge(ctx context.Context, act *facts, left uint64) (bool, uint64, error) {
	v, cost, err := e.eval(ctx, act, left)
	if err != nil {
		return false, cost, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, cost, &failure.Failure{Kind: failure.ErrEval, Text: "the condition is neither true nor false"}
	}
	return bool(b), cost, nil
}

// eval evaluates with every bound in force. The context is asked before each
// expression, and within one while it walks a list.
func (e *expression) eval(ctx context.Context, act *facts, left uint64) (ref.Val, uint64, error) {
	if ctx.Err() != nil {
		return nil, 1, &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: ctx.Err()}
	}
	if !e.counted {
		if e.bound > left {
			return nil, left, &failure.Failure{Kind: failure.ErrCost, Text: "all rules together"}
		}
		v, _, err := e.program.Eval(act)
		if err != nil {
			return nil, e.bound, failure.FromEvaluation(ctx, err, e.source)
		}
		return v, e.bound, nil
	}
	if left == 0 {
		return nil, 0, &failure.Failure{Kind: failure.ErrCost, Text: "all rules together"}
	}
	v, details, err := e.program.ContextEval(ctx, act)
	spent := spentBy(details)
	if err == nil && spent > left {
		return nil, left, &failure.Failure{Kind: failure.ErrCost, Text: "all rules together"}
	}
	if err != nil {
		return nil, spent, failure.FromEvaluation(ctx, err, e.source)
	}
	return v, spent, nil
}

// spentBy is the counted cost; an evaluation without a count is charged the
// most it could have cost.
func spentBy(details *cel.EvalDetails) uint64 {
	if details == nil || details.ActualCost() == nil {
		return MaxRuleCost
	}
	return max(*details.ActualCost(), 1)
}

// facts gives Facts to CEL by name. It is made once for a call of Judge.
type facts struct {
	Facts
	on On
	// ctx, the rule that is being judged, what may still be spent, what past
	// functions spent of it, and what the history said: for past functions.
	ctx   context.Context
	rule  *rule
	left  uint64
	inner uint64
	asked map[string]asked
	// values are the facts by their names, nil until a rule reads one.
	values map[string]any
}

// Parent implements cel.Activation.
func (a *facts) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (a *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return a.Payload, true
	case "boundary":
		return a.Boundary, true
	case "operation":
		return a.Operation, true
	case "risk":
		return a.Risk.String(), true
	case "level":
		return a.Level.String(), true
	case "level_rank":
		return int(a.Level), true
	case "payload_size":
		return a.PayloadSize, true
	case "now":
		return a.Now, true
	case pastVariable:
		return asking{a}, true
	case factsVariable:
		return a.fetched(), true
	}
	if v, ok := a.who(name); ok {
		return v, true
	}
	if name == subjectName(a.on) && name != "" {
		return a.Subject, true
	}
	if a.on != OnOutput {
		return nil, false
	}
	switch name {
	case "output":
		return a.Output, true
	case "output_size":
		return a.OutputSize, true
	case "exit_code":
		return a.ExitCode, true
	}
	return nil, false
}

func (a *facts) who(name string) (any, bool) {
	switch name {
	case "tenant":
		return a.Who.Tenant, true
	case "principal":
		return a.Who.Principal, true
	case "agent":
		return a.Who.Agent, true
	case "subagent":
		return a.Who.Sub, true
	case "kind":
		return a.Who.Kind, true
	case "session":
		return a.Who.Session, true
	case "intent":
		return a.Who.Intent, true
	case "chain":
		return a.Who.Chain, true
	case "roles":
		return a.Who.Roles, true
	}
	return nil, false
}
