package constitution

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

const (
	pastRoot     = "past"
	pastWhere    = "where"
	pastSame     = "same"
	pastHappened = "happened"
	pastCount    = "count"
	pastSum      = "sum"
	pastNet      = "net"
	pastLast     = "last"
	pastDistinct = "distinct"
)

func pastLinks() []string {
	return []string{pastWhere, pastSame, pastHappened, pastCount, pastSum, pastNet, pastLast, pastDistinct}
}

// pasts says whether rules of that kind may ask the past.
func (on On) pasts() bool { return on == OnRequest || on == OnOutput || on.goals() }

// compile checks a rule's condition: past functions first, each by itself and
// in the language of rules on request, since that is what a past crossing was;
// then the condition with a call in the place of each.
func (l *language) compile(on On, source string) (*expression, []*Past, []problem) {
	env := l.env(on)
	parsed, found := parse(env, source)
	if len(found) > 0 {
		return nil, nil, found
	}
	r := &pastReader{lang: l, on: on, source: source, runes: []rune(source),
		info: parsed.NativeRep().SourceInfo(), fac: ast.NewExprFactory(), next: ast.MaxID(parsed.NativeRep()) + 1}
	if number := r.walk(parsed.NativeRep().Expr()); number && len(r.problems) == 0 {
		r.fail(1, 0, "the condition is a sum, not true or false", "compare it with something")
	}
	if len(r.problems) > 0 {
		return nil, nil, r.problems
	}
	e, found := compileParsed(env, parsed, source, isBool, "true or false")
	if len(found) > 0 {
		return nil, nil, found
	}
	total := e.cost
	for _, p := range r.found {
		total += p.Cost
	}
	if total > MaxRuleCost {
		return nil, nil, []problem{{1, 0, fmt.Sprintf("the rule may cost %s units with its past functions, more than %d", units(total), MaxRuleCost), "make two rules of it"}}
	}
	return e, r.found, nil
}

// pastReader finds past functions in a parsed condition and puts calls in their
// place.
type pastReader struct {
	lang     *language
	on       On
	source   string
	runes    []rune
	info     *ast.SourceInfo
	fac      ast.ExprFactory
	next     int64
	scope    []string // variables of macros around the place
	found    []*Past
	problems []problem
}

func (r *pastReader) fail(line, col int, why, hint string) {
	r.problems = append(r.problems, problem{line, col, why, hint})
}

func (r *pastReader) failAt(id int64, why, hint string) {
	at := r.info.GetStartLocation(id)
	r.fail(at.Line(), at.Column(), why, hint)
}

// failLink fails at the name of a call, which CEL has no place for.
func (r *pastReader) failLink(l link, why, hint string) {
	line, col := r.named(l)
	r.fail(line, col, why, hint)
}

// named is where a call's name stands: before its parenthesis.
func (r *pastReader) named(l link) (line, col int) {
	at := r.info.GetStartLocation(l.id)
	o, ok := r.info.GetOffsetRange(l.id)
	if !ok || int(o.Start) > len(r.runes) {
		return at.Line(), at.Column()
	}
	name := []rune(l.name)
	for i := int(o.Start); i >= len(name) && int(o.Start)-i < 100; i-- {
		if slices.Equal(r.runes[i-len(name):i], name) {
			at = r.info.GetLocationByOffset(int32(i - len(name)))
			break
		}
	}
	return at.Line(), at.Column()
}

// link is one call of a chain.
type link struct {
	id   int64
	name string
	args []ast.Expr
}

// chain returns the calls that e ends, if they begin with past(...).
func chain(e ast.Expr) []link {
	var out []link
	for e.Kind() == ast.CallKind {
		call := e.AsCall()
		out = append(out, link{e.ID(), call.FunctionName(), call.Args()})
		if !call.IsMemberFunction() {
			if call.FunctionName() != pastRoot {
				return nil
			}
			slices.Reverse(out)
			return out
		}
		e = call.Target()
	}
	return nil
}

func ends(name string) bool {
	return slices.Contains(pastLinks()[2:], name)
}

