package format

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

// A hostile body can take the places that are left, and no more.
func TestFamiliarNamesAreFewAndShort(t *testing.T) {
	var f familiar
	f.keep([]byte("known"), fieldname.None)
	for n := range 100_000 {
		f.keep(fmt.Appendf(nil, "name%d", n), fieldname.None)
	}
	if f.of([]byte("known")) == nil {
		t.Error("the first is forgotten")
	}
	for _, name := range []string{"", "an%65scape", `{"a":1}`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		if f.keep([]byte(name), fieldname.None); f.of([]byte(name)) != nil {
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
