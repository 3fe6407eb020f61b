package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// serve serves one handler, with no patience for connections that hang.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// wire reads a connection's lines beside the test.
type wire struct {
	*Conn
	t     *testing.T
	lines chan string
}

func wired(t *testing.T, url string, change ...func(*Config)) *wire {
	t.Helper()
	w := &wire{Conn: dial(t, url, change...), t: t, lines: make(chan string, 64)}
	go func() {
		defer close(w.lines)
		r := bufio.NewReader(w.Conn)
		for {
			s, err := r.ReadString('\n')
			if err != nil {
				return
			}
			w.lines <- strings.TrimSuffix(s, "\n")
		}
	}()
	return w
}

func (w *wire) send(lines ...string) {
	w.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(w.Conn, l+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// next returns the next line, or "" at the end.
func (w *wire) next() string {
	w.t.Helper()
	select {
	case l := <-w.lines:
		return l
	case <-time.After(time.Minute):
		w.t.Fatal("no line")
		return ""
	}
}

func (w *wire) want(parts ...string) {
	w.t.Helper()
	got := w.next()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.t.Errorf("no %q in %.400s", p, got)
		}
	}
}

// silent checks that nothing comes for a moment.
func (w *wire) silent() {
	w.t.Helper()
	select {
	case l, ok := <-w.lines:
		w.t.Errorf("got %q, %v", l, ok)
	case <-time.After(100 * time.Millisecond):
	}
}

const (
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	// list is a request of a client without a handshake, hello one with it.
	list  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	greet = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	fine  = `{"jsonrpc":"2.0","id":1,"result":{}}`
)

func asJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func asEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = io.WriteString(w, e+"\n\n")
	}
	w.(http.Flusher).Flush()
}

func body(r *http.Request) string { b, _ := io.ReadAll(r.Body); return string(b) }

