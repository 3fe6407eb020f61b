package streamable

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// script is a core that does what the method of a request says, and knows
// nothing else: it shows what the front hands in and takes.
type script struct {
	runs     atomic.Int32
	live     atomic.Int32
	waiting  chan string // the own id of a call that begins to wait
	released chan string // the own id of a call that was cancelled

	mu   sync.Mutex
	seen []mcp.Message
}

func newScript() *script {
	return &script{waiting: make(chan string, 1<<16), released: make(chan string, 1<<16)}
}

func (s *script) run(_ context.Context, c gateway.Client) error {
	s.runs.Add(1)
	s.live.Add(1)
	defer s.live.Add(-1)
	defer c.Close()
	asker := ""
	for {
		m, err := c.Next()
		if err != nil {
			return nil
		}
		s.mu.Lock()
		s.seen = append(s.seen, m)
		s.mu.Unlock()
		say := func(to, line string) { _ = c.Write(to, []byte(line)) }
		answer := func(result string) { say(m.Key(), string(mcp.Respond(m.ID, []byte(result)))) }
		name, _ := mcp.Text(mcp.Get(m.Params, "name"))
		switch {
		case m.Method == "notifications/cancelled":
			s.released <- string(mcp.Get(m.Params, "requestId"))
		case m.IsResponse() && asker != "":
			say(asker, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"heard":%s}}`, asker[1:], m.Result))
		case !m.IsRequest():
		case m.Method == "initialize" && name == "fail":
			say(m.Key(), string(mcp.Failure(m.ID, mcp.CodeBadParams, "no", "")))
		case m.Method == "initialize":
			version, _ := mcp.Text(mcp.Get(m.Params, "protocolVersion"))
			answer(`{"protocolVersion":` + string(mcp.Quote(version)) + `,"capabilities":{}}`)
		case m.Method == "subscriptions/listen":
			say(m.Key(), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%s}}}`, mcp.MetaSubscription, m.ID))
		case m.Method != "tools/call":
			answer(`{"echo":` + string(mcp.Encode(m.Method)) + `}`)
		case name == "wait":
			s.waiting <- string(m.ID)
		case name == "ask":
			asker = m.Key()
			say(asker, `{"jsonrpc":"2.0","id":"q1","method":"roots/list"}`)
		case name == "spare":
			say("", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			answer(`{}`)
		case name == "flood":
			line := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
			for range 80 {
				say(m.Key(), line)
			}
			answer(`{"flooded":true}`)
		case name == "error":
			say(m.Key(), string(mcp.Failure(m.ID, mcp.CodeNoMethod, "no", "")))
		case name == "die":
			return &holdfast.Error{Kind: holdfast.KindHalted, Why: "everything is halted"}
		default:
			answer(`{"echo":` + string(m.Params) + `}`)
		}
	}
}

// last is the newest message that the core got.
func (s *script) last() mcp.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

// heads are pairs of names and values; a name that begins with "-" takes the
// header away.
type heads []string

// anew are the heads of a 2026-07-28 request.
func anew(method, name string) heads {
	h := heads{mcp.HeaderVersion, mcp.StatelessSince, mcp.HeaderMethod, method}
	if name != "" {
		h = append(h, mcp.HeaderName, name)
	}
	return h
}

// do sends one request.
func (g *httpRig) do(t testing.TB, method, body string, hs ...heads) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range hs {
		for i := 0; i+1 < len(h); i += 2 {
			if name, gone := strings.CutPrefix(h[i], "-"); gone {
				r.Header.Del(name)
			} else if h[i] == "Host" {
				r.Host = h[i+1]
			} else {
				r.Header.Add(h[i], h[i+1])
			}
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// allOf reads a whole answer, of either form.
func allOf(t testing.TB, r *http.Response) (status int, line string) {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return r.StatusCode, string(b)
	}
	var lines []string
	for l := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(l, "data: "); ok {
			lines = append(lines, strings.TrimSpace(data))
		}
	}
	return r.StatusCode, strings.Join(lines, "\n")
}

