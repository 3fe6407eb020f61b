package constitution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// shape is what a JSON Schema says of a value, as far as a rule can be wrong
// about it. The zero shape is anything.
type shape struct {
	class class
	// props are the members that the schema names; open says that it lets
	// others be, in words, so that a rule that names one is not wrong.
	props map[string]*shape
	open  bool
	items *shape
	// words are the texts that the value may be, where the schema lists them.
	words []string
	// form writes a text as the value is always written, where it has one form:
	// "" for a text that it never is. Of the beginning of a text, whole is false.
	form func(s string, whole bool) string
	// hint is what to say of something that does not fit, instead of what a
	// schema's author is told.
	hint string
	// unordered says that the order of the words as texts means nothing.
	unordered bool
}

// class is a kind of JSON value.
type class string

const (
	classAny    class = ""
	classObject class = "an object"
	classList   class = "a list"
	classText   class = "a text"
	classNumber class = "a number"
	classTruth  class = "true or false"
	classNull   class = "null"
	// classTime is what no JSON value is.
	classTime class = "a time, a duration or bytes"
)

// maxShape bounds how deep a schema is looked into.
const maxShape = 20

// readShape reads a JSON Schema. What it cannot follow is anything: references,
// alternatives and conditions.
func readShape(schema json.RawMessage) (*shape, error) {
	if len(schema) == 0 {
		return &shape{}, nil
	}
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return shapeOf(v, 0), nil
}

func shapeOf(v any, depth int) *shape {
	m, ok := v.(map[string]any)
	if !ok || depth > maxShape {
		return &shape{}
	}
	for _, key := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas"} {
		if _, ok := m[key]; ok {
			return &shape{}
		}
	}
	s := &shape{class: classOf(m["type"])}
	if props, ok := m["properties"].(map[string]any); ok {
		s.props = map[string]*shape{}
		for name, p := range props {
			s.props[name] = shapeOf(p, depth+1)
		}
	}
	more, said := m["additionalProperties"]
	_, patterns := m["patternProperties"]
	s.open = said && more != false || patterns || s.props == nil
	if _, tuple := m["prefixItems"]; !tuple {
		s.items = shapeOf(m["items"], depth+1)
	}
	s.words = wordsOf(m)
	return s
}

func classOf(v any) class {
	word, _ := v.(string)
	return map[string]class{"object": classObject, "array": classList, "string": classText, "number": classNumber,
		"integer": classNumber, "boolean": classTruth, "null": classNull}[word]
}

func wordsOf(m map[string]any) []string {
	list, _ := m["enum"].([]any)
	if c, ok := m["const"]; ok {
		list = []any{c}
	}
	var out []string
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// member is the shape of a member, and whether there can be one of that name.
func (s *shape) member(name string) (*shape, bool) {
	if s == nil || s.class != classAny && s.class != classObject {
		return &shape{}, s == nil
	}
	if p, ok := s.props[name]; ok {
		return p, true
	}
	return &shape{}, s.open || s.props == nil
}

// misfits finds what a checked expression says of its roots that their shapes
// do not let be: members that are not there, and comparisons that can never be
// true because the two sides are never of one kind. Such a rule would never
// speak, and nobody would hear of it.
func misfits(checked *cel.Ast, roots map[string]*shape) []problem {
	f := &fitting{ast: checked.NativeRep(), roots: roots}
	f.walk(f.ast.Expr(), nil)
	return f.out
}

type fitting struct {
	ast   *ast.AST
	roots map[string]*shape
	out   []problem
}

// scope holds the shapes of the variables of macros, the innermost first.
type scope struct {
	name string
	is   *shape
	up   *scope
}

func (f *fitting) fail(e ast.Expr, why, hint string) {
	at := f.ast.SourceInfo().GetStartLocation(e.ID())
	p := problem{at.Line(), at.Column(), why, hint}
	if !slices.Contains(f.out, p) {
		f.out = append(f.out, p)
	}
}

// walk visits e and says what shape its value has.
func (f *fitting) walk(e ast.Expr, in *scope) *shape {
	switch e.Kind() {
	case ast.IdentKind:
		return f.named(e.AsIdent(), in)
	case ast.SelectKind:
		sel := e.AsSelect()
		return f.member(e, f.walk(sel.Operand(), in), sel.FieldName())
	case ast.CallKind:
		return f.call(e, in)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			f.walk(x, in)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			f.walk(x.AsMapEntry().Key(), in)
			f.walk(x.AsMapEntry().Value(), in)
		}
	case ast.ComprehensionKind:
		f.comprehension(e.AsComprehension(), in)
	}
	return f.typed(e)
}

func (f *fitting) named(name string, in *scope) *shape {
	for s := in; s != nil; s = s.up {
		if s.name == name {
			return s.is
		}
	}
	if s, ok := f.roots[name]; ok {
		return s
	}
	return &shape{}
}

