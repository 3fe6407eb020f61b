package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

const notesServer = `version: 1
` + anyRepeats + `
listen: {pages: none}
boundaries:
  - {boundary: "mcp/notes/*", risk: LOW}
mcp:
  servers:
    notes: {command: [mcpserver, .], env: [PATH], cwd: .}
`

// overHTTP starts holdfast mcp --http and returns where.
func overHTTP(t *testing.T, flags ...string) (*site, string) {
	t.Helper()
	s := newSite(t, notesServer)
	s.write("a", "hello")
	s.start("out", append(append([]string{"mcp", "--http", "127.0.0.1:0"}, flags...), "notes")...)
	return s, s.after("out", "listening on ")
}

func hostOf(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
}

// TestAttackHTTP_connections_without_a_request: whoever opens thousands of
// connections, says nothing or half of a head, or keeps them after a request
// that was refused, takes no more than a bounded number of them, and the next
// client is served.
func TestAttackHTTP_connections_without_a_request(t *testing.T) {
	s, url := overHTTP(t, "--token")
	v := outsider{url: url, token: s.token("good")}
	pid := s.pid()
	before, memory := openFiles(t, pid), held(t, pid)
	var mu sync.Mutex
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	says := []string{"", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range testrepeat.Times(2000, 1100) {
				c, err := net.DialTimeout("tcp", hostOf(url), 5*time.Second)
				if err != nil {
					t.Log(err)
					return
				}
				io.WriteString(c, says[i])
				mu.Lock()
				conns = append(conns, c)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	files, grown := openFiles(t, pid)-before, held(t, pid)-memory
	t.Logf("%d connections: %d files, %d MB", len(conns), files, grown>>20)
	if files > 2100 {
		t.Errorf("%d connections are kept open", files)
	}
	if err := v.reads(); err != nil {
		t.Error("another client is not served:", err)
	}
}

// TestAttackHTTP_a_body_that_never_comes: at any path a connection whose body does not
// come is closed; the stream of a session, which was there before, stays open beyond
// that, whatever bounds the server around it has.
func TestAttackHTTP_a_body_that_never_comes(t *testing.T) {
	t.Parallel()
	s, url := overHTTP(t)
	for where, v := range map[string]outsider{"mcp --http": {url: url}, "the pages": s.onPages()} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			stream := v.openStream(t)
			conns := map[string]net.Conn{}
			for _, path := range []string{"/mcp", "/elsewhere", "/"} {
				c, err := net.Dial("tcp", hostOf(v.url))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conns[path] = c
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
					"Accept: */*\r\nContent-Length: 1000\r\n\r\n{", path)
			}
			for path, c := range conns {
				c.SetReadDeadline(time.Now().Add(2 * time.Minute))
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the connection is kept", path)
				}
			}
			select {
			case err := <-stream:
				t.Errorf("the stream ended: %v", err)
			default:
			}
		})
	}
}

