package constitution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// Bounds of past functions.
const (
	// PastCost is what asking one costs, beside CEL's own: registered, so
	// that it counts in the estimate and while a rule is judged.
	PastCost = 1_000
	// MaxPasts is how many past functions one rule may ask.
	MaxPasts = 16
	// MaxWindow and MinWindow bound how far a past function looks back.
	MaxWindow = 24 * time.Hour
	MinWindow = time.Second
	// MaxPastKey bounds what same and distinct compare, in bytes of its
	// canonical form.
	MaxPastKey = 1 << 10

	maxSames = 4
)

// Past is one past function of a rule: a question to the history of one tenant.
// In a rule's `when` it is a chain,
//
//	past("mcp/bank/pay", "24h").where(args.amount > 100).count() >= 3
//	past("mcp/bank/pay", "24h").same(args.to).sum(args.amount) + args.amount > 1000
//	past("mcp/*", "10m").same(session).happened()
//	past("mcp/mail/send", "1h").distinct(args.to) > 5
//	now - past("agent/step", "24h").same(agent).last() < duration("60s")
//
// of past(BOUNDARY, WINDOW), both written out: a boundary's name or a prefix
// and one *, and 1s to 24h; where(COND), at most once; same(EXPR), at most four
// times; and one of
//
//	happened()       bool
//	count()          int
//	sum(EXPR)        an exact number, to add, subtract, multiply, compare or give to double()
//	net(EXPR)        the same, where amounts may be negative
//	last()           timestamp; an error if there was none
//	distinct(EXPR)   int: how many different values
//
// The expressions read the past crossing, with the names of a rule on request
// that are known there. where keeps those on which COND is true, same those
// whose EXPR is equal to that of the request being judged. A crossing counts if
// it began at most WINDOW ago, exactly WINDOW included, and is not known never
// to have started; the one being judged does not count. A negative amount is one
// that sum cannot read: an agent that sends it would have room for others.
// where(args.amount > 0) leaves it out, net takes it off.
//
// A request that a past function looks at and cannot read (a key that where wants
// is missing, an amount is no number of at most six decimals, or negative in a sum, same would compare
// more than MaxPastKey bytes) is refused by the function's rule, whatever that
// rule judges, because it would become history that nobody can tell.
//
// A Past never changes and may be shared.
type Past struct {
	// ID is the SHA-256, in hex, of what must be remembered to answer: the
	// tenant's boundary, window, where, same and field. Two functions that
	// differ only in layout, or in whether they ask for count, happened or
	// last, have one ID.
	ID string
	// Rule is the rule's id, Where the function's "file:line:col".
	Rule, Where string
	// Text is the function as it is written, without needless spaces.
	Text     string
	Boundary string
	Window   time.Duration
	// Cost is the estimate of See on an ordinary payload, in CEL units; to
	// ask costs PastCost more.
	Cost uint64

	line, col int // within the expression

	kind  string // happened, count, sum, net, last, distinct
	where *expression
	same  []*expression
	field *expression
	// path is where the field stands in the payload, if the expression only
	// names a place: then the amount is read from the number's own text.
	path []string
}

// Seen is what a past function remembers of a crossing.
type Seen struct {
	// Matches says whether it counts at all; the rest is empty if not.
	Matches bool
	// Group is what same compares: 32 bytes, or "" without a same. Value is
	// what distinct counts: 32 bytes, or "". Both are SHA-256 sums of a
	// canonical form in which the text "1" and the number 1 differ, and 1
	// and 1.0 do not.
	Group, Value string
	// Amount is what sum and net add, in millionths.
	Amount int64
}

// Sight is what one past function sees of one crossing, or why it cannot see.
type Sight struct {
	Past *Past
	Seen Seen
	Err  error
	cost uint64
}

// Answer is what the history knows of one group: how many crossings there were,
// the sum of their amounts in millionths, how many values, and when the last
// one began (zero if there was none).
type Answer struct {
	Count, Sum, Distinct int64
	Last                 time.Time
}

// History answers past functions for the request that is being judged, within
// its tenant: what began at now-p.Window or later, without the request itself.
// An error is shown to people and makes the rule fail. It is asked from one
// goroutine and must not block.
type History interface {
	Ask(p *Past, group string, now time.Time) (Answer, error)
}

// PastInfo describes one past function of a rule.
type PastInfo struct {
	Text string `json:"text"`
	// Where is "file:line:col".
	Where string `json:"where"`
	// Aggregate is the Past's ID.
	Aggregate string `json:"aggregate"`
	// Cost is what asking it and looking at a request may cost, in CEL units.
	Cost uint64 `json:"cost"`
}

