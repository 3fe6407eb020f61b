package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// refusing is the peer's loader of everything outside the document.
type refusing struct{}

// Load always fails.
func (refusing) Load(string) (any, error) { return nil, errRemote }

// peer compiles a schema for the peer's validator, which has no bound on its
// work but is right on the official suite.
func peer(raw string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(refusing{})
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	return c.Compile(base)
}

// TestAgreesWithPeer is K1_AC2 as a property: over random schemas and
// documents the two validators say the same. Both answers must occur often
// enough to mean something.
func TestAgreesWithPeer(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2020))
	valid, invalid := 0, 0
	for range 700 {
		dialect := r.IntN(3)
		raw := rootSchema(r, dialect)
		theirs, err := peer(raw)
		ours, err2 := Compile("random", []byte(raw))
		if err2 != nil {
			if strings.Contains(err2.Error(), "refers to itself") {
				continue // the peer finds circles only while validating
			}
			if err == nil {
				t.Fatalf("only we refuse %s: %v", raw, err2)
			}
			continue
		}
		if err != nil {
			t.Fatalf("only the peer refuses %s: %v", raw, err)
		}
		for range 12 {
			doc := randomDoc(r, 3)
			b, _ := json.Marshal(doc)
			v := tree(t, string(b))
			want := theirs.Validate(v) == nil
			found, err := ours.Validate(context.Background(), v)
			if err != nil {
				t.Fatal(err)
			}
			if (len(found) == 0) != want {
				t.Fatalf("schema %s\ndocument %s\nvalid for the peer: %v, ours: %v", raw, b, want, found)
			}
			if want {
				valid++
			} else {
				invalid++
			}
		}
	}
	if valid < 500 || invalid < 500 {
		t.Errorf("only %d valid and %d invalid", valid, invalid)
	}
}

func rootSchema(r *rand.Rand, dialect int) string {
	s := randomSchema(r, 3, dialect)
	m, ok := s.(map[string]any)
	if !ok {
		m = map[string]any{"allOf": []any{s}}
	}
	defs := map[string]any{"x": randomSchema(r, 2, dialect), "y": randomSchema(r, 2, dialect)}
	m["$schema"] = []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"}[dialect]
	m["definitions"] = defs
	b, _ := json.Marshal(m)
	return string(b)
}

var names = []string{"a", "b", "c", "d/e~", ""}

func randomSchema(r *rand.Rand, depth, dialect int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return []any{true, false, map[string]any{}, map[string]any{"type": "integer"}, map[string]any{"type": "string"}, true, map[string]any{"minimum": 1}}[r.IntN(7)]
	}
	sub := func() any { return randomSchema(r, depth-1, dialect) }
	list := func() []any {
		out := []any{}
		for range 1 + r.IntN(3) {
			out = append(out, sub())
		}
		return out
	}
	object := func() map[string]any {
		out := map[string]any{}
		for range 1 + r.IntN(3) {
			out[names[r.IntN(len(names))]] = sub()
		}
		return out
	}
	m := map[string]any{}
	for range 1 + r.IntN(4) {
		switch r.IntN(32) {
		case 0:
			m["type"] = []any{"object", "array", "string", "number", "integer", "null", "boolean"}[r.IntN(7)]
		case 1:
			m["type"] = []any{"object", []any{"array", "object"}[r.IntN(2)]}[:1]
		case 2:
			m["enum"] = []any{randomDoc(r, 1), randomDoc(r, 2), randomDoc(r, 0)}
		case 3:
			m["const"] = randomDoc(r, 1)
		case 4, 5, 6:
			m["properties"] = object()
		case 7:
			m["patternProperties"] = map[string]any{[]string{"^a", "b|c", ""}[r.IntN(3)]: sub()}
		case 8:
			m["additionalProperties"] = sub()
		case 9:
			m["required"] = []any{names[r.IntN(len(names))]}
		case 10:
			m["propertyNames"] = map[string]any{"maxLength": r.IntN(3)}
		case 11:
			m["minProperties"] = r.IntN(3)
		case 12:
			m["maxProperties"] = r.IntN(4)
		case 13, 14:
			if dialect < 2 && r.IntN(2) == 0 {
				m["items"], m["additionalItems"] = list(), sub()
			} else {
				m["items"] = sub()
			}
		case 15:
			m["prefixItems"] = list()
		case 16:
			m["contains"] = sub()
			m["minContains"], m["maxContains"] = r.IntN(2), 1+r.IntN(2)
		case 17:
			m["uniqueItems"] = true
		case 18:
			m["minItems"] = r.IntN(3)
		case 19:
			m["maxItems"] = r.IntN(4)
		case 20:
			m["allOf"] = list()
		case 21:
			m["anyOf"] = list()
		case 22:
			m["oneOf"] = list()
		case 23:
			m["not"] = sub()
		case 24:
			m["if"], m["then"], m["else"] = sub(), sub(), sub()
		case 25:
			ref := []string{"#", "#/definitions/x", "#/definitions/y"}[r.IntN(3)]
			if dialect == 0 {
				// The peer puts a const beside a draft-07 $ref to use,
				// where the dialect says that siblings are ignored.
				return map[string]any{"$ref": ref}
			}
			m["$ref"] = ref
		case 26:
			m["dependentSchemas"] = object()
		case 27:
			m["dependentRequired"] = map[string]any{"a": []any{"b"}}
		case 28:
			m["dependencies"] = map[string]any{"b": []any{"c"}, "c": sub()}
		case 29:
			m["unevaluatedProperties"] = sub()
		case 30:
			m["unevaluatedItems"] = sub()
		case 31:
			m["minimum"], m["exclusiveMaximum"], m["multipleOf"] = r.IntN(3), json.Number("4.5"), json.Number([]string{"1", "0.5", "2"}[r.IntN(3)])
			m["minLength"], m["pattern"] = r.IntN(2), "^[ab]*$"
		}
	}
	return m
}

