package config

import (
	_ "embed" // for the example
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

//go:embed holdfast.example.yaml
var example string

// Example returns the commented holdfast.yaml that `holdfast init` writes. As
// it stands it changes nothing: every setting is commented out.
func Example() []byte { return []byte(example) }

// EditorSchema returns the JSON Schema (2020-12) of holdfast.yaml for editors,
// made of Config's own tags. Load refuses more than the schema can say.
func EditorSchema() ([]byte, error) {
	s := shape(reflect.TypeFor[Config](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "holdfast.yaml"
	return json.MarshalIndent(s, "", "  ")
}

// shape describes what the decoder takes for a type.
func shape(t reflect.Type, tag reflect.StructTag) map[string]any {
	switch t {
	case reflect.TypeFor[JSON]():
		return map[string]any{"type": []string{"object", "boolean"}}
	case reflect.TypeFor[ruleText]():
		return map[string]any{"type": "array", "items": map[string]any{"type": "object"}}
	case reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": `^([0-9]+d|0|([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+)$`}
	case reflect.TypeFor[Money]():
		return map[string]any{"type": []string{"string", "number"}, "pattern": `^\$?[0-9]+(\.[0-9]{1,6})?$`, "minimum": 0}
	case reflect.TypeFor[Factor]():
		return map[string]any{"type": []string{"string", "number"}, "pattern": `^[0-9]+(\.[0-9]{1,6})?$`, "exclusiveMinimum": 0, "maximum": maxFactor / 1_000_000}
	case reflect.TypeFor[Size]():
		return map[string]any{"type": []string{"string", "integer"}, "pattern": `^([1-9][0-9]* ?(B|KB|MB|GB|KiB|MiB|GiB)|[1-9][0-9]{3,})$`, "minimum": leastBare}
	case reflect.TypeFor[holdfast.Risk]():
		return words(holdfast.Low, holdfast.Medium, holdfast.High, holdfast.Prohibited)
	case reflect.TypeFor[holdfast.Level]():
		return words(holdfast.Baseline, holdfast.MediumTrust, holdfast.HighTrust)
	case reflect.TypeFor[holdfast.Secret]():
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return object(t)
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": shape(t.Elem(), tag)}
	case reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": shape(t.Elem(), tag)}
	case reflect.Pointer:
		return shape(t.Elem(), tag)
	}
	return plain(t.Kind(), tag)
}

func object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" || f.Type == reflect.TypeFor[notYet]() {
			continue
		}
		s := shape(f.Type, f.Tag)
		s["description"] = f.Tag.Get("doc")
		properties[key] = s
		if f.Tag.Get("need") != "" {
			required = append(required, key)
		}
	}
	s := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["type"], s["required"] = "object", required
	}
	return s
}

func plain(k reflect.Kind, tag reflect.StructTag) map[string]any {
	s := map[string]any{}
	switch k {
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Int, reflect.Int64:
		s["type"] = "integer"
	case reflect.Float64:
		s["type"] = "number"
	default:
		s["type"] = "string"
	}
	if e := tag.Get("enum"); e != "" && k == reflect.String {
		s["enum"] = strings.Split(e, ",")
	}
	for name, key := range map[string]string{"min": "minimum", "max": "maximum"} {
		if n, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			s[key] = n
		}
	}
	return s
}

func words(ms ...encoding.TextMarshaler) map[string]any {
	var out []string
	for _, m := range ms {
		b, err := m.MarshalText()
		if err == nil {
			out = append(out, string(b))
		}
	}
	return map[string]any{"type": "string", "enum": out}
}
