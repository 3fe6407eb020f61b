package versions

import "testing"

// TestSubjectRoundTrip: the Subject of a signed statement keeps its text.
func TestSubjectRoundTrip(t *testing.T) {
	for text, want := range map[string]Subject{
		"20261123-020000-5f0c1e":           {ID: "20261123-020000-5f0c1e"},
		"before c1":                        {ID: "c1", Before: true},
		"mid-merge 20261123-020000-5f0c1e": {ID: "20261123-020000-5f0c1e", MidMerge: true},
		"mid-merge before c1":              {ID: "c1", Before: true, MidMerge: true},
		"before ":                          {Before: true},
		"":                                 {},
	} {
		if got := ParseSubject(text); got != want || got.String() != text {
			t.Errorf("%q is %+v, and back %q", text, got, got)
		}
	}
}
