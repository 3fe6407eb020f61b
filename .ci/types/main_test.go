package main

import (
	"strings"
	"testing"
)

// TestCheck: what is wrong on another system alone is found there, in tests too,
// and with its place; what is not there at all is no success.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		system, pattern string
		code            int
		says            []string
	}{
		{"linux", "./testdata/wrong", 0, nil},
		{"darwin", "./testdata/wrong", 1, []string{"wrong_darwin.go:3:13: undefined: missing", "wrong_darwin_test.go:3:16: undefined: lacking"}},
		{"linux", "./testdata/empty", 1, []string{"empty"}},
	} {
		t.Run(c.system+" "+c.pattern, func(t *testing.T) {
			t.Setenv("GOOS", c.system)
			t.Setenv("CGO_ENABLED", "0")
			var said strings.Builder
			if code := check(&said, c.pattern); code != c.code {
				t.Errorf("%d, not %d: %s", code, c.code, &said)
			}
			for _, s := range c.says {
				if !strings.Contains(said.String(), s) {
					t.Errorf("%q is not in\n%s", s, &said)
				}
			}
		})
	}
}
