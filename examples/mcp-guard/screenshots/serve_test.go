package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serve is a server on another port of this machine, as an agent may start one.
func serve(t *testing.T, f http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewServer(f)
	return s, strings.TrimPrefix(s.URL, "http://")
}

// fetch reads a page with somebody's cookies.
func fetch(t *testing.T, cookies []*http.Cookie, url string) string {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
