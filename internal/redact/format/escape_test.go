package format

import (
	"net/url"
	"testing"
)

// TestEscapesAreThoseOfNetURL compares every byte, alone and between others.
func TestEscapesAreThoseOfNetURL(t *testing.T) {
	all := "é \x00"
	for c := range 256 {
		all += string([]byte{byte(c)})
		for _, s := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}) + "%+ b", all} {
			if got, want := escapePath(s), url.PathEscape(s); got != want {
				t.Errorf("path %q: %q, want %q", s, got, want)
			}
			if got, want := escapeQuery(s), url.QueryEscape(s); got != want {
				t.Errorf("query %q: %q, want %q", s, got, want)
			}
		}
	}
}
