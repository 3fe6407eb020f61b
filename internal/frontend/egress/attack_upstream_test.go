package egress

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// hostile is a world whose plain.test is f, by connection.
func hostile(t *testing.T, f func(c net.Conn, r *bufio.Reader)) (*world, string) {
	port := serving(t, func(c net.Conn) { f(c, bufio.NewReader(c)) })
	w := newEgress(t, setup{rows: func(_, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Ports: []uint16{port}, Plain: true, FirstByte: 2 * time.Second, MaxResponse: 1 << 20, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}
	}})
	return w, fmt.Sprintf("plain.test:%d", port)
}

// TestAttack_AnUpstreamThatLies: whatever an allowed server writes, the client
// gets one well-formed answer or a broken connection, nothing of a second
// answer, and the proxy goes on.
func TestAttack_AnUpstreamThatLies(t *testing.T) {
	const evil = "EVIL-SECOND-ANSWER"
	second := "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n" + evil
	answers := map[string]string{
		"two answers":                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + second,
		"no length, two answers":     "HTTP/1.1 204 No Content\r\n\r\n" + second,
		"length too short":           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokEVIL-SECOND-ANSWER",
		"length too long":            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok",
		"two lengths":                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 30\r\n\r\nok" + second,
		"length and chunks":          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + second,
		"negative length":            "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"bad chunk":                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n",
		"chunk of 2^63":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nok\r\n",
		"chunk without an end":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok",
		"trailers":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Evil\r\n\r\n2\r\nok\r\n0\r\nX-Evil: EVIL-SECOND-ANSWER\r\n\r\n",
		"101 that nobody asked for":  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nEVIL-SECOND-ANSWER",
		"1xx without end":            strings.Repeat("HTTP/1.1 103 Early\r\nX-A: b\r\n\r\n", 20_000),
		"status 000":                 "HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n",
		"status 099":                 "HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n",
		"status 999":                 "HTTP/1.1 999 No\r\nContent-Length: 2\r\n\r\nok",
		"status -1":                  "HTTP/1.1 -01 No\r\nContent-Length: 0\r\n\r\n",
		"status of four digits":      "HTTP/1.1 2000 No\r\n\r\n",
		"huge header":                "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"many fields":                "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n",
		"LF in a field":              "HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\n\nContent-Length: 2\r\nX-Evil: EVIL\r\nContent-Length: 2\r\n\r\nok",
		"CR in a field":              "HTTP/1.1 200 OK\r\nX-A: b\rX-Evil: c\r\nContent-Length: 2\r\n\r\nok",
		"NUL in a field":             "HTTP/1.1 200 OK\r\nX-A: b\x00c\r\nContent-Length: 2\r\n\r\nok",
		"folded field":               "HTTP/1.1 200 OK\r\nX-A: b\r\n c: d\r\nContent-Length: 2\r\n\r\nok",
		"no HTTP":                    "SSH-2.0-OpenSSH_9.9\r\n",
		"nothing":                    "",
		"HTTP/0.9":                   "EVIL-SECOND-ANSWER",
		"HTTP/2 in clear":            "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"gzip that is none":          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
		"ten encodings":              "HTTP/1.1 200 OK\r\nContent-Encoding: gzip,gzip,gzip,gzip,gzip,gzip\r\nContent-Length: 2\r\n\r\nok",
		"204 with a body":            "HTTP/1.1 204 No Content\r\nContent-Length: 18\r\n\r\nEVIL-SECOND-ANSWER",
		"304 with a body":            "HTTP/1.1 304 Not Modified\r\nContent-Length: 18\r\n\r\nEVIL-SECOND-ANSWER",
		"an event without end":       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + strings.Repeat("x", 3<<20),
		"a million events":           "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + strings.Repeat("data: {\"delta\":\"x\"}\n\n", 200_000),
		"deep JSON":                  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + strings.Repeat("[", 500_000),
		"a content type of no sense": "HTTP/1.1 200 OK\r\nContent-Type: ;;;=\"\r\nContent-Length: 2\r\n\r\nok",
		"a redirect to another":      "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
		"words of a proxy":           "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
	}
	w, host := hostile(t, func(c net.Conn, r *bufio.Reader) {
		asked, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.WriteString(c, answers[asked.URL.Query().Get("answer")])
		time.Sleep(20 * time.Millisecond) // in which the connection may lie in a pool
	})
	n := 0
	for name := range answers {
		t.Run(name, func(t *testing.T) {
			c := w.dial(w.explicit)
			b := bufio.NewReader(c)
			for range 3 { // on one connection, as far as it lasts
				go fmt.Fprintf(c, "GET http://%s/?answer=%s HTTP/1.1\r\nHost: %s\r\n\r\n", host, url.QueryEscape(name), host)
				resp, err := http.ReadResponse(b, &http.Request{Method: "GET"})
				if err != nil {
					c = w.dial(w.explicit)
					b = bufio.NewReader(c)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				if strings.Contains(string(body), evil) || resp.Header.Get("X-Evil") != "" || resp.StatusCode < 200 {
					t.Errorf("the client reads %d %v %.80q", resp.StatusCode, resp.Header, body)
				}
				if resp.Header.Get(refusal.HeaderCrossing) == "" {
					t.Errorf("status %d without a crossing", resp.StatusCode)
				}
				if err != nil {
					c = w.dial(w.explicit)
					b = bufio.NewReader(c)
				}
			}
			n += 3
			w.entries(n)
		})
	}
}

// TestAttack_AnAnswerForTheNextInAPooledConnection: an answer that a server writes
// while its connection is idle closes the connection, and reaches no client.
func TestAttack_AnAnswerForTheNextInAPooledConnection(t *testing.T) {
	closed := make(chan struct{})
	w, host := hostile(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(r); err != nil {
				closed <- struct{}{}
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			time.Sleep(5 * time.Millisecond) // when the connection lies idle
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
		}
	})
	for range 20 {
		r := say(w.dial(w.explicit), fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host, host))
		if r != nil && strings.Contains(r.Text, "poison") {
			t.Fatalf("the client reads %q", r.Text)
		}
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Fatal("the proxy keeps a connection on which an answer came that it did not ask for")
		}
	}
}

