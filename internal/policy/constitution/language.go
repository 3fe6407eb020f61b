package constitution

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/ext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

// Bounds of a constitution. Cost is in CEL's units, of which one is roughly
// 50 ns.
const (
	// MaxRules is the number of rules in one set.
	MaxRules = 1000
	// MaxRuleCost bounds one expression: by estimate when it is loaded, by
	// counting when it is judged.
	MaxRuleCost = 1_000_000
	// MaxJudgeCost bounds all expressions of one call of Judge.
	MaxJudgeCost = 10_000_000

	// A rule whose cost stays below freeCost on the largest payload there
	// can be is judged without counting, and charged this bound.
	freeCost = 10_000
	// checkEvery is how many steps of a comprehension pass between two
	// looks at the context.
	checkEvery = 100
	maxRegex   = 1_000 // instructions
	maxNesting = 64    // of an expression
	maxNodes   = 2_000 // of an expression
)

// Sizes that the estimator assumes: an ordinary payload, to refuse at load
// what cannot end in time; and the largest there can be (D7), to know what
// need not be counted. What lies between is counted while it runs.
const (
	ordinarySize = 256
	largestSize  = 10_485_760
	namesSize    = 1_024 // names and other short facts
)

// language is CEL with the facts that a rule may name. Rules over a request
// and rules over an output are two languages, so that a rule that asks for the
// output before there is one is refused when it is loaded.
//
// bare is what reads no facts: past crossings, which have none, and expressions
// that are no rules.
type language struct {
	bare            *cel.Env
	request, output *cel.Env
	subjects        map[On]*cel.Env
	shapes          map[On]*shape // of the subjects
}

// newLanguage returns the rule language. It is made once a process: that takes longer
// than to compile a rule, and nothing changes it.
var newLanguage = sync.OnceValues(makeLanguage)

func makeLanguage() (*language, error) {
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(tree{}),
		cel.CrossTypeNumericComparisons(true),
		cel.HomogeneousAggregateLiterals(),
		cel.ParserExpressionSizeLimit(rulefile.MaxExpression),
		cel.ParserRecursionLimit(maxNesting),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ExpressionNestingDepthLimit(maxNesting),
		cel.RegexProgramSizeLimit(maxRegex),
		ext.Strings(), ext.Sets(), ext.Lists(),
		cel.ASTValidators(cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals(), cel.ValidateRegexLiterals()),
	}
	options = append(options, cel.EnableMacroCallTracking())
	options = append(options, pastDeclarations()...)
	for _, v := range variables() {
		options = append(options, cel.Variable(v.name, v.kind))
	}
	bare, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("make the rule language: %w", err)
	}
	request, err := bare.Extend(factsDeclaration())
	if err != nil {
		return nil, fmt.Errorf("make the rule language: %w", err)
	}
	output, err := request.Extend(
		cel.Variable("output", cel.DynType),
		cel.Variable("output_size", cel.IntType),
		cel.Variable("exit_code", cel.IntType))
	if err != nil {
		return nil, fmt.Errorf("make the rule language: %w", err)
	}
	l := &language{bare: bare, request: request, output: output, subjects: map[On]*cel.Env{}, shapes: map[On]*shape{}}
	for _, on := range []On{OnGoal, OnSubtask, OnGraph} {
		if l.subjects[on], err = request.Extend(cel.Variable(subjectName(on), cel.DynType)); err != nil {
			return nil, fmt.Errorf("make the rule language: %w", err)
		}
		if l.shapes[on], err = subjectShape(on); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *language) env(on On) *cel.Env {
	switch {
	case on == OnOutput:
		return l.output
	case l.subjects[on] != nil:
		return l.subjects[on]
	}
	return l.request
}

type variable struct {
	name string
	kind *cel.Type
}

func variables() []variable {
	return []variable{
		{"boundary", cel.StringType}, {"operation", cel.StringType}, {"risk", cel.StringType},
		{"tenant", cel.StringType}, {"principal", cel.StringType}, {"agent", cel.StringType}, {"subagent", cel.StringType},
		{"kind", cel.StringType}, {"session", cel.StringType}, {"intent", cel.StringType}, {"chain", cel.StringType},
		{"roles", cel.ListType(cel.StringType)},
		{"level", cel.StringType}, {"level_rank", cel.IntType},
		{"args", cel.DynType}, {"payload_size", cel.IntType},
		{"now", cel.TimestampType},
	}
}

// requestShapes are the variables that are one of a few words.
func requestShapes() map[string]*shape {
	risk, level := &shape{class: classText, unordered: true}, &shape{class: classText, unordered: true}
	for _, r := range []holdfast.Risk{holdfast.Low, holdfast.Medium, holdfast.High, holdfast.Prohibited} {
		risk.words = append(risk.words, r.String())
	}
	for _, l := range []holdfast.Level{holdfast.Baseline, holdfast.MediumTrust, holdfast.HighTrust, holdfast.Highest} {
		level.words = append(level.words, l.String())
	}
	risk.hint, level.hint = "it is "+strings.Join(risk.words, ", "), "it is "+strings.Join(level.words, ", ")
	return map[string]*shape{"risk": risk, "level": level}
}

