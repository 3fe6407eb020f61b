package format

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
)

const (
	// maxShort is the longest number, in digits, that is a count under the name of a
	// secret that is no password.
	maxShort = 6
	// reachSchema and reachLabel are the number of bytes of an object that are read ahead to tell
	// that it is a schema, or what the name of its value is.
	reachSchema = 512
	reachLabel  = 300
	// reachScore is the number of bytes around a token in which the score of a model is.
	reachScore = 200
)

// openFrame returns the frame of the object or array whose bracket is at i.
func (w *walker) openFrame(c byte, i int) frame {
	t := w.top()
	f := frame{object: c == '{', name: c == '{', inherited: w.kind(), plain: t.plain || t.plainMember,
		form: namedForm{at: i}}
	if f.object && f.inherited == fieldname.Key {
		f.inherited = fieldname.None // a key's own members say what they are
	}
	if f.object && f.inherited != fieldname.None && t.own != fieldname.None && isSchema(w.in[i+1:]) {
		f.inherited = fieldname.None
	}
	return f
}

// applyPlace corrects the kind of the member s, whose name is at [i, end), by its place:
// tokens of a model's text are no secrets.
func (w *walker) applyPlace(t *frame, s []byte, i, end int) {
	switch {
	case t.plain:
		t.own = fieldname.None
	case t.own == fieldname.Secret && string(s) == "token" &&
		bytes.Contains(w.in[max(0, i-reachScore):min(len(w.in), end+reachScore)], []byte(`"logprob`)):
		t.own, t.plainMember = fieldname.None, true
	case t.own == fieldname.None && (string(s) == "logprobs" || string(s) == "top_logprobs"):
		t.plainMember = true
	}
}

// isLabelName reports whether the value of the member s names what another member of
// its object holds.
func isLabelName(s []byte) bool {
	switch string(s) {
	case "name", "key", "header", "field", "id", "variable", "param", "parameter", "property", "attribute",
		"setting", "Name", "Key", "Id", "ID", "Header":
		return true
	}
	return false
}

func isValueName(s []byte) bool {
	switch string(s) {
	case "value", "val", "Value", "VALUE":
		return true
	}
	return false
}

// labelAhead returns the kind of the name that follows the value ending at i in the
// same object: {"value": "x", "name": "DB_PASSWORD"}.
func (w *walker) labelAhead(i int) fieldname.Kind {
	for s, n := w.in[i:min(len(w.in), i+reachLabel)], 0; n < 6; n++ {
		name, rest := aheadString(s, ',')
		if name == nil {
			break
		}
		value, rest := aheadString(rest, ':')
		if value == nil {
			break
		}
		if isLabelName(name) {
			return fieldname.Of(value)
		}
		s = rest
	}
	return fieldname.None
}

// aheadString returns the content of the string that s begins with, after sign, and
// what follows it; or nil.
func aheadString(s []byte, sign byte) (content, rest []byte) {
	s = bytes.TrimLeft(s, " \t\r\n")
	if len(s) == 0 || s[0] != sign {
		return nil, nil
	}
	s = bytes.TrimLeft(s[1:], " \t\r\n")
	if len(s) == 0 || s[0] != '"' {
		return nil, nil
	}
	n := bytes.IndexByte(s[1:], '"')
	if n < 0 || bytes.IndexByte(s[1:1+n], '\\') >= 0 {
		return nil, nil
	}
	return s[1 : 1+n], s[2+n:]
}

// schemaWords are the names of members by which a schema or a form describes a value.
// Those with true are enough to say that an object is one.
var schemaWords = map[string]bool{
	"type": true, "$ref": true, "anyOf": true, "oneOf": true, "allOf": true, "enum": true, "description": true,
	"properties": true, "items": true,
	"title": true, "label": true, "format": true, "required": true, "optional": true, "nullable": true,
	"help": true, "placeholder": true,
	"default": false, "example": false, "examples": false, "const": false, "pattern": false, "minLength": false,
	"maxLength": false, "minimum": false,
	"maximum": false, "minItems": false, "maxItems": false, "additionalProperties": false, "deprecated": false,
	"readOnly": false, "writeOnly": false,
	"not": false, "if": false, "then": false, "else": false, "name": false, "in": false, "schema": false,
	"order": false, "hidden": false,
	"sensitive": false, "validation": false, "rules": false, "message": false, "errors": false, "min": false,
	"max": false, "length": false,
	"flow": true, "flows": true, "tokenUrl": false, "authorizationUrl": false, "refreshUrl": false,
	"scopes": false, "scheme": false,
	"bearerFormat": false, "openIdConnectUrl": false, "uniqueItems": false, "$id": false, "$schema": false,
	"$defs": false, "definitions": false,
	"nativeEnum": false, "patternProperties": false,
}

// isSchema reports whether the object whose members s begins with describes a value and
// has none: all names in reach are those of a schema.
func isSchema(s []byte) bool {
	s = s[:min(len(s), reachSchema)]
	found := false
	for depth, i := 0, 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return found
			}
		case '"':
			start := i + 1
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if depth > 0 || i >= len(s) || !isMemberName(s, i+1) {
				continue
			}
			telling, known := schemaWords[string(s[start:i])]
			if !known {
				return false
			}
			found = found || telling
		}
	}
	return found
}

// isMemberName reports whether a colon follows at i.
func isMemberName(s []byte, i int) bool {
	for i < len(s) && char.Class[s[i]]&char.Space != 0 {
		i++
	}
	return i < len(s) && s[i] == ':'
}
