package review

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"encoding/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

// Arg is what is known of one member of arguments whose values are not kept.
type Arg struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Hidden says that the preview does not show the value as it was: it
	// was masked, or its number is written in another way.
	Hidden bool `json:"hidden,omitzero"`
}

// ShapeOf describes arguments beside what a reviewer is shown of them. It is
// nil where they have no shape: they are no object, have no members or too
// many, or a name is masked.
func ShapeOf(args, shown any) []Arg {
	m, ok := args.(map[string]any)
	s, same := shown.(map[string]any)
	if !ok || !same || len(m) == 0 || len(m) != len(s) || len(m) > MaxMembers {
		return nil
	}
	out := make([]Arg, 0, len(m))
	for name, v := range m {
		seen, there := s[name]
		t, err := TypeOf(v)
		if !there || err != nil || len(name) > maxWord {
			return nil
		}
		out = append(out, Arg{Name: name, Type: t, Hidden: !reflect.DeepEqual(v, seen)})
	}
	slices.SortFunc(out, func(a, b Arg) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// TypeOf writes the type of a JSON value as payload.Doc gives it: string,
// number, boolean, null, [T|U] for an array whose elements are of these types,
// {"name":T} for an object with exactly these members. An array may have any
// number of elements of its types; an empty one is []. It is an error where the
// text would have more than 1024 bytes.
func TypeOf(v any) (string, error) {
	t, err := typeOf(v)
	if err == nil && len(t) > maxWord {
		err = errShape
	}
	return t, err
}

func typeOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return "boolean", nil
	case string:
		return "string", nil
	case json.Number:
		return "number", nil
	case []any:
		return listType(v)
	case map[string]any:
		return objectType(v)
	}
	return "", errShape
}

func listType(list []any) (string, error) {
	var types []string
	for _, e := range list {
		t, err := TypeOf(e)
		if err != nil {
			return "", err
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
		if len(types) > MaxMembers {
			return "", errShape
		}
	}
	slices.Sort(types)
	return "[" + strings.Join(types, "|") + "]", nil
}

func objectType(m map[string]any) (string, error) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range names {
		t, err := TypeOf(m[name])
		if err != nil || b.Len() > maxWord {
			return "", errShape
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name) + ":" + t)
	}
	b.WriteByte('}')
	return b.String(), nil
}

// Choice is what a person wants remembered of an approval.
type Choice struct {
	// Exact remembers exactly the arguments; then there is nothing else.
	Exact bool
	// Under gives, by a member's name, the path that it must be or lie
	// below; an empty path means the very value that was approved.
	Under map[string]string
	// Any names the members that may be anything of their type. Members
	// that are not named must be equal to what was approved.
	Any []string
}

// RuleOf makes the rule that a person chooses of a review. Errors are
// ValueError and name the member.
func RuleOf(r *Review, c Choice) (Rule, error) {
	rule := Rule{Review: r.ID, Tenant: r.Tenant, Agent: r.Agent, Principal: r.Principal, Boundary: r.Boundary, Contract: r.Contract}
	if r.About != "" {
		return rule, ruleFault("would be of something that asked for nothing", "only an approval of a crossing can be remembered")
	}
	if r.Cut {
		return rule, ruleFault("would be of something that cannot be shown whole", "approve it once, without --remember")
	}
	if c.Exact {
		rule.Exact = r.Exact
		return rule, rule.check()
	}
	shown, err := r.Shown()
	if err != nil || len(r.Shape) == 0 {
		return rule, ruleFault("needs arguments whose members can be named", "remember exactly these arguments with --exact")
	}
	if err := known(r.Shape, c); err != nil {
		return rule, err
	}
	for _, a := range r.Shape {
		m, err := c.member(a, shown[a.Name])
		if err != nil {
			return rule, err
		}
		rule.Members = append(rule.Members, m)
	}
	return rule, rule.check()
}

// Shown is what the reviewer is shown of the arguments' members.
func (r *Review) Shown() (map[string]any, error) {
	doc, err := payload.Parse([]byte(r.Preview))
	if err != nil {
		return nil, err
	}
	m, ok := doc.Value().(map[string]any)
	if !ok {
		return nil, errShape
	}
	return m, nil
}

// known refuses a choice about a member that is not there.
func known(shape []Arg, c Choice) error {
	names := slices.Clone(c.Any)
	for name := range c.Under {
		if slices.Contains(c.Any, name) {
			return ruleFault(fmt.Sprintf("says two things of the member %q", name), "")
		}
		names = append(names, name)
	}
	for _, name := range names {
		if !slices.ContainsFunc(shape, func(a Arg) bool { return a.Name == name }) {
			return ruleFault(fmt.Sprintf("is about a member %q that the arguments do not have", name), "`holdfast review show` shows them")
		}
	}
	return nil
}

func (c *Choice) member(a Arg, v any) (Member, error) {
	if slices.Contains(c.Any, a.Name) {
		return Member{a.Name, Any, a.Type}, nil
	}
	prefix, isPath := c.Under[a.Name]
	if a.Hidden {
		return Member{}, ruleFault(fmt.Sprintf("would bind the member %q to a value that is masked", a.Name),
			"let it be anything with --any "+a.Name+", or remember exactly these arguments with --exact")
	}
	if !isPath {
		doc, err := payload.Of(v)
		if err != nil {
			return Member{}, err
		}
		return Member{a.Name, Equal, string(doc.Canonical())}, nil
	}
	s, ok := v.(string)
	if !ok {
		return Member{}, ruleFault(fmt.Sprintf("takes the member %q for a path, and it is a %s", a.Name, a.Type), "")
	}
	if prefix == "" {
		prefix = s
	}
	if err := CheckPrefix(prefix); err != nil {
		return Member{}, err
	}
	if !under(prefix, s) {
		return Member{}, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K7, Rule: "review/no_rule",
			Why: fmt.Sprintf("what was approved does not lie under %s", prefix), Hint: "name a directory that it lies in"}
	}
	return Member{a.Name, Under, prefix}, nil
}