// walk reads e and what is below it. It returns whether e is an exact number
// now.
func (r *pastReader) walk(e ast.Expr) bool {
	if links := chain(e); links != nil {
		first := slices.IndexFunc(links, func(l link) bool { return ends(l.name) })
		if first == len(links)-1 {
			return r.function(e, links)
		}
		if first < 0 {
			r.unended(links)
			return false
		}
		if l := links[len(links)-1]; slices.Contains(pastLinks(), l.name) {
			r.failLink(l, fmt.Sprintf("%s after %s", l.name, links[first].name), fmt.Sprintf("%s is the end of a past function", links[first].name))
			return false
		}
	}
	switch e.Kind() {
	case ast.CallKind:
		return r.call(e)
	case ast.SelectKind:
		operand := e.AsSelect().Operand()
		if links := chain(operand); links != nil && !slices.ContainsFunc(links, func(l link) bool { return ends(l.name) }) && slices.Contains(pastLinks(), e.AsSelect().FieldName()) {
			r.failAt(e.ID(), fmt.Sprintf("%s of past is a function", e.AsSelect().FieldName()), fmt.Sprintf("write `.%s()`", e.AsSelect().FieldName()))
			return false
		}
		r.noNumber(operand)
	case ast.ListKind:
		r.noNumber(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.noNumber(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.noNumber(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		r.comprehension(e.AsComprehension())
	}
	return false
}

func (r *pastReader) comprehension(c ast.ComprehensionExpr) {
	r.noNumber(c.IterRange(), c.AccuInit())
	before := len(r.scope)
	r.scope = append(r.scope, c.IterVar(), c.IterVar2())
	r.noNumber(c.LoopCondition(), c.LoopStep(), c.Result())
	r.scope = r.scope[:before]
}

// noNumber walks what an exact number may not be.
func (r *pastReader) noNumber(all ...ast.Expr) {
	for _, e := range all {
		if r.walk(e) {
			r.misplaced(e.ID())
		}
	}
}

func (r *pastReader) misplaced(id int64) {
	r.failAt(id, "a sum is an exact number, which can be added, subtracted, multiplied and compared, and nothing else", "write double(...) around it, or compare it first")
}

// call walks a call, and where a side of it is an exact number, puts the exact
// operator in its place.
func (r *pastReader) call(e ast.Expr) bool {
	call := e.AsCall()
	if call.IsMemberFunction() {
		r.noNumber(call.Target())
	}
	exact := make([]bool, len(call.Args()))
	for i, a := range call.Args() {
		exact[i] = r.walk(a)
	}
	if !slices.Contains(exact, true) {
		return false
	}
	name, args := call.FunctionName(), call.Args()
	op, both := exactOperators()[name]
	switch {
	case call.IsMemberFunction():
	case both && len(args) == 2:
		e.SetKindCase(r.fac.NewCall(e.ID(), op.name, args...))
		return op.number
	case name == operators.Negate && len(args) == 1:
		e.SetKindCase(r.fac.NewCall(e.ID(), exactNegate, args...))
		return true
	case name == "double" && len(args) == 1:
		e.SetKindCase(r.fac.NewCall(e.ID(), exactDouble, args...))
		return false
	case name == operators.Conditional && len(args) == 3 && !exact[0]:
		e.SetKindCase(r.fac.NewCall(e.ID(), name, args[0], r.exactly(args[1], exact[1]), r.exactly(args[2], exact[2])))
		return true
	}
	r.misplaced(e.ID())
	return false
}

func (r *pastReader) exactly(e ast.Expr, already bool) ast.Expr {
	if already {
		return e
	}
	return r.fac.NewCall(r.id(e.ID()), exactOf, e)
}

// id is a new node's, which stands where another does.
func (r *pastReader) id(at int64) int64 {
	r.next++
	if o, ok := r.info.GetOffsetRange(at); ok {
		r.info.SetOffsetRange(r.next, o)
	}
	return r.next
}

// unended tells what is wrong with a chain that asks nothing.
func (r *pastReader) unended(links []link) {
	for _, l := range links[1:] {
		if !slices.Contains(pastLinks(), l.name) {
			hint := "known are " + strings.Join(pastLinks(), ", ")
			if near := suggest.FindName(l.name, pastLinks()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.failLink(l, fmt.Sprintf("past has no %q", rulefile.Clip(l.name)), hint)
			return
		}
	}
	r.failLink(links[0], "this past asks nothing", "end it with happened(), count(), sum(...), net(...), last() or distinct(...)")
}

// function reads a whole chain and puts a call in its place. It returns whether
// that is an exact number.
func (r *pastReader) function(e ast.Expr, links []link) bool {
	line, col := r.named(links[0])
	last := links[len(links)-1]
	before := len(r.problems)
	switch {
	case !r.on.pasts():
		r.failLink(links[0], fmt.Sprintf("a rule on %s cannot ask the past", r.on), "rules on request, output, goal, subtask and graph can")
		return false
	case len(r.found) == MaxPasts:
		r.failLink(links[0], fmt.Sprintf("more than %d past functions in one rule", MaxPasts), "make two rules of it")
		return false
	}
	p := &Past{kind: last.name}
	p.Text, _ = cel.ExprToString(e, r.info, cel.FormatWrapOnColumn(rulefile.MaxExpression))
	p.Text = rulefile.Clip(p.Text)
	r.root(p, links[0])
	for i, l := range links[1:] {
		if i < len(links)-2 && l.name != pastWhere && l.name != pastSame {
			r.unended(links)
			return false
		}
		r.link(p, l)
	}
	if len(r.problems) > before {
		return false
	}
	p.ID = r.identify(p, links)
	p.line, p.col = line, col
	r.found = append(r.found, p)
	e.SetKindCase(r.fac.NewCall(e.ID(), pastCall(p.kind), r.fac.NewIdent(r.id(links[0].id), pastVariable),
		r.fac.NewLiteral(r.id(links[0].id), types.Int(len(r.found)-1))))
	return p.adds()
}

// root reads past(BOUNDARY, WINDOW).
func (r *pastReader) root(p *Past, l link) {
	if len(l.args) != 2 {
		r.failLink(l, "past wants a boundary and a window", "for example past(\"mcp/bank/pay\", \"24h\")")
		return
	}
	boundary, ok := literal(l.args[0])
	switch {
	case !ok:
		r.failAt(l.args[0].ID(), "the boundary of past must be written out", "a text such as \"mcp/bank/pay\" or \"mcp/*\"")
	case !boundaryPattern(boundary):
		r.failAt(l.args[0].ID(), fmt.Sprintf("%q is no boundary", rulefile.Clip(boundary)),
			"an exact name, or a prefix and one * at the end")
	}
	text, ok := literal(l.args[1])
	window, err := parseWindow(text)
	switch {
	case !ok:
		r.failAt(l.args[1].ID(), "the window of past must be written out", "a text such as \"24h\"")
	case err != nil:
		r.failAt(l.args[1].ID(), fmt.Sprintf("%q is no window", rulefile.Clip(text)),
			"a number with a unit: 30s, 10m, 24h, 1d")
	case window < MinWindow || window > MaxWindow:
		r.failAt(l.args[1].ID(), fmt.Sprintf("the window %q is not within 1s and 24h", rulefile.Clip(text)),
			"what is to be remembered longer is a limit's")
	}
	p.Boundary, p.Window = boundary, window
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// parseWindow reads a Go duration, or whole days.
func parseWindow(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok && len(days) > 0 && len(days) < 3 && strings.Trim(days, "0123456789") == "" {
		d := 0
		for _, c := range days {
			d = 10*d + int(c-'0')
		}
		return time.Duration(d) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}

// link reads one call after past(...).
func (r *pastReader) link(p *Past, l link) {
	wants := 1
	if l.name == pastHappened || l.name == pastCount || l.name == pastLast {
		wants = 0
	}
	switch {
	case len(l.args) != wants && wants == 0:
		r.failLink(l, fmt.Sprintf("%s of past takes nothing", l.name), "select with where(...) before it")
		return
	case len(l.args) != wants:
		r.failLink(l, fmt.Sprintf("%s of past takes one expression", l.name), "")
		return
	case l.name == pastWhere && p.where != nil:
		r.failLink(l, "a second where", "join the conditions with &&")
		return
	case l.name == pastSame && len(p.same) == maxSames:
		r.failLink(l, fmt.Sprintf("more than %d same", maxSames), "")
		return
	case wants == 0:
		return
	}
	e := r.inner(l.name, l.args[0])
	if e == nil {
		return
	}
	p.Cost += e.cost
	switch l.name {
	case pastWhere:
		p.where = e
	case pastSame:
		p.same = append(p.same, e)
	default:
		p.field = e
		if p.adds() {
			p.path = payloadPath(l.args[0])
		}
	}
}

// payloadPath is where an expression that is only a place in the payload points.
func payloadPath(e ast.Expr) []string {
	var out []string
	for e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		out = append(out, e.AsSelect().FieldName())
		e = e.AsSelect().Operand()
	}
	if e.Kind() != ast.IdentKind || e.AsIdent() != "args" || len(out) == 0 {
		return nil
	}
	slices.Reverse(out)
	return out
}
