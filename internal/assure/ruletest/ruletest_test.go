package ruletest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// TestArchives carries out every archive of testdata, as `holdfast rules test`
// does.
func TestArchives(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), file, text, nil, constitution.Setting{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Results {
				if !c.Passed {
					t.Errorf("%s: %s: expected %s, got %s", c.Where, c.Name, c.Expected, c.Got)
				}
			}
		})
	}
}

const onlyRule = "-- rules.yaml --\nrules:\n  - {id: small, on: request, boundary: b, when: args.n > 1, message: too much}\n"

// TestWhatFailsIsTold: a case that is not met says what was expected and what
// there was, at its line.
func TestWhatFailsIsTold(t *testing.T) {
	for cases, want := range map[string]string{
		"- {boundary: b, args: {n: 2}, want: allow}":                          "a:6: expected allow, got deny by small, saying \"too much\"",
		"- {boundary: b, args: {n: 1}, want: deny, rules: [small]}":           "a:6: expected deny by small, got allow; no rule speaks",
		"- {boundary: b, args: {n: 2}, want: deny, rules: [other]}":           "a:6: expected deny by other, got deny by small, saying \"too much\"",
		"- {boundary: b, args: {n: 2}, want: deny, says: never}":              "a:6: expected deny, saying \"never\", got deny by small, saying \"too much\"",
		"- {boundary: b, json: '{\"n\":1,\"n\":2}', want: deny}":              "a:6: expected deny, got malformed",
		"- {boundary: b, json: '{', want: malformed}":                         "",
		"- {boundary: c, args: {n: 2}, want: allow, rules: []}":               "",
		"- {boundary: b, args: {n: 2}, want: deny, says: much, name: by far}": "",
	} {
		r, err := Run(t.Context(), "a", []byte(onlyRule+"-- cases.yaml --\ncases:\n"+cases+"\n"), nil, constitution.Setting{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if c := r.Results[0]; !c.Passed {
			got = c.Where + ": expected " + c.Expected + ", got " + c.Got
		}
		if (r.Failed == 1) != (want != "") || !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\n%s\nnot %s", cases, got, want)
		}
	}
}

// TestBadArchives: what nobody could mean is an error with its line.
func TestBadArchives(t *testing.T) {
	for archive, want := range map[string]string{
		"": "a:1: there is no cases.yaml",
		"-- cases.yaml --\ncases: [{boundary: b, want: allow}]":                                                                                  "a:1: there are no rules",
		"\ufeff" + onlyRule + "-- cases.yaml --\ncases: [{boundary: b, want: allow}]":                                                            "a:1: the archive begins with a byte order mark",
		onlyRule + "-- cases.yaml --\ncases: []":                                                                                                 "a:5: there are no cases",
		onlyRule + "-- cases.yaml --\nrest: 1":                                                                                                   `a:5: cases.yaml has no "rest"`,
		onlyRule + "-- cases.yaml --\ncases: [{boundary: b}]":                                                                                    "a:5: the case expects nothing",
		onlyRule + "-- cases.yaml --\ncases: [{boundary: b, want: perhaps}]":                                                                     "a:5: want is none of",
		onlyRule + "-- cases.yaml --\ncases: [{bondary: b, want: allow}]":                                                                        `a:5: a case has no "bondary"`,
		onlyRule + "-- cases.yaml --\ncases:\n- {boundary: b, want: allow}\n- {risk: awful, want: allow}":                                        "a:7: risk: ",
		onlyRule + "-- cases.yaml --\ncases: [{boundary: b, args: {n: 0x10}, want: allow}]":                                                      "a:5: 0x10 is no number",
		onlyRule + "-- cases.yaml --\ncases: [{boundary: b, args: &x {n: 1}, want: allow}]":                                                      "a:5: an anchor",
		onlyRule + "-- cases.yaml --\nhistory: [{boundary: b}]\ncases: [{boundary: b, want: allow}]":                                             "a:5: an entry of history does not say",
		onlyRule + "-- cases.yaml --\ncases: [{facts: x, want: allow}]":                                                                          "a:5: there are no facts x",
		onlyRule + "-- x.facts.json --\n{}\n-- cases.yaml --\ncases: [{boundary: b, want: allow}]":                                               "a:5: no case takes the facts x",
		onlyRule + "-- cases.yaml --\ncases: [{boundary: b, args: {[n]: 1}, want: allow}]":                                                       "a:5: the name of a member is no text",
		strings.Repeat("-- x.yaml --\n", maxParts+1):                                                                                             "a:101: more than 100 files",
		strings.Repeat("\n", maxLines+1):                                                                                                         "a:500000: the archive has 500001 lines",
		onlyRule + "-- notes.txt --\n":                                                                                                           "a:4: nobody reads a file notes.txt",
		onlyRule + "-- rules.yaml --\n":                                                                                                          "a:4: a second file rules.yaml",
		"-- rules.yaml --\nrules:\n  - {id: x, on: request, when: arg.n > 1, message: m}\n-- cases.yaml --\ncases: [{boundary: b, want: allow}]": "a:3:32: there is no \"arg\"",
	} {
		_, err := Run(t.Context(), "a", []byte(archive), nil, constitution.Setting{})
		var e *holdfast.Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Why, want) {
			t.Errorf("%s\n%v\nnot %s", archive, err, want)
		}
	}
}

// TestManyLinesCostLinearly: a file of many lines is read once, not once for each.
func TestManyLinesCostLinearly(t *testing.T) {
	testgrowth.Linear(t, 50_000, func(n int) func() {
		text := "-- rules.yaml --\n" + strings.Repeat("# a comment\n", n)
		return func() {
			if p := parts(text); len(p) != 1 || len(p[0].text) != n*len("# a comment\n") {
				t.Fatal(len(p))
			}
		}
	})
}
