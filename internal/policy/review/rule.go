package review

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
)

// RuleLifetime is the longest that a remembered rule may hold.
const RuleLifetime = 90 * 24 * time.Hour

// Limits of a rule.
const (
	MaxRule    = 8 << 10 // bytes of its canonical text
	MaxMembers = 64
	maxWord    = 1024 // bytes of a member's name or type
)

// Rule is what a person remembers of an approval: one caller, one boundary as
// it is now, and either exactly the arguments that were approved or others of
// the same shape (D11). Nothing else is covered by it.
type Rule struct {
	// Review is the approval that it was made of.
	Review    string `json:"review"`
	Tenant    string `json:"tenant_id"`
	Agent     string `json:"agent"`
	Principal string `json:"principal"`
	Boundary  string `json:"boundary"`
	// Contract is the hash of the boundary's contract, an MCP tool's pin
	// included: another contract ends the rule.
	Contract string `json:"contract"`
	// Exact is the exact hash of the arguments (D10). Members is the shape
	// instead: every member of the arguments, in the order of their names.
	Exact   string   `json:"exact_hash,omitzero"`
	Members []Member `json:"members,omitzero"`
}

// How a member is bound.
const (
	Equal = "equal" // to one value
	Under = "under" // to a path, or what lies below it
	Any   = "any"   // to a type only
)

// Member is one member of the arguments, and what it may be.
type Member struct {
	Name string `json:"name"`
	Is   string `json:"is"`
	// Value is the JSON text of the one value, the path, or the type as
	// TypeOf writes it.
	Value string `json:"value"`
}

// Encode returns the one spelling of a rule: RFC 8785, empty fields left out.
func (r Rule) Encode() (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = (*jsontext.Value)(&text).Canonicalize()
	}
	if err != nil {
		return "", ruleFault("cannot be written", "")
	}
	if len(text) > MaxRule {
		return "", ruleFault(fmt.Sprintf("has more than %d bytes", MaxRule), "let long members be anything, or remember exactly these arguments")
	}
	return string(text), nil
}

// ParseRule reads what Encode writes and nothing else.
func ParseRule(text string) (Rule, error) {
	var r Rule
	if len(text) > MaxRule {
		return r, ruleFault(fmt.Sprintf("has more than %d bytes", MaxRule), "")
	}
	if err := json.Unmarshal([]byte(text), &r, json.RejectUnknownMembers(true)); err != nil {
		return Rule{}, ruleFault("is not the JSON of a rule", "")
	}
	again, err := r.Encode()
	if err != nil {
		return Rule{}, err
	}
	if again != text {
		return Rule{}, ruleFault("is not in its canonical form", "")
	}
	return r, nil
}

func ruleFault(why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K7, Rule: "review/no_rule", Why: "the rule " + why, Hint: hint}
}

func (r *Rule) check() error {
	for _, s := range []string{r.Review, r.Tenant, r.Agent, r.Principal, r.Boundary} {
		if s == "" || len(s) > maxWord || !utf8.ValidString(s) {
			return ruleFault("does not say of whose what it is", "")
		}
	}
	switch {
	case !isHash(r.Contract):
		return ruleFault("is bound to no contract", "")
	case (r.Exact == "") == (len(r.Members) == 0):
		return ruleFault("needs either the exact arguments or their shape", "")
	case r.Exact != "" && !isHash(r.Exact):
		return ruleFault("has a hash that is not 64 lower-case hex digits", "")
	case len(r.Members) > MaxMembers:
		return ruleFault(fmt.Sprintf("has more than %d members", MaxMembers), "remember exactly these arguments")
	}
	for i := range r.Members {
		if i > 0 && r.Members[i-1].Name >= r.Members[i].Name {
			return ruleFault("has its members in another order than that of their names, or one twice", "")
		}
		if err := r.Members[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Member) check() error {
	if len(m.Name) > maxWord || !utf8.ValidString(m.Name) || !utf8.ValidString(m.Value) {
		return ruleFault("has a member whose name is too long or not UTF-8", "")
	}
	switch m.Is {
	case Under:
		return CheckPrefix(m.Value)
	case Any:
		if m.Value == "" || len(m.Value) > maxWord {
			return ruleFault("has a member of no type", "")
		}
		return nil
	case Equal:
		doc, err := payload.Parse([]byte(m.Value))
		if err != nil || bytes.ContainsFunc([]byte(m.Value), unicode.IsControl) {
			return ruleFault("has a member whose value is not JSON", "")
		}
		_ = doc
		return nil
	}
	return ruleFault(fmt.Sprintf("binds a member in a way that does not exist: %q", m.Is), "")
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// Covers says whether arguments, as payload.Doc gives them with their exact
// hash, are within the rule. It looks at the arguments only.
func (r *Rule) Covers(args any, exact string) bool {
	if r.Exact != "" {
		return exact == r.Exact
	}
	m, ok := args.(map[string]any)
	if !ok || len(m) != len(r.Members) || len(m) == 0 {
		return false
	}
	for i := range r.Members {
		v, there := m[r.Members[i].Name]
		if !there || !r.Members[i].covers(v) {
			return false
		}
	}
	return true
}

// CoversShown is Covers for what a reviewer is shown, without the members that
// are hidden: those may only be anything.
func (r *Rule) CoversShown(shown map[string]any) bool {
	for i := range r.Members {
		m := &r.Members[i]
		v, there := shown[m.Name]
		if there && !m.covers(v) || !there && m.Is != Any {
			return false
		}
	}
	return len(r.Members) > 0 && len(shown) <= len(r.Members)
}

func (m *Member) covers(v any) bool {
	switch m.Is {
	case Equal:
		want, err := payload.Parse([]byte(m.Value))
		if err != nil {
			return false
		}
		got, err := payload.Of(v)
		return err == nil && got.Exact() == want.Exact()
	case Under:
		s, ok := v.(string)
		return ok && under(m.Value, s)
	case Any:
		t, err := TypeOf(v)
		return err == nil && t == m.Value
	}
	return false
}

// Words says what the rule covers, one line each, for the person who makes it.
// Nothing in it is made safe for a terminal.
func (r *Rule) Words() []string {
	out := []string{fmt.Sprintf("agent %s, asked for by %s, may cross %s without being asked", r.Agent, r.Principal, r.Boundary)}
	if r.Exact != "" {
		return append(out, "with exactly the arguments of review "+r.Review+" and no others")
	}
	out = append(out, "with exactly these members, and no others:")
	for _, m := range r.Members {
		out = append(out, "  "+m.words())
	}
	return append(out, "it ends when the tool or its contract changes")
}

func (m *Member) words() string {
	switch m.Is {
	case Equal:
		return m.Name + " = " + m.Value
	case Under:
		return m.Name + " = " + m.Value + ", or a path below it (as it is spelled: symbolic links are not followed)"
	}
	return m.Name + " = anything of the type " + m.Value
}

var errShape = errors.New("not a shape")
