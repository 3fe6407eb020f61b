package redact

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// FuzzRedact plants a secret between any two pieces of text, as they are and
// inside a JSON string, and asks for what always holds: the secret is gone,
// JSON stays JSON, a second redaction changes nothing, and findings lie in
// order inside the input.
func FuzzRedact(f *testing.F) {
	for _, c := range mustMask {
		f.Add([]byte(c.text), []byte(nil), uint8(0))
		f.Add([]byte("x"), []byte(c.text), uint8(1))
		f.Add(fmtJSON(c.text), []byte("\""), uint8(2))
	}
	for _, c := range mustNotMask {
		f.Add([]byte(c), []byte(c), uint8(3))
	}
	for _, c := range []string{mask.Secret, mask.Email, mask.Card + "1111", `{"a":{"password":[1,{"b":"c"}]}}`,
		`\u005c\u0075`, "\xff\x00", "[[[[[["} {
		f.Add([]byte(c), []byte(c), uint8(0))
	}
	e := newEngine(f, "canary-of-the-tenant")
	canaries := []string{ghp, akia, "canary-of-the-tenant", pem}
	hearts := []string{b62[:20], akia, "canary-of-the-tenant", "MIIEpAIB"}
	f.Fuzz(func(t *testing.T, pre, post []byte, which uint8) {
		canary, heart := canaries[int(which)%len(canaries)], []byte(hearts[int(which)%len(hearts)])
		before, _ := jsontext.AppendQuote(nil, pre)
		after, _ := jsontext.AppendQuote(nil, post)
		for _, s := range [][]byte{pre, post, before, after} {
			if bytes.Contains(s, heart) {
				return // what surrounds the secret spells it by itself
			}
		}
		holds(t, e, pre)
		text := append(append(bytes.Clone(pre), canary...), post...)
		if out := holds(t, e, text); bytes.Contains(out, heart) {
			t.Errorf("Text(%q) = %q", text, out)
		}
		q, _ := jsontext.AppendQuote([]byte(`{"a":[`), text)
		q = append(q, "]}"...)
		if out := holds(t, e, q); bytes.Contains(out, heart) {
			t.Errorf("%s = %s", q, out)
		}
		r, err := e.JSON(q)
		if err != nil || bytes.Contains(r.Out, heart) {
			t.Errorf("JSON(%s) = %s, %v", q, r.Out, err)
		}
		rec, err := e.Seal(q)
		if err != nil || bytes.Contains(rec.Bytes(), heart) {
			t.Errorf("Seal(%s) = %s, %v", q, rec.Bytes(), err)
		}
	})
}

func fmtJSON(s string) []byte {
	q, _ := jsontext.AppendQuote([]byte(`{"x":`), s)
	return append(q, `,"y":"`...)
}

// holds checks what is true of every input, and returns Text's output.
func holds(t *testing.T, e *Engine, s []byte) []byte {
	t.Helper()
	before := bytes.Clone(s)
	one := e.Text(s)
	placed(t, s, one)
	if two := e.Text(one.Out); two.Found() {
		t.Errorf("Text(%q) = %q, then %q", s, one.Out, two.Out)
	}
	j, err := e.JSON(s)
	if err != nil {
		t.Fatal(err)
	}
	placed(t, s, j)
	if json.Valid(s) && !json.Valid(j.Out) {
		t.Errorf("JSON(%q) = %q", s, j.Out)
	}
	if again, err := e.JSON(j.Out); err != nil || again.Found() {
		t.Errorf("JSON(%q) = %q, then %q, %v", s, j.Out, again.Out, err)
	}
	if !bytes.Equal(before, s) {
		t.Errorf("%q became %q", before, s)
	}
	return one.Out
}

func placed(t *testing.T, s []byte, r finding.Result) {
	t.Helper()
	at := 0
	for i, f := range r.Findings {
		same := i > 0 && f.Offset == r.Findings[i-1].Offset && f.Length == r.Findings[i-1].Length
		if f.Offset < at && !same || f.Length < 0 || f.Offset+f.Length > len(s) {
			t.Fatalf("findings of %q: %v", s, r.Findings)
		}
		at = f.Offset + f.Length
	}
	if !r.Found() && !bytes.Equal(r.Out, s) {
		t.Errorf("nothing found in %q, but it became %q", s, r.Out)
	}
}
