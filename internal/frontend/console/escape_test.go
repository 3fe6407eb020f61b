package console

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// D21: an attempt to leave a sandbox stands on the queue and in its crossing's
// story in plain words; a person rejects it, and the agent stays stopped;
// of the next attempt one approves it, and the agent goes on.
func TestD21_AnAttemptOnThePages(t *testing.T) {
	w := newWorld(t)
	stirred, stop := w.k.Watch()
	defer stop()
	breaksOut := func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{}, &posture.Escape{Run: "run-1", Call: posture.Call{Nr: 308, Name: "setns", Arch: "x86_64"}}
	}
	o, err := w.k.Cross(t.Context(), w.request("test/low", `{}`), breaksOut)
	if holdfast.KindOf(err) != holdfast.KindEscape {
		t.Fatal(err)
	}
	select {
	case <-stirred: // and with it every open page
	case <-time.After(time.Minute):
		t.Error("no page was told to look again")
	}
	rs, err := w.k.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(rs) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	id := rs[0].ID
	const tried = "the code tried to leave its sandbox with setns (call 308, x86_64)"
	w.advance(100 * time.Hour) // it waits until it is answered
	b := w.signedIn()
	b.get("/").wants(200, "1 waits for an answer", tried, "waits until it is answered")
	b.get("/crossing/"+o.Crossing).wants(200, "sandbox escape attempted", "code of alice at test/low tried to leave its sandbox with setns (call 308, x86_64) (request run-1). It was killed, and its crossing failed; alice is paused",
		"/review/"+id, "What was tried")
	b.get("/review/"+id).wants(200, "Escape attempt:", tried, "alice</strong> is paused and trusted less", "nobody has seen it yet", "What was tried")
	for _, wrong := range []string{"Let exactly this happen", "Ask for changes", "executed", "key of the payload"} {
		if strings.Contains(b.body, wrong) {
			t.Errorf("the page says %q", wrong)
		}
	}
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "I have seen it, and alice may go on", "It stays stopped")
	b.submit("/reject", map[string]string{"reason": "it meant it"}).wants(200, "recorded: alice stays stopped")
	if strings.Contains(b.body, "Not be asked about this again") {
		t.Error("a rule can be made of it")
	}
	b.get("/agents").wants(200, "alice", "who rejected review "+id)
	if _, err := w.cross("test/low", `{}`); holdfast.KindOf(err) != holdfast.KindPaused {
		t.Error("it goes on:", err)
	}
	decides := func(page string) {
		t.Helper()
		b.get(page)
		b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200)
	}
	decides("/agents")
	b.submit("/agent/unpause", nil).wants(200, "alice goes on", "No agent is paused")
	if _, err := w.k.Cross(t.Context(), w.request("test/low", `{"again":1}`), breaksOut); holdfast.KindOf(err) != holdfast.KindEscape {
		t.Fatal(err)
	}
	if rs, err = w.k.Reviews(t.Context(), holdfast.Local, review.Pending); err != nil || len(rs) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	decides("/review/" + rs[0].ID)
	b.submit("/approve", nil).wants(200, "recorded: alice goes on", "the agent may go on")
	if _, err := w.cross("test/low", `{"after":1}`); err != nil {
		t.Error("it does not go on:", err)
	}
	if _, err := w.k.Cross(t.Context(), w.request("test/low", `{"again":2}`), breaksOut); holdfast.KindOf(err) != holdfast.KindEscape {
		t.Fatal(err)
	}
	if rs, err = w.k.Reviews(t.Context(), holdfast.Local, review.Pending); err != nil || len(rs) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	decides("/agents")
	b.submit("/agent/unpause", nil).wants(200, "alice goes on, which answers "+rs[0].ID+": approved")
}