// event reads the next line of data from a stream.
func nextEvent(t testing.TB, r *bufio.Reader) string {
	t.Helper()
	for {
		l, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(l, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// session begins one and returns its header.
func (g *httpRig) session(t testing.TB, version string, hs ...heads) heads {
	t.Helper()
	r := g.do(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+`"}}`, hs...)
	id := r.Header.Get(mcp.HeaderSession)
	if status, line := allOf(t, r); status != 200 || id == "" || !strings.Contains(line, `"id":0`) {
		t.Fatalf("initialize: %d %q %s", status, id, line)
	}
	return heads{mcp.HeaderSession, id}
}

const newMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func newCall(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `",` + newMeta + `}}`
}

// TestHTTPHeaders: a request of 2026-07-28 whose heads tell another story
// than its body is refused, by the code and status that MCP has for it.
func TestHTTPHeaders(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + newMeta + `}}`
	read := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///ü",` + newMeta + `}}`
	only := heads{mcp.HeaderVersion, mcp.StatelessSince}
	for _, c := range []struct {
		name   string
		h      heads
		body   string
		status int
		want   string
	}{
		{"well", anew("tools/list", ""), list, 200, `"result"`},
		{"blanks around", anew("tools/call", "  t  "), newCall("7", "t"), 200, `"result"`},
		{"no method", only, list, 400, `"code":-32020`},
		{"other method", anew("prompts/list", ""), list, 400, `"code":-32020`},
		{"other case", anew("TOOLS/LIST", ""), list, 400, `"code":-32020`},
		{"two methods", append(anew("tools/list", ""), mcp.HeaderMethod, "tools/list"), list, 400, `"code":-32020`},
		{"no name", anew("tools/call", ""), newCall("7", "t"), 400, `"code":-32020`},
		{"other name", anew("tools/call", "u"), newCall("7", "t"), 400, `"code":-32020`},
		{"two names", append(anew("tools/call", "t"), mcp.HeaderName, "t"), newCall("7", "t"), 400, `"code":-32020`},
		{"name is no text", anew("tools/call", "7"), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":7,` + newMeta + `}}`, 400, `"code":-32602`},
		{"name in base64", anew("resources/read", "=?base64?ZmlsZTovLy/DvA==?="), read, 200, `"result"`},
		{"name in bad base64", anew("resources/read", "=?base64?ZmlsZTovLy/DvA?="), read, 400, `"code":-32020`},
		{"two of a parameter", append(anew("tools/call", "t"), "Mcp-Param-A", "1", "Mcp-Param-A", "1"), newCall("7", "t"), 400, `"code":-32020`},
		{"too many parameters", append(anew("tools/call", "t"), manyParams()...), newCall("7", "t"), 400, `"code":-32020`},
		{"no version in the header", heads{mcp.HeaderMethod, "tools/list"}, list, 400, `"code":-32020`},
		{"older version in the header", heads{mcp.HeaderVersion, "2025-11-25"}, list, 400, `"code":-32020`},
		{"two versions", append(anew("tools/list", ""), mcp.HeaderVersion, mcp.StatelessSince), list, 400,
			`"code":-32020`},
		{"newer version in the body", anew("tools/list", ""), strings.Replace(list, mcp.StatelessSince,
			"2099-01-01", 1), 400, `"code":-32020`},
		{"unknown version", heads{mcp.HeaderVersion, "2099-01-01", mcp.HeaderMethod, "tools/list"},
			strings.Replace(list, mcp.StatelessSince, "2099-01-01", 1), 400,
			`"data":{"requested":"2099-01-01","supported":["2026-07-28",`},
		{"no meta", anew("tools/list", ""), `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, 400, `"code":-32602`},
		{"no capabilities", anew("tools/list", ""), `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, 400, `"code":-32602`},
		{"initialize", anew("initialize", ""), strings.Replace(list, "tools/list", "initialize", 1), 404, `"code":-32601`},
		{"ping", anew("ping", ""), strings.Replace(list, "tools/list", "ping", 1), 404, `"code":-32601`},
		{"the core knows no method", anew("tools/call", "error"), newCall("7", "error"), 404, `"code":-32601`},
		{"an answer", anew("x", ""), `{"jsonrpc":"2.0","id":7,"result":{}}`, 400, `"code":-32600`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, line := allOf(t, g.do(t, "POST", c.body, c.h))
			if status != c.status || !strings.Contains(line, c.want) || !strings.Contains(line, `"id":7`) {
				t.Errorf("%d %s, want %d %s", status, line, c.status, c.want)
			}
		})
	}
	allOf(t, g.do(t, "POST", newCall("7", "t"), append(anew("tools/call", "t"), "Mcp-Param-Region", "eu", "MCP-PARAM-n", "1")))
	if h := s.last().Header; len(h) != 2 || h["mcp-param-region"] != "eu" || h["mcp-param-n"] != "1" {
		t.Errorf("the core got the heads %v", h)
	}
	if n := s.runs.Load(); n != 1 {
		t.Errorf("%d cores for one identity", n)
	}
	allOf(t, g.do(t, "POST", list, anew("tools/list", ""), heads{"X-Who", "bob"}))
	if n := s.runs.Load(); n != 2 {
		t.Errorf("%d cores for two identities", n)
	}
}

func manyParams() (h heads) {
	for i := range maxParams + 1 {
		h = append(h, fmt.Sprintf("Mcp-Param-A%d", i), "1")
	}
	return h
}

// TestHTTPDoor: nothing comes in under a foreign name, from a foreign page, or
// in another form than JSON.
func TestHTTPDoor(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.Hosts = []string{"agents.example.com"} })
	list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + newMeta + `}}`
	for _, c := range []struct {
		name, method string
		h            heads
		status       int
	}{
		{"plain", "POST", nil, 200},
		{"localhost", "POST", heads{"Host", "localhost:99"}, 200},
		{"IPv6 loopback", "POST", heads{"Host", "[::1]:99"}, 200},
		{"a name of ours", "POST", heads{"Host", "Agents.example.com"}, 200},
		{"foreign host", "POST", heads{"Host", "evil.example.com"}, 403},
		{"a name with ours in it", "POST", heads{"Host", "localhost.evil.example.com"}, 403},
		{"another address", "POST", heads{"Host", "192.0.2.1"}, 403},
		{"own page", "POST", heads{"Origin", g.web.URL}, 200},
		{"foreign page", "POST", heads{"Origin", "http://evil.example.com"}, 403},
		{"page without a name", "POST", heads{"Origin", "null"}, 403},
		{"page of a file", "POST", heads{"Origin", "file://localhost"}, 403},
		{"two pages", "POST", heads{"Origin", g.web.URL, "Origin", "http://evil.example.com"}, 403},
		{"page with a user", "POST", heads{"Origin", "http://localhost@evil.example.com"}, 403},
		{"form", "POST", heads{"-Content-Type", "", "Content-Type", "text/plain"}, 415},
		{"no type", "POST", heads{"-Content-Type", ""}, 415},
		{"two types", "POST", heads{"Content-Type", "text/plain"}, 415},
		{"other charset", "POST", heads{"-Content-Type", "", "Content-Type", "application/json; charset=utf-16"}, 415},
		{"gzip", "POST", heads{"Content-Encoding", "gzip"}, 415},
		{"takes JSON only", "POST", heads{"-Accept", "", "Accept", "application/json"}, 406},
		{"takes all", "POST", heads{"-Accept", "", "Accept", "*/*;q=0.1"}, 200},
		{"GET of 2026-07-28", "GET", nil, 405},
		{"DELETE of 2026-07-28", "DELETE", nil, 405},
		{"PUT", "PUT", nil, 405},
		{"OPTIONS", "OPTIONS", heads{"Origin", "http://localhost:1"}, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.do(t, c.method, list, anew("tools/list", ""), c.h)
			if r.StatusCode != c.status {
				t.Errorf("%d, want %d", r.StatusCode, c.status)
			}
			if c.status == 405 && r.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("a foreign page may read the answer")
			}
		})
	}
}

