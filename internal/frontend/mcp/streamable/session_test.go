package streamable

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

const oldCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}`

// TestHTTPSessions: a session is whoever's began it, under a name that nobody
// can guess or choose, until it is ended.
func TestHTTPSessions(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	ann, bob := heads{"X-Who", "ann"}, heads{"X-Who", "bob"}
	a := g.session(t, "2025-11-25", ann)
	b := g.session(t, "2025-11-25", ann)
	if a[1] == b[1] || len(a[1]) < 22 {
		t.Fatalf("session ids %s and %s", a[1], b[1])
	}
	for _, c := range []struct {
		name, method, body string
		h                  []heads
		status             int
	}{
		{"own", "POST", list, []heads{a, ann}, 200},
		{"of another", "POST", list, []heads{a, bob}, 404},
		{"another listens", "GET", "", []heads{a, bob}, 404},
		{"another ends it", "DELETE", "", []heads{a, bob}, 404},
		{"unknown", "POST", list, []heads{{mcp.HeaderSession, "x"}, ann}, 404},
		{"a name of the client's choice", "POST", strings.Replace(list, "tools/list", "initialize", 1),
			[]heads{{mcp.HeaderSession, "mine"}, ann}, 404},
		{"two names", "POST", list, []heads{a, b, ann}, 400},
		{"none", "POST", list, []heads{ann}, 400},
		{"none to listen to", "GET", "", []heads{ann}, 400},
		{"none to end", "DELETE", "", []heads{ann}, 400},
		{"initialized already", "POST", strings.Replace(list, "tools/list", "initialize", 1), []heads{a, ann}, 400},
		{"notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []heads{a, ann}, 202},
		{"answer", "POST", `{"jsonrpc":"2.0","id":"q","result":{}}`, []heads{a, ann}, 202},
		{"older version", "POST", list, []heads{a, ann, {mcp.HeaderVersion, "2025-03-26"}}, 200},
		{"unknown version", "POST", list, []heads{a, ann, {mcp.HeaderVersion, "2025-01-01"}}, 400},
		{"unknown version to listen in", "GET", "", []heads{a, ann, {mcp.HeaderVersion, "2025-01-01"}}, 400},
		{"resumed", "GET", "", []heads{a, ann, {"Last-Event-ID", "1"}}, 400},
		{"takes no stream", "GET", "", []heads{a, ann, {"-Accept", "", "Accept", "application/json"}}, 406},
		{"ended", "DELETE", "", []heads{b, ann}, 204},
		{"after the end", "POST", list, []heads{b, ann}, 404},
		{"ended twice", "DELETE", "", []heads{b, ann}, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, line := allOf(t, g.do(t, c.method, c.body, c.h...)); status != c.status {
				t.Errorf("%d %s, want %d", status, line, c.status)
			}
		})
	}
	gatewaytest.Eventually(t, "the ended session's core goes on", func() bool { return s.live.Load() == 1 })

	// What is no session has no name either.
	r := g.do(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"name":"fail"}}`, ann)
	if status, line := allOf(t, r); status != 200 || !strings.Contains(line, `"error"`) ||
		r.Header.Get(mcp.HeaderSession) != "" {
		t.Errorf("%d %s %q", status, line, r.Header.Get(mcp.HeaderSession))
	}
	gatewaytest.Eventually(t, "a core without a session goes on", func() bool { return s.live.Load() == 1 })

	// A core that ends takes its session with it.
	if status, _ := allOf(t, g.do(t, "POST", fmt.Sprintf(oldCall, "die"), a, ann)); status != 200 {
		t.Errorf("%d", status)
	}
	if status, _ := allOf(t, g.do(t, "POST", list, a, ann)); status != 404 {
		t.Errorf("a session without a core: %d", status)
	}
	if n := len(g.h.seats()); n != 0 {
		t.Errorf("%d seats are left", n)
	}
}

