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
	s := &Server{Mask: func(s string) string { return s }, Mint: func(holdfast.Identity) (holdfast.Secret, error) {
		t.Error("a token was made")
		return holdfast.Secret{}, nil
	}}
	if _, err := s.request(Ask{Agent: strings.Repeat("x", 5000)}); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Errorf("request: %v", err)
	}
}

// TestNumbered: what is no token's number is refused at the door, a token itself
// above all, which would be written down.
func TestNumbered(t *testing.T) {
	for id, want := range map[string]string{
		"0b7cf9a4-77c2-4a52-9d6e-6b7a3a1f7a10":  "",
		"of.another.issuer":                     "",
		"":                                      "the token has no number",
		"eyJhbGciOiJFZERTQSJ9.eyJqdGkiOiJ4In0.": "that is a token, not its number",
		"a\nb":                                  "the token's number holds a control character",
		"\xff":                                  "the token's number is not valid UTF-8",
		strings.Repeat("x", MaxName+1):          "the token's number has more than 256 code points",
	} {
		err := numbered(id)
		var e *holdfast.Error
		if want == "" && err != nil || want != "" && (!errors.As(err, &e) || e.Kind != holdfast.KindUsage || e.Why != want) {
			t.Errorf("%q: %v, want %q", id, err, want)
		}
	}
}

// TestTokenOfAnotherTenant: this machine's own issuer is asked for no other
// tenant's token, and none is made.
func TestTokenOfAnotherTenant(t *testing.T) {
	made := 0
	s := server(&refusing{})
	s.Token = func(TokenAsk) (Token, error) { made++; return Token{}, nil }
	c := Direct(s.Handler())
	if _, err := c.Token(t.Context(), TokenAsk{Agent: "a", Tenant: "acme"}); holdfast.KindOf(err) != holdfast.KindPermission || made != 0 {
		t.Errorf("acme: %v, made %d", err, made)
	}
	for _, own := range []string{"", holdfast.Local} {
		if _, err := c.Token(t.Context(), TokenAsk{Agent: "a", Tenant: own}); err != nil {
			t.Errorf("%q: %v", own, err)
		}
	}
}
