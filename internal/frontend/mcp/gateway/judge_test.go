package gateway

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestSegment(t *testing.T) {
	for name, want := range map[string]string{
		"read_file-2.x": "read_file-2.x", "a/b": "a%2Fb", "../x": "..%2Fx", "..": "%2E%2E", ".": "%2E", "...": "%2E%2E%2E",
		"a%2Fb": "a%252Fb", "*": "%2A", "é": "%C3%A9", "a b": "a%20b", "\x00": "%00", ".a": ".a",
	} {
		if got := Segment(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := Boundary("git hub", "a/b"); got != "mcp/git%20hub/a%2Fb" {
		t.Error(got)
	}
}

// TestSegmentsDoNotMeet: no two names share a segment, and each is one.
func TestSegmentsDoNotMeet(t *testing.T) {
	one := regexp.MustCompile(`^([A-Za-z0-9_.-]|%[0-9A-F]{2})+$`)
	r, seen := rand.New(rand.NewPCG(1, 2)), map[string]string{}
	for range 50_000 {
		b := make([]byte, 1+r.IntN(4))
		for i := range b {
			b[i] = "aA0_-./%25E*\x00\xff é"[r.IntN(17)]
		}
		name := string(b)
		s := Segment(name)
		if !one.MatchString(s) || strings.Trim(s, ".") == "" {
			t.Fatalf("%q is no segment: %q", name, s)
		}
		if other, ok := seen[s]; ok && other != name {
			t.Fatalf("%q and %q are both %q", name, other, s)
		}
		seen[s] = name
	}
}

// TestRisk_D37: hints are the server's own word.
func TestRisk_D37(t *testing.T) {
	for hints, want := range map[string][2]holdfast.Risk{
		``:                          {holdfast.High, holdfast.High},
		`{}`:                        {holdfast.High, holdfast.High},
		`null`:                      {holdfast.High, holdfast.High},
		`{"destructiveHint":true}`:  {holdfast.High, holdfast.High},
		`{"destructiveHint":false}`: {holdfast.Medium, holdfast.Medium},
		`{"readOnlyHint":true}`:     {holdfast.Medium, holdfast.Low},
		`{"readOnlyHint":false}`:    {holdfast.High, holdfast.High},
		`{"readOnlyHint":"true"}`:   {holdfast.High, holdfast.High},
		`{"ReadOnlyHint":true}`:     {holdfast.High, holdfast.High},
		`{"readOnlyHint":true,"destructiveHint":1}`:     {holdfast.Medium, holdfast.Low},
		`{"readOnlyHint":true,"destructiveHint":true}`:  {holdfast.High, holdfast.High},
		`{"readOnlyHint":true,"destructiveHint":false}`: {holdfast.Medium, holdfast.Low},
	} {
		for i, trusted := range []bool{false, true} {
			if got := risk([]byte(hints), trusted); got != want[i] {
				t.Errorf("%s trusted=%v is %v, want %v", hints, trusted, got, want[i])
			}
		}
	}
}

// TestPin_D37: the pin holds over form and falls with every change of meaning.
func TestPin_D37(t *testing.T) {
	base := `{"name":"t","description":"d","inputSchema":{"a":1,"b":[9007199254740993]},"annotations":{"readOnlyHint":true}}`
	pinOf := func(item string) string {
		_, c, err := contract("fs", []byte(item), false)
		if err != nil {
			t.Fatal(err)
		}
		return c.Pin
	}
	want := pinOf(base)
	if len(want) != 64 {
		t.Fatalf("pin %q", want)
	}
	for _, same := range []string{
		`{"annotations":{"readOnlyHint": true},"name":"t","inputSchema":{"b":[ 9007199254740993 ],"a":1},"description":"\u0064"}`,
	} {
		if pinOf(same) != want {
			t.Errorf("another form has another pin: %s", same)
		}
	}
	seen := map[string]string{want: base}
	for _, other := range []string{
		strings.Replace(base, `"d"`, `"D"`, 1),
		strings.Replace(base, `993`, `992`, 1),
		strings.Replace(base, `true`, `false`, 1),
		strings.Replace(base, `"description":"d",`, ``, 1),
		strings.Replace(base, `"description"`, `"title":"x","description"`, 1),
		strings.Replace(base, `"description"`, `"outputSchema":null,"description"`, 1),
		strings.Replace(base, `"annotations"`, `"outputSchema":{},"annotations"`, 1),
		`{"name":"t","description":"d","inputSchema":{},"outputSchema":{"a":1,"b":[9007199254740993]},"annotations":{"readOnlyHint":true}}`,
	} {
		p := pinOf(other)
		if seen[p] != "" {
			t.Errorf("%s has the pin of %s", other, seen[p])
		}
		seen[p] = other
	}
}

func TestContract(t *testing.T) {
	_, c, err := contract("fs", []byte(`{"name":"a/b","inputSchema":{"type" : "object"},"outputSchema":{"x":1}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	if c.Boundary != "mcp/fs/a%2Fb" || string(c.Schema) != `{"type" : "object"}` || string(c.OutputSchema) != `{"x":1}` ||
		c.Risk != holdfast.High || len(c.Permissions) != 1 || c.Permissions[0] != PermissionCall || c.Source != "mcp/fs" {
		t.Errorf("got %+v", c)
	}
}

// TestContractKeepsNoLine: what the kernel may keep of a list is bounded, and
// holds none of the lines that it came in.
func TestContractKeepsNoLine(t *testing.T) {
	item := []byte(`{"name":"t","inputSchema":{"a":1},"outputSchema":{"b":2}}`)
	_, c, err := contract("fs", item, false)
	if err != nil {
		t.Fatal(err)
	}
	clear(item)
	if string(c.Schema) != `{"a":1}` || string(c.OutputSchema) != `{"b":2}` || c.Boundary != "mcp/fs/t" {
		t.Errorf("the contract changes with the line: %+v", c)
	}
	for member, rest := range map[string]string{"inputSchema": `"outputSchema":{}`, "outputSchema": `"inputSchema":{}`} {
		for over := range 2 {
			long := `{"a":"` + strings.Repeat("x", maxSchema-len(`{"a":""}`)+over) + `"}`
			_, _, err := contract("fs", []byte(`{"name":"t",`+rest+`,"`+member+`":`+long+`}`), false)
			if (err != nil) != (over == 1) {
				t.Errorf("%s, %d bytes over: %v", member, over, err)
			}
		}
	}
}
