package sqlite

import (
	"errors"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite/schema"
	"strings"
	"testing"
)

// TestMigrationOfDamagedValues: a damaged value does not keep the store from opening.
func TestMigrationOfDamagedValues(t *testing.T) {
	place := "spend/" + hashHex("acme")[:16] + "/day3"
	for name, values := range map[string]map[string]string{
		"told with a plus": {"subagents/" + hashHex("acme\x00ada"): "+5\n12 x\n"},
		"told with zeros":  {"subagents/" + hashHex("acme\x00ada"): "007\n12 x\n"},
		"sum twice in index": {place + "/index": `{"period":"2026-02-25","rows":["r1","r1"]}`,
			place + "/r1": `{"period":"2026-02-25","calls":2}`},
		"blocks and _unknown": {"budget-blocks": `{"_unknown":{}}`},
		"blocks null":         {"budget-blocks": `null`},
		"empty pin":           {"pin/a": "", "changed/a": "x"},
		"not UTF-8": {"pin/a": "\xff\xfe", "rule/x": "\xff", "statement/\xff": "x",
			"subagents/" + hashHex("acme\x00ada"): "1\n12 \xff\n"},
		"NUL in a name":  {"pin/a\x00b": "x", "pin/a\x00c": "y"},
		"NUL in a value": {"rule/a": "x\x00y", "goals-pause/acme": "{\"paused\":true}\x00"},
		"long":           {"pin/" + strings.Repeat("b", 1020): "x"},
		"negative calls": {place + "/index": `{"period":"2026-02-25","rows":["r1"]}`,
			place + "/r1": `{"period":"2026-02-25","calls":-2,"output_tokens":9223372036854775807}`},
		"sum of another type": {place + "/index": `{"period":"2026-02-25","rows":["r1"]}`,
			place + "/r1": `{"period":"2026-02-25","calls":"two"}`},
		"an index of an index": {place + "/index": `{"period":"p","rows":["index"]}`},
		"rows null":            {place + "/index": `null`},
		"depth":                {"rule/x": strings.Repeat("[", 20000)},
		"two tenants one place": {"spend/0000000000000000/day3/index": `{"period":"p","rows":[]}`,
			place + "/index": `{"period":"p","rows":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := oldStore(t, 2, values)
			if _, err := Open(t.Context(), Options{Path: path, ReadOnly: true}); !errors.Is(err, schema.ErrOlder) {
				t.Error(err)
			}
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