// TestHTTPCoreThatDoesNotStart: the reason reaches the client.
func TestHTTPCoreThatDoesNotStart(t *testing.T) {
	s := newScript()
	g := startHTTP(t, func(context.Context, gateway.Client) error {
		return fmt.Errorf("cannot: %w",
			gateway.ErrServerEnded)
	})
	for _, r := range []*http.Response{
		g.do(t, "POST", newCall("7", "t"), anew("tools/call", "t")),
		g.do(t, "POST", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`),
	} {
		if status, line := allOf(t, r); status != 502 || !strings.Contains(line,
			gateway.ErrServerEnded.Error()) || !strings.Contains(line, `"id":7`) {
			t.Errorf("%d %s", status, line)
		}
	}
	g = startHTTP(t, s.run)
	if _, line := allOf(t, g.do(t, "POST", newCall("7", "die"), anew("tools/call", "die"))); !strings.Contains(line, "session has ended") {
		t.Errorf("a core that died: %s", line)
	}
	if status, _ := allOf(t, g.do(t, "POST", newCall("8", "t"), anew("tools/call", "t"))); status != 200 {
		t.Errorf("the next one: %d", status)
	}
}

// TestHTTPBatches: an array of messages is taken where 2025-03-26 is spoken,
// and nowhere else.
func TestHTTPBatches(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	old, recent := g.session(t, "2025-03-26"), g.session(t, "2025-06-18")
	both := `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"b"}]`
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/x"},`, maxBatch+1), ",") + "]"
	for _, c := range []struct {
		name, body string
		h          []heads
		status     int
		want       string
	}{
		{"two and a notification", both, []heads{old}, 200, `"echo":"b"`},
		{"notifications", `[{"jsonrpc":"2.0","method":"notifications/x"}]`, []heads{old}, 202, ""},
		{"later header", both, []heads{old, {mcp.HeaderVersion, "2025-06-18"}}, 400, "batches left MCP"},
		{"later session", both, []heads{recent}, 400, "batches left MCP"},
		{"stateless", both, []heads{anew("a", "")}, 400, "batches left MCP"},
		{"one id twice", strings.Replace(both, `"id":2`, `"id":1`, 1), []heads{old}, 400, "already in flight"},
		{"none", "[]", []heads{old}, 400, "1 to 64"},
		{"too many", many, []heads{old}, 400, "1 to 64"},
		{"initialize", `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, []heads{old}, 400, "initialize stands in a batch"},
		{"one is none", `[{"jsonrpc":"2.0","id":1,"method":"a"},7]`, []heads{old}, 400, "not a JSON object"},
		{"batch in a batch", `[[{"jsonrpc":"2.0","id":1,"method":"a"}]]`, []heads{old}, 400, "a batch is not accepted"},
		{"truncated", both[:40], []heads{old}, 400, "error"},
		{"no session", both, nil, 400, "Mcp-Session-Id is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, line := allOf(t, g.do(t, "POST", c.body, c.h...)); status != c.status || !strings.Contains(line, c.want) {
				t.Errorf("%d %s, want %d %s", status, line, c.status, c.want)
			}
		})
	}
	if _, line := allOf(t, g.do(t, "POST", both, old)); strings.Count(line, `"jsonrpc"`) != 2 {
		t.Errorf("answers: %s", line)
	}
}

// TestHTTPStreams: what a server asks while it works comes on the stream of
// that request, and what belongs to none on the GET stream, at once or when it
// opens.
func TestHTTPStreams(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	session := g.session(t, "2025-11-25")
	r := g.do(t, "POST", fmt.Sprintf(oldCall, "ask"), session)
	lines := bufio.NewReader(r.Body)
	if l := nextEvent(t, lines); !strings.Contains(l, `"method":"roots/list"`) {
		t.Fatal(l)
	}
	if status, _ := allOf(t, g.do(t, "POST", `{"jsonrpc":"2.0","id":"q1","result":{"roots":[]}}`, session)); status != 202 {
		t.Errorf("answer: %d", status)
	}
	if l := nextEvent(t, lines); l != `{"jsonrpc":"2.0","id":1,"result":{"heard":{"roots":[]}}}` {
		t.Error(l)
	}

	allOf(t, g.do(t, "POST", fmt.Sprintf(oldCall, "spare"), session))
	first := bufio.NewReader(g.do(t, "GET", "", session).Body)
	if l := nextEvent(t, first); !strings.Contains(l, "list_changed") {
		t.Error(l)
	}
	allOf(t, g.do(t, "POST", fmt.Sprintf(oldCall, "spare"), session))
	if l := nextEvent(t, first); !strings.Contains(l, "list_changed") {
		t.Error(l)
	}
	second := bufio.NewReader(g.do(t, "GET", "", session).Body)
	if _, err := io.ReadAll(first); err != nil {
		t.Errorf("the stream that was replaced: %v", err)
	}
	allOf(t, g.do(t, "POST", fmt.Sprintf(oldCall, "spare"), session))
	if l := nextEvent(t, second); !strings.Contains(l, "list_changed") {
		t.Error(l)
	}
	allOf(t, g.do(t, "DELETE", "", session))
	if _, err := io.ReadAll(second); err != nil {
		t.Errorf("the stream of an ended session: %v", err)
	}
}

// TestHTTPKeptIsBounded: what nobody comes for does not pile up.
func TestHTTPKeptIsBounded(t *testing.T) {
	c := newHTTPClient(true, nil)
	for i := range 10 * maxKept {
		c.Write("", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"m%d"}`, i))
	}
	c.Write("", []byte(`{"jsonrpc":"2.0","method":"big","params":{"x":"`+strings.Repeat("x", maxKeptBytes)+`"}}`))
	if len(c.kept) != maxKept || !bytes.Contains(c.kept[0], []byte("m576")) {
		t.Errorf("%d kept, the first is %s", len(c.kept), c.kept[0])
	}
	for range 10 {
		c.Write("", []byte(`{"jsonrpc":"2.0","method":"big","params":{"x":"`+strings.Repeat("x", maxKeptBytes/4)+`"}}`))
	}
	if c.bytes > maxKeptBytes || len(c.kept) != 3 {
		t.Errorf("%d lines of %d bytes are kept", len(c.kept), c.bytes)
	}
	c = newHTTPClient(false, nil)
	c.Write("", []byte(`{"jsonrpc":"2.0","method":"m"}`))
	if len(c.kept) != 0 {
		t.Error("the client of many keeps what nobody can hear")
	}
}

