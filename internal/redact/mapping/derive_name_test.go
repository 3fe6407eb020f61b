package mapping

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A name and an address get made-up words of the same number and case; digits and signs keep their places.
func TestProseKeepsItsForm(t *testing.T) {
	word := `[bdfgklmnprstvzaeiou]+`
	head := `[BDFGKLMNPRSTVZ]` + word
	for value, form := range map[string]string{
		"Ann Lee":           head + " " + head,
		"ann lee":           word + " " + word,
		"ANN LEE":           "[A-Z]+ [A-Z]+",
		"J. R. Lee":         head + `\. ` + head + `\. ` + head,
		"Zoë Müller-Groß":   head + " " + head + "-" + head,
		"山田 太郎":             head + " " + head,
		"14 Main St, Apt 2": `\d\d ` + head + " " + head + ", " + head + ` \d`,
		"Cher":              head,
		`Ann\nLee`:          head + `\\n` + head,
		"O'Neil":            head + "'" + head,
	} {
		got, kept := derivePlaceholder([]byte("0123456789abcdef"), "detector.name", []byte(value), 0)
		letters := len(regexp.MustCompile(`[A-Za-z]`).FindAllString(got, -1))
		least := 2 * min(minSyllables, mostSyllables)
		if !regexp.MustCompile("^"+form+"$").MatchString(got) || kept != 0 || letters < least {
			t.Errorf("%s became %s", value, got)
		}
	}
	if got, _ := derivePlaceholder([]byte("0123456789abcdef"), "detector.name", []byte("1234"), 0); !regexp.MustCompile(
		`^\d{12}$`).MatchString(got) {
		t.Error(got)
	}
}

// Values have different placeholders, and those of another key others.
func TestProseIsUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for i := range 20_000 {
		value := fmt.Sprintf("N%s Lee", strings.Repeat("x", i%7)+string(rune('a'+i%26))+fmt.Sprint(i))
		got, _ := derivePlaceholder([]byte("0123456789abcdef"), "detector.name", []byte(value), 0)
		if was, ok := seen[got]; ok && was != value {
			t.Fatalf("%s and %s became %s", was, value, got)
		}
		seen[got] = value
	}
	a, _ := derivePlaceholder([]byte("0123456789abcdef"), "detector.name", []byte("Ann Lee"), 0)
	b, _ := derivePlaceholder([]byte("another key 0123"), "detector.name", []byte("Ann Lee"), 0)
	if a == b {
		t.Error("a key changes nothing")
	}
}

// A name that was found once is replaced everywhere in the session, and restored. A placeholder in real text is not
// used.
func TestFoundNamesAreSoughtEverywhere(t *testing.T) {
	s := NewSessions(nil, time.Now).Find(Owner{Session: "a"})
	r := s.Begin([][]byte{[]byte("Ann Lee")}, nil)
	p := string(r.Replace("detector.name", []byte("Ann Lee")))
	engines, err := r.FindAgain()
	if err != nil || len(engines) != 1 {
		t.Fatal(engines, err)
	}
	out, _, err := engines[0].Replace([]byte("by Ann Lee: ok"))
	if err != nil || string(out.Out) != "by "+p+": ok" {
		t.Errorf("%s %v", out.Out, err)
	}
	got, n := r.Snapshot().RestoreText(false, []byte("Dear "+p+","))
	if string(got) != "Dear Ann Lee," || n.Restored != 1 {
		t.Errorf("%s %+v", got, n)
	}
	found := r.FindPlaceholders([]byte("Dear " + p + ", " + p))
	if len(found) != 2 || found[0].Offset != 5 || found[0].Length != len(p) || found[1].Offset != 7+len(p) {
		t.Error(found)
	}
	next := s.Begin([][]byte{[]byte("the real " + p + " and Ann Lee")}, nil)
	if again := string(next.Replace("detector.name", []byte("Ann Lee"))); again == p {
		t.Errorf("real text %s is used as a placeholder", p)
	}
}
