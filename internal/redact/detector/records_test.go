package detector

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// wordFinder finds "Ann Lee" and "Main St 1", and remembers its texts. It fails on a text with "fail".
type wordFinder struct{ texts []string }

func (w *wordFinder) Find(_ context.Context, text []byte) ([]finding.Finding, error) {
	w.texts = append(w.texts, string(text))
	if strings.Contains(string(text), "fail") {
		return nil, wrapFailure(ErrLate)
	}
	var a answer
	if err := json.Unmarshal([]byte(makeAnswer(sent{Text: string(text)})), &a); err != nil {
		return nil, err
	}
	list, err := a.checkFindings(text)
	return joinFindings(list), err
}

func newRecords(t *testing.T, o redact.Options) (*Records, *wordFinder) {
	t.Helper()
	e, err := redact.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := new(wordFinder)
	return NewRecords(e, w), w
}

const token = "ghp_Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1"

func TestTextMasksWhatTheDetectorFinds(t *testing.T) {
	r, w := newRecords(t, redact.Options{})
	got := r.Text([]byte("Ann Lee, Main St 1"))
	if string(got.Out) != "[pii redacted], [pii redacted]" || !got.PII() ||
		strings.Join(got.Rules(), " ") != "detector.address detector.name" || got.Findings[1].Offset != 9 {
		t.Errorf("%s %v", got.Out, got.Findings)
	}
	// What the engine finds does not reach the detector.
	got = r.Text([]byte("Ann Lee has " + token + " of ann@example.com"))
	if string(got.Out) != "[pii redacted] has [secret redacted] of [email hidden]" || len(got.Findings) != 3 ||
		strings.Contains(w.texts[1], "ghp_") {
		t.Errorf("%s %v %q", got.Out, got.Findings, w.texts[1])
	}
	again := r.Text(got.Out)
	if string(again.Out) != string(got.Out) || again.Found() {
		t.Errorf("again: %s", again.Out)
	}
	egress, _ := newRecords(t, redact.Options{Masks: redact.Egress})
	if got := egress.Text([]byte("Ann Lee")); string(got.Out) != "[pii]" {
		t.Errorf("%s", got.Out)
	}
	if got := r.Text([]byte("12 + 3")); got.Found() || len(w.texts) != 3 {
		t.Errorf("%q", w.texts)
	}
}

func TestTextMasksEverythingWhenTheDetectorFails(t *testing.T) {
	r, _ := newRecords(t, redact.Options{})
	got := r.Text([]byte("fail for Ann Lee, ann@example.com"))
	if string(got.Out) != "[secret redacted]" || strings.Join(got.Rules(), " ") != "email fault" || !got.PII() {
		t.Errorf("%s %v", got.Out, got.Findings)
	}
	got, err := r.JSON([]byte(`{"a":"fail","b":1}`))
	if err != nil || string(got.Out) != `"[secret redacted]"` || got.PII() {
		t.Errorf("%s %v %v", got.Out, got.Findings, err)
	}
}

