package constitution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// Bounds of what an explanation shows.
const (
	maxExplained = 64  // values of one rule
	maxStepText  = 200 // bytes of each
)

// Explained is what one rule makes of a request, and why.
type Explained struct {
	Rule Info `json:"rule"`
	// Asked says that the rule judged it; Why says why it did not.
	Asked bool   `json:"asked"`
	Why   string `json:"why,omitempty"`
	// Verdict is allow, hold or deny, of this rule alone; Finding what it said.
	Verdict holdfast.Verdict `json:"verdict"`
	Spoke   bool             `json:"spoke"`
	Message string           `json:"message,omitempty"`
	// Cost is what judging it was charged, in CEL units.
	Cost uint64 `json:"cost"`
	// Values are what parts of the condition were, the inner ones first. They
	// are taken from the request, and nobody has redacted them.
	Values []Value `json:"values,omitempty"`
}

// Value is what a part of a condition was.
type Value struct {
	Text string `json:"text"`
	// Is is JSON, cut at 200 bytes, or "error: " and a text.
	Is string `json:"is"`
}

// Explain asks every rule about f, those whose boundary or kind does not match
// as well, whose Why says so. It decides as Judge does, but that no rule ends the
// asking: so a rule that Judge would not reach has Why set and no verdict.
func (s *Set) Explain(ctx context.Context, on On, f Facts) ([]Explained, error) {
	if s == nil || !s.loaded {
		return nil, unloaded("no constitution was loaded").Err
	}
	lang, err := newLanguage()
	if err != nil {
		return nil, err
	}
	act := &facts{Facts: f, on: on, ctx: ctx, left: MaxJudgeCost}
	blind := s.blind(act)
	out := make([]Explained, 0, len(s.rules))
	over := ""
	for _, r := range s.rules {
		e := Explained{Rule: r.info, Verdict: holdfast.Allow}
		switch err := blind[r]; {
		case err != nil && over == "":
			e.found(r.errored(err))
			e.Asked = true
		case r.info.On != on:
			e.Why = fmt.Sprintf("it judges %s, not %s", r.info.On, on)
		case !r.matches(f.Boundary):
			e.Why = fmt.Sprintf("its boundary %s is another than %s", r.info.Boundary, f.Boundary)
		case over != "":
			e.Why = over
		default:
			over = e.judge(lang, r, act)
		}
		out = append(out, e)
	}
	return out, nil
}

// judge asks one rule and looks at its parts. It returns why no rule after it
// would be asked, if none would.
func (e *Explained) judge(lang *language, r *rule, act *facts) (over string) {
	before := act.left
	violated, err := act.judge(r)
	e.Asked, e.Cost = true, before-act.left
	switch {
	case err != nil:
		e.found(r.errored(err))
		if e.Verdict == holdfast.Deny && (errors.Is(err, failure.ErrTimeout) || act.left == 0) {
			over = "the time or the cost of all rules together was used up by " + r.info.ID
		}
	case violated:
		e.found(r.spoke())
	}
	e.Values = r.values(lang, act)
	return over
}

func (e *Explained) found(f Finding) {
	e.Verdict, e.Spoke, e.Message = f.Verdict, true, f.Message
}

// values evaluates the condition once more, keeping what each part was. The
// history says what it said before.
func (r *rule) values(lang *language, act *facts) []Value {
	p, err := lang.env(r.info.On).Program(r.expr.checked, cel.EvalOptions(cel.OptTrackState), cel.CustomDecoratorV2(guards(lang.env(r.info.On), r.expr.checked)),
		cel.CostTracking(counter{}), cel.CostLimit(MaxRuleCost), cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		return nil
	}
	again := *act
	again.left, again.inner = MaxJudgeCost, 0
	_, details, _ := p.ContextEval(act.ctx, &again) // its error was told above
	if details == nil || details.State() == nil {
		return nil
	}
	look := &looker{r: r, state: details.State()}
	look.at(r.expr.checked.NativeRep().Expr(), false)
	return look.out
}

// looker walks a condition and notes what its parts were.
type looker struct {
	r     *rule
	state interpreter.EvalState
	out   []Value
}

// at looks at an expression, its parts first. Within a walk over a list (inner)
// only the last turn is known, which would mislead.
func (l *looker) at(e ast.Expr, inner bool) {
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		if n, ok := l.past(c); ok {
			l.note(e, n)
			return
		}
		if c.IsMemberFunction() {
			l.at(c.Target(), false)
		}
		for _, a := range c.Args() {
			l.at(a, false)
		}
	case ast.ListKind:
		for _, m := range e.AsList().Elements() {
			l.at(m, true)
		}
	case ast.ComprehensionKind:
		l.at(e.AsComprehension().IterRange(), false)
	case ast.LiteralKind:
		return
	}
	if !inner {
		l.note(e, "")
	}
}

// past is the text of the past function that a call stands for.
func (l *looker) past(c ast.CallExpr) (string, bool) {
	if _, ours := pastUnits(c.FunctionName()); !ours || len(c.Args()) != 2 || c.Args()[0].Kind() != ast.IdentKind || c.Args()[0].AsIdent() != pastVariable {
		return "", false
	}
	n, ok := c.Args()[1].AsLiteral().(types.Int)
	if !ok || n < 0 || int(n) >= len(l.r.pasts) {
		return "", false
	}
	return l.r.pasts[n].Text, true
}

func (l *looker) note(e ast.Expr, text string) {
	v, known := l.state.Value(e.ID())
	if !known || len(l.out) >= maxExplained {
		return
	}
	if text == "" {
		text = l.text(e)
	}
	if text == "" || len(l.out) > 0 && l.out[len(l.out)-1].Text == text {
		return
	}
	l.out = append(l.out, Value{Text: text, Is: shown(v, l.r.expr.source)})
}

// text is an expression as its author wrote it, but for the parts that stand for
// past functions: those have no text of their own, and the whole is shown.
func (l *looker) text(e ast.Expr) string {
	rep := l.r.expr.checked.NativeRep()
	if e.ID() == rep.Expr().ID() {
		return excerpt.Of(rulefile.Clip(l.r.expr.source), maxStepText)
	}
	s, err := parser.Unparse(e, rep.SourceInfo())
	if err != nil {
		return ""
	}
	for i, p := range l.r.pasts {
		s = strings.ReplaceAll(s, fmt.Sprintf("%s(%s, %d)", pastCall(p.kind), pastVariable, i), p.Text)
	}
	if strings.Contains(s, "@") && !strings.Contains(l.r.expr.source, "@") {
		return "" // of what stands for arithmetic with a sum, only the whole has a text
	}
	return excerpt.Of(s, maxStepText)
}

// shown writes a value for people.
func shown(v ref.Val, source string) string {
	switch v := v.(type) {
	case *types.Err:
		return "error: " + failure.FromEvaluation(context.Background(), v, source).Error()
	case *types.Unknown:
		return "unknown"
	case types.Timestamp:
		return v.Time.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	case types.Duration:
		return v.Duration.String()
	case types.String:
		return jsonOf(string(v))
	case types.Bytes:
		return fmt.Sprintf("%d bytes", len(v))
	case *types.Type:
		return v.TypeName()
	case exact:
		return v.FloatString(6)
	}
	if n, err := v.ConvertToNative(reflect.TypeFor[any]()); err == nil {
		return jsonOf(n)
	}
	return jsonOf(v.Value())
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "a " + fmt.Sprintf("%T", v)
	}
	return excerpt.Of(string(b), maxStepText)
}
