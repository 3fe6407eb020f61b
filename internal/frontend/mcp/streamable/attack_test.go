package streamable

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

const attackHello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

// Two identities take all that there is, and leave it idle: the next one gets
// the place that has been idle longest.
func TestAttackHTTP_two_identities_take_every_place(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.MaxSessions = 4 })
	for _, who := range []string{"ann-1", "ann-1", "ann-2", "ann-2"} {
		if status, line := allOf(t, g.do(t, "POST", attackHello, heads{"X-Who", who})); status != http.StatusOK {
			t.Fatalf("%d %s", status, line)
		}
	}
	if status, line := allOf(t, g.do(t, "POST", attackHello, heads{"X-Who", "bob"})); status != http.StatusOK {
		t.Errorf("idle sessions of others shut bob out: %d %s", status, line)
	}
}

// One caller has many tokens, each of another session, and keeps a stream open
// in each: together they have half of the places, and none of the last eighth
// goes to who has one.
func TestAttackHTTP_one_group_takes_every_place(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) {
		h.MaxSessions = 16
		h.Group = func(who string) string { return strings.SplitN(who, "-", 2)[0] }
	})
	try := func(who string, stateless bool) int {
		if stateless {
			status, _ := allOf(t, g.do(t, "POST", newCall("1", "t"), anew("tools/call", "t"), heads{"X-Who", who}))
			return status
		}
		r := g.do(t, "POST", attackHello, heads{"X-Who", who})
		if r.StatusCode == http.StatusOK {
			g.do(t, "GET", "", heads{mcp.HeaderSession, r.Header.Get(mcp.HeaderSession), mcp.HeaderVersion,
				"2025-11-25", "X-Who", who})
		}
		return r.StatusCode
	}
	for _, name := range []string{"ann", "bob"} {
		got := 0
		for i := range 20 {
			if try(fmt.Sprintf("%s-%d", name, i), false) == http.StatusOK {
				got++
			}
		}
		if want := map[string]int{"ann": 8, "bob": 6}[name]; got != want {
			t.Errorf("%s has %d places of 16, want %d", name, got, want)
		}
	}
	for _, who := range []string{"carol-1", "dave-1"} {
		if status := try(who, true); status != http.StatusOK {
			t.Errorf("%s is shut out: %d", who, status)
		}
	}
}

// One caller asks in many sessions at once for what no server answers, each time
// until its room is full: what is kept for it is bounded over all its sessions, one
// more is refused by name, others are served, and nothing stays counted. All but the
// last of the room is taken beforehand; in full the requests alone fill it.
func TestAttackHTTP_one_group_fills_the_memory(t *testing.T) {
	for name, routed := range map[string]bool{"a core": false, "a router": true} {
		t.Run(name, func(t *testing.T) {
			w := &holder{k: &gatewaytest.Open{}, begun: make(chan struct{}, 64)}
			run := w.run
			if routed {
				run = w.route
			}
			g := startHTTP(t, run, func(h *Handler) {
				h.Group = func(who string) string { return strings.SplitN(who, "-", 2)[0] }
			})
			size, copies := 64<<10, 1
			if testrepeat.Enduring {
				size = 9 << 20
			}
			if routed {
				copies = 2
			}
			fits, taken := maxGroupAsked/copies/size, 0
			if !testrepeat.Enduring {
				fits = 3
				taken = maxGroupAsked - (fits*size+size/2)*copies
			}
			big := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{"x":"` + strings.Repeat("x", size-200) + `"}}}`
			said := make(chan string, 64)
			ctx, cancel := context.WithCancel(t.Context())
			var work sync.WaitGroup
			ask := func(id int, who, session string) {
				work.Go(func() {
					r, _ := http.NewRequestWithContext(ctx, "POST", g.url, strings.NewReader(fmt.Sprintf(big, id)))
					r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"},
						mcp.HeaderSession: {session}, "X-Who": {who}}
					resp, err := http.DefaultTransport.RoundTrip(r)
					if err != nil {
						return
					}
					defer resp.Body.Close()
					if b, err := io.ReadAll(resp.Body); err == nil {
						said <- string(b)
					}
				})
			}
			sit := func(who string) string {
				session := g.session(t, "2025-11-25", heads{"X-Who", who})[1]
				allOf(t, g.do(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
					heads{mcp.HeaderSession, session, "X-Who", who}))
				return session
			}
			begun, refused := 0, 0
			next := func() {
				t.Helper()
				select {
				case <-w.begun:
					begun++
				case l := <-said:
					if !strings.Contains(l, "busy: ") {
						t.Fatalf("%.300s", l)
					}
					refused++
				case <-time.After(time.Minute):
					t.Fatal("nothing came")
				}
			}
			var sessions [4]string
			for i := range sessions {
				sessions[i] = sit(fmt.Sprintf("ann-%d", i%2))
			}
			g.h.mu.Lock()
			var ann *load
			for group := range g.h.loads { // ann's is the only one
				ann = g.h.loads[group]
			}
			g.h.mu.Unlock()
			if ann == nil || ann.AddRequest(taken) != nil {
				t.Fatal("cannot take ann's room beforehand")
			}
			const more = 4 // than fit, one from each session
			for i := range fits + more {
				ask(i+10, fmt.Sprintf("ann-%d", i%2), sessions[i%4])
				next()
			}
			if begun != fits || refused != more {
				t.Errorf("%d calls of %d bytes are in flight and %d refused, want %d", begun, size, refused, fits)
			}
			ask(1, "bob-1", sit("bob-1"))
			if next(); begun != fits+1 {
				t.Error("what ann asks shuts bob out")
			}
			cancel()
			work.Wait()
			ann.RemoveRequest(taken)
			if err := g.h.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if n := g.h.all.asked.n; n != 0 || len(g.h.loads) != 0 || g.h.all.held != 0 {
				t.Errorf("%d bytes asked, %d held and %d groups are left", n, g.h.all.held, len(g.h.loads))
			}
		})
	}
}

// holder runs, for each core, a server whose one tool waits until its call is
// taken back. It reads no more of a message than what it is: the official server
// reads megabytes several times, which with the race detector is most of a test.
type holder struct {
	k     *gatewaytest.Open
	begun chan struct{}
}

func (h *holder) dial() gateway.Conn {
	c, p := gatewaytest.Pair()
	go func() {
		for line := range p.Lines {
			if l := h.answer(line[:min(len(line), 200)]); l != "" {
				fmt.Fprintln(p.Input, l)
			}
		}
	}()
	return c
}

var (
	lineID     = regexp.MustCompile(`"id":([^,}]+)`)
	lineMethod = regexp.MustCompile(`"method":"([^"]+)"`)
	takenBack  = regexp.MustCompile(`"requestId":([^,}]+)`)
)

