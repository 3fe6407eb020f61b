package redact

import (
	"bytes"
	"fmt"
	"testing"
)

// Names that are known are judged as names that come for the first time, at the
// places of all kinds: what says something of its value, what is masked, what is
// an escape.
func TestFamiliarNamesAreJudgedAsNewOnes(t *testing.T) {
	names := []string{"id", "password", "api_key", "name", "value", "email", "a", "", "p@example.com", "canary-of-the-tenant", "canary", "tokens",
		"4111111111111111", "user-agent", "x.y", "caf%C3%A9", "ssn", "Authorization", "{\\\"a\\\":1}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
	used := newEngine(t, "canary-of-the-tenant")
	for range 3 {
		for _, name := range names {
			doc := fmt.Appendf(nil, `{"%s":"word","list":[{"%s":{"%s":"hunter2hunter2"}}]}`, name, name, name)
			want, _ := newEngine(t, "canary-of-the-tenant").Body("application/json", doc)
			if got, err := used.Body("application/json", doc); err != nil || !bytes.Equal(got.Out, want.Out) {
				t.Errorf("Body(%s) = %s, %v; it was %s", doc, got.Out, err, want.Out)
			}
			first, _ := newEngine(t, "canary-of-the-tenant").Seal(doc, "id", "a.b", "password")
			if got, err := used.Seal(doc, "id", "a.b", "password"); err != nil || !bytes.Equal(got.Bytes(), first.Bytes()) {
				t.Errorf("Seal(%s) = %s, %v; it was %s", doc, got.Bytes(), err, first.Bytes())
			}
			h := map[string][]string{name: {"word"}, "X-" + name: {"more"}}
			clean, _ := newEngine(t, "canary-of-the-tenant").Header(h)
			if got, _ := used.Header(h); fmt.Sprint(got) != fmt.Sprint(clean) {
				t.Errorf("Header(%v) = %v; it was %v", h, got, clean)
			}
		}
	}
}