// TestHeadersEqualTheBody: since 2026-07-28 a request's headers are made from
// what it says, and before it has none of them.
func TestHeadersEqualTheBody(t *testing.T) {
	got := make(chan http.Header, 8)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		if strings.Contains(body(r), "tools/list") {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":{"tools":[
				{"name":"run","inputSchema":{"type":"object","properties":{
					"region":{"type":"string","x-mcp-header":"Region"},
					"dry":{"type":"boolean","x-mcp-header":"DRY"},
					"at":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"n"}}}}}},
				{"name":"bad","inputSchema":{"type":"object","properties":{
					"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},
				{"name":"lines","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A\r\nCookie: x"}}}},
				{"name":"number","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}}`)
			return
		}
		asJSON(w, 200, fine)
	})
	w := wired(t, s.URL, func(c *Config) {
		c.Header = map[string]holdfast.Secret{"authorization": holdfast.NewSecret("Bearer sesame-sesame")}
	})
	for _, c := range []struct {
		method, params string
		want           map[string]string
	}{
		{"tools/list", ``, map[string]string{"Mcp-Method": "tools/list", "Mcp-Name": "", "Authorization": "Bearer sesame-sesame", "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Session-Id": "", "Cookie": ""}},
		{"tools/call", `"name":"run","arguments":{"region":"us-west1","dry":false,"at":{"n":-7}},`,
			map[string]string{"Mcp-Name": "run", "Mcp-Param-Region": "us-west1", "Mcp-Param-Dry": "false", "Mcp-Param-N": "-7"}},
		{"tools/call", `"name":"run","arguments":{"region":"line1\nline2","dry":null,"at":{"n":42.0}},`,
			map[string]string{"Mcp-Param-Region": "=?base64?bGluZTEKbGluZTI=?=", "Mcp-Param-Dry": "", "Mcp-Param-N": "42"}},
		{"tools/call", `"name":"run","arguments":{"region":" padded ","dry":"\u0074rue","at":{"n":9007199254740993}},`,
			map[string]string{"Mcp-Param-Region": "=?base64?IHBhZGRlZCA=?=", "Mcp-Param-Dry": "true", "Mcp-Param-N": ""}},
		{"tools/call", `"name":"run","arguments":{"region":"=?base64?literal?=","at":7},`,
			map[string]string{"Mcp-Param-Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "Mcp-Param-N": ""}},
		{"tools/call", `"name":"bad","arguments":{"a":"x","b":"y"},`, map[string]string{"Mcp-Name": "bad", "Mcp-Param-A": ""}},
		{"tools/call", `"name":"lines","arguments":{"a":"x"},`, map[string]string{"Mcp-Name": "lines", "Mcp-Param-A": "", "Cookie": ""}},
		{"tools/call", `"name":"number","arguments":{"a":1},`, map[string]string{"Mcp-Param-A": ""}},
		{"tools/call", `"name":"d\r\nX: y","arguments":{},`, map[string]string{"Mcp-Name": "=?base64?ZA0KWDogeQ==?=", "X": ""}},
		{"resources/read", `"uri":"file:///a b","name":"n",`, map[string]string{"Mcp-Method": "resources/read", "Mcp-Name": "file:///a b"}},
		{"prompts/get", `"name":"p","uri":"u",`, map[string]string{"Mcp-Name": "p"}},
		{"resources/list", `"name":"p",`, map[string]string{"Mcp-Name": ""}},
	} {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":{` + c.params + meta + `}}`)
		w.want(`"id":1`, `"result"`)
		h := <-got
		for name, want := range c.want {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.params, name, h.Get(name), want)
			}
		}
	}
	long := strings.Repeat("x", maxParam+1)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"region":"` + long + `"},` + meta + `}}`)
	w.want(`"id":1`, `"code":-32020`, `region`, "is longer than")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + long + `",` + meta + `}}`)
	w.want(`"code":-32020`, "Mcp-Name")
	if len(got) != 0 {
		t.Error("what does not fit a header was sent")
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"region":"x"}}}`)
	w.want(`"result"`)
	if h := <-got; h.Get("Mcp-Method") != "" || h.Get("Mcp-Name") != "" || h.Get("Mcp-Param-Region") != "" {
		t.Errorf("a request of a handshake has headers %v", h)
	}
}

// TestAnswers: what each response to a request becomes.
func TestAnswers(t *testing.T) {
	big := strings.Repeat("x", 11<<20)
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want []string
	}{
		"json": {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, fine) }, []string{fine}},
		"json, printed": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, "{\r\n \"jsonrpc\": \"2.0\",\n\t\"id\": 1,\n \"result\": {\"a\": \"b\\nc\"}\n}\n")
		}, []string{`"result": {"a": "b\nc"}`}},
		"events": {func(w http.ResponseWriter, _ *http.Request) { asEvents(w, "data: "+fine) }, []string{fine}},
		"events in two": {func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}")
		}, []string{`"jsonrpc":"2.0", "id":1,"result":{}}`}},
		"other events": {func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, "event: ping\ndata: x", "data:", "data: "+fine)
		}, []string{fine}},
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m","data":[1.50]}}`)
		}, []string{`"error":{"code":1.5,"message":"m","data":[1.50]}`}},
		"error status": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"supported":["x"]}}}`)
		}, []string{`"id":1`, `"code":-32022`, `{"supported":["x"]}`}},
		"without id": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`)
		}, []string{`"id":1`, `"code":-32700`}},
		"id null": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 404, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"},"id":null}`)
		}, []string{`"id":1`, `"code":-32601`}},
		"id null, 200": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"},"id":null}`)
		}, []string{`"id":1`, `"code":-32601`}},
		"status of its": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "secret page", http.StatusServiceUnavailable)
		}, []string{`"id":1`, `"code":-32000`, "answered HTTP 503 Service Unavailable"}},
		"unauthorized":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, []string{"did not accept the credential (HTTP 401 Unauthorized)"}},
		"strange status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) }, []string{"answered HTTP 799"}},
		"error of other": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m"}}`)
		}, []string{`"id":1`, "answered HTTP 400 Bad Request"}},
		"result, 400": {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 400, fine) }, []string{"answered HTTP 400 Bad Request"}},
		"other id":    {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, `{"jsonrpc":"2.0","id":2,"result":{}}`) }, []string{`"id":1`, "it has another id"}},
		"id as text":  {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, `{"jsonrpc":"2.0","id":"1","result":{}}`) }, []string{"it has another id"}},
		"other, then": {func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, `data: {"jsonrpc":"2.0","id":2,"result":{}}`, "data: "+fine)
		}, []string{fine}},
		"half":       {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"res`) }, []string{`"id":1`, "was refused: not JSON"}},
		"half event": {func(w http.ResponseWriter, _ *http.Request) { asEvents(w, `data: {"jsonrpc":"2.0","id":1,"res`) }, []string{"was refused: not JSON"}},
		"nothing":    {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, "") }, []string{"does not answer its request: the line is empty"}},
		"batch":      {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, "["+fine+"]") }, []string{"a batch is not accepted"}},
		"accepted":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, []string{"answered HTTP 202 without a JSON-RPC answer"}},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, fine)
		}, []string{"HTTP 200 without a JSON-RPC answer"}},
		"no type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, fine)
		}, []string{"HTTP 200 without a JSON-RPC answer"}},
		"ends": {func(w http.ResponseWriter, _ *http.Request) { asEvents(w, "id: 5\ndata: ") }, []string{"stream ended before the answer", "may have been carried out"}},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":"`+big+`"}`)
		}, []string{`"id":1`, "is longer than"}},
		"too long event": {func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, `data: {"jsonrpc":"2.0","id":1,"result":"`+big+`"}`)
		}, []string{`"id":1`, "is longer than"}},
		"too deep": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`)
		}, []string{"nested deeper"}},
		"too deep error": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}}`)
		}, []string{"HTTP 400"}},
		"twice a name": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`)
		}, []string{"duplicate name at /result/a"}},
		"no UTF-8": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}")
		}, []string{"invalid UTF-8"}},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, []string{"redirects to elsewhere, which is not followed (HTTP 307"}},
		"dies": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"broke before it answered", "may have been carried out"}},
		"dies midway": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			asJSON(w, 200, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, []string{"answer broke off", "may have been carried out"}},
		"long header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", big); asJSON(w, 200, fine) }, []string{`"id":1`, "header"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1); r.URL.Path == "/elsewhere" {
					t.Error("a redirect was followed")
				}
				_ = body(r)
				c.h(w, r)
			})
			w := wired(t, s.URL)
			w.send(list)
			w.want(c.want...)
			w.silent()
			if n := asked.Load(); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

// TestAnswersTwice: the first answer to a request counts, and nothing after it
// is read.
func TestAnswersTwice(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asEvents(w, "data: "+fine, `data: {"jsonrpc":"2.0","id":1,"result":{"second":true}}`, `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	})
	w := wired(t, s.URL)
	w.send(list)
	w.want(fine)
	w.silent()
}