// TestHTTPEnter: who is not let in gets the status of the reason, before the
// body is read.
func TestHTTPEnter(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{&holdfast.Error{Kind: holdfast.KindExpiredToken, Why: "the token has expired", Hint: "ask for a new one"}, 401, "ask for a new one"},
		{&holdfast.Error{Kind: holdfast.KindPermission, Why: "no"}, 403, "no"},
		{fmt.Errorf("a secret cause"), 403, "internal error"},
		{nil, 403, "internal error"},
	} {
		g := startHTTP(t, nil, func(h *Handler) {
			h.Enter = func(*http.Request) (string, func(context.Context, gateway.Client) error, error) {
				return "", nil, c.err
			}
		})
		r := g.do(t, "POST", "}")
		status, line := allOf(t, r)
		if status != c.status || !strings.Contains(line, c.says) || strings.Contains(line, "secret") {
			t.Errorf("%v: %d %s", c.err, status, line)
		}
		if (status == 401) != (r.Header.Get("WWW-Authenticate") != "") {
			t.Errorf("%d with WWW-Authenticate %q", status, r.Header.Get("WWW-Authenticate"))
		}
	}
}

// TestHTTPBodies: whatever stands in a body, the answer is a clear refusal and
// no core hears of it.
func TestHTTPBodies(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run, func(h *Handler) { h.MaxBody = 1 << 20 })
	session := g.session(t, "2025-11-25")
	seen := len(s.seen)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"empty":          {"", 400, "the line is empty"},
		"blank":          {" \n ", 400, "the line is empty"},
		"truncated":      {`{"jsonrpc":"2.0","id":5,"method":"tools/li`, 400, `"id":5`},
		"not JSON":       {"hello", 400, "not a JSON object"},
		"two messages":   {`{"jsonrpc":"2.0","id":5,"method":"a"} {"jsonrpc":"2.0","id":6,"method":"b"}`, 400, "follows the message"},
		"duplicate key":  {`{"jsonrpc":"2.0","id":5,"id":6,"method":"tools/list"}`, 400, "duplicate name"},
		"deep duplicate": {`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","arguments":{"x":{"y":1,"y":2}}}}`, 400, "duplicate name"},
		"other case":     {`{"jsonrpc":"2.0","id":5,"Method":"a","method":"tools/list"}`, 400, "differs from"},
		"not UTF-8":      {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\",\"params\":{\"x\":\"\xff\"}}", 400, "invalid UTF-8"},
		"nested":         {`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":` + strings.Repeat(`{"a":`, 1000) + `1` + strings.Repeat("}", 1000) + `}`, 400, "nested deeper"},
		"oversized":      {`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, "longer than 1048576"},
		"batch":          {`[{"jsonrpc":"2.0","id":5,"method":"tools/list"}]`, 400, "a batch is not accepted"},
		"id null":        {`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, 400, "id is not a string or a number"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, h := range []heads{append(heads{mcp.HeaderVersion, "2025-11-25"}, session...),
				anew("tools/list", "")} {
				status, line := allOf(t, g.do(t, "POST", c.body, h))
				if status != c.status || !strings.Contains(line, c.want) || !strings.Contains(line, `"error"`) {
					t.Errorf("%d %.300s, want %d %s", status, line, c.status, c.want)
				}
			}
		})
	}
	if n := len(s.seen); n != seen {
		t.Errorf("the core got %d messages", n-seen)
	}
	if n := g.h.reading.Load(); n != 0 {
		t.Errorf("%d bytes of bodies are still counted", n)
	}
}

