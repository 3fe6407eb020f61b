package kernel_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A tool shows itself changed, and then as it was, before it is called: whoever
// was shown the change acts on it, and a person has accepted nothing.
func TestAttack_changed_tool_shows_its_first_face_again(t *testing.T) {
	w := newWorld(t, "")
	w.observe(tool("read", "aaaa", holdfast.Medium))
	w.observe(tool("read", "bbbb", holdfast.Medium))
	w.observe(tool("read", "aaaa", holdfast.Medium))
	w.noAct(w.req("mcp/srv/read", `{}`), "a tool that changed, and that nobody accepted")
}

// A server that shows new names each time fills the store: what it may bring is
// bounded before it is written down.
func TestAttack_fresh_names_are_not_kept(t *testing.T) {
	w := newWorld(t, "")
	kept := 0
	for round := range 3 {
		var cs []holdfast.Contract
		for i := range 600 {
			cs = append(cs, tool(fmt.Sprintf("r%d-%d", round, i), "p", holdfast.Medium))
		}
		_, _ = w.tools.Observe(t.Context(), cs)
		for _, c := range cs {
			if _, err := w.readRow("tool_pin", c.Boundary); err == nil {
				kept++
			}
		}
	}
	if kept > 1000 {
		t.Fatalf("%d first sights of one server are kept, though it may bring 1000", kept)
	}
}

// A server whose tools change all the time writes an event each time.
func TestAttack_endless_changes_are_bounded(t *testing.T) {
	w := newWorld(t, "")
	for i := range 1000 {
		w.observe(tool("read", fmt.Sprintf("pin%d", i), holdfast.Medium))
	}
	if n := len(w.events(holdfast.Local, "tool_changed")); n != 1 {
		t.Fatalf("%d events of one tool that nobody accepted", n)
	}
}

// A server lists tools with schemas as large as they may be: what is kept of
// one server is bounded in bytes too.
func TestAttack_large_schemas_are_not_kept(t *testing.T) {
	w := newWorld(t, "")
	before := heap()
	for page := range 4 {
		var cs []holdfast.Contract
		for i := range 20 {
			c := tool(fmt.Sprintf("p%d-%d", page, i), "p", holdfast.Medium)
			c.Schema = fmt.Appendf(nil, `{"type":"object","description":"%d-%d%s"}`, page, i, strings.Repeat("z", 250<<10))
			c.OutputSchema = fmt.Appendf(nil, `{"type":"object","description":"%d-%d%s"}`, page, i, strings.Repeat("y", 250<<10))
			cs = append(cs, c)
		}
		_, _ = w.tools.Observe(t.Context(), cs)
	}
	if kept := (heap() - before) >> 20; kept > 12 {
		t.Errorf("%d MB are kept of 80 tools of one server, which may bring 1000", kept)
	}
	runtime.KeepAlive(w)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A name that a server lists twice, differently, has changed: the second text
// is in force nowhere, and the first is held.
func TestAttack_one_name_twice_in_a_listing(t *testing.T) {
	w := newWorld(t, "")
	good, evil := tool("read", "aaaa", holdfast.Medium), tool("read", "bbbb", holdfast.Low)
	got := w.observe(good, evil)
	if got[0].Risk != holdfast.High || got[1].Pin != "aaaa" {
		t.Fatalf("%+v", got)
	}
	w.noAct(w.req("mcp/srv/read", `{}`), "a tool listed twice")
}

// A first sight that was kept by the formula before is one still; the tool is
// held where that formula sees a change, and where the new one does.
func TestD37_pinsOfTheFormulaBefore(t *testing.T) {
	w := newWorld(t, "")
	now := func(pin, before string) holdfast.Contract {
		c := tool("read", pin, holdfast.Medium)
		c.PinBefore = before
		return c
	}
	w.observe(tool("read", "old", holdfast.Medium))
	for range 2 {
		if got := w.observe(now("new", "old")); got[0].Risk != holdfast.Medium {
			t.Fatalf("after the formula changed it is %v", got[0].Risk)
		}
	}
	if len(w.events(holdfast.Local, "tool_changed")) != 0 {
		t.Fatal("it is taken for a change")
	}
	if got := w.observe(now("title", "old")); got[0].Risk != holdfast.High {
		t.Fatalf("what only the new formula sees is %v", got[0].Risk)
	}
	v := newWorld(t, "")
	v.observe(tool("read", "old", holdfast.Medium))
	if got := v.observe(now("new", "other")); got[0].Risk != holdfast.High {
		t.Fatalf("what the old formula sees is %v", got[0].Risk)
	}
}

// A server that comes with other names after each start is refused by name once
// it has had its share of first sights.
func TestAttack_fresh_names_over_many_starts(t *testing.T) {
	w := newWorld(t, "")
	for round := range 3 {
		var cs []holdfast.Contract
		for i := range 900 {
			cs = append(cs, tool(fmt.Sprintf("r%d-%d", round, i), "p", holdfast.Medium))
		}
		_, err := w.tools.Observe(t.Context(), cs)
		if round < 2 && err != nil {
			t.Fatal(err)
		}
		if round == 2 {
			refusedAs(t, err, holdfast.KindConflict, "tool/too_much")
			w.observe(tool("r0-1", "p", holdfast.Medium)) // what it had is known
		}
		w.store.Close()
		w = reopen(t, w.dir, "")
	}
}
