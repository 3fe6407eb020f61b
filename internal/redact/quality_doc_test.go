package redact

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

var update = flag.Bool("update", false, "write testdata/quality.txt")

// figuresOf are the scores of the synthetic sets in testdata/quality.txt, in its order.
func figuresOf(t *testing.T) []*score {
	t.Helper()
	e := newEngine(t)
	first := scores(e, labelled())
	return append(slices.Clone(first), total("**all**", first), total("**all, second set**", scores(e, secondSet())))
}

// TestSyntheticFiguresAreRecorded holds testdata/quality.txt against what is computed from the
// synthetic sets: a figure there may be less than it is, by 0.02 at most, and never more. The
// page has the figures of public sets alone. With -update it writes the file.
func TestSyntheticFiguresAreRecorded(t *testing.T) {
	const file = "testdata/quality.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table, stale := "| kind | to mask | to leave | precision | recall |\n|---|---|---|---|---|\n", false
	for _, s := range figuresOf(t) {
		table += s.row() + "\n"
		stale = stale || !stands(s, string(b))
	}
	switch {
	case *update:
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
	case stale:
		t.Errorf("%s is out of date: run this test with -update, and see what changed", file)
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

// stands reports whether a table contains the line of a score.
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
