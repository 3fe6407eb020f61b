package review

import (
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/text/unicode/norm"
)

// MaxAction is how much of an action's words is read for its risk, in bytes. A
// longer one has at least HIGH where there are patterns: nobody has read it.
const MaxAction = 64 << 10

// Pattern gives a risk to what it matches (spec 001, layer 2; D37). The zero
// value matches nothing.
type Pattern struct {
	match *regexp.Regexp
	// Agents and Kinds narrow it; both empty is everybody's.
	Agents, Kinds []string
	Risk          holdfast.Risk
	// Source is "file:line", for people.
	Source string
}

// NewPattern compiles an RE2 expression, which is matched anywhere and without
// regard to case.
func NewPattern(match string) (Pattern, error) {
	re, err := regexp.Compile("(?is)(?:" + match + ")")
	return Pattern{match: re}, err
}

// Acting is what patterns read of a request.
type Acting struct {
	Boundary, Operation string
	// Action is what an agent says it does, where its payload has that word.
	Action      string
	Agent, Kind string
}

// text is one line: what a pattern reads whatever white space and compatibility
// forms of letters the agent wrote.
func (a *Acting) text() string {
	action := a.Action[:min(len(a.Action), MaxAction)]
	return norm.NFKC.String(strings.Join(strings.Fields(a.Boundary+" "+a.Operation+" "+action), " "))
}

// Classify returns the pattern that decides: the first that matches of those for
// this agent or its kind, else the first of everybody's; nil where none matches.
func Classify(patterns []Pattern, a Acting) *Pattern {
	if len(patterns) == 0 {
		return nil
	}
	text := a.text()
	for _, own := range []bool{true, false} {
		for i := range patterns {
			p := &patterns[i]
			if p.narrow() == own && p.of(&a) && p.match != nil && p.match.MatchString(text) {
				return p
			}
		}
	}
	return nil
}

func (p *Pattern) narrow() bool { return len(p.Agents)+len(p.Kinds) > 0 }

func (p *Pattern) of(a *Acting) bool {
	return !p.narrow() || slices.Contains(p.Agents, a.Agent) || a.Kind != "" && slices.Contains(p.Kinds, a.Kind)
}
