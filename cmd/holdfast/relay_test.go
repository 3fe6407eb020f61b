package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// TestLines: however the bytes are cut, each whole line is told once, and one
// that is too long is passed over without being kept.
func TestLines(t *testing.T) {
	text := "one\n\ntwo\nthree"
	for size := 1; size <= len(text); size++ {
		var got []string
		l := &lines{each: func(b []byte) { got = append(got, strings.TrimSpace(string(b))) }}
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := l.Write([]byte(rest[:min(size, len(rest))])); n != min(size, len(rest)) || err != nil {
				t.Fatal(n, err)
			}
		}
		if strings.Join(got, ",") != "one,,two" || !l.within() {
			t.Errorf("in parts of %d: %q, within %v", size, got, l.within())
		}
	}
	n := 0
	l := &lines{each: func(b []byte) { n++ }}
	part := bytes.Repeat([]byte("x"), 1<<20)
	for range mcp.MaxLine/len(part) + 2 {
		l.Write(part)
	}
	if !l.within() || cap(l.line) > mcp.MaxLine+2 {
		t.Errorf("a long line is kept: %d bytes", cap(l.line))
	}
	l.Write([]byte("\nshort\n"))
	if n != 1 || l.within() {
		t.Errorf("%d lines, within %v", n, l.within())
	}
}

// TestWaiting: an id waits from its request to its answer or its cancellation,
// and never more than the bound do.
func TestWaiting(t *testing.T) {
	var w waiting
	request := func(id string) { w.request([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)) }
	request(`1`)
	request(`"1"`)
	request(`2`)
	request(`3`)
	w.request([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	w.request([]byte(`{"jsonrpc":"2.0","id":9,"result":{}}`)) // the client's answer to the server
	w.request([]byte(`no JSON`))
	w.response([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	w.response([]byte(`{"jsonrpc":"2.0","id":"2","result":{}}`))
	w.response([]byte(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage"}`)) // the server's own request
	w.request([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`))
	var out bytes.Buffer
	a := &app{out: &out}
	if err := a.answerLeft(w.take(), true); err != nil {
		t.Fatal(err)
	}
	const rest = `,"error":{"code":-32000,"message":"holdfast ended; whether the call took effect is recorded as unknown"}}` + "\n"
	if want := "\n" + `{"jsonrpc":"2.0","id":"1"` + rest + `{"jsonrpc":"2.0","id":2` + rest; out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
	for i := range 2 * maxWaiting {
		request(fmt.Sprint(i))
	}
	if got := len(w.take()); got != maxWaiting {
		t.Errorf("%d wait", got)
	}
}

// More requests than are remembered do not fill the place for answers that come
// before their requests were looked at: nobody is answered twice.
func TestRelayForgetsAnswersToWhatItForgot(t *testing.T) {
	var w waiting
	in := &lines{each: w.request, after: w.caughtUp}
	for i := range 3 * maxWaiting {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
	}
	for i := range 3 * maxWaiting {
		w.response(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i))
	}
	w.response([]byte(`{"jsonrpc":"2.0","id":"early","result":{}}`)) // the last place is long gone
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":"other","method":"ping"}`)
	w.response([]byte(`{"jsonrpc":"2.0","id":"soon","result":{}}`))
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":"soon","method":"ping"}`)
	if left := w.take(); len(left) != 1 || string(left[0]) != `"other"` {
		t.Errorf("%s wait", left)
	}
}