// TestHTTPIDs: a client gets its own id back, byte for byte, whatever it is,
// and many clients may use the same.
func TestHTTPIDs(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	session := g.session(t, "2025-11-25")
	for _, id := range []string{"1.5", "9007199254740993", "-0", "1e3", `"a"`, `"\u00fc\/"`, `""`, `"{\"id\":3}"`} {
		if _, line := allOf(t, g.do(t, "POST", newCall(id, "t"), anew("tools/call", "t"))); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,"result"`) {
			t.Errorf("%s: %s", id, line)
		}
		call := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"t"}}`
		if _, line := allOf(t, g.do(t, "POST", call, session)); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,"result"`) {
			t.Errorf("%s in a session: %s", id, line)
		}
	}
	// A body of many lines is one line to the core, and arguments stay.
	_, line := allOf(t, g.do(t, "POST", "{\r\n\"jsonrpc\":\"2.0\",\"id\":\n4,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\n\"arguments\":{\"a\":\"x\\ny\"}}}", session))
	if want := `{"name":"t", "arguments":{"a":"x\ny"}}`; !strings.Contains(line, want) || bytes.ContainsAny(s.last().Params, "\r\n") {
		t.Errorf("%s, want %s", line, want)
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":%d},%s}}`, i, newMeta)
			if _, line := allOf(t, g.do(t, "POST", call, anew("tools/call", "t"))); !strings.Contains(line, fmt.Sprintf(`"arguments":{"n":%d}`, i)) {
				t.Errorf("call %d got the answer %s", i, line)
			}
		})
	}
	wg.Wait()
}