// openStream opens a session and its stream, which ends with the test. What ends it
// before is sent to the channel.
func (v *outsider) openStream(t *testing.T) <-chan error {
	t.Helper()
	if err := v.begin(); err != nil {
		t.Fatal(err)
	}
	v.http.Timeout = 0
	resp, err := v.http.Do(v.request(http.MethodGet, "").WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %d", resp.StatusCode)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	return ended
}

// TestAttackHTTP_streams_opened_and_never_read: one client opens hundreds of
// streams in as many sessions as it gets, and never reads. Another identity is
// served all the same; where everybody is one identity, once it has gone.
func TestAttackHTTP_streams_opened_and_never_read(t *testing.T) {
	for _, tokens := range []bool{false, true} {
		t.Run(fmt.Sprint("tokens ", tokens), func(t *testing.T) {
			s, bad, good := twoOverHTTP(t, tokens)
			if err := good.begin(); err != nil {
				t.Fatal(err)
			}
			pid := s.pid()
			before, memory := openFiles(t, pid), held(t, pid)
			var conns []net.Conn
			refused := 0
			sessions := 80 // more than one identity gets
			if !tokens {
				sessions = testrepeat.Times(sessions, 20)
			}
			for range sessions {
				if bad.begin() != nil {
					refused++
					continue
				}
				for range 8 {
					c, err := net.Dial("tcp", hostOf(bad.url))
					if err != nil {
						t.Fatal(err)
					}
					_ = bad.request(http.MethodGet, "").Write(c)
					conns = append(conns, c)
				}
			}
			files, grown := openFiles(t, pid)-before, (held(t, pid)-memory)>>20
			t.Logf("%d streams, %d sessions refused: %d files, %d MB", len(conns), refused, files, grown)
			if files > 700 || grown > 200 {
				t.Error("that is too much")
			}
			if tokens {
				if err := errors.Join(good.read(3), good.reads()); err != nil {
					t.Error("another client is not served:", err)
				}
			}
			for _, c := range conns {
				c.Close()
			}
			s.soon("the streams to be given back", func() bool { return good.reads() == nil })
		})
	}
}

// twoOverHTTP starts holdfast mcp --http for two clients: with a token each, or
// both as the agent that the listener names.
func twoOverHTTP(t *testing.T, tokens bool) (s *site, bad, good outsider) {
	t.Helper()
	if !tokens {
		s, url := overHTTP(t)
		return s, outsider{url: url}, outsider{url: url}
	}
	s, url := overHTTP(t, "--token")
	return s, outsider{url: url, token: s.token("bad")}, outsider{url: url, token: s.token("good")}
}

// TestAttackHTTP_calls_that_last: one client has hundreds of calls under way,
// vanishes from half of them, and guesses session ids. Another identity is served,
// and once it has gone everybody is.
func TestAttackHTTP_calls_that_last(t *testing.T) {
	t.Parallel()
	for _, tokens := range []bool{false, true} {
		t.Run(fmt.Sprint("tokens ", tokens), func(t *testing.T) {
			t.Parallel()
			s, bad, good := twoOverHTTP(t, tokens)
			if err := errors.Join(good.begin(), bad.begin()); err != nil {
				t.Fatal(err)
			}
			pid := s.pid()
			before, said := openFiles(t, pid), map[string]int{}
			var conns []net.Conn
			for i := range testrepeat.Times(400, 100) {
				c, err := net.Dial("tcp", hostOf(bad.url))
				if err != nil {
					t.Fatal(err)
				}
				if i%50 == 0 {
					if err := bad.begin(); err != nil {
						t.Log(err)
					}
				}
				_ = bad.request(http.MethodPost, callTool(i+10, "linger", `{"path":"w"}`)).Write(c)
				c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				line, err := bufio.NewReader(c).ReadString('\n')
				if err != nil {
					line = "under way"
				}
				said[strings.TrimSpace(line)]++
				if i%2 == 0 {
					c.Close()
				} else {
					conns = append(conns, c)
				}
			}
			files := openFiles(t, pid) - before
			t.Logf("%v: %d files", said, files)
			if files > 600 {
				t.Error("that is too much")
			}
			if err := good.read(3); tokens && err != nil {
				t.Error("another client is not served:", err)
			}
			for _, id := range []string{"A", strings.Repeat("A", 26), good.session[:25] + "=", strings.ToLower(good.session), strings.Repeat("x", 60_000)} {
				guess := bad
				guess.session = id
				if code, body, err := guess.post(callTool(1, "read", `{"path":"a"}`)); err != nil || code != http.StatusNotFound && code != http.StatusServiceUnavailable {
					t.Errorf("a guessed session: %d %s %v", code, body, err)
				}
			}
			for _, c := range conns {
				c.Close()
			}
			s.soon("the streams to be given back", func() bool { return good.reads() == nil })
		})
	}
}

// onPages is a client at the address of the pages of a daemon of its own.
func (s *site) onPages() outsider {
	s.t.Helper()
	other := newSite(s.t, strings.Replace(notesServer, "pages: none", `pages: "127.0.0.1:0"`, 1))
	other.write("a", "hello")
	other.start("out", "up", "--no-operator")
	var state struct{ Pages string }
	other.soon("the pages", func() bool {
		out, _ := other.run("status", "--json")
		return json.Unmarshal([]byte(out), &state) == nil && state.Pages != ""
	})
	return outsider{url: state.Pages + "/mcp", token: other.token("quiet")}
}
