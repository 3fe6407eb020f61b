package egress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// answered returns the front's answer to one that the upstream gives by h.
func (x *outside) answered(d domain.Domain, method string, h http.HandlerFunc) (*http.Response, string, error) {
	x.t.Helper()
	return do(x.t, method, x.openPair(d, h), nil, nil)
}

// pair is an upstream whose handler the test replaces, and the front before it.
type pair struct {
	handler atomic.Pointer[http.HandlerFunc]
	front   string
}

// openPair returns the URL of a front whose upstream answers by h until the next call
// with an equal row: equal rows share an upstream and a front.
func (x *outside) openPair(d domain.Domain, h http.HandlerFunc) string {
	x.t.Helper()
	row := fmt.Sprintf("%+v", d)
	p := x.pairs[row]
	if p == nil {
		p = &pair{}
		at, o := x.upstream(d, true, func(w http.ResponseWriter, r *http.Request) { (*p.handler.Load())(w, r) })
		p.front = x.front(at, o).URL
		x.pairs[row] = p
	}
	p.handler.Store(&h)
	return p.front
}

func TestEgress_Accept04_AnswersAreRedacted(t *testing.T) {
	x := newOutside(t, redact.Options{})
	doc := `{"mail":"` + someMail + `","n":1,"key":"` + someKey + `"}`
	long := strings.Repeat("an ordinary line of text, and nothing else\n", 40_000)
	for name, c := range map[string]struct {
		kind, encoding, text string
		chunked              bool
	}{
		"JSON":          {"application/json", "", doc, false},
		"JSON, chunked": {"application/json", "", doc, true},
		"gzip":          {"application/json", "gzip", doc, false},
		"zstd, text":    {"text/plain", "zstd", "write to " + someMail + " or " + someKey, false},
		"text":          {"text/plain", "", "write to " + someMail + " or " + someKey, false},
		"text, chunked": {"text/plain; charset=utf-8", "", "write to " + someMail + " or " + someKey, true},
		"long text":     {"text/plain", "", long + someMail + "\n" + long + someKey, false},
		"long JSON":     {"application/json", "", `{"a":"` + strings.Repeat("x ", 900_000) + someMail + `","k":"` + someKey + `"}`, true},
		"no type":       {"", "", "write to " + someMail, true},
		"octets":        {"application/octet-stream", "", "write to " + someMail, true},
	} {
		resp, text, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if c.kind != "" {
				w.Header().Set("Content-Type", c.kind)
			}
			w.Header().Set("X-Mail", someMail)
			w.Header().Set("Set-Cookie", "a=b")
			b := packed(t, c.encoding, c.text)
			if c.encoding != "" {
				w.Header().Set("Content-Encoding", c.encoding)
			}
			if c.chunked {
				_ = http.NewResponseController(w).Flush()
			} else {
				w.Header().Set("Content-Length", itoa(len(b)))
			}
			_, _ = w.Write(b)
		})
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v %.200q", name, err, text)
			continue
		}
		if strings.Contains(text, someMail) || strings.Contains(text, "Zk3vQ9") || !strings.Contains(text, "[email]") {
			t.Errorf("%s: %.300q", name, text)
		}
		if resp.Header.Get("X-Mail") != "[email]" || resp.Header.Get("Set-Cookie")+resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: header %v", name, resp.Header)
		}
		got, _ := x.measured()
		if got.bytes != int64(len(text)) || len(got.findings) == 0 || !strings.HasPrefix(text, got.text) || got.status != 200 {
			t.Errorf("%s: measured %d bytes of %d, %d findings", name, got.bytes, len(text), len(got.findings))
		}
	}
}