// TestHTTPBeat: a quiet stream shows that it lives, from its first moment on.
func TestHTTPBeat(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.pace.beat = 10 * time.Millisecond })
	r := g.do(t, "POST", newCall("1", "wait"), anew("tools/call", "wait"))
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("a stream of %s", kind)
	}
	lines := bufio.NewReader(r.Body)
	for range 6 {
		if l, err := lines.ReadString('\n'); err != nil || strings.Trim(l, ": \n") != "" {
			t.Fatalf("%q %v", l, err)
		}
	}
}

// dial opens a connection that is closed without ceremony.
func (g *httpRig) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	tcp := c.(*net.TCPConn)
	_ = tcp.SetLinger(0)
	return tcp
}

// raw is a POST as bytes.
func raw(body string, hs ...heads) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: %d\r\n", len(body))
	for _, h := range hs {
		for i := 0; i+1 < len(h); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", h[i], h[i+1])
		}
	}
	return b.String() + "\r\n" + body
}

// TestHTTPSlowBody: a body that does not come gets its time, and no more; the
// others are served meanwhile.
func TestHTTPSlowBody(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.pace.body = 200 * time.Millisecond })
	call := newCall("1", "t")
	var slow []*net.TCPConn
	for i := range 20 {
		c := g.dial(t)
		defer c.Close()
		all := raw(call, anew("tools/call", "t"))
		if i%2 == 1 {
			all = strings.Replace(all, "Host: localhost", "Host: evil.example.com", 1)
		}
		io.WriteString(c, all[:len(all)-10])
		slow = append(slow, c)
	}
	if status, _ := allOf(t, g.do(t, "POST", call, anew("tools/call", "t"))); status != 200 {
		t.Errorf("beside slow bodies: %d", status)
	}
	for i, c := range slow {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		want, says := 408, "took too long"
		if i%2 == 1 {
			want, says = 403, "not served here"
		}
		if status, line := allOf(t, r); status != want || !strings.Contains(line, says) {
			t.Errorf("%d %s", status, line)
		}
	}
	gatewaytest.Eventually(t, "bodies are still counted", func() bool { return g.h.reading.Load() == 0 })
}

// TestHTTPReaderThatNeverReads: it blocks nobody, is cut off, and the call
// behind it is taken back.
func TestHTTPReaderThatNeverReads(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.pace.write = 300 * time.Millisecond })
	c := g.dial(t)
	defer c.Close()
	_ = c.SetReadBuffer(4 << 10)
	io.WriteString(c, raw(newCall("1", "flood"), anew("tools/call", "flood")))
	gatewaytest.Eventually(t, "nothing floods",
		func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) > 0 })
	for range 10 {
		if status, _ := allOf(t, g.do(t, "POST", newCall("2", "t"), anew("tools/call", "t"))); status != 200 {
			t.Errorf("beside a reader that does not read: %d", status)
		}
	}
	gatewaytest.Eventually(t, "what waits for the reader is still kept",
		func() bool { return g.h.meter.kept() == 0 && g.h.exchanges() == 0 })
	// One that reads, if slowly, gets all.
	if _, line := allOf(t, g.do(t, "POST", newCall("3", "error"), anew("tools/call", "error"))); !strings.Contains(line, `"id":3`) {
		t.Error(line)
	}
}

