package egress

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// FuzzEvents: whatever an upstream sends as events, and wherever it is cut, no
// key comes out whole, and an answer in which nothing is found keeps its words.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(delta("It is KEY now.")+"data: [DONE]\n\n"), uint8(7))
	f.Add([]byte("data: {\"text\":\"K\"}\r\n\r\ndata:E\rdata: Y\r\r: c\n\nid: KEY\n\n"), uint8(1))
	f.Add([]byte("data: {\"a\":[\"KEY\",\"x\"],\"KEY\":1,\"index\":2}\n\n"), uint8(3))
	f.Add([]byte("event: KEY\ndata\ndata:\n\n\n\ndata: {\"delta\":{\"text\":\"KEY"), uint8(200))
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		f.Fatal(err)
	}
	p := &Proxy{}
	p.out.memory.Most, p.out.patience = 64<<20, time.Hour
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		b = bytes.ReplaceAll(b, []byte("KEY"), []byte(" "+someKey+" "))
		for _, kind := range []frames.Frame{frames.Events, frames.Lines} {
			w := &sink{h: http.Header{}}
			a := &answer{ctx: t.Context(), p: p, d: &domain.Domain{}, w: w, c: cleaner.New(e), most: 1 << 30, header: http.Header{}, hash: noHash{}}
			a.resp = &http.Response{StatusCode: 200, Body: http.NoBody}
			err := a.events(t.Context(), &cutting{b, int(cut) + 1}, kind)
			if bytes.Contains(w.b.Bytes(), []byte(someKey)) {
				t.Fatalf("%q: the key came out in %q", b, w.b.Bytes())
			}
			if err == nil && kind == frames.Lines && len(a.got.findings) == 0 && w.b.String() != string(b) {
				t.Fatalf("%q became %q", b, w.b.Bytes())
			}
			if got, want := eventData(w.b.String()), eventData(string(b)); err == nil && kind == frames.Events && len(a.got.findings) == 0 && !slices.Equal(got, want) {
				t.Fatalf("%q became %q: %q, want %q", b, w.b.Bytes(), got, want)
			}
		}
	})
}

// eventData is the data of each event, as HTML section 9.2.6 reads it.
func eventData(s string) (all []string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	var data []string
	for line := range strings.SplitSeq(s+"\n\n", "\n") {
		if line == "" && data != nil {
			all, data = append(all, strings.Join(data, "\n")), nil
		}
		if name, value, _ := strings.Cut(line, ":"); name == "data" {
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return all
}

type sink struct {
	h http.Header
	b bytes.Buffer
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}
func (s *sink) Write(p []byte) (int, error) { return s.b.Write(p) }

// cutting gives its bytes n at a time.
type cutting struct {
	b []byte
	n int
}

func (c *cutting) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.b)
	c.b = c.b[n:]
	return n, nil
}
