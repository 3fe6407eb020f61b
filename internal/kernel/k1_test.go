package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// policy changes a world's policy before its kernel is made.
func policy(change func(*kernel.Policy)) option {
	return func(c *kernel.Config, w *world) {
		p := *c.Policy
		change(&p)
		c.Policy, w.policy = &p, &p
	}
}

// listed adds contracts to a world's policy.
func listed(cs ...holdfast.Contract) option {
	return policy(func(p *kernel.Policy) { p.Contracts = append(append([]holdfast.Contract{}, p.Contracts...), cs...) })
}

// refused crosses and wants a denial by that gate and of that kind, before the
// hand, with one FAULTED entry. It returns the error.
func (w *world) refused(req holdfast.Request, g holdfast.Gate, kind holdfast.Kind) *holdfast.Error {
	w.t.Helper()
	out, err := w.k.Cross(w.t.Context(), req, func(context.Context) (holdfast.Output, error) {
		w.t.Error("the hand acted")
		return holdfast.Output{}, nil
	})
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Gate != g {
		w.t.Fatalf("got %v at %v (%v), want %v at %v", holdfast.KindOf(err), out.Deciding().Gate, err, kind, g)
	}
	if out.Verdict != holdfast.Deny || out.Output != nil || e.Why == "" {
		w.t.Fatalf("%+v", out)
	}
	return e
}

// passes crosses and wants it done.
func (w *world) passes(req holdfast.Request) *holdfast.Outcome {
	w.t.Helper()
	out, err := w.cross(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// held crosses and wants a hold.
func (w *world) held(req holdfast.Request) *holdfast.Outcome {
	w.t.Helper()
	out, err := w.k.Cross(w.t.Context(), req, func(context.Context) (holdfast.Output, error) {
		w.t.Error("the hand acted")
		return holdfast.Output{}, nil
	})
	wants(w.t, err, holdfast.KindHeld)
	if out.Review == "" || out.Verdict != holdfast.Hold || out.Output != nil {
		w.t.Fatalf("%+v", out)
	}
	return out
}

func TestK1_payloads(t *testing.T) {
	w := newWorld(t, "")
	cases := []struct {
		name, boundary, payload string
		kind                    holdfast.Kind
	}{
		{"K1_AC1_conforms", "test/schema", `{"n":3,"s":"abcd"}`, ""},
		{"K1_FP1_unlisted_boundary", "nowhere/at/all", `{}`, holdfast.KindSchemaNotFound},
		{"K1_FP1_empty_boundary", "", `{}`, holdfast.KindSchemaNotFound},
		{"K1_FP1_other_case", "TEST/low", `{}`, holdfast.KindSchemaNotFound},
		{"K1_FP1_the_pattern_itself", "test/many", `{}`, holdfast.KindSchemaNotFound},
		{"K1_FP3_type_mismatch", "test/schema", `{"n":"3"}`, holdfast.KindValidation},
		{"K1_FP4_required_missing", "test/schema", `{"s":"a"}`, holdfast.KindValidation},
		{"K1_FP5_additional_property", "test/schema", `{"n":1,"x":1}`, holdfast.KindValidation},
		{"K1_FP6_below_minimum", "test/schema", `{"n":-1}`, holdfast.KindValidation},
		{"K1_FP6_too_long", "test/schema", `{"n":1,"s":"abcde"}`, holdfast.KindValidation},
		{"K1_FP9_too_deep", "test/low", strings.Repeat("[", 21) + strings.Repeat("]", 21), holdfast.KindPayloadTooLarge},
		{"K1_FP9_just_deep_enough", "test/low", strings.Repeat("[", 20) + strings.Repeat("]", 20), ""},
		{"K1_AC6_FP8_too_large", "test/low", `"` + strings.Repeat("a", holdfast.MaxPayload) + `"`, holdfast.KindPayloadTooLarge},
		{"K1_not_json", "test/low", `{`, holdfast.KindValidation},
		{"K1_nothing", "test/low", ``, holdfast.KindValidation},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			if c.kind == "" {
				w.passes(w.req(c.boundary, c.payload))
				return
			}
			w.refused(w.req(c.boundary, c.payload), holdfast.K1, c.kind)
		})
	}
}

// A schema that does not compile refuses the whole policy, at the start and at
// a reload, and the old policy goes on.
func TestK1_FP2_malformed_schema(t *testing.T) {
	bad := holdfast.Contract{Boundary: "test/bad", Risk: holdfast.Low, Schema: json.RawMessage(`{"type":"wat"}`), Source: "test:99"}
	w := newWorld(t, "")
	p := *w.policy
	p.Version = strings.Repeat("2", 64)
	p.Contracts = append(append([]holdfast.Contract{}, p.Contracts...), bad)
	err := w.k.SetPolicy(&p, "user:carol")
	if err == nil || !strings.Contains(err.Error(), "test:99") {
		t.Fatalf("%v: the error must name the place", err)
	}
	if w.k.Policy().Version != w.policy.Version || len(w.events(holdfast.Local, "policy_changed")) != 0 {
		t.Fatal("half a policy is in force")
	}
	w.passes(w.req("test/low", `{}`))
	// One that a door observed is refused when it is crossed.
	if _, err := w.tools.Observe(t.Context(), []holdfast.Contract{bad}); err != nil {
		t.Fatal(err)
	}
	w.refused(w.req("test/bad", `{}`), holdfast.K1, holdfast.KindSchemaParse)
}

