package guess

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/phones.tsv
var librarySamples string

// TestPlanAgreesWithItsLibrary compares the table with the verdicts of the
// library that it was computed from, on numbers of every territory. The table
// knows a number by its length and first three digits, so it may accept what
// the library refuses; it never refuses what the library accepts.
func TestPlanAgreesWithItsLibrary(t *testing.T) {
	n, loose := 0, 0
	for row := range strings.Lines(librarySamples) {
		f := strings.Split(strings.TrimSpace(row), "\t")
		code, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 3 {
			t.Fatalf("row %q", row)
		}
		got, want := inPlan(code, []byte(f[1])), f[2] == "true"
		switch {
		case want && !got:
			t.Errorf("+%d %s is a number, and the table refuses it", code, f[1])
		case got && !want:
			loose++
		}
		n++
	}
	if n < 1000 || loose*20 > n {
		t.Errorf("of %d samples the table accepts %d that the library refuses", n, loose)
	}
	t.Logf("%d samples, %d accepted beyond the library", n, loose)
}

// TestPlanIsInOrder: the look-up halves the table, so it must be sorted, and
// of whole entries.
func TestPlanIsInOrder(t *testing.T) {
	if len(phonePlan)%planEntry != 0 || len(phonePlan) < 1000*planEntry {
		t.Fatalf("the table has %d bytes", len(phonePlan))
	}
	for k := 1; k < len(phonePlan)/planEntry; k++ {
		if planAt(k-1) >= planAt(k) {
			t.Fatalf("entry %d is not above the one before", k)
		}
	}
}

func TestPlanKnowsTrunkPrefixes(t *testing.T) {
	for text, want := range map[string]bool{
		"02079460958": true, "030901820": true, "0123456789": true, "4155552671": true, "2127365000": true,
		"0000000000": false, "0999": false, "99": false,
	} {
		if got := planned([]byte(text)); got != want {
			t.Errorf("planned(%s) = %t", text, got)
		}
	}
	for text, want := range map[string]bool{"442079460958": true, "4930901820": true, "999123456789": false, "0": false, "": false} {
		if got := international([]byte(text)); got != want {
			t.Errorf("international(%s) = %t", text, got)
		}
	}
}