// The password is in quotes: what follows one without them on a line of settings may belong to it, and a stream that
// comes to a halt lets ordinary words go (Stream.Yield).
func TestEgress_Invariant2_AStreamIsTheRedactionOfTheWhole(t *testing.T) {
	x := newOutside(t, redact.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 25 {
		var text strings.Builder
		for range 40 {
			text.WriteString([]string{"some words ", someKey, " ", someMail, "\n", "4111 1111 1111 1111", ` password="hunter2seven" `, "+1 212 555 0147", "é日本 "}[rng.IntN(9)])
		}
		whole := text.String()
		want := string(x.engine.Text([]byte(whole)).Out)
		_, got, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for rest := whole; rest != ""; {
				n := 1 + rng.IntN(min(len(rest), 60))
				_, _ = io.WriteString(w, rest[:n])
				_ = http.NewResponseController(w).Flush()
				rest = rest[n:]
			}
		})
		if err != nil || got != want {
			t.Fatalf("round %d: %v\n got %q\nwant %q", round, err, got, want)
		}
	}
}

func TestEgress_AnAnswerThatBreaksOffIsSeenToBreakOff(t *testing.T) {
	x := newOutside(t, redact.Options{})
	for name, text := range map[string]string{
		"short JSON":      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"a\":1}",
		"long text":       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5000000\r\n\r\n" + strings.Repeat("words and words\n", 200_000),
		"chunks":          "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"events":          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n",
		"a lying chunk":   "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
		"two lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"false gzip":      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
		"unknown coding":  "HTTP/1.1 200 OK\r\nContent-Encoding: lzma\r\nContent-Length: 5\r\n\r\nhello",
		"status 099":      "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n",
		"an upgrade":      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
		"a header bomb":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 400) + "\r\n",
		"endless 1xx":     strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 20_000),
		"no HTTP at all":  "hello\r\n\r\n",
		"negative length": "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
	} {
		d, o := x.raw(domain.Domain{}, answering(text))
		resp, got, err := do(t, "GET", x.front(d, o).URL, nil, nil)
		if err == nil && (resp.StatusCode != 599 || resp.Header.Get("X-Kind") != string(holdfast.KindForward)) {
			t.Errorf("%s: a whole answer: %d %s %.80q", name, resp.StatusCode, resp.Header.Get("X-Kind"), got)
		}
		if _, kept := x.measured(); holdfast.KindOf(kept) != holdfast.KindForward {
			t.Errorf("%s: %v", name, kept)
		}
	}
}

func TestEgress_AnswersWithoutABody(t *testing.T) {
	x := newOutside(t, redact.Options{})
	for _, c := range []struct {
		method string
		status int
	}{{"HEAD", 200}, {"GET", 204}, {"GET", 304}, {"GET", 200}} {
		resp, text, err := x.answered(domain.Domain{}, c.method, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(c.status)
		})
		if err != nil || resp.StatusCode != c.status || text != "" || resp.Header.Get("Etag") != `"x"` {
			t.Errorf("%s %d: %v %v %q", c.method, c.status, resp, err, text)
		}
	}
}

func TestEgress_TrailersAndRangesDoNotPass(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d, o := x.upstream(domain.Domain{}, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Key")
		w.Header().Set("Accept-Ranges", "bytes")
		_, _ = fmt.Fprintf(w, "range %q, encodings %q", r.Header.Get("Range"), r.Header.Get("Accept-Encoding"))
		w.Header().Set("X-Key", someKey)
	})
	resp, text, err := do(t, "GET", x.front(d, o).URL, http.Header{"Range": {"bytes=0-10"}, "Accept-Encoding": {"gzip, br"}}, nil)
	if err != nil || text != `range "", encodings "identity"` {
		t.Errorf("%v %q", err, text)
	}
	if len(resp.Trailer) > 0 || resp.Header.Get("Accept-Ranges") != "" {
		t.Errorf("trailer %v, header %v", resp.Trailer, resp.Header)
	}
}

