package remote

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

func anyRoom(int) error { return nil }

func readAll(r io.Reader) (got []string, ev *events, err error) {
	ev = newEvents(r, anyRoom)
	for {
		e, err := ev.next()
		if err != nil {
			return got, ev, err
		}
		got = append(got, e.name+"="+string(e.data))
	}
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		want  []string
		id    string
		retry time.Duration
	}{
		"one":                   {"data: a\n\n", []string{"=a"}, "", 0},
		"no space":              {"data:a\n\n", []string{"=a"}, "", 0},
		"two spaces":            {"data:  a\n\n", []string{"= a"}, "", 0},
		"crlf":                  {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}, "", 0},
		"cr":                    {"data: a\r\rdata: b\r\r", []string{"=a", "=b"}, "", 0},
		"mixed":                 {"data: a\r\ndata: b\rdata: c\n\r\n", []string{"=a\nb\nc"}, "", 0},
		"several lines":         {"data: {\ndata:  }\n\n", []string{"={\n }"}, "", 0},
		"comments":              {": hello\n:\ndata: a\n:x\n\n", []string{"=a"}, "", 0},
		"mark":                  {"\xEF\xBB\xBFdata: a\n\n", []string{"=a"}, "", 0},
		"mark once":             {"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []string{"=b"}, "", 0},
		"mark later":            {"data: a\n\n\xEF\xBB\xBFdata: b\n\n", []string{"=a"}, "", 0},
		"half a mark":           {"\xEF\xBB", nil, "", 0},
		"named":                 {"event: x\ndata: a\n\ndata: b\n\n", []string{"x=a", "=b"}, "", 0},
		"named without data":    {"event: x\n\ndata: b\n\n", []string{"=b"}, "", 0},
		"id":                    {"id: 7\ndata: a\n\n", []string{"=a"}, "7", 0},
		"id alone":              {"id: 7\n\n", nil, "7", 0},
		"priming":               {"id: 7\ndata: \n\n", []string{"="}, "7", 0},
		"id of an event cut":    {"id: 7\ndata: a\n\nid: 8\ndata: b\n", []string{"=a"}, "7", 0},
		"id taken back":         {"id: 7\ndata: a\n\nid\ndata: b\n\n", []string{"=a", "=b"}, "", 0},
		"id with a zero":        {"id: 7\x00\ndata: a\n\n", []string{"=a"}, "", 0},
		"id too long":           {"id: " + strings.Repeat("7", maxEventID+1) + "\ndata: a\n\n", []string{"=a"}, "", 0},
		"retry":                 {"retry: 250\ndata: a\n\n", []string{"=a"}, "", 250 * time.Millisecond},
		"retry too long":        {"retry: 999999999\n\n", nil, "", maxRetry},
		"retry beyond counting": {"retry: 99999999999999999999\n\n", nil, "", 0},
		"retry no digits":       {"retry: -5\n\nretry: 1e3\n\nretry:\n\n", nil, "", 0},
		"unknown field":         {"datum: x\ndata: a\n\n", []string{"=a"}, "", 0},
		"field alone":           {"data\n\n", []string{"="}, "", 0},
		"case":                  {"Data: a\n\n", nil, "", 0},
		"cut":                   {"data: a\n", nil, "", 0},
		"cut in the line":       {"data: a\n\ndata: b", []string{"=a"}, "", 0},
		"nothing":               {"", nil, "", 0},
		"name too long":         {"event: " + strings.Repeat("m", 1000) + "\ndata: a\n\n", []string{strings.Repeat("m", maxEventName+1) + "=a"}, "", 0},
	} {
		for how, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "by bytes": iotest.OneByteReader(strings.NewReader(c.in)),
			"by halves": iotest.HalfReader(strings.NewReader(c.in)),
		} {
			got, ev, err := readAll(r)
			if !slices.Equal(got, c.want) || ev.lastID != c.id || ev.retry != c.retry || err != io.EOF {
				t.Errorf("%s, %s: %q, id %q, retry %v, %v", name, how, got, ev.lastID, ev.retry, err)
			}
		}
	}
}

// TestEventsAtOnce: an event is there when its blank line is, even where the
// line ends with a carriage return that a line feed may follow.
func TestEventsAtOnce(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n", "\r\n\r"} {
		r, w := io.Pipe()
		got := make(chan string)
		go func() {
			e, _ := newEvents(r, anyRoom).next()
			got <- string(e.data)
		}()
		_, _ = io.WriteString(w, "data: a"+end)
		select {
		case s := <-got:
			if s != "a" {
				t.Errorf("%q: got %q", end, s)
			}
		case <-time.After(time.Minute):
			t.Errorf("%q: no event", end)
		}
		r.Close()
	}
}

// endless is a stream that never ends a line.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.n += len(b)
	return len(b), nil
}

func TestEventsAreBounded(t *testing.T) {
	src := &endless{}
	if _, _, err := readAll(src); !errors.Is(err, errLong) || src.n > mcp.MaxLine+64<<10 {
		t.Errorf("an endless line: %v after %d bytes", err, src.n)
	}
	lines := strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", mcp.MaxLine/1000+10)
	if _, _, err := readAll(strings.NewReader(lines)); !errors.Is(err, errLong) {
		t.Errorf("endless lines: %v", err)
	}
	whole := "data: " + strings.Repeat("x", mcp.MaxLine) + "\n\n"
	if got, _, err := readAll(strings.NewReader(whole)); len(got) != 1 || err != io.EOF {
		t.Errorf("the longest message: %d, %v", len(got), err)
	}
	full := errors.New("no room")
	ev := newEvents(strings.NewReader(whole), func(n int) error {
		if n > smallMessage {
			return full
		}
		return nil
	})
	if _, err := ev.next(); !errors.Is(err, full) {
		t.Errorf("without room: %v", err)
	}
}

// FuzzEvents holds the reader against the standard's own way to say it: split
// into lines first, then look at each.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\xEF\xBB\xBFid: 1\rdata\r\r", "event: x\r\ndata: 1\r\ndata: 2\r\n\r\n", ":\n\n", "retry: 5\nid\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<16 {
			return
		}
		got, ev, err := readAll(iotest.HalfReader(bytes.NewReader(in)))
		if err != io.EOF {
			t.Fatal(err)
		}
		want, id := plainly(in)
		if !slices.Equal(got, want) || ev.lastID != id {
			t.Errorf("%q: got %q id %q, want %q id %q", in, got, ev.lastID, want, id)
		}
		if ev.retry < 0 || ev.retry > maxRetry {
			t.Errorf("retry %v", ev.retry)
		}
	})
}

func plainly(in []byte) (got []string, id string) {
	s := strings.TrimPrefix(string(in), "\xEF\xBB\xBF")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(s, "\n")
	var data []string
	name, next := "", ""
	next = id
	for _, l := range lines[:len(lines)-1] {
		if l == "" {
			id = next
			if data != nil {
				got = append(got, name+"="+strings.Join(data, "\n"))
			}
			data, name = nil, ""
			continue
		}
		field, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			if name = value[:min(len(value), maxEventName+1)]; strings.ToValidUTF8(name, "") != name {
				name = "?"
			}
		case "id":
			if len(value) <= maxEventID && isPlain(value) {
				next = value
			}
		}
	}
	return got, id
}
