package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// Who is not signed in learns that Holdfast is up, and nothing about anybody.
func TestPagesSayLittle(t *testing.T) {
	_, c, down := up(t, "version: 1\nlisten: {pages: '127.0.0.1:0'}\n")
	defer down()
	st, err := c.Status(t.Context())
	if err != nil || st.Pages == "" {
		t.Fatal(err, st.Pages)
	}
	if code, body := get(t, st.Pages+"/healthz"); code != 200 || body != "ok\n" {
		t.Error(code, body)
	}
	_, first := get(t, st.Pages+"/")
	for _, path := range []string{"/", "/v1/status", "/v1/halt", "/review/rv_0123456789", "/crossings", "/events", "/k/x/", "/nothing"} {
		code, body := get(t, st.Pages+path)
		if code != http.StatusUnauthorized || !strings.Contains(body, "Sign in") || strings.Contains(body, st.Version+"<") {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
		if len(body) < len(first)/2 {
			t.Errorf("%s: another page: %s", path, body)
		}
	}
}

// Somebody who starts a daemon is told that its address is taken; one that
// lingers goes on, and status says so.
func TestPagesWhosePortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, _, down := up(t, "version: 1\nlisten: {pages: none}\n")
	defer down()
	if _, err := d.PageLink(""); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Error("a link to no pages:", err)
	}
	d.mu.Lock()
	taken := *d.loaded
	config := *taken.Config
	config.Listen.Pages = l.Addr().String()
	taken.Config = &config
	d.loaded = &taken
	d.mu.Unlock()
	_, err = d.listenPages(false)
	e, ok := err.(*holdfast.Error)
	if !ok || !strings.Contains(e.Why, l.Addr().String()) || !strings.Contains(e.Hint, "listen.pages") {
		t.Errorf("%v", err)
	}
	if got, err := d.listenPages(true); got != nil || err != nil {
		t.Error("a lingering daemon:", got, err)
	}
	st, err := d.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(st.Problems, "\n"), "the pages are not served on "+l.Addr().String()) {
		t.Error(err, st.Problems)
	}
}

// A stream that is open does not keep a daemon from ending.
func TestPagesEndWithTheDaemon(t *testing.T) {
	d, _, down := up(t, "version: 1\nlisten: {pages: '127.0.0.1:0'}\n")
	link, err := d.PageLink("")
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(link, "/in/")
	hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := hc.Post(link, "application/x-www-form-urlencoded", nil)
	if err != nil || r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatal(err, r.Status)
	}
	r.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(r.Cookies()[0])
	stream, err := hc.Do(req)
	if err != nil || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(err, stream.Status)
	}
	defer stream.Body.Close()
	start := time.Now()
	down()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Error("the stream did not end well:", err)
	}
	// One that is not told is cut off after two seconds, and does not end well.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v to end", took)
	}
}