// TestHTTPMeters: what waits for readers is bounded for one client and for
// all, and given back.
func TestHTTPMeters(t *testing.T) {
	all := &meter{most: maxFront}
	var xs []*exchange
	var clients []*httpClient
	line := []byte(strings.Repeat("x", 9<<20))
	for range 12 {
		c := newHTTPClient(false, all)
		clients = append(clients, c)
		for range 10 {
			x := newExchange(c.meter)
			x.put(event{line: line})
			x.put(event{line: line})
			xs = append(xs, x)
		}
		if c.meter.n > maxClient {
			t.Fatalf("%d bytes wait for one client", c.meter.n)
		}
	}
	if all.n > maxFront || all.n < maxFront-maxClient {
		t.Errorf("%d bytes wait for all", all.n)
	}
	for _, x := range xs {
		events, _, _ := x.take()
		for _, e := range events {
			x.sent(e)
		}
		x.discard()
	}
	for _, c := range clients {
		if c.meter.n != 0 || all.n != 0 {
			t.Fatalf("%d of %d bytes are not given back", c.meter.n, all.n)
		}
	}
}

// TestHTTPBounds: sessions are bounded, in all and for one identity; who has
// idle ones loses the oldest, who has none waits.
func TestHTTPBounds(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.MaxSessions = 4 })
	ann, bob := heads{"X-Who", "ann"}, heads{"X-Who", "bob"}
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	first := g.session(t, "2025-11-25", ann)
	second := g.session(t, "2025-11-25", ann)
	g.do(t, "GET", "", second, ann) // in use
	third := g.session(t, "2025-11-25", ann)
	g.do(t, "GET", "", third, ann)
	for id, want := range map[string]int{first[1]: 404, second[1]: 200, third[1]: 200} {
		if status, _ := allOf(t, g.do(t, "POST", list, heads{mcp.HeaderSession, id}, ann)); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	r := g.do(t, "POST", hello, ann)
	if status, line := allOf(t, r); status != 503 || !strings.Contains(line, "too many MCP sessions") || r.Header.Get("Retry-After") == "" {
		t.Errorf("a session too many: %d %s", status, line)
	}
	if status, line := allOf(t, g.do(t, "POST", newCall("1", "t"), anew("tools/call", "t"), bob)); status != 200 {
		t.Errorf("another identity is shut out: %d %s", status, line)
	}
	g.session(t, "2025-11-25", bob)

	for range maxOwn {
		if _, err := g.h.begin("who:eve"); err != nil {
			t.Fatal(err)
		}
	}
	if status, line := allOf(t, g.do(t, "POST", list, heads{"X-Who", "eve"})); status != 503 || !strings.Contains(line, "too many requests are open") {
		t.Errorf("a request too many: %d %s", status, line)
	}
	for range maxOwn {
		g.h.finish("who:eve")
	}
	if status, _ := allOf(t, g.do(t, "POST", newCall("1", "t"), anew("tools/call", "t"), bob)); status != 200 {
		t.Errorf("after that: %d", status)
	}
}

// TestHTTPIdle: a core ends when nobody has used it for long enough, and not
// while a stream is open.
func TestHTTPIdle(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.Idle = 100 * time.Millisecond })
	used, idle := g.session(t, "2025-11-25"), g.session(t, "2025-11-25")
	stream := g.do(t, "GET", "", used)
	allOf(t, g.do(t, "POST", newCall("1", "t"), anew("tools/call", "t")))
	gatewaytest.Eventually(t, "idle cores go on", func() bool { return s.live.Load() == 1 })
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for id, want := range map[string]int{used[1]: 200, idle[1]: 404} {
		if status, _ := allOf(t, g.do(t, "POST", list, heads{mcp.HeaderSession, id})); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	stream.Body.Close()
	gatewaytest.Eventually(t, "a core goes on without its stream", func() bool { return s.live.Load() == 0 })
}