// TestUnreachable: nobody there is told from somebody who heard.
func TestUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	w := wired(t, s.URL)
	w.send(list)
	w.want(`"id":1`, "could not be reached", "connection refused")
	if err := w.Unanswered([]byte("1")); !errors.Is(err, holdfast.ErrNotStarted) {
		t.Errorf("unanswered: %v", err)
	}
	if err := w.Unanswered([]byte("1")); err != nil {
		t.Errorf("told twice: %v", err)
	}
}

// TestUnanswered: an answer of the connection's own is told from the server's,
// and what may have been carried out from what was not.
func TestUnanswered(t *testing.T) {
	how := make(chan http.HandlerFunc, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _ = body(r); (<-how)(w, r) })
	w := wired(t, s.URL)
	for name, c := range map[string]struct {
		h   http.HandlerFunc
		own bool
	}{
		"result": {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, fine) }, false},
		"its error": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m"}}`)
		}, false},
		"bare error": {func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}`)
		}, false},
		"status":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, true},
		"dies":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"stream ended": {func(w http.ResponseWriter, _ *http.Request) { asEvents(w, ":") }, true},
		"half":         {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, "{") }, true},
	} {
		how <- c.h
		w.send(list)
		w.want(`"id":1`)
		err := w.Unanswered([]byte("1"))
		if (err != nil) != c.own || errors.Is(err, holdfast.ErrNotStarted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range maxOwn + 100 {
		w.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + strings.Repeat("x", maxParam+1) + `",` + meta + `}}`)
		w.want(`"id":7`)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.own) > maxOwn || len(w.order) > maxOwn {
		t.Errorf("%d and %d are kept", len(w.own), len(w.order))
	}
}

func until(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

// TestCancel: since 2026-07-28 a cancellation closes the response, before and
// after its header, and is not sent.
func TestCancel(t *testing.T) {
	for _, started := range []bool{false, true} {
		t.Run(fmt.Sprint(started), func(t *testing.T) {
			there, gone := make(chan struct{}), make(chan struct{})
			var posts atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				_ = body(r)
				if started {
					asEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}`)
				}
				close(there)
				<-r.Context().Done()
				close(gone)
			})
			w := wired(t, s.URL)
			w.send(`{"jsonrpc":"2.0","id":"a","method":"subscriptions/listen","params":{` + meta + `}}`)
			until(t, "no request", there)
			if started {
				w.want("acknowledged")
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061"}}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}`)
			until(t, "the response is still open", gone)
			w.silent()
			if n := posts.Load(); n != 1 {
				t.Errorf("%d POSTs", n)
			}
		})
	}
}