// TestHTTPSubscription: what belongs to a subscription names it by the
// client's own id.
func TestHTTPSubscription(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	body := `{"jsonrpc":"2.0","id":"mine","method":"subscriptions/listen","params":{` + newMeta + `}}`
	r := g.do(t, "POST", body, anew("subscriptions/listen", ""))
	if line := nextEvent(t, bufio.NewReader(r.Body)); !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":"mine"`) {
		t.Error(line)
	}
	own := string(s.last().ID)
	r.Body.Close()
	if got := <-s.released; got != own {
		t.Errorf("closing the stream of %s took back %s", own, got)
	}
}

// TestHTTPClosedStreamCancels: in 2026-07-28 whoever closes a stream takes the
// call behind it back; before, a lost connection takes nothing back, and a
// cancellation names the request.
func TestHTTPClosedStreamCancels(t *testing.T) {
	s := newScript()
	g := startHTTP(t, s.run)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", g.url, strings.NewReader(newCall("3", "wait")))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"},
			mcp.HeaderVersion: {mcp.StatelessSince}, mcp.HeaderMethod: {"tools/call"}, mcp.HeaderName: {"wait"}}
		if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	}()
	own := <-s.waiting
	cancel()
	if got := <-s.released; got != own {
		t.Errorf("took back %s, want %s", got, own)
	}

	session := g.session(t, "2025-11-25")
	call := `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"wait"}}`
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := http.NewRequestWithContext(ctx, "POST", g.url, strings.NewReader(call))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, mcp.HeaderSession: {session[1]}}
		if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	}()
	own = <-s.waiting
	cancel()
	<-ended
	if status, line := allOf(t, g.do(t, "POST", call, session)); status != 400 || !strings.Contains(line, "already in flight") {
		t.Errorf("the same id again: %d %s", status, line)
	}
	if len(s.released) > 0 {
		t.Error("a lost connection took a call of a session back")
	}
	for _, id := range []string{`"other"`, own, `"c"`} {
		note := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
		if status, _ := allOf(t, g.do(t, "POST", note, session)); status != 202 {
			t.Errorf("cancel %s: %d", id, status)
		}
	}
	if got := <-s.released; got != own || len(s.released) > 0 {
		t.Errorf("took back %s and %d more, want %s", got, len(s.released), own)
	}
}