// TestHTTPClose: streams end, calls are answered, cores end, and whoever comes
// later is told.
func TestHTTPClose(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	session := g.session(t, "2025-11-25")
	stream := g.do(t, "GET", "", session)
	done := make(chan string, 2)
	for _, hs := range [][]heads{{session}, {anew("tools/call", "wait")}} {
		go func() {
			body := newCall("5", "wait")
			if len(hs[0]) == 2 {
				body = strings.Replace(fmt.Sprintf(oldCall, "wait"), `"id":1`, `"id":5`, 1)
			}
			_, line := allOf(t, g.do(t, "POST", body, hs...))
			done <- line
		}()
		<-s.waiting
	}
	if err := g.h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if line := <-done; !strings.Contains(line, `"id":5,"error"`) || !strings.Contains(line, "not known") {
			t.Error(line)
		}
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Error(err)
	}
	if s.live.Load() != 0 {
		t.Error("a core goes on")
	}
	if status, _ := allOf(t, g.do(t, "POST", newCall("5", "t"), anew("tools/call", "t"))); status != 503 {
		t.Errorf("after the end: %d", status)
	}
}

// TestHTTPCloseWithAReaderThatNeverReads: the end does not wait for it.
func TestHTTPCloseWithAReaderThatNeverReads(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.pace.write = time.Hour })
	c := g.dial(t)
	defer c.Close()
	_ = c.SetReadBuffer(4 << 10)
	io.WriteString(c, raw(newCall("1", "flood"), anew("tools/call", "flood")))
	gatewaytest.Eventually(t, "nothing waits for the reader", func() bool { return g.h.meter.kept() > 0 })
	begun := time.Now()
	if err := g.h.Close(t.Context()); err != nil || time.Since(begun) > time.Minute {
		t.Errorf("closed after %v: %v", time.Since(begun), err)
	}
}

// exchanges counts those that are under way.
func (h *Handler) exchanges() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// kept is how many bytes m counts.
func (m *meter) kept() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// files counts the process's open descriptors.
func files() int {
	es, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(es)
}

// TestHTTPDisconnects breaks a connection off at each step of each kind of
// request, again and again: nothing is left of it, and what was asked is taken
// back where the protocol says so.
func TestHTTPDisconnects(t *testing.T) {
	rounds := testrepeat.Times(10_000, 100)
	s := newScript()
	g := startHTTP(t, s.run)
	warm := g.session(t, "2025-11-25")
	allOf(t, g.do(t, "POST", newCall("1", "t"), anew("tools/call", "t")))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	goroutines, open := runtime.NumGoroutine(), files()

	call, wait := raw(newCall("1", "t"), anew("tools/call", "t")), raw(newCall("1", "wait"), anew("tools/call", "wait"))
	hello := raw(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	listen := "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nMcp-Session-Id: " + warm[1] + "\r\n\r\n"
	steps := map[string]func(*net.TCPConn){
		"in the header":     func(c *net.TCPConn) { io.WriteString(c, call[:40]) },
		"in the body":       func(c *net.TCPConn) { io.WriteString(c, call[:len(call)-5]) },
		"before the answer": func(c *net.TCPConn) { io.WriteString(c, call) },
		"in the call": func(c *net.TCPConn) {
			io.WriteString(c, wait)
			<-s.waiting
		},
		"in the answer": func(c *net.TCPConn) { io.WriteString(c, call); c.Read(make([]byte, 20)) },
		"in the handshake": func(c *net.TCPConn) {
			io.WriteString(c, hello)
		},
		"in the stream": func(c *net.TCPConn) { io.WriteString(c, listen); c.Read(make([]byte, 20)) },
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			// While those of the step before are under way, a call may be one too many.
			gatewaytest.Eventually(t, "exchanges are left", func() bool { return g.h.exchanges() == 0 })
			for range rounds {
				c := g.dial(t)
				step(c)
				c.Close()
				if name == "in the call" {
					<-s.released
				}
			}
		})
	}
	gatewaytest.Eventually(t, "exchanges are left", func() bool { return g.h.exchanges() == 0 })
	if n := s.live.Load(); n > 1+int32(g.h.MaxSessions) {
		t.Errorf("%d cores are left", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.h.Close(ctx); err != nil {
		t.Error(err)
	}
	g.web.CloseClientConnections()
	gatewaytest.Eventually(t, "goroutines or descriptors are left",
		func() bool { return runtime.NumGoroutine() <= goroutines && files() <= open })
	if n, f := runtime.NumGoroutine(), files(); n > goroutines || f > open {
		t.Errorf("%d goroutines and %d descriptors, %d and %d before", n, f, goroutines, open)
	}
	if g.h.meter.kept() != 0 || g.h.reading.Load() != 0 {
		t.Errorf("%d and %d bytes are still counted", g.h.meter.kept(), g.h.reading.Load())
	}
}