func outputVariables() []string { return []string{"output", "output_size", "exit_code"} }

// sizes estimates how big values are. It is the same for every member of a
// payload, because nobody knows its shape.
type sizes uint64

// EstimateSize implements cost.Estimator.
func (s sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	size := cost.SizeEstimate{Max: namesSize}
	if path[0] == "args" || path[0] == "output" || On(path[0]).goals() {
		size.Max = uint64(s)
	}
	if path[0] == factsVariable {
		size.Max = min(uint64(s), MaxFact)
	}
	return &size
}

// EstimateCallCost implements cost.Estimator: every function keeps the cost
// that comes with it, but for those that stand for past functions.
func (sizes) EstimateCallCost(function, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	if n, ours := pastUnits(function); ours {
		return &cost.CallEstimate{CostEstimate: cost.Estimate{Min: n, Max: n}}
	}
	return nil
}

// problem is something wrong with an expression, at a byte offset-free place:
// CEL's line (from 1) and column (from 0).
type problem struct {
	line, col int
	why, hint string
}

// expression is a compiled expression.
type expression struct {
	source  string
	program cel.Program
	checked *cel.Ast
	// cost is the estimate on an ordinary payload.
	cost uint64
	// bound is what judging can cost at most on any payload; counted says
	// that it is not small and must be counted while it runs.
	bound   uint64
	counted bool
}

// compile checks an expression against an environment. want is nil where any
// number will do.
func compile(env *cel.Env, source string, want func(*cel.Type) bool, wants string) (*expression, []problem) {
	parsed, found := parse(env, source)
	if len(found) > 0 {
		return nil, found
	}
	return compileParsed(env, parsed, source, want, wants)
}

// yieldHint says what to write where an expression is of another type.
func yieldHint(wants string) string {
	if wants == string(classTruth) {
		return "compare with something, for example `args.count > 10`"
	}
	return "for example `args.amount`"
}

func parse(env *cel.Env, source string) (*cel.Ast, []problem) {
	if len(source) > rulefile.MaxExpression {
		return nil, []problem{{1, 0, fmt.Sprintf("the expression has %d bytes", len(source)),
			fmt.Sprintf("at most %d are allowed; make two rules of it", rulefile.MaxExpression)}}
	}
	parsed, issues := env.Parse(source)
	if issues != nil && issues.Err() != nil {
		return nil, explain(env, issues, source)
	}
	return parsed, nil
}

// compileParsed is compile for what was parsed.
func compileParsed(env *cel.Env, parsed *cel.Ast, source string, want func(*cel.Type) bool, wants string) (*expression, []problem) {
	checked, issues := env.Check(parsed)
	if issues != nil && issues.Err() != nil {
		return nil, explain(env, issues, source)
	}
	if t := checked.OutputType(); !want(t) {
		return nil, []problem{{1, 0, "the expression yields " + t.String() + ", not " + wants, yieldHint(wants)}}
	}
	if found := append(forbidden(checked), misfits(checked, requestShapes())...); len(found) > 0 {
		return nil, found
	}
	ordinary, err := env.EstimateCost(checked, sizes(ordinarySize))
	if err != nil {
		return nil, []problem{{1, 0, "the cost cannot be estimated", ""}}
	}
	if ordinary.Max > MaxRuleCost {
		return nil, []problem{{1, 0, fmt.Sprintf("the expression may cost %s units, more than %d", units(ordinary.Max), MaxRuleCost), "do not put one all, exists, filter or map inside another, or test a smaller list"}}
	}
	largest, err := env.EstimateCost(checked, sizes(largestSize))
	if err != nil {
		return nil, []problem{{1, 0, "the cost cannot be estimated", ""}}
	}
	e := &expression{source: source, checked: checked, cost: ordinary.Max, bound: largest.Max, counted: largest.Max > freeCost}
	if e.program, err = env.Program(checked, programOptions(env, checked, e.counted)...); err != nil {
		return nil, []problem{{1, 0, "the expression cannot be planned: " + rulefile.Clip(err.Error()), ""}}
	}
	return e, nil
}

func units(n uint64) string {
	if n > 1<<62 {
		return "unbounded"
	}
	return fmt.Sprint(n)
}

func programOptions(env *cel.Env, checked *cel.Ast, counted bool) []cel.ProgramOption {
	options := []cel.ProgramOption{
		cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(guards(env, checked)),
	}
	if counted {
		options = append(options, cel.CostTracking(counter{}), cel.CostLimit(MaxRuleCost), cel.InterruptCheckFrequency(checkEvery))
	}
	return options
}