func randomDoc(r *rand.Rand, depth int) any {
	n := 9
	if depth == 0 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return json.Number([]string{"0", "1", "1.0", "2", "3e0", "4.5", "-1", "0.5", "1.25", "10E-1"}[r.IntN(10)])
	case 4, 5:
		return []string{"", "a", "b", "abc", "é", "zz"}[r.IntN(6)]
	case 6, 7:
		m := map[string]any{}
		for range r.IntN(5) {
			m[names[r.IntN(len(names))]] = randomDoc(r, depth-1)
		}
		return m
	}
	list := []any{}
	for range r.IntN(5) {
		list = append(list, randomDoc(r, depth-1))
	}
	return list
}

// FuzzCompileValidate: nothing panics, every refusal is a *holdfast.Error of a
// known kind, answers repeat, no message holds a raw line break, and where the
// peer can be asked safely it agrees.
func FuzzCompileValidate(f *testing.F) {
	f.Add(issue, `{"title":"x","count":7}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#"}],"format":"email"}`, `[[],"a@b"]`)
	f.Add(`{"$id":"https://e.com/a","$dynamicAnchor":"t","items":{"$dynamicRef":"#t"},"unevaluatedItems":false}`, `[[1],2]`)
	f.Add(`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`, `{"a":{}}`)
	f.Add(`{"enum":[1.0,{"a":[]}],"multipleOf":0.1}`, `1e-999999999`)
	for i := range 10 {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		b, _ := json.Marshal(randomDoc(r, 3))
		f.Add(rootSchema(r, i%3), string(b))
	}
	f.Fuzz(func(t *testing.T, raw, doc string) {
		s, err := Compile("fuzz", []byte(raw))
		if err != nil {
			checkFlaw(t, err)
			return
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			return
		}
		first, err := s.Validate(context.Background(), v)
		if err != nil {
			checkTimeout(t, err)
			return
		}
		again, _ := s.Validate(context.Background(), v)
		if fmt.Sprint(first) != fmt.Sprint(again) {
			t.Fatalf("answers differ: %v and %v", first, again)
		}
		for _, x := range first {
			if strings.ContainsAny(x.Pointer+x.Message+x.SchemaPointer, "\n\r\x00") || len(x.Message) > 2000 {
				t.Fatalf("text not fit for a log: %q", x)
			}
		}
	})
}

func checkFlaw(t *testing.T, err error) {
	if e, ok := err.(*holdfast.Error); !ok || e.Kind != holdfast.KindSchemaParse || strings.ContainsAny(e.Why, "\n\r\x00") {
		t.Fatalf("not a clean SchemaParseError: %q", err)
	}
}

func checkTimeout(t *testing.T, err error) {
	if holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Fatalf("not a TimeoutError: %v", err)
	}
}