// TestAttack_OneRecordAndTwoRequests: a client that marks what it sends as
// repeatable, and a server that drops the pooled connection, do not make two
// requests out of one crossing.
func TestAttack_OneRecordAndTwoRequests(t *testing.T) {
	for _, field := range []string{"", "Idempotency-Key: 1\r\n", "X-Idempotency-Key: 1\r\n"} {
		var asked atomic.Int64
		w, host := hostile(t, func(c net.Conn, r *bufio.Reader) {
			for n := 0; ; n++ {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				asked.Add(1)
				if n > 0 {
					return // read, done, and no answer
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		post := func() {
			say(w.dial(w.explicit), fmt.Sprintf("POST http://%s/pay HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: 7\r\n\r\n{\"a\":1}", host, host, field))
		}
		post()
		time.Sleep(50 * time.Millisecond)
		post()
		w.entries(2)
		if n := asked.Load(); n != 2 {
			t.Errorf("%q: two crossings, and the server was asked %d times", field, n)
		}
	}
}

// TestAttack_AThousandAbortedRequestsLeaveNothing: clients that leave at every
// moment leave no goroutine and no memory behind.
func TestAttack_AThousandAbortedRequestsLeaveNothing(t *testing.T) {
	slow := make(chan struct{})
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, strings.Repeat("words ", 1000))
		rw.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-slow:
		}
	})
	defer close(slow)
	abort := func(i int) {
		c, err := net.Dial("tcp", w.clear)
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(longest))
		if i%5 == 0 {
			c.Write([]byte{22, 3, 1}) // in the middle of a ClientHello
			return
		}
		s := tls.Client(c, &tls.Config{ServerName: "good.test", RootCAs: w.roots})
		if s.Handshake() != nil {
			return
		}
		switch i % 5 {
		case 1:
			io.WriteString(s, "GET / HT")
		case 2:
			io.WriteString(s, "POST / HTTP/1.1\r\nHost: "+w.at("good.test")+"\r\nContent-Length: 5000000\r\n\r\n"+strings.Repeat("x", 100_000))
		case 3:
			io.WriteString(s, get(w.at("good.test"), "/"))
		case 4:
			io.WriteString(s, get(w.at("good.test"), "/"))
			s.Read(make([]byte, 1000))
		}
	}
	run := func(n int) {
		gate := make(chan struct{}, 50)
		for i := range n {
			gate <- struct{}{}
			go func() { defer func() { <-gate }(); abort(i) }()
		}
		for range cap(gate) {
			gate <- struct{}{}
		}
	}
	settled := func() (n int) {
		for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if n = runtime.NumGoroutine(); w.p.Snapshot().Open == 0 && w.p.out.memory.Used.Load() == 0 && n < 60 {
				break
			}
		}
		return n
	}
	run(20)
	before := settled()
	run(testrepeat.Times(1000, 60))
	if after := settled(); after > before+20 {
		b := make([]byte, 1<<20)
		t.Errorf("%d goroutines were there, then %d\n%.6000s", before, after, b[:runtime.Stack(b, true)])
	}
	if n := w.p.out.memory.Used.Load(); n != 0 {
		t.Errorf("%d bytes of bodies are still counted", n)
	}
	if n := w.p.Snapshot().Open; n != 0 {
		t.Errorf("%d connections are still open", n)
	}
	if n := len(w.p.pending); n != 0 {
		t.Errorf("%d crossings are still under way", n)
	}
	w.up.answer(nil)
	w.passed(w.send("GET", w.url("good.test"), ""))
}
