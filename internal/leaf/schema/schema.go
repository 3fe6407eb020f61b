// Package schema validates documents against JSON Schema, for gate K1 (D7): Compile
// returns a Schema, whose Check and Validate apply it.
//
// A schema is read (read.go), its addresses and anchors are found (index.go),
// it is checked against its dialect's own schema (metaschema.go), its
// references are resolved (resolve.go), and the result is a graph (build.go,
// graph.go) that is walked for each document. The walk counts its work and
// checks its context, so that no schema and no document can make it run for
// long, alone or together; it compares numbers as decimals, never as
// fractions, whose size a document could choose; and it says where a document
// fails without quoting what the document holds. Patterns are RE2.
//
// The package does no I/O and starts no goroutine. The dialects' own schemas are compiled
// at their first use, not at the start of the program. Its tests compare it with the official suite and with
// santhosh-tekuri/jsonschema.
package schema

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Schema is one compiled schema. It is immutable and may be used by many
// goroutines. The zero Schema fits no document: Validate returns an error.
type Schema struct {
	id    string
	hash  string
	graph *graph
}

// Violation is one way in which a document does not fit. It names places and
// sizes; it never holds a value of the document, and names of members that
// look like secrets are withheld.
type Violation struct {
	// Pointer is the JSON pointer of the place in the document; "" is the
	// root.
	Pointer string `json:"pointer"`
	// Keyword is the schema keyword that failed, for example "required".
	Keyword string `json:"keyword"`
	// SchemaPointer is the JSON pointer of that keyword's schema.
	SchemaPointer string `json:"schema_pointer"`
	// Message is for people: lower case, without a full stop.
	Message string `json:"message"`
}

// String returns "pointer: message".
func (v Violation) String() string {
	if v.Pointer == "" {
		return "the root: " + v.Message
	}
	return v.Pointer + ": " + v.Message
}

// MaxViolations is how many violations Validate returns at most.
const MaxViolations = 20

// ID returns the name under which the schema was compiled.
func (s *Schema) ID() string { return s.id }

// Hash returns SHA-256 of the schema's text, 64 lower-case hex digits.
func (s *Schema) Hash() string { return s.hash }

// Compile reads raw as a JSON Schema of the dialect that its `$schema` names:
// draft-07, 2019-09 or 2020-12, which is also what an absent one means (D7).
// raw is at most MaxSchema bytes and is not kept. References reach inside the
// document only; nothing is ever fetched.
//
// Every error is a *holdfast.Error of kind SchemaParseError that names the
// pointer: a schema that is not JSON, repeats a member name, is not valid in
// its dialect, refers to something absent or to itself at one place, uses a
// pattern that RE2 does not have, or is larger than the limits in this
// package.
func Compile(id string, raw []byte) (*Schema, error) {
	g, err := compile(raw)
	if err != nil {
		return nil, parseError(id, err)
	}
	return &Schema{id: id, hash: hashOf(raw), graph: g}, nil
}

// Validate walks value, a tree of map[string]any, []any, string, bool, nil and
// json.Number, which it does not change. It returns no violation if the
// document fits, else the first MaxViolations in a fixed order.
//
// The error is a TimeoutError if ctx ended or the walk took more work than any
// honest document needs, and a SchemaNotFound for a nil or zero Schema. A document is valid only if both
// results are empty.
func (s *Schema) Validate(ctx context.Context, value any) ([]Violation, error) {
	if s == nil || s.graph == nil {
		return nil, &holdfast.Error{Kind: holdfast.KindSchemaNotFound, Gate: holdfast.K1, Why: "no schema was compiled"}
	}
	return s.graph.validate(ctx, value)
}

// Check is Validate with one result: nil, an error of Validate, or a
// ValidationError whose cause is an *Invalid.
func (s *Schema) Check(ctx context.Context, value any) error {
	found, err := s.Validate(ctx, value)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	why := fmt.Sprintf("does not fit schema %s: %s", clip(s.id), found[0])
	if n := len(found) - 1; n > 0 {
		why += fmt.Sprintf(", and %d more", n)
	}
	return &holdfast.Error{
		Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: why,
		Rule: s.id, Err: &Invalid{SchemaID: s.id, Violations: found},
	}
}

// Invalid carries the field-level violations of one document (spec 003
// section 1.2). It is made once and never changed.
type Invalid struct {
	SchemaID   string
	Violations []Violation
}

// Error returns how many violations there are.
func (e *Invalid) Error() string {
	return fmt.Sprintf("%d violations of schema %s", len(e.Violations), clip(e.SchemaID))
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// flaw is what is wrong with a schema, and where in it.
type flaw struct{ pointer, why, hint string }

func (f *flaw) Error() string { return f.why }

func parseError(id string, err error) error {
	f := &flaw{why: "cannot be compiled"}
	errors.As(err, &f)
	at := f.pointer
	if at == "" {
		at = "the root"
	}
	return &holdfast.Error{
		Kind: holdfast.KindSchemaParse, Gate: holdfast.K1, Rule: id, Hint: f.hint, Err: err,
		Why: fmt.Sprintf("schema %s: %s at %s", clip(id), clip(f.why), clip(at)),
	}
}
