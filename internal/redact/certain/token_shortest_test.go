package certain

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// makeShortest returns the shortest token that a row describes, and its part after the prefix.
func makeShortest(p *token.Prefix) (text, body string) {
	var b strings.Builder
	for _, c := range []byte("a1B2c3D4e5F6") {
		if p.Holds(c) {
			b.WriteByte(c)
		}
	}
	body = strings.Repeat(b.String(), p.Min)[:p.Min]
	return p.Text + p.Then + body, body
}

// hideFound returns text without what is found in it, and the rules that found it.
func hideFound(text string) (out string, rules []string) {
	list, _ := Find([]byte(text), false)
	last := 0
	for _, sp := range span.Union(list) {
		out, last = out+text[last:sp.Start], sp.End
		rules = append(rules, rule.Names[sp.Rule])
	}
	return out + text[last:], rules
}

// ShortestTokens returns the shortest token of each row, for tests of the whole.
func ShortestTokens() (all []string) {
	for _, p := range token.Prefixes() {
		text, _ := makeShortest(&p)
		all = append(all, text)
	}
	return all
}

// Every row finds the shortest token that it describes, under its own rule, and
// nothing of a word behind it.
func TestEveryPrefixFindsItsShortestToken(t *testing.T) {
	for _, p := range token.Prefixes() {
		text, body := makeShortest(&p)
		out, got := hideFound("got " + text + " now")
		if !slices.Equal(got, []string{rule.Names[p.Rule]}) {
			t.Errorf("%s was found by %v, want %s", text, got, rule.Names[p.Rule])
		}
		if !strings.HasSuffix(out, " now") || strings.Contains(out, body) {
			t.Errorf("%s left %q", text, out)
		}
		if p.Min == 1 {
			continue
		}
		if out, got := hideFound("got " + text[:len(text)-1] + " now"); slices.Contains(got, rule.Names[p.Rule]) {
			t.Errorf("%s was found with a character less: %q", text, out)
		}
	}
}
