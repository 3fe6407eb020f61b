package redact

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// figuresOf are the scores of the synthetic sets in testdata/quality.txt, in its order.
func figuresOf(t *testing.T) []*score {
	t.Helper()
	e := newEngine(t)
	first := scores(e, labelled())
	return append(slices.Clone(first), total("**all**", first), total("**all, second set**", scores(e, secondSet())))
}

// TestSyntheticFiguresAreRecorded holds testdata/quality.txt against what is computed from the
// synthetic sets: a figure there may be less than it is, by 0.02 at most, and never more. The
// page has the figures of public sets alone.
func TestSyntheticFiguresAreRecorded(t *testing.T) {
	b, err := os.ReadFile("testdata/quality.txt")
	if err != nil {
		t.Fatal(err)
	}
	table, stale := "", false
	for _, s := range figuresOf(t) {
		table += s.row() + "\n"
		stale = stale || !stands(s, string(b))
	}
	if stale {
		t.Errorf("testdata/quality.txt is out of date: it is\n%s", table)
	}
}

// TestDocumentNamesTheRules expects every rule in doc/redaction.md.
func TestDocumentNamesTheRules(t *testing.T) {
	b, err := os.ReadFile("../../doc/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range rule.Names[1:] {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("doc/redaction.md lacks the rule %s", name)
		}
	}
}

// stands reports whether a table has the line of a score.
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
