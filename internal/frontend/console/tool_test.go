package console

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

const payTool = "mcp/srv/pay"

// shows is the tool as its server shows it: with a pin of one digit, a
// description and an input schema.
func (w *world) shows(digit, description, schema string) {
	w.t.Helper()
	about, err := json.Marshal(map[string]any{"description": description})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.tools.Observe(w.t.Context(), []holdfast.Contract{{Boundary: payTool, Risk: holdfast.Low,
		Source: "mcp:srv", Pin: strings.Repeat(digit, 64), About: about, Schema: json.RawMessage(schema)}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refused(err error) {
	w.t.Helper()
	if holdfast.KindOf(err) != holdfast.KindHeld {
		w.t.Errorf("not held: %v", err)
	}
}

// said is how many events of that name are in the ledger, and the newest.
func (w *world) said(name string) (n int, last *ledger.Event) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<30, func(l ledger.Stored) error {
			if e, err := ledger.ParseEvent(l.Record); l.Kind == ledger.KindEvent && err == nil && e.Name == name {
				n, last = n+1, e
			}
			return nil
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n, last
}

// D37: a tool that says something else is found on the queue, shown beside what
// it said, and accepted by the person's signed word; all of it without script.
func TestD37_AcceptWithoutScript(t *testing.T) {
	w := newWorld(t)
	w.shows("a", "pay a bill", `{"type":"object"}`)
	if _, err := w.cross(payTool, `{}`); err != nil {
		t.Fatal(err)
	}
	b := w.signedIn()
	if strings.Contains(b.body, "Tool changed") {
		t.Error("a tool that is what it was is told as changed")
	}
	b.get("/tool?boundary="+payTool).wants(404, "no changed tool is known")
	w.shows("b", "pay a bill, and <b>mine</b>\u202e", `{"type":"object"}`)
	o, err := w.cross(payTool, `{}`)
	w.refused(err)
	b.get("/review/"+o.Review).wants(200, "says of itself something else than at first", `href="/tool?boundary=mcp/srv/pay"`)
	b.get("/").wants(200, "Tool changed:", `href="/tool?boundary=mcp/srv/pay"`)
	b.get("/tool?boundary="+payTool).wants(200, "Its description", `>pay a bill</pre>`,
		`pay a bill<mark>, and &lt;b&gt;mine&lt;/b&gt;<span class="odd">U+202E</span></mark></pre>`, strings.Repeat("a", 64), "holdfast review accept mcp/srv/pay")
	if strings.Contains(b.body, "input schema") || strings.Contains(b.body, "/tool/accept") {
		t.Error("it shows what did not change, or a form that cannot be sent:", b.body)
	}
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Accept what it was changed to", "Accept what it said at first")
	if !strings.HasPrefix(b.at, "/k/") || !strings.HasSuffix(b.at, "/tool?boundary=mcp%2Fsrv%2Fpay") {
		t.Error("after the passphrase it is at", b.at)
	}
	b.submit("/tool/accept", map[string]string{"reason": "the maker says so"}).wants(200, "is accepted for what it was changed to")
	if strings.Contains(b.body, "Tool changed") {
		t.Error("the queue still tells of it")
	}
	if _, err := w.cross(payTool, `{"n":2}`); err != nil {
		t.Error("it is accepted and held:", err)
	}
	_, pub := sealed()
	if n, e := w.said("policy_tool_accepted"); n != 1 || e.Who != pub.ID() || e.Subject != payTool || !strings.Contains(string(e.Data), "the maker says so") {
		t.Errorf("%d events, %+v", n, e)
	}
}

// What is accepted is what the page showed, and by whom it may be.
func TestD37_AcceptIsBoundToWhatWasShown(t *testing.T) {
	w := newWorld(t)
	w.shows("a", "one", `{}`)
	w.shows("b", "two", `{}`)
	b := w.signedIn()
	b.get("/tool?boundary="+payTool).submit("/unlock", map[string]string{"passphrase": passphrase})
	action, shown, _ := b.form("/tool/accept")
	for name, change := range map[string]url.Values{"another pin": {"pin": {strings.Repeat("c", 64)}}, "another first": {"first": {strings.Repeat("c", 64)}},
		"another tool": {"boundary": {"mcp/srv/get"}}, "no pin": {"pin": {""}}, "no tool": {"boundary": {""}}} {
		bad := url.Values{}
		for k := range shown {
			bad.Set(k, shown.Get(k))
		}
		for k := range change {
			bad.Set(k, change.Get(k))
		}
		if b.post(action, bad); !strings.Contains(b.body, "not accepted") {
			t.Errorf("%s: %s", name, b.body)
		}
	}
	b.post("/tool/accept", shown).wants(200, "the passphrase is needed again")
	// It changes again between the look and the answer.
	w.shows("c", "three", `{}`)
	b.post(action, shown).wants(200, "not accepted", "not what the statement says it is now")
	if n, _ := w.said("policy_tool_accepted"); n != 0 {
		t.Error("something was accepted")
	}
	// It shows its first text again: that can be accepted, and acts.
	w.shows("a", "one", `{}`)
	b.get(strings.TrimSuffix(action, "/accept")+"?boundary="+payTool).wants(200, "says again what it said at first")
	_, first, _ := b.form("/tool/accept")
	first.Set("pin", first.Get("first"))
	b.post(action, first).wants(200, "is accepted for what it said at first")
	if _, err := w.cross(payTool, `{}`); err != nil {
		t.Error(err)
	}
}

// Each kind of change is told for what it is.
func TestToolView(t *testing.T) {
	say := func(text string) review.Said { return review.Said{Hash: "h" + text, Text: text} }
	made := func(shows string, first, now map[string]review.Said) toolView {
		c := review.Change{First: review.Sighting{Pin: "1", Says: first}, Now: review.Sighting{Pin: "2", Says: now}, Shows: shows}
		c.What = c.Differs()
		return toolViewOf(c)
	}
	v := made("2", map[string]review.Said{"description": say(`"pay now"`)}, map[string]review.Said{"description": say(`"pay me now"`)})
	if p := v.Parts[0]; v.Back || v.Elsewhere || v.Lost || p.First != (side{Before: "pay ", After: "now"}) || p.Now != (side{Before: "pay ", Other: "me ", After: "now"}) {
		t.Errorf("%+v", v)
	}
	v = made("1", map[string]review.Said{"input schema": say(`{"a":1}`)}, map[string]review.Said{"input schema": {Hash: "long"}, "hints": say(`{}`)})
	if !v.Back || len(v.Parts) != 2 || !v.Parts[0].First.Absent || v.Parts[0].Now.Other != "{}" || v.Parts[1].First.Other != "{\n  \"a\": 1\n}" || v.Parts[1].Now.Hash != "long" {
		t.Errorf("%+v", v)
	}
	v = made("3", map[string]review.Said{"description": {Hash: "x", Text: `"[secret redacted]"`}}, map[string]review.Said{"description": {Hash: "y", Text: `"[secret redacted]"`}})
	if !v.Elsewhere || !v.Parts[0].Alike {
		t.Errorf("%+v", v)
	}
	v = made("", nil, map[string]review.Said{"description": say(`not json`)})
	if !v.Lost || v.Elsewhere || len(v.Parts) != 1 || v.Parts[0].Now.Other != "not json" {
		t.Errorf("%+v", v)
	}
}

// D11: a paused agent goes on by a person's signed word, for what the page
// showed; all of it without script.
func TestD11_UnpauseWithoutScript(t *testing.T) {
	w := newWorld(t)
	if _, err := w.cross("test/low", `{}`); err != nil {
		t.Fatal(err)
	}
	pause := func(why string) {
		t.Helper()
		if _, err := w.k.Pause(holdfast.Local, "alice", "bob", why); err != nil {
			t.Fatal(err)
		}
	}
	pause("it <i>loops</i>")
	b := w.signedIn()
	b.get("/agents").wants(200, "alice", "it &lt;i&gt;loops&lt;/i&gt;")
	if _, _, there := b.form("/agent/unpause"); there {
		t.Error("a page that cannot decide has the form")
	}
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Let alice go on")
	action, shown, _ := b.form("/agent/unpause")
	b.post("/agent/unpause", shown).wants(200, "the passphrase is needed again")
	pause("it deletes")
	b.post(action, shown).wants(200, "not unpaused: it was paused anew since you looked", "it deletes")
	other := url.Values{"csrf": shown["csrf"], "tenant": {"local"}, "agent": {"nobody"}}
	b.post(action, other).wants(200, "not unpaused: there is no such agent")
	if _, err := w.cross("test/low", `{"n":2}`); holdfast.KindOf(err) != holdfast.KindPaused {
		t.Fatal("it goes on:", err)
	}
	b.submit("/agent/unpause", map[string]string{"reason": "mended"}).wants(200, "alice goes on", "No agent is paused")
	if _, err := w.cross("test/low", `{"n":3}`); err != nil {
		t.Error(err)
	}
	_, pub := sealed()
	if n, e := w.said("agent_unpaused"); n != 1 || e.Who != pub.ID() || e.Subject != "alice" || !strings.Contains(string(e.Data), "mended") {
		t.Errorf("%d events, %+v", n, e)
	}
	b.post(action, shown).wants(200, "not unpaused: it is not paused")
}
