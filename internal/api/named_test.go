package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestNamed: what could not stand in a token is a UsageError that names the
// field.
func TestNamed(t *testing.T) {
	long := strings.Repeat("é", MaxName)
	for _, c := range []struct {
		ask  Ask
		want string
	}{
		{Ask{Agent: "a"}, ""},
		{Ask{Agent: long[:2*MaxAgent], Kind: long, Session: long, Intent: long}, ""},
		{Ask{Token: "x", Kind: long + long}, ""},
		{Ask{}, "the agent has no name"},
		{Ask{Agent: long}, "the agent has more than 240 code points"},
		{Ask{Agent: "a", Kind: long + "x"}, "the kind has more than 256 code points"},
		{Ask{Agent: "a", Session: long + "x"}, "the session has more than 256 code points"},
		{Ask{Agent: "a", Intent: long + "x"}, "the intent has more than 256 code points"},
		{Ask{Agent: "a\n"}, "the agent holds a control character"},
		{Ask{Agent: "a", Session: "\x7f"}, "the session holds a control character"},
		{Ask{Agent: "a", Intent: "\u0085"}, "the intent holds a control character"},
		{Ask{Agent: "a", Kind: "\xff"}, "the kind is not valid UTF-8"},
	} {
		err := c.ask.Named()
		var e *holdfast.Error
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &e) || e.Kind != holdfast.KindUsage || e.Why != c.want) {
			t.Errorf("%.40v: %v, want %q", c.ask, err, c.want)
		}
	}
	s := &Server{Mint: func(holdfast.Identity) (holdfast.Secret, error) {
		t.Error("a token was made")
		return holdfast.Secret{}, nil
	}}
	if _, err := s.request(Ask{Agent: strings.Repeat("x", 5000)}); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Errorf("request: %v", err)
	}
}
