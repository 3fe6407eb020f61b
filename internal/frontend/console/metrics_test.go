package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Metrics need no session, answer this machine by its own names alone, and are
// not there where none are given.
func TestMetricsAreForThisMachine(t *testing.T) {
	w := newWorld(t)
	w.browser().get("/metrics").wants(http.StatusUnauthorized)
	s := w.site
	s.c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "numbers") })
	h := s.routes()
	for _, c := range []struct {
		name, method, remote, host string
		code                       int
	}{
		{"here", "GET", "127.0.0.1:5", "127.0.0.1:" + s.port, http.StatusOK},
		{"here in IPv6", "GET", "[::1]:5", "localhost:" + s.port, http.StatusOK},
		{"another machine", "GET", "192.0.2.1:5", "127.0.0.1:" + s.port, http.StatusForbidden},
		{"another name", "GET", "127.0.0.1:5", "rebound.example:" + s.port, http.StatusMisdirectedRequest},
		{"another port", "GET", "127.0.0.1:5", "127.0.0.1:1", http.StatusMisdirectedRequest},
		{"a form", "POST", "127.0.0.1:5", "127.0.0.1:" + s.port, http.StatusUnauthorized},
		{"who is unknown", "GET", "", "127.0.0.1:" + s.port, http.StatusForbidden},
	} {
		r := httptest.NewRequest(c.method, "/metrics", nil)
		r.RemoteAddr, r.Host = c.remote, c.host
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if got.Code != c.code || (got.Body.String() == "numbers") != (c.code == http.StatusOK) {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
	}
}
