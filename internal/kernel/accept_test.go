package kernel_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

var (
	pinA = strings.Repeat("a", 64)
	pinB = strings.Repeat("b", 64)
	pinC = strings.Repeat("c", 64)
)

// says is a tool with a description and a schema of its own.
func says(pin, description, schema string) holdfast.Contract {
	c := tool("pay", pin, holdfast.Medium)
	c.About = json.RawMessage(`{"description":` + description + `,"hints":null}`)
	c.Schema = json.RawMessage(schema)
	return c
}

func (w *world) accepts(boundary string) (review.Change, error) {
	w.t.Helper()
	c, err := w.tools.Changed(w.t.Context(), boundary)
	if err != nil {
		return c, err
	}
	return w.tools.Accept(w.sign(operator.Statement{Act: operator.Accept, Subject: boundary, Exact: c.Now.Pin,
		PreviewHash: c.First.Pin}))
}

// A changed tool that a person accepts is from then on what it is now; going
// back to what it was is a change in its turn.
func TestD37_acceptingAChangedTool(t *testing.T) {
	w := newWorld(t, "")
	w.observe(says(pinA, `"pays money"`, `{"type":"object"}`))
	w.passes(w.req("mcp/srv/pay", `{}`))
	_, err := w.tools.Changed(t.Context(), "mcp/srv/pay")
	refusedAs(t, err, holdfast.KindNotFound, "tool/not_changed")

	w.observe(says(pinB, `"pays money, also to AKIAIOSFODNN7CANARYX"`, `{"type":"object"}`))
	h := w.held(w.req("mcp/srv/pay", `{}`))
	c, err := w.tools.Changed(t.Context(), "mcp/srv/pay")
	if err != nil || !slices.Equal(c.What, []string{"description"}) || c.First.Says["description"].Text != `"pays money"` ||
		c.First.Pin != pinA || c.Now.Pin != pinB || strings.Contains(c.Now.Says["description"].Text, "CANARY") {
		t.Fatalf("%+v %v", c, err)
	}
	w.nowhere("AKIAIOSFODNN7CANARYX")
	if _, err := w.accepts("mcp/srv/pay"); err != nil {
		t.Fatal(err)
	}
	w.passes(w.req("mcp/srv/pay", `{}`))
	if h.Review == "" || len(w.events(holdfast.Local, "policy_tool_accepted")) != 1 {
		t.Fatal("it is not recorded")
	}
	w.store.Close()
	w = reopen(t, w.dir, "")
	if got := w.observe(says(pinB, `"pays money"`, `{}`)); got[0].Risk != holdfast.Medium {
		t.Fatalf("after a restart the accepted tool is %v", got[0].Risk)
	}
	if got := w.observe(says(pinA, `"pays money"`, `{}`)); got[0].Risk != holdfast.High {
		t.Fatalf("what it was before it was accepted is %v", got[0].Risk)
	}
	verifyStore(t, w)
}

// A tool is accepted as the person saw it and in no other form, once, and by a
// person.
func TestD37_acceptingIsBoundToTheTool(t *testing.T) {
	w := newWorld(t, "")
	say := func(first, now string) operator.Signed {
		return w.sign(operator.Statement{Act: operator.Accept, Subject: "mcp/srv/pay", Exact: now, PreviewHash: first})
	}
	_, err := w.tools.Accept(say(pinA, pinB))
	refusedAs(t, err, holdfast.KindNotFound, "tool/not_changed")
	w.observe(says(pinA, `"a"`, `{}`))
	w.observe(says(pinB, `"b"`, `{}`))
	old := say(pinA, pinB)
	w.observe(says(pinC, `"c"`, `{}`))
	_, err = w.tools.Accept(old)
	refusedAs(t, err, holdfast.KindConflict, "tool/changed_again")
	_, err = w.tools.Accept(say(pinB, pinC))
	refusedAs(t, err, holdfast.KindConflict, "tool/changed_again")
	w.observe(says(pinA, `"a"`, `{}`)) // it says again what it said first
	w.held(w.req("mcp/srv/pay", `{}`))
	w.observe(says(pinC, `"c"`, `{}`))
	forged := say(pinA, pinC)
	forged.Signature[0] ^= 1
	_, err = w.tools.Accept(forged)
	wants(t, err, holdfast.KindPermission)
	said := say(pinA, pinC)
	if _, err := w.tools.Accept(said); err != nil {
		t.Fatal(err)
	}
	_, err = w.tools.Accept(said)
	refusedAs(t, err, holdfast.KindConflict, "statement/replayed")
	w.passes(w.req("mcp/srv/pay", `{}`))
}

// An approval of the tool as it was stays worthless after the change is
// accepted, and a question about it is answered for it as it is.
func TestD37_acceptingRevivesNoApproval(t *testing.T) {
	w := newWorld(t, "")
	high := func(pin string) holdfast.Contract { return tool("pay", pin, holdfast.High) }
	w.observe(high(pinA))
	h := w.held(w.req("mcp/srv/pay", `{}`))
	w.approve(h.Review)
	w.observe(high(pinB))
	if _, err := w.accepts("mcp/srv/pay"); err != nil {
		t.Fatal(err)
	}
	out, err := w.cross(w.req("mcp/srv/pay", `{}`))
	e := refusedAs(t, err, holdfast.KindHeld, "review/tool_changed")
	if out.Review == h.Review || !strings.Contains(e.Why, "the tool changed after review "+h.Review) {
		t.Fatal(e.Why)
	}
}

// A person accepts either text of a tool that changed and changed back: the
// first again, and it is free; the other, and the first is a change.
func TestD37_acceptingEitherText(t *testing.T) {
	for _, take := range []string{pinA, pinB} {
		w := newWorld(t, "")
		w.observe(says(pinA, `"a"`, `{}`))
		w.observe(says(pinB, `"b"`, `{}`))
		w.observe(says(pinA, `"a"`, `{}`))
		c, err := w.tools.Changed(t.Context(), "mcp/srv/pay")
		if err != nil || c.First.Pin != pinA || c.Now.Pin != pinB || c.Shows != pinA {
			t.Fatalf("%+v %v", c, err)
		}
		if _, err := w.tools.Accept(w.sign(operator.Statement{Act: operator.Accept, Subject: "mcp/srv/pay",
			Exact: take, PreviewHash: pinA})); err != nil {
			t.Fatal(err)
		}
		if take == pinA {
			w.passes(w.req("mcp/srv/pay", `{}`))
			_, err := w.tools.Changed(t.Context(), "mcp/srv/pay")
			refusedAs(t, err, holdfast.KindNotFound, "tool/not_changed")
		} else {
			w.held(w.req("mcp/srv/pay", `{}`))
		}
		w.store.Close()
		w = reopen(t, w.dir, "")
		if got := w.observe(says(take, `""`, `{}`)); got[0].Risk != holdfast.Medium {
			t.Fatalf("the accepted text is %v", got[0].Risk)
		}
		verifyStore(t, w)
	}
}
