package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func (w *world) beside(boundary, payload, beside string) holdfast.Request {
	r := w.req(boundary, payload)
	r.Beside = []byte(beside)
	return r
}

// An approval is for the payload and for what stands beside it, which the
// reviewer sees.
func TestD10_an_approval_is_bound_to_what_stands_beside_the_payload(t *testing.T) {
	w := newWorld(t, "")
	const payload = `{"a":1}`
	one := w.held(w.beside("test/high", payload, `{"much":{"n":1}, "also":"\u202e"}`))
	bare := w.held(w.req("test/high", payload))
	if one.Exact == bare.Exact || one.Key != bare.Key || one.Review == bare.Review {
		t.Fatalf("%+v\n%+v", one, bare)
	}
	r, err := w.k.Review(t.Context(), one.Review)
	if want := payload + "\nbeside the payload: " + `{"also":"\u202e","much":{"n":1}}`; err != nil || r.Preview != want || r.InPart() || r.Shape != nil {
		t.Fatalf("%q %+v %v", r.Preview, r, err)
	}
	w.approve(one.Review)
	for _, other := range []string{`{"much":{"n":1000000},"also":"\u202e"}`, `{"also":"\u202e"}`, `{"much":{"n":1.0},"also":"\u202e"}`, `{}`} {
		w.noAct(w.beside("test/high", payload, other), "another answer")
	}
	w.noAct(w.req("test/high", payload), "no answer")
	w.noAct(w.beside("test/high", `{"a":2}`, `{"much":{"n":1},"also":"\u202e"}`), "another payload")
	w.passes(w.beside("test/high", payload, `{"also":"\u202e","much":{"n":1}}`))
	w.noAct(w.beside("test/high", payload, `{"also":"\u202e","much":{"n":1}}`), "the second time")

	for _, masked := range []string{`{"secret":{"then":"rm -rf /"}}`, `{"list":"` + strings.Repeat("7", 5000) + `"}`} {
		h := w.held(w.beside("test/high", payload, masked))
		if r, err := w.k.Review(t.Context(), h.Review); err != nil || !r.InPart() {
			t.Fatalf("%+v %v", r, err)
		}
	}
	verifyStore(t, w)
}

// No rule of a shape covers what stands beside arguments; one of exactly these
// covers exactly this.
func TestD11_a_remembered_rule_and_what_stands_beside_the_payload(t *testing.T) {
	w := newWorld(t, "")
	w.remember("test/high", inWorkArgs, inWork)
	w.passes(w.req("test/high", inWorkArgs))
	req := w.beside("test/high", inWorkArgs, `{"mode":"dry-run"}`)
	h := w.held(req)
	r := w.approve(h.Review)
	if _, err := review.RuleOf(&r, inWork); err == nil {
		t.Fatal("a shape was remembered")
	}
	if _, err := w.k.Remember(w.wish(h.Review, review.Choice{Exact: true})); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.passes(req)
	}
	w.held(w.beside("test/high", inWorkArgs, `{"mode":"for-real"}`))
}

// What is settled is given back for the same, and for nothing else.
func TestK5_D10_replay_of_what_stands_beside_the_payload(t *testing.T) {
	w := newWorld(t, "")
	for i, c := range []struct {
		beside   string
		replayed bool
	}{{`{"n":1}`, false}, {`{"n":2}`, false}, {`{"n":1}`, true}, {``, false}, {``, true}, {`{ "n": 2}`, true}} {
		out, err := w.cross(w.beside("test/replay", `{"a":1}`, c.beside))
		if err != nil || out.Replayed != c.replayed {
			t.Errorf("%d: replayed %v: %v", i, out.Replayed, err)
		}
	}
	keyed := func(beside string) holdfast.Request {
		r := w.beside("test/low", `{}`, beside)
		r.IdempotencyKey = "k"
		return r
	}
	w.passes(keyed(`{"n":1}`))
	_, err := w.cross(keyed(`{"n":2}`))
	wants(t, err, holdfast.KindMismatch)
}

// What cannot be read beside the payload is as a payload that cannot be read.
func TestK1_what_stands_beside_the_payload_is_bounded(t *testing.T) {
	w := newWorld(t, "")
	for name, beside := range map[string]string{"no JSON": `{`, "no object": `[1]`, "twice": `{"a":1,"a":2}`, "null": `null`,
		"deep": strings.Repeat(`{"a":`, 30) + "1" + strings.Repeat("}", 30), "large": fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", holdfast.MaxPayload))} {
		for _, boundary := range []string{"test/low", "test/high"} {
			_, err := w.cross(w.beside(boundary, `{}`, beside))
			if err == nil || holdfast.KindOf(err) == holdfast.KindHeld || !strings.Contains(err.Error(), "beside the payload: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