// answer is what is said to a message that begins so, if anything.
func (h *holder) answer(begin string) string {
	part := func(r *regexp.Regexp) string {
		if m := r.FindStringSubmatch(begin); m != nil {
			return m[1]
		}
		return ""
	}
	result := func(r string) string { return `{"jsonrpc":"2.0","id":` + part(lineID) + `,"result":` + r + `}` }
	switch part(lineMethod) {
	case "initialize":
		return result(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"waits","version":"1"}}`)
	case "tools/list":
		return result(`{"tools":[{"name":"wait","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	case "tools/call":
		h.begun <- struct{}{}
	case "notifications/cancelled":
		return `{"jsonrpc":"2.0","id":` + part(takenBack) + `,"error":{"code":0,"message":"it was taken back"}}`
	}
	return ""
}

func (h *holder) config() gateway.Config {
	return gateway.Config{Kernel: h.k, Server: "waits", Token: gatewaytest.Token, Log: slog.New(slog.DiscardHandler)}
}

func (h *holder) run(ctx context.Context, c gateway.Client) error {
	return gateway.Serve(ctx, c, h.dial(), h.config())
}

// route is run with a router before the core.
func (h *holder) route(ctx context.Context, c gateway.Client) error {
	return router.Serve(ctx, c, []router.Upstream{{Conn: func(context.Context) (gateway.Conn,
		error) {
		return h.dial(), nil
	}, Config: h.config()}})
}

// Answers that nobody has taken yet stop the reading of more, for their group
// and, where there is room for none at all, for everybody.
func TestAttackHTTP_held_answers_are_counted_together(t *testing.T) {
	all := newLoads(nil)
	ann, bob := all.group(), all.group()
	ann.AddAnswer(maxGroupHeld + 1)
	if ann.Full() == nil || bob.Full() != nil {
		t.Error("what is held for ann does not stop her servers, or stops bob's")
	}
	bob.AddAnswer(maxFrontHeld)
	wait := ann.Full()
	ann.AddAnswer(-maxGroupHeld - 1)
	select {
	case <-wait:
	default:
		t.Error("nobody is told that there is room again")
	}
	if ann.Full() != nil {
		t.Error("ann waits on what is held for bob, though there is room")
	}
	ann.AddAnswer(1)
	if ann.Full() == nil {
		t.Error("all hold more than there may be")
	}
	bob.AddAnswer(-maxFrontHeld)
	if ann.Full() != nil || bob.Full() != nil || all.held != 1 {
		t.Errorf("%d bytes are held", all.held)
	}
}
