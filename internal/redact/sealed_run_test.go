package redact

import (
	"encoding/base64"
	"testing"
)

// TestSealedDataInATextIsNotReplaced: a small PDF in base64 is no finding in a text for a model, but a token in it is.
func TestSealedDataInATextIsNotReplaced(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e = e.WithReplace(func(_ string, text []byte) []byte { return []byte("P") })
	const head = "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
	for content, found := range map[string]int{
		"trailer<</Size 6/Root 1 0 R>>\n%%EOF":                                                0,
		"(ghp_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4) Tj\ntrailer<</Size 6/Root 1 0 R>>\n%%EOF": 1,
	} {
		text := "see " + base64.StdEncoding.EncodeToString([]byte(head+content)) + " there"
		r, _, err := e.Replace([]byte(text))
		if err != nil || len(r.Findings) != found || found == 0 && string(r.Out) != text {
			t.Errorf("%q became %q: %v, %v", text, r.Out, r.Findings, err)
		}
	}
}
