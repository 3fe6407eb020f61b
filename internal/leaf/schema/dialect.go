package schema

import "strings"

// dialect is one version of JSON Schema. It orders them by age.
type dialect int

// The dialects that a `$schema` may name. The first two are only known so that
// an embedded resource of theirs is recognised: no schema of them is applied.
const (
	draft4 dialect = iota
	draft6
	draft7
	draft2019
	draft2020
)

// isSupported reports whether schemas of d may be applied (D7).
func (d dialect) isSupported() bool { return d >= draft7 }

// hidesSiblings reports whether a $ref replaces the keywords next to it.
func (d dialect) hidesSiblings() bool { return d < draft2019 }

// idKeyword returns the keyword that names a resource.
func (d dialect) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// standardFile returns the file that holds the dialect's own schema.
func (d dialect) standardFile() string {
	switch d {
	case draft7:
		return "draft-07/schema"
	case draft2019:
		return "draft/2019-09/schema"
	}
	return "draft/2020-12/schema"
}

// findDialect returns the dialect that a `$schema` names. An empty fragment
// and the scheme make no difference.
func findDialect(address string) (dialect, bool) {
	file, fragment, _ := strings.Cut(address, "#")
	if fragment != "" {
		return 0, false
	}
	switch trimHost(file) {
	case "draft-04/schema":
		return draft4, true
	case "draft-06/schema":
		return draft6, true
	case "draft-07/schema":
		return draft7, true
	case "draft/2019-09/schema":
		return draft2019, true
	case "draft/2020-12/schema", "schema":
		return draft2020, true
	}
	return 0, false
}

// trimHost returns the path below json-schema.org, or "" for another host.
func trimHost(address string) string {
	rest, ok := strings.CutPrefix(address, "http://json-schema.org/")
	if !ok {
		rest, ok = strings.CutPrefix(address, "https://json-schema.org/")
	}
	if !ok {
		return ""
	}
	return rest
}

// shape is where a keyword's value holds subschemas.
type shape uint8

const (
	isSchema shape = 1 << iota // it is one
	isList                     // its elements are
	isMap                      // its members are
)

// applicators are the keywords that hold subschemas, in the order in which
// they are read: from which dialect on, and until which dialect that dialect's
// own schema describes them.
var applicators = [...]struct {
	keyword      string
	shape        shape
	since, until dialect
}{
	{"$defs", isMap, draft2019, draft2020},
	{"definitions", isMap, draft4, draft2020},
	{"properties", isMap, draft4, draft2020},
	{"patternProperties", isMap, draft4, draft2020},
	{"additionalProperties", isSchema, draft4, draft2020},
	{"propertyNames", isSchema, draft6, draft2020},
	{"dependencies", isMap, draft4, draft2020},
	{"dependentSchemas", isMap, draft2019, draft2020},
	{"prefixItems", isList, draft2020, draft2020},
	{"items", isSchema | isList, draft4, draft2020},
	{"additionalItems", isSchema, draft4, draft2019},
	{"contains", isSchema, draft6, draft2020},
	{"allOf", isList, draft4, draft2020},
	{"anyOf", isList, draft4, draft2020},
	{"oneOf", isList, draft4, draft2020},
	{"not", isSchema, draft4, draft2020},
	{"if", isSchema, draft7, draft2020},
	{"then", isSchema, draft7, draft2020},
	{"else", isSchema, draft7, draft2020},
	{"unevaluatedProperties", isSchema, draft2019, draft2020},
	{"unevaluatedItems", isSchema, draft2019, draft2020},
	{"contentSchema", isSchema, draft2019, draft2020},
}
