package egress

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// gigabyte is how large the bodies of these tests are, in bytes: a gigabyte in
// full.
func gigabyte() int64 { return int64(testrepeat.Times(1024, 32)) << 20 }

// mostHeld runs f and says how much more memory was in use at a time than before:
// what only waits to be collected is none, however much of it other tests let wait.
func mostHeld(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what nobody holds any more is little of it
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var top atomic.Int64
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			held := func() int64 {
				runtime.ReadMemStats(&now)
				return int64(now.HeapAlloc) - int64(before.HeapAlloc)
			}
			if held() > top.Load() {
				runtime.GC()
				top.Store(max(top.Load(), held()))
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-watched
	return top.Load()
}

// pour writes n bytes of text in chunks, or as they are.
func pour(c io.Writer, n int64, text string, chunked bool) (wrote int64) {
	piece := text
	if chunked {
		piece = chunk(text)
	}
	for wrote < n {
		if _, err := io.WriteString(c, piece); err != nil {
			return wrote
		}
		wrote += int64(len(text))
	}
	if chunked {
		io.WriteString(c, "0\r\n\r\n")
	}
	return wrote
}

// TestBad_AGigabyteOfARequest: a body far beyond what the row allows is refused
// by what it announces, or at the bound; it is not held, and nothing is sent.
func TestBad_AGigabyteOfARequest(t *testing.T) {
	w := newEgress(t, setup{})
	size, piece := gigabyte(), bigText(64<<10)
	for n, head := range []string{fmt.Sprintf("Content-Length: %d\r\n", size), "Transfer-Encoding: chunked\r\n"} {
		var wrote int64
		held := mostHeld(func() {
			c := w.dial(w.explicit)
			done := make(chan struct{})
			go func() {
				defer close(done)
				fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nContent-Type: text/plain\r\n%s\r\n", w.plainHost(), head)
				wrote = pour(c, size, piece, n == 1)
			}()
			w.refused(hear(bufio.NewReader(c), "POST"), http.StatusRequestEntityTooLarge)
			c.Close()
			<-done
		})
		if held > 96<<20 || wrote > domain.DefaultMaxRequest+16<<20 {
			t.Errorf("%q: %d bytes were held, %d taken", head, held, wrote)
		}
		w.wrong(n+1, "egress/plain.test", holdfast.KindPayloadTooLarge, false)
	}
	in := &endless{left: size}
	held := mostHeld(func() {
		resp, err := w.client().Post(w.url("good.test"), "text/plain", in)
		w.must(err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		w.refused(&reply{resp, string(text)}, http.StatusRequestEntityTooLarge)
	})
	if held > 96<<20 || in.gave > domain.DefaultMaxRequest+16<<20 {
		t.Errorf("HTTP/2: %d bytes were held, %d taken", held, in.gave)
	}
	w.wrong(3, "egress/good.test", holdfast.KindPayloadTooLarge, false)
	w.untouched()
	if used := w.p.out.memory.Used.Load(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// TestBad_AGigabyteOfAnAnswer: one that is announced beyond what the row allows
// is refused before it comes; one that is not ends at the bound, seen by the
// client; one that is allowed goes through in little memory.
func TestBad_AGigabyteOfAnAnswer(t *testing.T) {
	size, most := gigabyte(), int64(10<<20)
	piece := bigText(64 << 10)
	answer := func(row domain.Domain, kind, head, piece string, wrote func(int64)) *world {
		return badUp(t, row, nil, func(c net.Conn) {
			askedOf(c)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n", kind, head)
			wrote(pour(c, size, piece, strings.HasPrefix(head, "Transfer")))
		})
	}
	chunked := "Transfer-Encoding: chunked\r\n"
	for name, c := range map[string]struct {
		kind, head string
		status     int
	}{
		"announced": {"text/plain", fmt.Sprintf("Content-Length: %d\r\n", size), 413},
		"chunks":    {"text/plain", chunked, 200},
		"no length": {"text/plain", "Connection: close\r\n", 200},
		"JSON":      {"application/json", chunked, 200},
	} {
		var wrote atomic.Int64
		w := answer(domain.Domain{MaxResponse: most}, c.kind, c.head, piece, wrote.Store)
		var r *reply
		var err error
		held := mostHeld(func() { r, err = w.fetch("plain.test", "/") })
		switch {
		case r == nil || r.StatusCode != c.status:
			t.Fatalf("%s: %v %+v", name, err, r)
		case c.status == 413:
			w.refused(r, 413)
		case err == nil || int64(len(r.Text)) > most:
			t.Errorf("%s: %d bytes came, and look whole", name, len(r.Text))
		}
		if held > 128<<20 || wrote.Load() > most+16<<20 {
			t.Errorf("%s: %d bytes were held, %d taken", name, held, wrote.Load())
		}
		w.wrong(1, "egress/plain.test", holdfast.KindPayloadTooLarge, true)
	}
	for name, c := range map[string]struct {
		kind, piece string
		row         domain.Domain
	}{
		"text":   {"text/plain", piece, domain.Domain{MaxResponse: 2 << 30}},
		"binary": {"application/octet-stream", strings.Repeat("\x00\x01\x02\x03", 16<<10), domain.Domain{MaxResponse: 2 << 30, Binary: true}},
	} {
		wrote, poured := make(chan int64, 1), int64(0)
		size = int64(testrepeat.Times(1024, 10)) << 20
		w := answer(c.row, c.kind, chunked, c.piece, func(n int64) { wrote <- n })
		var n int64
		held := mostHeld(func() {
			client := w.client()
			client.Timeout = 5 * time.Minute
			resp, err := client.Get("http://" + w.plainHost() + "/")
			w.must(err)
			defer resp.Body.Close()
			n, err = io.Copy(io.Discard, resp.Body)
			w.must(err)
			poured = <-wrote // which may be said after the last byte has come
		})
		if n != poured || n < size || held > 64<<20 {
			t.Errorf("%s: %d bytes came of %d, %d were held", name, n, poured, held)
		}
		w.last(1, "egress/plain.test", "")
	}
}

// TestBad_AGigabyteThroughATunnel: bytes that nobody looks into end at the row's
// bounds, each way.
func TestBad_AGigabyteThroughATunnel(t *testing.T) {
	cert, _ := minted(t, nil)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	piece := bigText(64 << 10)
	row := domain.Domain{Inspect: domain.Opaque, MaxRequest: 1 << 20, MaxResponse: 1 << 20}
	for _, out := range []bool{true, false} {
		var wrote int64
		done := make(chan struct{})
		w := badUp(t, row, conf, func(c net.Conn) {
			if !out {
				wrote = pour(c, gigabyte(), piece, false)
				close(done)
				return
			}
			io.Copy(io.Discard, c)
		})
		c := w.through()
		if out {
			wrote = pour(c, gigabyte(), piece, false)
			close(done)
		} else if n, err := io.Copy(io.Discard, c); err == nil || n > 1<<20 {
			t.Errorf("%d bytes came, %v", n, err)
		}
		<-done
		if wrote > 32<<20 {
			t.Errorf("out %v: %d bytes were taken", out, wrote)
		}
		w.wrong(1, "egress/good.test", holdfast.KindPayloadTooLarge, true)
	}
}