func TestEgress_BinaryAnswersPassWhereTheRowSaysSo(t *testing.T) {
	x := newOutside(t, redact.Options{})
	small := bytes.Repeat([]byte{0, 1, 2, 0xfe, 0x80, 7}, 500)
	large := bytes.Repeat(small, 1000)
	for name, b := range map[string][]byte{"small": small, "large": large} {
		for _, kind := range []string{"application/octet-stream", "text/plain"} {
			for _, length := range []bool{true, false} {
				send := func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", kind)
					if length {
						w.Header().Set("Content-Length", itoa(len(b)))
					}
					_, _ = w.Write(b)
				}
				resp, text, err := x.answered(domain.Domain{}, "GET", send)
				mustRefuse(t, resp, text, err, holdfast.KindDomainBlocked)
				resp, text, err = x.answered(domain.Domain{Binary: true}, "GET", send)
				if err != nil || text != string(b) {
					t.Errorf("%s %s: %v, status %d, %d bytes", name, kind, err, resp.StatusCode, len(text))
				}
			}
		}
	}
	// Text does not turn binary on its way.
	if _, _, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("words\n", 10_000))
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, wide(someKey))
	}); err == nil {
		t.Error("UTF-16 behind text came through as a whole answer")
	}
}

// Git's packets say their own length: where binary bodies pass they pass whole,
// both ways, whatever stands in them. Elsewhere, and under another name, they are
// text as any other.
func TestEgress_GitsPacketsPassWhole(t *testing.T) {
	x := newOutside(t, redact.Options{})
	const packets = "003f0123456789012345678901234567890123456789 refs/heads/ann@example.com\n0000"
	for _, c := range []struct {
		kind, body string
		binary     bool
		whole      bool
	}{
		{"application/x-git-upload-pack-result", packets, true, true},
		{"application/x-git-upload-pack-result", packets, false, false},
		{"application/x-git-upload-pack-result", "ann@example.com", true, false},
		{"text/plain", packets, true, false},
	} {
		for _, long := range []bool{false, true} {
			var came string
			d, o := x.upstream(domain.Domain{Binary: c.binary}, true, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				came = string(b)
				w.Header().Set("Content-Type", c.kind)
				if long { // of no known length
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.WriteString(w, c.body)
			})
			_, text, err := do(t, "POST", x.front(d, o).URL, http.Header{"Content-Type": {c.kind}}, strings.NewReader(c.body))
			if err != nil || (text == c.body) != c.whole || (came == c.body) != c.whole {
				t.Errorf("%+v, %t: %v, sent %q, received %q", c, long, err, came, text)
			}
		}
	}
}

func TestEgress_AnswersAreCapped(t *testing.T) {
	x := newOutside(t, redact.Options{})
	text := strings.Repeat("words and words\n", 10_000)
	for name, length := range map[string]bool{"announced": true, "not announced": false} {
		resp, got, err := x.answered(domain.Domain{MaxResponse: 50_000}, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if length {
				w.Header().Set("Content-Length", itoa(len(text)))
			}
			_, _ = io.WriteString(w, text)
		})
		if length {
			mustRefuse(t, resp, got, err, holdfast.KindPayloadTooLarge)
		} else if err == nil {
			t.Errorf("%s: %d bytes came as a whole answer", name, len(got))
		}
		if _, kept := x.measured(); holdfast.KindOf(kept) != holdfast.KindPayloadTooLarge {
			t.Errorf("%s: %v", name, kept)
		}
	}
}

func TestEgress_ResponseModes(t *testing.T) {
	x := newOutside(t, redact.Options{})
	send := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "mail "+someMail) }
	resp, text, err := x.answered(domain.Domain{Response: domain.Refuse, Personal: domain.Refuse}, "GET", send)
	mustRefuse(t, resp, text, err, holdfast.KindDomainBlocked)
	if strings.Contains(text, someMail) {
		t.Errorf("the refusal repeats it: %q", text)
	}
	if _, text, err = x.answered(domain.Domain{Response: domain.Off}, "GET", send); err != nil || text != "mail "+someMail {
		t.Errorf("off: %v %q", err, text)
	}
}

func TestEgress_AClientThatLeavesEndsTheUpstream(t *testing.T) {
	x := newOutside(t, redact.Options{})
	gone := make(chan struct{})
	d, o := x.upstream(domain.Domain{}, true, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first words, and more\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	front := x.front(d, o)
	c, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, _ = c.Read(make([]byte, 100))
	c.Close()
	<-gone
}
