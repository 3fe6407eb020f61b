package mcp

import (
	"fmt"
	"strings"
	"testing"
)

// TestParamHeaders holds the annotations of an input schema to what MCP
// 2026-07-28 allows: names of headers, each once in any case, on strings,
// integers and booleans that properties alone lead to.
func TestParamHeaders(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
		}
		return `{"properties":{` + strings.TrimSuffix(b.String(), ",") + `}}`
	}
	deep := func(n int) string {
		return strings.Repeat(`{"properties":{"p":`, n) + `{"type":"string","x-mcp-header":"H"}` + strings.Repeat(`}}`, n)
	}
	for _, c := range []struct{ name, schema, want, why string }{
		{"none", `{"type":"object","properties":{"a":{"type":"number"},"b":true,"c":7}}`, "", ""},
		{"each type", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"b-2"},"c":{"properties":{"d":{"type":"boolean","x-mcp-header":"D"}}}}}`,
			"a=A b=b-2 c.d=D", ""},
		{"an argument of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, "", ""},
		{"in an example", `{"properties":{"a":{"type":"string","examples":[{"x-mcp-header":""}],"default":{"x-mcp-header":""}}}}`, "", ""},
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, "", "no header's name"},
		{"a line's end", `{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nCookie: x"}}}`, "", "no header's name"},
		{"not ASCII", `{"properties":{"a":{"type":"string","x-mcp-header":"É"}}}`, "", "no header's name"},
		{"a colon", `{"properties":{"a":{"type":"string","x-mcp-header":"A:"}}}`, "", "no header's name"},
		{"no text", `{"properties":{"a":{"type":"string","x-mcp-header":true}}}`, "", "no header's name"},
		{"long", `{"properties":{"a":{"type":"string","x-mcp-header":"` + strings.Repeat("a", 129) + `"}}}`, "", "no header's name"},
		{"twice in another case", `{"properties":{"a":{"type":"string","x-mcp-header":"H"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"h"}}}}}`, "", `"a" and "b.c"`},
		{"a number", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, "", `"a"`},
		{"an object", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, "", `"a"`},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, "", `"a"`},
		{"the arguments themselves", `{"type":"string","x-mcp-header":"A"}`, "", "no one argument"},
		{"in items", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, "", "no one argument"},
		{"below a choice", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "", "no one argument"},
		{"in definitions", `{"$defs":{"d":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}`, "", "no one argument"},
		{"in a pattern", `{"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}}`, "", "no one argument"},
		{"in not", `{"not":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "no one argument"},
		{"of others", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, "", "no one argument"},
		{"many", many(maxParamHeaders + 1), "", "more than 64"},
		{"deep enough", deep(maxParamHeaderDepth), strings.Repeat("p.", maxParamHeaderDepth-1) + "p=H", ""},
		{"too deep to be one", deep(maxParamHeaderDepth + 1), "", ""},
	} {
		got, err := ParamHeaders([]byte(c.schema))
		var said []string
		for _, p := range got {
			said = append(said, strings.Join(p.Path, ".")+"="+p.Name)
		}
		if s := strings.Join(said, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}