// Pasts lists every past function of every rule, in the files' order. Those
// with the same ID need to be remembered once.
func (s *Set) Pasts() []*Past {
	if s == nil {
		return nil
	}
	var out []*Past
	for _, r := range s.rules {
		out = append(out, r.pasts...)
	}
	return out
}

// See asks every past function that a crossing concerns what it sees of it, once
// for each ID, and never returns nil. f are the facts of a rule on request. All
// of them share MaxJudgeCost.
func (s *Set) See(ctx context.Context, f Facts) []Sight {
	if s == nil {
		return []Sight{}
	}
	act := &facts{Facts: f, on: OnRequest}
	out := []Sight{}
	var left uint64 = MaxJudgeCost
	for _, p := range s.seers {
		if !p.Match(f.Boundary) {
			continue
		}
		seen, cost, err := p.see(ctx, act, left)
		left -= min(cost, left)
		out = append(out, Sight{p, seen, err, cost})
	}
	return out
}

// Match says whether the function looks at crossings of that boundary.
func (p *Past) Match(boundary string) bool {
	prefix, glob := strings.CutSuffix(p.Boundary, "*")
	return boundary == prefix || glob && strings.HasPrefix(boundary, prefix)
}

// See tells what the function remembers of a crossing with those facts, which
// are those of a rule on request. An error wraps ErrTimeout, ErrCost, ErrType or
// ErrEval: then nobody can say whether the crossing counts. Of another boundary
// it sees nothing.
func (p *Past) See(ctx context.Context, f Facts) (Seen, error) {
	seen, _, err := p.see(ctx, &facts{Facts: f, on: OnRequest}, MaxRuleCost)
	return seen, err
}

func (p *Past) see(ctx context.Context, act *facts, left uint64) (seen Seen, cost uint64, err error) {
	if !p.Match(act.Boundary) {
		return Seen{}, 0, nil
	}
	if p.where != nil {
		yes, spent, err := p.where.judge(ctx, act, left)
		if cost += spent; err != nil || !yes {
			return Seen{}, cost, p.failed("where", err)
		}
	}
	group, spent, err := p.group(ctx, act, left-min(cost, left))
	if cost += spent; err != nil {
		return Seen{}, cost, err
	}
	seen = Seen{Matches: true, Group: group}
	if p.field == nil {
		return seen, cost, nil
	}
	if p.adds() && p.path != nil {
		if n, there := numberAt(act.Payload, p.path); there {
			seen.Amount, err = textMillionths(string(n))
			return p.sighted(seen, cost, err)
		}
	}
	v, spent, err := p.field.eval(ctx, act, left-min(cost, left))
	if cost += spent; err != nil {
		return Seen{}, cost, p.failed(p.kind, err)
	}
	switch p.kind {
	case pastSum, pastNet:
		seen.Amount, err = millionths(v)
	case pastDistinct:
		seen.Value, err = keyOf(v)
	default:
		err = &failure.Failure{Kind: failure.ErrEval, Text: "nobody knows what it remembers"}
	}
	return p.sighted(seen, cost, err)
}

// sighted is what see returns where a value was read but may not be fit.
func (p *Past) sighted(seen Seen, cost uint64, err error) (Seen, uint64, error) {
	if err == nil && p.kind == pastSum && seen.Amount < 0 {
		err = &failure.Failure{Kind: failure.ErrEval,
			Text: "the amount is negative, and would make room for others; net(...) takes such amounts off"}
	}
	if err != nil {
		return Seen{}, cost, p.failed(p.kind, err)
	}
	return seen, cost, nil
}

// adds says whether the function adds amounts up.
func (p *Past) adds() bool { return p.kind == pastSum || p.kind == pastNet }

// group is what same compares. A list of the values, so that two of them
// cannot be taken for one.
func (p *Past) group(ctx context.Context, act *facts, left uint64) (string, uint64, error) {
	if len(p.same) == 0 {
		return "", 0, nil
	}
	var cost uint64
	values := make([]ref.Val, len(p.same))
	for i, e := range p.same {
		v, spent, err := e.eval(ctx, act, left-min(cost, left))
		if cost += spent; err != nil {
			return "", cost, p.failed("same", err)
		}
		values[i] = v
	}
	key, err := keyOf(types.NewRefValList(tree{}, values))
	return key, cost, p.failed("same", err)
}

// failed says in which part of the function an error was.
func (p *Past) failed(part string, err error) error {
	var f *failure.Failure
	if err == nil || !errors.As(err, &f) {
		return err
	}
	text := part + " of " + p.Text
	if f.Text != "" {
		text += ": " + f.Text
	}
	return &failure.Failure{Kind: f.Kind, Text: text, Cause: err}
}

// Describe says in words what is remembered, for status pages.
func (p *Past) Describe() string {
	return fmt.Sprintf("%s (rule %s, %s)", p.Text, p.Rule, p.Where)
}