// TestCancelInSession: before 2026-07-28 the server is told, after it has the
// request, and then the response is closed.
func TestCancelInSession(t *testing.T) {
	there, told, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b := body(r); {
		case strings.Contains(b, "initialize\""):
			asJSON(w, 200, greet)
		case strings.Contains(b, "cancelled"):
			close(told)
			w.WriteHeader(202)
		default:
			close(there)
			<-r.Context().Done()
			close(gone)
		}
	})
	w := wired(t, s.URL)
	w.send(hello)
	w.want("protocolVersion")
	w.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}}`)
	until(t, "no request", there)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	until(t, "the server was not told", told)
	until(t, "the response is still open", gone)
	w.silent()
}

// TestSession: id and version of the handshake are kept, the session's stream
// is opened after it, resumed where it broke, and the session ended at the end.
func TestSession(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	deleted := make(chan struct{})
	gets := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s session=%s version=%s last=%s", r.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("MCP-Protocol-Version"), r.Header.Get("Last-Event-ID")))
		switch {
		case r.Method == "DELETE":
			close(deleted)
		case r.Method == "GET":
			if gets++; gets < 3 {
				asEvents(w, "retry: 50\n", fmt.Sprintf("id: e%d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{\"n\":%d}}", gets, gets))
				return
			}
			asEvents(w, `data: {"jsonrpc":"2.0","id":"q","method":"ping"}`, `data: {"jsonrpc":"2.0","id":0,"result":{}}`)
		case strings.Contains(b, "initialize\""):
			w.Header().Set("Mcp-Session-Id", "s-1")
			asJSON(w, 200, greet)
		default:
			w.Header().Set("Mcp-Session-Id", "s-2")
			w.WriteHeader(202)
		}
	})
	w := wired(t, s.URL)
	w.send(hello, ready)
	w.want("protocolVersion")
	w.want(`"n":1`)
	w.want(`"n":2`)
	w.want(`"method":"ping"`)
	w.send(`{"jsonrpc":"2.0","id":"q","result":{}}`)
	time.Sleep(50 * time.Millisecond)
	w.Close()
	until(t, "the session was not ended", deleted)
	mu.Lock()
	defer mu.Unlock()
	got := strings.Join(seen, "\n")
	for i, want := range []string{"POST session= version= last=", "POST session=s-1 version=2025-11-25 last=", "GET session=s-1 version=2025-11-25 last=",
		"GET session=s-1 version=2025-11-25 last=e1", "GET session=s-1 version=2025-11-25 last=e2"} {
		if i >= len(seen) || seen[i] != want {
			t.Errorf("request %d is not %q:\n%s", i, want, got)
		}
	}
	if !strings.HasSuffix(got, "DELETE session=s-1 version=2025-11-25 last=") || strings.Contains(got, "s-2") {
		t.Errorf("seen:\n%s", got)
	}
}

// TestResume: a request's stream that broke after an event with an id is asked
// for from there; one that has no id, or never moves on, ends the request.
func TestResume(t *testing.T) {
	var gets atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b := body(r); {
		case strings.Contains(b, "initialize\""):
			asJSON(w, 200, greet)
		case r.Method == "POST" && strings.Contains(b, "stuck"):
			asEvents(w, "retry: 1", "id: stuck\ndata:")
		case r.Method == "POST":
			asEvents(w, "retry: 1", "id: e1\ndata:")
		case r.Header.Get("Last-Event-ID") == "e1":
			asEvents(w, `id: e2`+"\n"+`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
		case r.Header.Get("Last-Event-ID") == "e2":
			asEvents(w, "data: "+fine)
		default:
			gets.Add(1)
			asEvents(w, ": nothing new")
		}
	})
	w := wired(t, s.URL)
	w.send(hello)
	w.want("protocolVersion")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	w.want("notifications/progress")
	w.want(fine)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck"}}`)
	w.want(`"id":1`, "could not be resumed")
	if n := gets.Load(); n != maxResumes {
		t.Errorf("asked %d times", n)
	}
}