// Criterion 2 over random payloads: what crosses conforms, what does not is
// refused, and the hand sees the payload's own bytes.
func TestK1_AC2_INV1_property(t *testing.T) {
	w := newWorld(t, "")
	r := rand.New(rand.NewPCG(1, 8))
	vals := []string{"0", "1", "-1", "1.5", "2.0", `"a"`, `"abcde"`, "null", "[]", "{}", "true", "1e3"}
	tok := w.who("alice")
	for range 60 {
		n, s, extra := vals[r.IntN(len(vals))], vals[r.IntN(len(vals))], r.IntN(4) == 0
		fields := []string{}
		if r.IntN(6) > 0 {
			fields = append(fields, `"n":`+n)
		} else {
			n = ""
		}
		if r.IntN(2) == 0 {
			fields = append(fields, `"s":`+s)
		} else {
			s = `""`
		}
		if extra {
			fields = append(fields, `"x":1`)
		}
		valid := !extra && (n == "0" || n == "1" || n == "2.0" || n == "1e3") && (s == `""` || s == `"a"`)
		text := "{" + strings.Join(fields, ",") + "}"
		out, err := w.cross(holdfast.Request{Boundary: "test/schema", Payload: []byte(text), Token: tok})
		if valid != (err == nil) {
			t.Fatalf("%s: valid %v, err %v", text, valid, err)
		}
		if !valid && (holdfast.KindOf(err) != holdfast.KindValidation || out.Deciding().Rule != "test/schema_v1") {
			t.Fatalf("%s: %v by %q", text, err, out.Deciding().Rule)
		}
	}
	for _, e := range w.entries(holdfast.Local) {
		if e.SchemaID == nil || *e.SchemaID != "test/schema_v1" || e.Valid == nil || *e.Valid != (e.Outcome == "done") {
			t.Fatalf("%+v", e)
		}
	}
}

// Criterion 3: a schema is resolved when its policy is made, never at a
// crossing: with its text gone from memory, every crossing judges as before.
func TestK1_AC3_INV2_schema_resolved_once(t *testing.T) {
	w := newWorld(t, "", policy(func(p *kernel.Policy) {
		p.Contracts = append([]holdfast.Contract{}, p.Contracts...)
		for i := range p.Contracts {
			p.Contracts[i].Schema = bytes.Clone(p.Contracts[i].Schema)
		}
	}))
	before, found := w.k.Contract("test/schema")
	if !found || len(before.Schema) == 0 {
		t.Fatal("not listed")
	}
	clear(before.Schema)
	for _, c := range w.policy.Contracts {
		clear(c.Schema)
	}
	for range 3 {
		w.passes(w.req("test/schema", `{"n":1}`))
		w.refused(w.req("test/schema", `{"n":-1}`), holdfast.K1, holdfast.KindValidation)
	}
}

// Criterion 4: the error names the schema and each field, and quotes nothing of
// the payload.
func TestK1_AC4_error_details(t *testing.T) {
	w := newWorld(t, "")
	e := w.refused(w.req("test/schema", `{"n":-5,"s":"canary-value"}`), holdfast.K1, holdfast.KindValidation)
	if e.Rule != "test/schema_v1" || !strings.Contains(e.Why, "/n") || !strings.Contains(e.Why, "/s") || e.Crossing == "" {
		t.Fatalf("%+v", e)
	}
	if strings.Contains(e.Why, "canary") {
		t.Fatalf("the payload is quoted: %s", e.Why)
	}
}

// Criterion 7 and invariant 4: the payload is the caller's, byte for byte.
func TestK1_AC7_INV4_payload_unchanged(t *testing.T) {
	w := newWorld(t, "")
	text := []byte(" {\"n\" : 1 , \"s\":\"\\u0061\"}\n")
	was := string(text)
	req := w.req("test/schema", "")
	req.Payload = text
	if _, err := w.k.Cross(t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
		if string(req.Payload) != was || &req.Payload[0] != &text[0] {
			t.Error("the hand sees another payload")
		}
		return ok(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if string(text) != was {
		t.Fatalf("%q", text)
	}
}

// A name that only a pattern lists is an agent's own text: one that may not be
// written down is no boundary.
func TestK1_names_under_a_pattern(t *testing.T) {
	w := newWorld(t, "")
	w.passes(w.req("test/many/one", `{}`))
	w.passes(w.req("test/many/"+strings.Repeat("a", 400), `{}`))
	for _, name := range []string{strings.Repeat("a", 4096), "a\nb", "a\x1b[2Jb", "a\x00", "\xff\xfe", "jane.doe@example.com", "ghp_" + strings.Repeat("Ab1", 12)} {
		w.refused(w.req("test/many/"+name, `{}`), holdfast.K1, holdfast.KindSchemaNotFound)
	}
	if n := len(w.entries(holdfast.Local)); n != 9 {
		t.Fatalf("%d entries for nine crossings", n)
	}
	for _, e := range w.entries(holdfast.Local) {
		if strings.ContainsAny(e.Boundary, "\n\x1b\x00") || strings.Contains(e.Boundary, "jane") || len(e.Boundary) > 600 {
			t.Fatalf("%q", e.Boundary)
		}
	}
}
