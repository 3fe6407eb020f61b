package kernel_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func tool(name, pin string, risk holdfast.Risk) holdfast.Contract {
	return holdfast.Contract{Boundary: "mcp/srv/" + name, Pin: pin, Risk: risk, Source: "mcp/srv"}
}

func (w *world) observe(cs ...holdfast.Contract) []holdfast.Contract {
	w.t.Helper()
	out, err := w.tools.Observe(w.t.Context(), cs)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// A tool that is not what it was at first sight is held, also after a restart,
// and its change is one event.
func TestD37_changedToolIsHeld(t *testing.T) {
	w := newWorld(t, "")
	w.observe(tool("read", "aaaa", holdfast.Medium))
	if _, err := w.cross(w.req("mcp/srv/read", `{}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := w.observe(tool("read", "bbbb", holdfast.Low)); got[0].Risk != holdfast.High {
			t.Fatalf("the changed tool is %v", got[0].Risk)
		}
	}
	if out, _ := w.cross(w.req("mcp/srv/read", `{}`)); out.Verdict != holdfast.Hold {
		t.Fatalf("%v", out.Verdict)
	}
	if n := len(w.events(holdfast.Local, "tool_changed")); n != 1 {
		t.Fatalf("%d events", n)
	}
	w.store.Close()
	again := reopen(t, w.dir, "")
	if got := again.observe(tool("read", "bbbb", holdfast.Low)); got[0].Risk != holdfast.High {
		t.Fatalf("after a restart the changed tool is %v", got[0].Risk)
	}
	if got := again.observe(tool("read", "aaaa", holdfast.Medium)); got[0].Risk != holdfast.High {
		t.Fatalf("the tool that says again what it said first is %v", got[0].Risk)
	}
	again.store.Close()
	again = reopen(t, w.dir, "")
	if got := again.observe(tool("read", "aaaa", holdfast.Medium)); got[0].Risk != holdfast.High {
		t.Fatalf("after another restart it is %v", got[0].Risk)
	}
}

// One server cannot take the room of another.
func TestObservedBoundariesAreBoundedPerServer(t *testing.T) {
	w := newWorld(t, "")
	var many []holdfast.Contract
	for i := range 1001 {
		c := tool(fmt.Sprint(i), "p", holdfast.Low)
		c.Boundary = fmt.Sprintf("mcp/evil/%d", i)
		many = append(many, c)
	}
	_, err := w.tools.Observe(t.Context(), many)
	wants(t, err, holdfast.KindConflict)
	w.observe(tool("good", "p", holdfast.Low))
	if _, err := w.cross(w.req("mcp/srv/good", `{}`)); err != nil {
		t.Fatal(err)
	}
}

// Another spelling of a boundary that is listed by itself does not pass under a
// pattern.
func TestOtherSpellingsOfABoundary(t *testing.T) {
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Policy.Contracts = append(c.Policy.Contracts, holdfast.Contract{Boundary: "test/many/danger", Risk: holdfast.Prohibited, Source: "test"})
	})
	for _, b := range []string{"test/many//danger", "test/many/./danger", "test/many/x/../danger", "test/many/danger/", "test/many/d\u0430nger",
		"test/many/*", "test/many/Danger", "test/many/danger\x00", "test/many/", "test/many/a b"} {
		_, err := w.cross(w.req(b, `{}`))
		wants(t, err, holdfast.KindSchemaNotFound)
	}
	if _, err := w.cross(w.req("test/many/safe", `{}`)); err != nil {
		t.Fatal(err)
	}
}

// An approval of a tool is worthless once the tool is another one, and one that
// somebody wrote into the store was never given.
func TestApprovalIsBoundToTheToolAndSigned(t *testing.T) {
	w := newWorld(t, "")
	w.observe(tool("pay", "aaaa", holdfast.High))
	out, _ := w.cross(w.req("mcp/srv/pay", `{}`))
	w.approve(out.Review)
	w.observe(tool("pay", "bbbb", holdfast.High))
	again, _ := w.cross(w.req("mcp/srv/pay", `{}`))
	if again.Verdict != holdfast.Hold || again.Review == out.Review {
		t.Fatalf("the approval of another tool was used: %+v", again)
	}
	forged, _ := w.cross(w.req("test/high", `{"forged":1}`))
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		r, err := tx.Review(forged.Review)
		if err != nil {
			return err
		}
		r.State, r.Reviewer, r.Decided, r.Expires = review.Approved, "bob", w.now(), w.now().Add(review.Lifetime)
		return tx.PutReview(r, review.Pending)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.k.Cross(t.Context(), w.req("test/high", `{"forged":1}`), func(context.Context) (holdfast.Output, error) {
		t.Error("a forged approval acted")
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindApprovalChannel)
}
