package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Whoever fetches the same again, or connects to the same server, does what every
// program does that gets packages or waits for an answer: that is no loop, and no
// haste. To send the same again and again is.
func TestWatch_ReadsAndTunnelsAreNoPattern(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE}, 'localhost:PORT': {addresses: [127.0.0.1], inspect: opaque}")
	c := w.agent()
	for range 12 {
		w.get(c, "/", http.StatusOK)
		if resp, err := c.Get("https://localhost:" + w.port + "/"); err == nil { // its certificate is for another name
			resp.Body.Close()
		}
	}
	w.d.watching.Settle(t.Context())
	all, _ := answersIn(t, w.d)
	for _, g := range all {
		if g.Condition == watch.Loop || g.Condition == watch.Rapid || g.Condition == watch.Escalating || g.Condition == watch.Repetition {
			t.Errorf("%+v", g)
		}
	}
	w.entries(24)
	send := func() (int, string) {
		resp, err := c.Post("https://example.com:"+w.port+"/orders", "application/json", strings.NewReader(`{"n":1}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for range 5 {
		send()
	}
	if g := answerTo(t, w.d, "nightly", watch.Loop); g.Response != "pause" || stateOf(t, w.d, "nightly").State != holdfast.AgentPaused {
		t.Errorf("%+v", g)
	}
	if status, text := send(); status != http.StatusForbidden || !strings.Contains(text, "paused") {
		t.Errorf("%d %s", status, text)
	}
}

// What was fetched within the hour is no loop after a restart either.
func TestWatch_ReadsAreNoPatternAfterARestart(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE}")
	c := w.agent()
	for range 12 {
		w.get(c, "/", http.StatusOK)
	}
	w.entries(12)
	w.down()
	d, _, down := serve(t, w.d.opt)
	defer down()
	d.watching.Settle(t.Context())
	if all, _ := answersIn(t, d); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
