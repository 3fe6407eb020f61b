package payload

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

// FuzzParse: what parses has a canonical form that is a fixed point with the
// same key; spacing changes neither hash; what does not parse is a
// *holdfast.Error of a known kind in clean text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{string(sample()), `{"b":[1.50,-0,1e21],"a":"\ud83d\ude00\u0000"}`, `"\ud800"`, `1e400`, `{"a":1,"a":2}`,
		"\xef\xbb\xbf{}", `[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]`, ``, `nul`, "[\"\xff\"]", `{"":NaN}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		d, err := Parse(b)
		if !bytes.Equal(b, before) {
			t.Fatal("input changed")
		}
		if err != nil {
			checkRefusal(t, err)
			return
		}
		ref := jsontext.Value(bytes.Clone(b))
		if err := ref.Canonicalize(); err != nil || !bytes.Equal(ref, d.Canonical()) {
			t.Fatalf("canonicalisers differ: %q %q %v", d.Canonical(), ref, err)
		}
		again, err := Parse(d.Canonical())
		if err != nil || again.Key() != d.Key() || again.Exact() != d.Key() || !bytes.Equal(again.Canonical(), d.Canonical()) {
			t.Fatalf("not a fixed point: %q %v", d.Canonical(), err)
		}
		spaced := jsontext.Value(bytes.Clone(b))
		if err := spaced.Indent(); err != nil {
			t.Fatal(err)
		}
		wide, err := Parse(spaced)
		if err != nil || wide.Key() != d.Key() || wide.Exact() != d.Exact() {
			t.Fatalf("spacing changes the hashes: %q %v", spaced, err)
		}
		if again, err := Of(d.Value()); err != nil || again.Key() != d.Key() || again.Exact() != d.Exact() {
			t.Fatalf("the tree is another document: %q %v", d.Canonical(), err)
		}
	})
}

func checkRefusal(t *testing.T, err error) {
	e, ok := err.(*holdfast.Error)
	if !ok {
		t.Fatalf("not a *holdfast.Error: %v", err)
	}
	switch e.Kind {
	case holdfast.KindValue, holdfast.KindCanonicalize, holdfast.KindPayloadTooLarge:
	default:
		t.Fatalf("unexpected kind: %v", e)
	}
	if len(e.Why) > 500 || !utf8.ValidString(e.Why) || bytes.ContainsAny([]byte(e.Why), "\n\r\x00\x1b") {
		t.Fatalf("text not fit for a log: %q", e.Why)
	}
}