// TestSessionLost: a session that the server does not know ends the connection
// by name, and is not ended again.
func TestSessionLost(t *testing.T) {
	for name, where := range map[string]string{"request": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "notification": `{"jsonrpc":"2.0","method":"notifications/x"}`, "stream": ready} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b := body(r)
				switch {
				case strings.Contains(b, "initialize\""):
					w.Header().Set("Mcp-Session-Id", "s-1")
					asJSON(w, 200, greet)
				case r.Method == "DELETE":
					t.Error("a lost session was ended")
				case strings.Contains(b, "notifications/initialized"):
					w.WriteHeader(202)
				case strings.Contains(b, "no/such"):
					asJSON(w, 404, `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"m"}}`)
				default:
					asJSON(w, 404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
				}
			})
			w := wired(t, s.URL)
			w.send(hello)
			w.want("protocolVersion")
			w.send(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`)
			w.want("-32601")
			w.send(where)
			if got := w.next(); got != "" {
				t.Errorf("got %s", got)
			}
			if err := w.Exit(t.Context()); !errors.Is(err, errSession) {
				t.Errorf("exit: %v", err)
			}
			if _, err := io.WriteString(w.Conn, ready+"\n"); !errors.Is(err, errSession) {
				t.Errorf("write: %v", err)
			}
			w.Close()
		})
	}
}

// TestOrder: what follows a notification or the handshake leaves after the
// server has taken it; what needs neither does not wait.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	hold := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		if strings.Contains(b, "slow") || strings.Contains(b, "initialize\"") {
			<-hold
		}
		if r.Method == "GET" {
			w.WriteHeader(405)
			return
		}
		mu.Lock()
		seen = append(seen, b)
		mu.Unlock()
		switch {
		case strings.Contains(b, "initialize\""):
			asJSON(w, 200, greet)
		case strings.Contains(b, `"id":2`):
			asJSON(w, 200, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		case strings.Contains(b, `"id"`):
			asJSON(w, 200, fine)
		default:
			w.WriteHeader(202)
		}
	})
	w := wired(t, s.URL)
	w.send(hello, ready, `{"jsonrpc":"2.0","method":"notifications/slow"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, list)
	w.want(fine)
	close(hold)
	w.want("protocolVersion")
	w.want(`"id":2`)
	mu.Lock()
	defer mu.Unlock()
	for i, part := range []string{`"id":1`, "initialize\"", "initialized", "slow", `"id":2`} {
		if i >= len(seen) || !strings.Contains(seen[i], part) {
			t.Fatalf("request %d is not %s: %q", i, part, seen)
		}
	}
}

// TestBusy: more requests than may run are answered, and none is sent.
func TestBusy(t *testing.T) {
	var posts atomic.Int32
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_ = body(r)
		posts.Add(1)
		<-r.Context().Done()
	})
	w := wired(t, s.URL, func(c *Config) { c.MaxPosts = 2 })
	ask := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{%s}}`, id, meta)
	}
	w.send(ask(1), ask(2), ask(3))
	w.want(`"id":3`, "busy: 2 requests")
	count := func(want int32) {
		t.Helper()
		for end := time.Now().Add(time.Minute); posts.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d POSTs, want %d", posts.Load(), want)
			}
		}
	}
	count(2)
	if _, err := io.WriteString(w.Conn, ask(1)+"\n"); err == nil {
		t.Error("an id in flight was taken again")
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for busy := true; busy; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		busy = len(w.flights) > 1
		w.mu.Unlock()
	}
	w.send(ask(1))
	count(3)
	w.silent()
}

// TestNoMessage: what the gateway must not write is an error, and ends nothing.
func TestNoMessage(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, fine) })
	w := wired(t, s.URL)
	for _, bad := range []string{"", "{}", "{}\n", "x\n", list, "[" + list + "]\n"} {
		if _, err := io.WriteString(w.Conn, bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	w.send("", "  ", list)
	w.want(fine)
	w.Close()
	if _, err := io.WriteString(w.Conn, list+"\n"); !errors.Is(err, errClosed) {
		t.Errorf("write after close: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := dial(t, s.URL)
	if err := other.Exit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("exit: %v", err)
	}
	if _, err := Dial(ctx, Config{URL: s.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("dial: %v", err)
	}
}

// TestDropped: what a server may not say without a handshake stays here.
func TestDropped(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(body(r), `"id":1`) {
			t.Error("an answer was sent")
		}
		asEvents(w, `data: {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`,
			`data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}`, "data: "+fine)
	})
	w := wired(t, s.URL)
	w.send(list)
	w.want("notifications/message")
	w.want(fine)
	w.send(`{"jsonrpc":"2.0","id":9,"result":{}}`, `{"jsonrpc":"2.0","id":9,"error":{"code":-1,"message":"m"}}`)
	w.silent()
}