func isBool(t *cel.Type) bool { return t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) }

func isNumber(t *cel.Type) bool {
	return t.IsExactType(cel.IntType) || t.IsExactType(cel.DoubleType) || t.IsExactType(cel.DynType)
}

// explain turns CEL's issues into problems.
func explain(env *cel.Env, issues *cel.Issues, source string) []problem {
	var out []problem
	for _, e := range issues.Errors() {
		p := problem{line: e.Location.Line(), col: e.Location.Column(),
			why: rulefile.Clip(strings.ReplaceAll(e.Message, "'@exact.", "'"))}
		if name, ok := undeclared(e.Message); ok {
			p.why, p.hint = unknownName(env, name)
			if at := rulefile.Offset(source, p.line, p.col); p.hint == underArgs(name) && at >= 0 &&
				strings.HasPrefix(string([]rune(source)[min(at, len([]rune(source))):]), "(") {
				p.hint = "rules have no such function"
			}
		} else if types, ok := unmatched(e.Message); ok {
			p.hint = typeHint(types)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		out = append(out, problem{line: 1, why: "the expression does not parse"})
	}
	return out
}

func undeclared(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, "undeclared reference to '")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

// unmatched is the list of types that no function takes, in CEL's words.
func unmatched(message string) (types string, ok bool) {
	if !strings.HasPrefix(message, "found no matching overload for '_") {
		return "", false
	}
	_, types, ok = strings.Cut(message, " applied to ")
	return types, ok
}

// typeHint says how a value of the type that is wanted is written.
func typeHint(types string) string {
	switch {
	case strings.Contains(types, "timestamp") && strings.Contains(types, "string"):
		return `write an instant as timestamp("2026-01-31T00:00:00Z")`
	case strings.Contains(types, "duration") && strings.Contains(types, "string"):
		return `write a time as duration("60s")`
	case !strings.Contains(types, ", "):
		return ""
	case strings.Contains(types, "(list(string), string)"):
		return `ask a list with in, for example "admin" in roles`
	}
	return "the two are never of one type"
}

func unknownName(env *cel.Env, name string) (why, hint string) {
	why = fmt.Sprintf("there is no %q", rulefile.Clip(name))
	var known []string
	for _, v := range env.Variables() {
		if !internal(v.Name()) {
			known = append(known, v.Name())
		}
	}
	if name == pastRoot {
		return "past is not known here", "rules on request, output, goal, subtask and graph can ask the past"
	}
	if name == factsVariable {
		return "facts are not known here", "a rule's own condition reads them; past crossings, scores and amounts have none"
	}
	known = append(known, pastRoot)
	for _, v := range outputVariables() {
		if v == name {
			return why + " before the act", "an output exists only for rules with `on: output`"
		}
	}
	for f := range env.Functions() {
		if !strings.ContainsAny(f, "_@") {
			known = append(known, f)
		}
	}
	if near := suggest.FindName(name, known); near != "" {
		return why, fmt.Sprintf("did you mean %q?", near)
	}
	return why, underArgs(name)
}

func underArgs(name string) string {
	return "a payload's members are under `args`, for example `args." + rulefile.Clip(name) + "`"
}

// forbidden finds calls that check but that a rule may not make: formatting,
// whose output nothing bounds; patterns and time zones that a payload chooses,
// the first because their cost would be the agent's, the second because a
// named zone is read from a file.
func forbidden(checked *cel.Ast) []problem {
	var out []problem
	info := checked.NativeRep().SourceInfo()
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		why, hint := forbiddenCall(e.AsCall())
		if why == "" {
			return
		}
		at := info.GetStartLocation(e.ID())
		out = append(out, problem{at.Line(), at.Column(), why, hint})
	}))
	return out
}

func forbiddenCall(call ast.CallExpr) (why, hint string) {
	name := call.FunctionName()
	switch name {
	case "format", "strings.quote", "lists.range":
		return fmt.Sprintf("%s is not available in rules", name), "compare values instead of building them"
	case "matches":
		if last := call.Args()[len(call.Args())-1]; last.Kind() != ast.LiteralKind {
			return "the pattern of matches must be written out", "a pattern that comes from a payload would be the agent's to choose"
		}
	}
	if !strings.HasPrefix(name, "get") || !call.IsMemberFunction() || len(call.Args()) == 0 {
		return "", ""
	}
	if zone := call.Args()[0]; zone.Kind() != ast.LiteralKind || !fixedZone(fmt.Sprint(zone.AsLiteral().Value())) {
		return fmt.Sprintf("the time zone of %s must be a fixed offset", name), "write it as \"+01:00\", or leave it out for UTC"
	}
	return "", ""
}

func fixedZone(zone string) bool {
	ok, err := regexp.MatchString(`^([+-]?\d\d:\d\d|UTC)$`, zone)
	return ok && err == nil
}
