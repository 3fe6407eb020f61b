package constitution

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// MaxFact bounds the value of one fact, in bytes of its JSON, and MaxFactDepth
// the objects and lists within one another in it.
const (
	MaxFact      = 64 << 10
	MaxFactDepth = 32
)

// factsVariable is the name under which rules read what was fetched for them.
const factsVariable = "facts"

// Fact is a fact that needs I/O, as configuration declares it. A rule reads it
// as facts.NAME; it is fetched before the rule is judged (D3).
type Fact struct {
	// Name is an identifier. Where is "file:line" of what declares it.
	Name, Where string
	// Schema is the JSON Schema of its value; nil is anything.
	Schema json.RawMessage
}

// Fetched is the value of a fact, or why there is none.
type Fetched struct {
	// Value is a JSON tree, as Facts.Payload is. It is read, never changed.
	Value any
	// Text is the JSON that Value was read from.
	Text []byte
	// PerRequest says that it hangs on the request that it was fetched for, and
	// may tell of it.
	PerRequest bool
	// Err is shown to people, and so to the agent: it quotes no value.
	Err error
}

// Setting is what rules are checked by: the boundaries that are listed, and the
// facts that are declared. A rule that names another fact is an error.
type Setting struct {
	Boundaries []Boundary
	Facts      []Fact
	// Names are what is listed beside Boundaries, as Boundary.Name is, of which
	// nothing else is known. Nil says that there may be more; not nil, that there
	// is nothing else.
	Names []string
}

// Check is Load for `holdfast rules check`: what was loaded, what is allowed but weakens,
// and what will most likely never be evaluated. A declared fact that no rule names is a
// warning.
func (by Setting) Check(files []Source) (Report, error) {
	set, err := by.Load(files)
	if err != nil {
		return Report{}, err
	}
	out := Report{Rules: set.Rules(), Warnings: append(set.warnings(), set.Unlisted(by)...), Version: set.Version()}
	named := set.readFacts()
	for _, f := range by.Facts {
		if !named[f.Name] {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s: no rule names the fact %s", f.Where, f.Name))
		}
	}
	return out, nil
}

// readFacts are the facts that any rule names.
func (s *Set) readFacts() map[string]bool {
	out := map[string]bool{}
	for _, r := range s.factual {
		for _, name := range r.facts {
			out[name] = true
		}
	}
	return out
}

// Facts lists the facts that the rules of those kinds name which judge a boundary,
// in their order, each once.
func (s *Set) Facts(boundary string, on ...On) []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, r := range s.factual {
		if slices.Contains(on, r.info.On) && r.matches(boundary) {
			out = append(out, r.facts...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// declared is what a loader knows of the facts.
type declared struct {
	names []string
	shape *shape // of facts itself
}

func declare(list []Fact) (declared, error) {
	d := declared{shape: &shape{class: classObject, props: map[string]*shape{}, open: true}}
	for _, f := range list {
		is, err := readShape(f.Schema)
		if err != nil {
			return declared{}, fmt.Errorf("the fact %s: %w", f.Name, err)
		}
		d.names = append(d.names, f.Name)
		d.shape.props[f.Name] = is
	}
	return d, nil
}

// facts gives a rule the facts that it names, and finds those that nobody
// declares and what its condition says of them that their schemas do not let be.
func (l *loader) facts(r *rule, e *expression) []problem {
	use := &factUse{ast: e.checked.NativeRep(), known: l.declared.names, names: map[string]bool{}}
	use.walk(use.ast.Expr())
	if len(use.names) == 0 {
		return use.problems
	}
	r.facts = slices.Sorted(maps.Keys(use.names))
	r.info.Facts = r.facts
	return append(use.problems, misfits(e.checked, map[string]*shape{factsVariable: l.declared.shape})...)
}

// factUse finds what a condition reads of facts. Which facts these are must be
// written out, because they are fetched before it is judged.
type factUse struct {
	ast      *ast.AST
	known    []string
	names    map[string]bool
	problems []problem
}

func (u *factUse) fail(e ast.Expr, why, hint string) {
	at := u.ast.SourceInfo().GetStartLocation(e.ID())
	u.problems = append(u.problems, problem{at.Line(), at.Column(), why, hint})
}

func isFacts(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == factsVariable
}

func (u *factUse) read(e ast.Expr, name string) {
	u.names[name] = true
	if slices.Contains(u.known, name) {
		return
	}
	hint := "declare it under rules: facts: of the configuration"
	if near := suggest.FindName(name, u.known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	u.fail(e, fmt.Sprintf("there is no fact %q", rulefile.Clip(name)), hint)
}

func (u *factUse) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		if isFacts(e) {
			u.fail(e, "all facts together cannot be read", "name one, as facts.NAME: only what rules name is fetched")
		}
	case ast.SelectKind:
		s := e.AsSelect()
		switch {
		case !isFacts(s.Operand()):
			u.walk(s.Operand())
		case s.IsTestOnly():
			u.fail(e, "has() of a fact is always true", "a fact that cannot be fetched makes the rule fail; leave has() out")
		default:
			u.read(e, s.FieldName())
		}
	case ast.CallKind:
		u.call(e)
	case ast.ListKind:
		u.all(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			u.all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			u.walk(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		if slices.Contains([]string{c.IterVar(), c.IterVar2(), c.AccuVar()}, factsVariable) {
			u.fail(e, "a macro's variable cannot be called facts", "choose another name")
			return
		}
		u.all(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
}

func (u *factUse) all(list ...ast.Expr) {
	for _, e := range list {
		u.walk(e)
	}
}

func (u *factUse) call(e ast.Expr) {
	c := e.AsCall()
	if c.FunctionName() == operators.Index && len(c.Args()) == 2 && isFacts(c.Args()[0]) {
		if by := c.Args()[1]; by.Kind() == ast.LiteralKind {
			if name, ok := by.AsLiteral().Value().(string); ok {
				u.read(e, name)
				return
			}
		}
		u.fail(e, "which fact is read must be written out", "write facts.NAME: only what rules name is fetched")
		u.walk(c.Args()[1])
		return
	}
	if c.IsMemberFunction() {
		u.walk(c.Target())
	}
	u.all(c.Args()...)
}

func factsDeclaration() cel.EnvOption {
	return cel.Variable(factsVariable, cel.MapType(cel.StringType, cel.DynType))
}

// lacks is the failure of a rule that names a fact which is not there, whether its
// condition would come to it or not.
func (a *facts) lacks(r *rule) error {
	for _, name := range r.facts {
		f, there := a.Fetched[name]
		switch {
		case !there:
			return &failure.Failure{Kind: failure.ErrEval, Text: "the fact " + name + " was not fetched",
				Cause: failure.ErrFact}
		case f.Err != nil:
			return &failure.Failure{Kind: failure.ErrEval, Text: "the fact " + name + ": " +
				rulefile.Clip(f.Err.Error()), Cause: errors.Join(failure.ErrFact, f.Err)}
		}
	}
	return nil
}

// fetched are the values of all facts that are there.
func (a *facts) fetched() map[string]any {
	if a.values == nil {
		a.values = make(map[string]any, len(a.Fetched))
		for name, f := range a.Fetched {
			if f.Err == nil {
				a.values[name] = f.Value
			}
		}
	}
	return a.values
}
