package redact

import (
	"bytes"
	"fmt"
	"slices"
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

// A hostile body can take the places that are left, and no more.
func TestFamiliarNamesAreFewAndShort(t *testing.T) {
	var f familiar
	f.keep([]byte("known"), kindNone)
	for n := range 100_000 {
		f.keep(fmt.Appendf(nil, "name%d", n), kindNone)
	}
	if f.of([]byte("known")) == nil {
		t.Error("the first is forgotten")
	}
	for _, name := range []string{"", "an%65scape", `{"a":1}`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		if f.keep([]byte(name), kindNone); f.of([]byte(name)) != nil {
			t.Errorf("%q is kept", name)
		}
	}
}

// The keys that are exempt are found as by a look at each of them.
func TestExemptionsAreThoseOfTheList(t *testing.T) {
	list := []string{"id", "v", "data.signature", "data.statement", "dat", "", "other.path"}
	for n := range 200 {
		list = append(list, fmt.Sprintf("key_%d", n))
	}
	for _, some := range [][]string{nil, list[:1], list[:6], list, list[7:]} {
		var x exemptions
		x.exempting(some)
		for _, name := range append(list, "data", "i", "key_", "other", "nothing") {
			if got := x.passes([]byte(name)); got != slices.Contains(some, name) {
				t.Errorf("passes(%q) of %d = %v", name, len(some), got)
			}
		}
		begin := x.within([]byte("data"))
		if has := slices.Contains(some, "data.signature"); (begin == "data.") != has || x.holds(begin, []byte("signature")) != has {
			t.Errorf("within(data) of %d = %q", len(some), begin)
		}
		if x.holds("", []byte("data.signature")) || x.holds(begin, []byte("signatur")) || x.within([]byte("dat")) != "" {
			t.Errorf("what is no path is one, of %d", len(some))
		}
	}
}