// A finding never cuts a mask, and never hides what kind of secret was there.
func TestTextKeepsMasksWithinFindings(t *testing.T) {
	r, _ := newRecords(t, redact.Options{})
	for text, want := range map[string]string{
		"[secret redacted] [email hidden]":   "[secret redacted] [email hidden]",
		"Ann [email hidden] Lee":             "[pii redacted][email hidden][pii redacted]",
		"x [email hidden], Ann Lee":          "[pii redacted][email hidden][pii redacted]",
		"****-****-****-1111 of Ann Lee, 22": "****-****-****-1111[pii redacted]",
	} {
		all := redact.Finding{Rule: "detector.name", Length: len(text)}
		if got, _ := r.Engine().Mask([]byte(text), []redact.Finding{all}); string(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	part := []redact.Finding{{Rule: "x", Offset: 4, Length: 4}}
	if got, list := r.Engine().Mask([]byte("red [pii"), part); string(got) != "red [pii redacted]" || len(list) != 1 {
		t.Errorf("%q", got)
	}
	var none *redact.Engine
	if got, _ := none.Mask([]byte("Ann Lee"), nil); string(got) != "[secret redacted]" {
		t.Errorf("%q", got)
	}
}

func TestJSONMasksStringsAndStaysJSON(t *testing.T) {
	r, w := newRecords(t, redact.Options{})
	for doc, want := range map[string]string{
		`{"who":"Ann Lee","n":17,"ok":true}`:         `{"who":"[pii redacted]","n":17,"ok":true}`,
		`["x\nAnn Lee\u00e9","Main St 1",["red",2]]`: `["x\n[pii redacted]é","[pii redacted]",["[pii redacted]",2]]`,
		`{"Ann Lee":"kept"}`:                         `{"Ann Lee":"kept"}`,
		`{"a":"Ann","b":"Lee"}`:                      `{"a":"Ann","b":"Lee"}`,
		`{"a":"Ann Lee","password":"hunter22x"}`:     `{"a":"[pii redacted]","password":"[secret redacted]"}`,
		`"Ann Lee"`:                                  `"[pii redacted]"`,
		`Ann Lee {`:                                  `[pii redacted] {`,
		``:                                           ``,
		`17`:                                         `17`,
		`{"a":[{"a":"Ann Lee"},{}],"b":"1"}`:         `{"a":[{"a":"[pii redacted]"},{}],"b":"1"}`,
	} {
		got, err := r.JSON([]byte(doc))
		if err != nil || string(got.Out) != want {
			t.Errorf("%s: %s, %v", doc, got.Out, err)
		}
		if again, err := r.JSON(got.Out); err != nil || string(again.Out) != want || again.Found() {
			t.Errorf("%s again: %s %v, %v", doc, again.Out, again.Findings, err)
		}
		for _, f := range got.Findings {
			if f.Offset < 0 || f.Offset+f.Length > len(doc) {
				t.Errorf("%s: %v", doc, f)
			}
		}
	}
	w.texts = nil
	if _, err := r.JSON([]byte(`{"a":"one","b":["two",3,"4"]}`)); err != nil || strings.Join(w.texts,
		"|") != "one\ntwo\n" {
		t.Errorf("%q: one text for the strings of a document, %v", w.texts, err)
	}
}

// Many strings are sent in texts of one line each, and each finding comes back to its string.
func TestJSONSplitsManyStrings(t *testing.T) {
	r, w := newRecords(t, redact.Options{})
	doc, err := json.Marshal(strings.Split(strings.Repeat("some words of Ann Lee\x00", 20_000), "\x00"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.JSON(doc)
	if err != nil || strings.Count(string(got.Out), `"some words of [pii redacted]"`) != 20_000 ||
		len(got.Findings) != 20_000 {
		t.Errorf("%d findings, %v", len(got.Findings), err)
	}
	for _, text := range w.texts {
		if len(text) > maxWindow {
			t.Errorf("a text of %d bytes", len(text))
		}
	}
}

func TestMembersMasksOnlyTheirStrings(t *testing.T) {
	r, _ := newRecords(t, redact.Options{})
	doc := `{"who":"Ann Lee","data":{"why":"Ann Lee: ` + token + `"},"list":[{"why":"Main St 1","gate":"red"}]}`
	want := `{"who":"Ann Lee","data":{"why":"[pii redacted]: [secret redacted]"},"list":[{"why":"[pii redacted]","gate":"red"}]}`
	if got := r.Members([]byte(doc), "why"); string(got) != want {
		t.Errorf("%s", got)
	}
	if got := r.Members([]byte(`{"who":"Ann Lee","why":"fail","n":[1]}`), "why"); string(got) !=
		`{"who":"Ann Lee","why":"[secret redacted]","n":[1]}` {
		t.Errorf("%s", got)
	}
}

// Without a detector a record is what the engine makes of it, and nothing more is allocated.
func TestRecordsWithoutADetector(t *testing.T) {
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, doc := NewRecords(e, nil), []byte(`{"why":"Ann Lee"}`)
	if n := testing.AllocsPerRun(100, func() { r.Members(doc, "why"); r.Text(doc) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if got, err := r.JSON(doc); err != nil || string(got.Out) != string(doc) || r.HasFinder() {
		t.Errorf("%s, %v", got.Out, err)
	}
}
