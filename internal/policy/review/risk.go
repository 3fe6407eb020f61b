package review

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// texts are what a pattern reads, each one line: what the agent wrote in the
// compatibility forms of its letters, and that without what nobody sees and
// without marks on letters, where it is another. Either may match.
func (a *Acting) texts() []string {
	whole := a.Boundary + " " + a.Operation + " " + a.Action[:min(len(a.Action), MaxAction)]
	line := oneLine(norm.NFKC.String(whole))
	if !strings.ContainsFunc(whole, func(c rune) bool { return c >= utf8.RuneSelf || unicode.IsControl(c) }) {
		return []string{line}
	}
	bare := strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || unicode.IsControl(c) && !unicode.IsSpace(c) {
			return -1
		}
		return c
	}, norm.NFKD.String(whole))
	return []string{line, oneLine(bare)}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Classify returns the pattern that decides: the first that matches of those for
// this agent or its kind, else the first of everybody's; nil where none matches.
func Classify(patterns []Pattern, a Acting) *Pattern {
	if len(patterns) == 0 {
		return nil
	}
	texts := a.texts()
	for _, own := range []bool{true, false} {
		for i := range patterns {
			p := &patterns[i]
			if p.narrow() == own && p.of(&a) && p.match != nil && slices.ContainsFunc(texts, p.match.MatchString) {
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
