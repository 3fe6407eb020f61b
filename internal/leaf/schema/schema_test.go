package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const issue = `{
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 20},
    "priority": {"enum": ["low", "high"]},
    "count": {"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 5},
    "email": {"type": "string", "pattern": "^[^@]+@[^@]+$"},
    "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "uniqueItems": true},
    "target": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["repo"]}]}
  },
  "required": ["title"],
  "additionalProperties": false
}`

func tree(t testing.TB, s string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustCompile(t testing.TB, s string) *Schema {
	t.Helper()
	c, err := Compile("test/schema", []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func validate(t testing.TB, s *Schema, doc string) []Violation {
	t.Helper()
	found, err := s.Validate(context.Background(), tree(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestValidate(t *testing.T) {
	s := mustCompile(t, issue)
	for _, c := range []struct{ name, doc, pointer, keyword, says string }{
		{"K1_FP3_type_mismatch", `{"title":5}`, "/title", "type", "got integer, want string"},
		{"K1_FP3_wrong_root", `[]`, "", "type", "got array of 0, want object"},
		{"K1_FP3_number_for_integer", `{"title":"x","count":1.5}`, "/count", "type", "got number, want integer"},
		{"K1_FP4_required_missing", `{}`, "", "required", `missing "title"`},
		{"K1_FP5_additional_property", `{"title":"x","color":1,"b":2}`, "", "additionalProperties", `"b", "color" not allowed`},
		{"K1_FP6_too_short", `{"title":""}`, "/title", "minLength", "string of 0 characters, want at least 1"},
		{"K1_FP6_too_long", `{"title":"ééééééééééééééééééééé"}`, "/title", "maxLength", "string of 21 characters, want at most 20"},
		{"K1_FP6_enum", `{"title":"x","priority":"urgent"}`, "/priority", "enum", `want one of "low", "high"`},
		{"K1_FP6_minimum", `{"title":"x","count":-5}`, "/count", "minimum", "want at least 0"},
		{"K1_FP6_maximum", `{"title":"x","count":1e3}`, "/count", "maximum", "want at most 100"},
		{"K1_FP6_multiple", `{"title":"x","count":7}`, "/count", "multipleOf", "no multiple of 5"},
		{"K1_FP6_pattern", `{"title":"x","email":"nobody"}`, "/email", "pattern", "string of 6 characters does not match"},
		{"K1_FP6_items", `{"title":"x","labels":["a",1]}`, "/labels/1", "type", "got integer, want string"},
		{"K1_FP6_max_items", `{"title":"x","labels":["a","b","c","d"]}`, "/labels", "maxItems", "array of 4, want at most 3"},
		{"K1_FP6_unique", `{"title":"x","labels":["a","b","a"]}`, "/labels", "uniqueItems", "elements 0 and 2 are equal"},
		{"K1_FP6_one_of", `{"title":"x","target":7}`, "/target", "oneOf", "integer matches none of 2 alternatives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := validate(t, s, c.doc)
			if len(found) == 0 || found[0].Pointer != c.pointer || found[0].Keyword != c.keyword || !strings.Contains(found[0].Message, c.says) {
				t.Fatalf("got %+v", found)
			}
			err := s.Check(context.Background(), tree(t, c.doc))
			if holdfast.KindOf(err) != holdfast.KindValidation {
				t.Errorf("K1_AC2: got %v", err)
			}
		})
	}
	t.Run("K1_AC1_valid_payload_passes", func(t *testing.T) {
		doc := tree(t, `{"title":"x","priority":"low","count":95,"labels":["a"],"target":{"repo":"r"}}`)
		if err := s.Check(context.Background(), doc); err != nil {
			t.Error(err)
		}
	})
	t.Run("K1_AC4_error_details", func(t *testing.T) {
		err := s.Check(context.Background(), tree(t, `{"title":5,"count":-1,"x":1}`))
		var invalid *Invalid
		if !errors.As(err, &invalid) || invalid.SchemaID != "test/schema" || len(invalid.Violations) != 4 {
			t.Fatalf("got %#v", invalid)
		}
		if !strings.Contains(err.Error(), "test/schema") || !strings.Contains(err.Error(), "3 more") {
			t.Errorf("text: %v", err)
		}
	})
	t.Run("K1_AC7_K1_INV4_payload_unchanged", func(t *testing.T) {
		for _, doc := range []string{`{"title":5,"labels":["b","a","b"]}`, `{"title":"x","target":{"repo":[1,{"a":2.0}]}}`} {
			v, same := tree(t, doc), tree(t, doc)
			_, _ = s.Validate(context.Background(), v)
			if !reflect.DeepEqual(v, same) {
				t.Errorf("validation changed %s", doc)
			}
		}
	})
	t.Run("K1_INV3_violations_are_fixed", func(t *testing.T) {
		first := validate(t, s, `{"z":1,"y":2,"title":5,"count":"x","labels":[1,2,3,4,4]}`)
		for range 50 {
			if again := validate(t, s, `{"labels":[1,2,3,4,4],"count":"x","title":5,"y":2,"z":1}`); !reflect.DeepEqual(first, again) {
				t.Fatalf("got %+v, then %+v", first, again)
			}
		}
	})
	t.Run("at_most_20", func(t *testing.T) {
		many := mustCompile(t, `{"items":{"type":"string"}}`)
		found := validate(t, many, "["+strings.Repeat("1,", 999)+"1]")
		if len(found) != MaxViolations || found[19].Pointer != "/19" {
			t.Errorf("%d violations", len(found))
		}
	})
	t.Run("not_asked_is_denied", func(t *testing.T) {
		var none *Schema
		if _, err := none.Validate(context.Background(), nil); err == nil {
			t.Error("a nil schema allows")
		}
		if _, err := (&Schema{}).Validate(context.Background(), nil); err == nil {
			t.Error("a zero schema allows")
		}
		if found, err := mustCompile(t, `{"minLength":1}`).Validate(context.Background(), struct{}{}); err == nil && len(found) == 0 {
			t.Error("a value that is not JSON is valid")
		}
	})
}

// TestRedacted: whatever fails, no value of the document is in a message, and
// names that look like secrets are not either.
func TestRedacted(t *testing.T) {
	s := mustCompile(t, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
	 "properties":{"a":{"type":"integer"},"c":{"const":1},"d":{"enum":[1,2]},"e":{"pattern":"^x$"},"f":{"format":"email"},
	  "g":{"maxLength":2},"h":{"not":{}},"i":{"anyOf":[{"type":"null"}]},"j":{"maximum":3},"k":{"multipleOf":7},"l":{"uniqueItems":true},
	  "m":{"contains":{"const":0}},"n":{"oneOf":[{},{}]}},
	 "propertyNames":{"maxLength":40},"additionalProperties":false}`)
	const secret = "s3cr3t-4f9a8b7c6d5e"
	q := `"` + secret + `"`
	doc := fmt.Sprintf(`{"a":%[1]s,"c":%[1]s,"d":%[1]s,"e":%[1]s,"f":%[1]s,"g":%[1]s,"h":%[1]s,"i":%[1]s,"j":987654321,"k":987654321,
	 "l":[%[1]s,%[1]s],"m":[%[1]s],"n":%[1]s,%[1]s:1,"user@example.com":2,"4111111111111111":3,"%[2]s":4}`, q, strings.Repeat("long", 30))
	found := validate(t, s, doc)
	if len(found) < 14 {
		t.Fatalf("only %d violations", len(found))
	}
	for _, v := range found {
		b, _ := json.Marshal(v)
		for _, bad := range []string{"s3cr3t", "4f9a8b", "987654321", "example.com", "41111111", strings.Repeat("long", 17)} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s quotes %q", b, bad)
			}
		}
	}
	deep := mustCompile(t, `{"additionalProperties":{"type":"integer"}}`)
	if p := validate(t, deep, `{`+q+`:"x"}`)[0].Pointer; strings.Contains(p, "s3cr3t") {
		t.Errorf("pointer %s", p)
	}
}

func TestDialects(t *testing.T) {
	for _, c := range []struct{ name, schema, valid, invalid string }{
		{"D7_draft07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a"]`, `["a",1]`},
		{"D7_draft07_ref_replaces_siblings", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","maxLength":1}}}`, `{"a":"long"}`, `{"a":1}`},
		{"D7_draft07_asserts_format", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"ipv4"}`, `"127.0.0.1"`, `"x"`},
		{"D7_2019_09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}],"unevaluatedItems":false}`, `["a"]`, `["a",1]`},
		{"D7_2020_12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, `["a",1]`},
		{"D7_absent_is_2020_12", `{"prefixItems":[{"type":"string"}],"$ref":"#/$defs/n","$defs":{"n":{"minItems":1}}}`, `["a"]`, `[]`},
		{"local_id", `{"$id":"https://example.com/root","$ref":"item","$defs":{"x":{"$id":"item","type":"integer"}}}`, `1`, `"x"`},
		{"recursion_downwards", `{"properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{}}}`, `{"next":{"x":1}}`},
		{"boolean_schema", `{"properties":{"a":false}}`, `{}`, `{"a":1}`},
		{"dynamic_ref", `{"$id":"https://example.com/strings","$ref":"list","$defs":{"s":{"$dynamicAnchor":"item","type":"string"},
		  "l":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}}}`, `["a"]`, `[1]`},
		{"recursive_ref", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"c":{"items":{"$recursiveRef":"#"}}},"unevaluatedProperties":false}`, `{"c":[{"c":[]}]}`, `{"c":[{"d":1}]}`},
		{"numbers_are_exact", `{"maximum":9007199254740992}`, `9007199254740992`, `9007199254740993`},
		{"equal_numbers", `{"enum":[1.50,{"a":[1e2]}]}`, `{"a":[100.0]}`, `1.51`},
		{"huge_exponent", `{"minimum":0}`, `1e-999999999`, `-1e-999999999`},
		{"huge_exponent_is_no_integer", `{"type":"integer"}`, `1e300`, `1e-999999999`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, c.schema)
			if found := validate(t, s, c.valid); len(found) != 0 {
				t.Errorf("%s: %v", c.valid, found)
			}
			if found := validate(t, s, c.invalid); len(found) == 0 {
				t.Errorf("%s is valid", c.invalid)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	twice := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
		return b.String()
	}
	for _, c := range []struct{ name, schema, says string }{
		{"K1_FP2_not_json", `{"type":`, "not valid JSON (byte 8)"},
		{"K1_FP2_empty", ``, "not valid JSON"},
		{"K1_FP2_trailing", `{} {}`, "something follows"},
		{"K1_FP2_duplicate_key", `{"properties":{"a":{},"a":{}}}`, "a member name occurs twice at /properties/a"},
		{"K1_FP2_invalid_utf8", "{\"title\":\"\xff\"}", "not valid JSON"},
		{"K1_FP2_wrong_type", `{"properties":{"a":{"type":"strin"}}}`, "at /properties/a/type"},
		{"K1_FP2_root_is_number", `5`, "the root"},
		{"K1_FP2_negative_length", `{"minLength":-1}`, "/minLength"},
		{"K1_FP2_vast_length", `{"maxLength":99999999999999999999}`, "out of range"},
		{"K1_FP2_wrapping_length", `{"maxLength":18446744073709551621}`, "out of range at /maxLength"},
		{"K1_FP2_vast_number", `{"minimum":1e-1000001}`, "too long to compare exactly at /minimum"},
		{"K1_FP2_circular_reference", `{"$ref":"#"}`, "refers to itself"},
		{"K1_FP2_circular_pair", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, "refers to itself"},
		{"K1_FP2_circular_not", `{"not":{"$ref":"#"}}`, "refers to itself"},
		{"K1_FP2_circular_if", `{"if":{"type":"string"},"then":{"$ref":"#"}}`, "refers to itself"},
		{"K1_FP2_circular_dependent", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, "refers to itself"},
		{"K1_FP2_circular_dynamic", `{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, "refers to itself"},
		{"K1_FP2_circular_recursive", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":"#"}`, "refers to itself"},
		{"D7_draft04", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "not supported at /$schema"},
		{"D7_draft06_inside", `{"$defs":{"a":{"$id":"x","$schema":"http://json-schema.org/draft-06/schema#","type":"string"}},"$ref":"x"}`, "not supported"},
		{"D7_unknown_dialect", `{"$schema":"https://example.com/mine"}`, "not supported at /$schema"},
		{"D7_dialect_is_no_string", `{"$schema":7}`, "not supported at /$schema"},
		{"D7_remote_ref", `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, "outside"},
		{"D7_remote_loopback", `{"$ref":"http://127.0.0.1:1/x"}`, "outside"},
		{"D7_file_ref", `{"$ref":"file:///etc/passwd"}`, "outside"},
		{"D7_relative_ref", `{"$ref":"other.json"}`, "outside"},
		{"absent_pointer", `{"$ref":"#/$defs/nowhere"}`, "absent"},
		{"absent_anchor", `{"$ref":"#nowhere"}`, "absent"},
		{"pattern_not_re2", `{"properties":{"a":{"pattern":"(?=x)"}}}`, "/properties/a/pattern"},
		{"pattern_properties_not_re2", `{"patternProperties":{"(x)\\1":{}}}`, "/patternProperties"},
		{"pattern_too_long", `{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "pattern"},
		{"patterns_too_large", `{"pattern":"` + strings.Repeat("(a{900})", 10) + strings.Repeat("[a-z]{999}", 200) + `"}`, "pattern"},
		{"too_large", `"` + strings.Repeat("a", MaxSchema) + `"`, "above the limit"},
		{"too_deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "more than 128 levels"},
		{"million_brackets", strings.Repeat(`[`, 1_000_000), "more than 128 levels"},
		{"too_many_subschemas", `{"properties":{` + manyProperties(5000) + `}}`, "more than 4096 subschemas"},
		{"too_many_alternatives", `{"anyOf":[` + strings.Repeat(`{},`, 300) + `{}]}`, "a list of more than 256"},
		{"expands_too_far", twice(40), "more than 100000 subschemas"},
		{"duplicate_id", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, ""},
		{"odd_ref", `{"$ref":"%"}`, ""},
		{"odd_id", `{"$id":"::"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := cpu()
			_, err := Compile("mcp/x/y", []byte(c.schema))
			if holdfast.KindOf(err) != holdfast.KindSchemaParse || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if d := cpu() - start; d > 3*time.Second {
				t.Errorf("took %v", d)
			}
			if e := err.Error(); len(e) > 1200 || strings.ContainsAny(e, "\n\r\x00") {
				t.Errorf("text not fit for a log: %q", e)
			}
		})
	}
}

// TestSlowToCompile: the largest schemas that the limits let through are
// compiled within the five seconds of a lookup (D7).
func TestSlowToCompile(t *testing.T) {
	var refs, hidden, enums []string
	for i := range 1300 {
		refs = append(refs, fmt.Sprintf(`"p%d":{"$ref":"#/x/h%d"}`, i, i))
		hidden = append(hidden, fmt.Sprintf(`"h%d":{"type":"string"}`, i))
	}
	for i := range 90_000 {
		enums = append(enums, fmt.Sprintf(`"%d"`, i))
	}
	for name, raw := range map[string]string{
		"references_to_odd_places": `{"properties":{` + strings.Join(refs, ",") + `},"x":{` + strings.Join(hidden, ",") + `}}`,
		"many_subschemas":          `{"properties":{` + manyProperties(4000) + `}}`,
		"large_enum":               `{"enum":[` + strings.Join(enums, ",") + `]}`,
		"required_that_collide":    `{"required":[` + strings.Repeat(`["a","a"],`, 255) + `["a\u0004a"]]}`,
		"many_ids":                 `{"$defs":{` + manyIDs(1300) + `}}`,
		"dynamic":                  `{"$defs":{` + strings.ReplaceAll(manyIDs(1300), `"title":"x"`, `"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}`) + `},"$ref":"s0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			start := cpu()
			_, err := Compile("x", []byte(raw))
			took := cpu() - start
			t.Logf("%v, %v", err, took.Round(time.Millisecond))
			if took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func manyIDs(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"d%d":{"$id":"s%d","title":"x"}`, i, i))
	}
	return strings.Join(out, ",")
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":{}`, i)
	}
	return b.String()
}

// TestConcurrentUse: one schema, many documents at once, and nothing in it
// wears out.
func TestConcurrentUse(t *testing.T) {
	s := mustCompile(t, `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex","pattern":"a"}}`)
	doc := tree(t, "["+strings.Repeat(`"(a|b)+[a-z]{5}",`, 2000)+`"a"]`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if found, err := s.Validate(context.Background(), doc); err != nil || found != nil {
					t.Errorf("%v %v", found, err)
				}
			}
		})
	}
	wg.Wait()
	if found := validate(t, s, `["a("]`); len(found) != 1 || found[0].Keyword != "format" {
		t.Errorf("got %v", found)
	}
}

// TestConcurrentCompile: the schemas of the dialects are compiled once and
// used by many goroutines.
func TestConcurrentCompile(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			dialect := []string{d7, d2019, d2020}[i%3]
			for range 5 {
				s, err := Compile("x", []byte(`{`+dialect+`,"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`))
				if err != nil {
					t.Error(err)
					return
				}
				found, err := s.Validate(context.Background(), map[string]any{"a": map[string]any{"type": "strin"}})
				if err != nil || len(found) == 0 {
					t.Error(found, err)
				}
				if _, err := Compile("x", []byte(`{`+dialect+`,"properties":{"a":{"type":"strin"}}}`)); err == nil {
					t.Error("an invalid schema is compiled")
				}
			}
		})
	}
	wg.Wait()
}
