package redact

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// figuresOf are the scores in the table of doc/redaction.md, in its order.
func figuresOf(t *testing.T) []*score {
	t.Helper()
	e := newEngine(t)
	first := scores(e, labelled())
	return append(slices.Clone(first), total("**all**", first), total("**all, second set**", scores(e, secondSet())))
}

// TestDocumentHasTheFigures holds the table of quality in doc/redaction.md
// against what is computed here: a figure there may be less than it is, by 0.02
// at most, and never more. It wants every rule to stand there too.
func TestDocumentHasTheFigures(t *testing.T) {
	b, err := os.ReadFile("../../doc/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	table, stale := "", false
	for _, s := range figuresOf(t) {
		table += s.row() + "\n"
		stale = stale || !stands(s, string(b))
	}
	if stale {
		t.Errorf("the table of doc/redaction.md is out of date: it is\n%s", table)
	}
	for _, name := range rule.Names[1:] {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("doc/redaction.md lacks the rule %s", name)
		}
	}
}

// stands says whether a page has the line of a score.
func stands(s *score, page string) bool {
	head := fmt.Sprintf("| %s | %d | %d | ", s.kind, s.mask, s.leave)
	_, rest, found := strings.Cut(page, head)
	var precision, recall float64
	if n, err := fmt.Sscanf(rest, "%f | %f |", &precision, &recall); !found || n != 2 || err != nil {
		return false
	}
	near := func(said, is float64) bool { return said <= is+1e-9 && said >= is-0.02 }
	return near(precision, s.precision()) && near(recall, s.recall())
}
