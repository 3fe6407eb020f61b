package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// Of secrets that overlap nothing stays visible, neither whole nor in pieces.
func TestRegisteredSecretsThatOverlapAreMasked(t *testing.T) {
	chain := []string{"first-half-joint", "joint-second-part", "part-of-a-third"}
	e := registered(t, append(chain, "aab-aab-aab-", strings.Repeat("xy", 100))...)
	const m = "[secret redacted]"
	for name, c := range map[string]struct{ text, want string }{
		"two":                {"a first-half-joint-second-part b", "a " + m + " b"},
		"three":              {"a first-half-joint-second-part-of-a-third b", "a " + m + " b"},
		"twice":              {"a first-half-joint-second-part first-half-joint-second-part b", "a " + m + " " + m + " b"},
		"itself":             {"a aab-aab-aab-aab-aab- b", "a " + m + " b"},
		"one in another":     {"a aab-aab-aab- b", "a " + m + " b"},
		"the second escaped": {`a first-half-\u006aoint-second-part b`, "a " + m + " b"},
		"the second broken":  {"a first-half-joint-sec\nond-part b", "a " + m + " b"},
		"longer than a span": {"a " + strings.Repeat("xy", 5000) + " b", "a " + m + " b"},
		"one after another":  {"a first-half-jointfirst-half-joint b", "a " + m + m + " b"},
	} {
		text := []byte(c.text)
		r := e.Text(text)
		if string(r.Out) != c.want {
			t.Errorf("%s: %.200q, want %q", name, r.Out, c.want)
		}
		if again := e.Text(r.Out); !bytes.Equal(again.Out, r.Out) {
			t.Errorf("%s: then %.200q", name, again.Out)
		}
		for _, n := range []int{1, 100, 4096} {
			if n > 1 || len(text) < 4096 {
				agrees(t, e, r, every(text, n)...)
			}
		}
		for i := range min(len(text), 100) {
			if len(text) > 4096 && i%10 > 0 && !testrepeat.Enduring {
				continue
			}
			agrees(t, e, r, text[:i], text[i:])
		}
	}
}