func (f *fitting) member(e ast.Expr, of *shape, name string) *shape {
	is, can := of.member(name)
	if can {
		return is
	}
	if of.class != classAny && of.class != classObject {
		f.fail(e, fmt.Sprintf("%q is asked of what is %s", rulefile.Clip(name), of.class), "")
		return &shape{}
	}
	var known []string
	for p := range of.props {
		known = append(known, p)
	}
	slices.Sort(known)
	hint := "the schema names no such member"
	if near := suggest.FindName(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	f.fail(e, fmt.Sprintf("there is no %q here", rulefile.Clip(name)), hint)
	return &shape{}
}

func (f *fitting) call(e ast.Expr, in *scope) *shape {
	call := e.AsCall()
	var args []*shape
	if call.IsMemberFunction() {
		f.part(e, f.walk(call.Target(), in))
	}
	for _, a := range call.Args() {
		args = append(args, f.walk(a, in))
	}
	name := call.FunctionName()
	if name == operators.Index && len(args) == 2 {
		return f.index(e, args[0], call.Args()[1])
	}
	if len(args) == 2 {
		switch name {
		case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
			f.compare(e, args[0], args[1], call.Args())
		case operators.In:
			f.among(e, args[0], call.Args()[1], in)
			if args[1].items != nil {
				f.word(e, args[1].items, call.Args()[0])
			}
		}
	}
	return f.typed(e)
}

// index is a list's element, or an object's member by a name that is written out.
func (f *fitting) index(e ast.Expr, of *shape, by ast.Expr) *shape {
	if by.Kind() == ast.LiteralKind {
		if name, ok := by.AsLiteral().Value().(string); ok {
			return f.member(e, of, name)
		}
	}
	if of != nil && of.class == classList && of.items != nil {
		return of.items
	}
	return &shape{}
}

func (f *fitting) compare(e ast.Expr, a, b *shape, args []ast.Expr) {
	if a.class != classAny && b.class != classAny && a.class != b.class {
		f.fail(e, fmt.Sprintf("%s is compared with %s", a.class, b.class), cmp.Or(a.hint, b.hint, "the two are never equal, and the rule would never speak"))
		return
	}
	if name := e.AsCall().FunctionName(); (a.unordered || b.unordered) && name != operators.Equals && name != operators.NotEquals {
		f.fail(e, "these words are compared as texts, whose order is not theirs", "list those that are meant, such as `risk in [\"HIGH\", \"PROHIBITED\"]`; level_rank is a number")
		return
	}
	f.word(e, a, args[1])
	f.word(e, b, args[0])
}

// word checks a text that is written out against those that there can be.
func (f *fitting) word(e ast.Expr, of *shape, with ast.Expr) {
	s, ok := text(with)
	switch {
	case !ok:
	case len(of.words) > 0 && !slices.Contains(of.words, s):
		near := suggest.FindName(s, of.words)
		for _, w := range of.words {
			if strings.EqualFold(s, w) {
				near = w
			}
		}
		f.never(e, s, near, cmp.Or(of.hint, "the boundary's schema lists others"))
	case of.form != nil && of.form(s, true) != s:
		f.never(e, s, of.form(s, true), of.hint)
	}
}

// part checks a text that a value of one form is said to begin with, to end with
// or to have in it.
func (f *fitting) part(e ast.Expr, of *shape) {
	call := e.AsCall()
	if of.form == nil || len(call.Args()) != 1 {
		return
	}
	s, ok := text(call.Args()[0])
	if !ok {
		return
	}
	is := s
	switch call.FunctionName() {
	case "startsWith":
		is = of.form(s, false)
	case "endsWith", "contains":
		is = strings.ToLower(s)
	}
	if is != s {
		f.never(e, s, is, of.hint)
	}
}

func (f *fitting) never(e ast.Expr, s, near, hint string) {
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", rulefile.Clip(near))
	}
	f.fail(e, fmt.Sprintf("it is never %q", rulefile.Clip(s)), hint)
}

// text is a text that is written out.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().Value().(string)
	return s, ok
}

// among checks the members of a list that is written out.
func (f *fitting) among(e ast.Expr, of *shape, list ast.Expr, in *scope) {
	if list.Kind() != ast.ListKind {
		return
	}
	for _, x := range list.AsList().Elements() {
		is := f.walk(x, in)
		if of.class != classAny && is.class != classAny && of.class != is.class {
			f.fail(e, fmt.Sprintf("%s is looked for where there is %s", of.class, is.class), "it is never found, and the rule would never speak")
			return
		}
		f.word(e, of, x)
	}
}

func (f *fitting) comprehension(c ast.ComprehensionExpr, in *scope) {
	over := f.walk(c.IterRange(), in)
	f.walk(c.AccuInit(), in)
	element, second := &shape{}, &shape{}
	switch {
	case over.class == classList && over.items != nil && !c.HasIterVar2():
		element = over.items
	case over.class == classList && over.items != nil:
		element, second = &shape{class: classNumber}, over.items
	case over.class == classObject:
		element = &shape{class: classText}
	}
	inner := &scope{c.AccuVar(), &shape{}, &scope{c.IterVar(), element, in}}
	if c.HasIterVar2() {
		inner = &scope{c.IterVar2(), second, inner}
	}
	f.walk(c.LoopCondition(), inner)
	f.walk(c.LoopStep(), inner)
	f.walk(c.Result(), inner)
}

// typed is the shape of what CEL itself knows the type of.
func (f *fitting) typed(e ast.Expr) *shape {
	t := f.ast.GetType(e.ID())
	if t == nil {
		return &shape{}
	}
	switch {
	case t.IsExactType(types.StringType):
		return &shape{class: classText}
	case t.IsExactType(types.IntType), t.IsExactType(types.DoubleType), t.IsExactType(types.UintType):
		return &shape{class: classNumber}
	case t.IsExactType(types.BoolType):
		return &shape{class: classTruth}
	}
	return &shape{}
}
