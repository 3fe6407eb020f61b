package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// The longest names, in code points: a token's own limit, and for an agent so
// much less that the principal and the session made of its name fit too.
const (
	MaxName  = 256
	MaxAgent = 240
)

// Named is a UsageError where a claim of the Ask could not stand in a token
// made of it: an empty agent, a name that is too long or holds what cannot be
// seen. An Ask that brings a token has no such claims.
func (a Ask) Named() error {
	if a.Token != "" {
		return nil
	}
	return named(a.Agent, a.Kind, a.Session, a.Intent, a.Chain)
}

// numbered is a UsageError where id can be no token's number. A token itself is
// none: it would be written down.
func numbered(id string) error {
	why := nameFault("token's number", id, MaxName)
	switch {
	case id == "":
		why = "the token has no number"
	case strings.Count(id, ".") == 2 && strings.HasPrefix(id, "eyJ"):
		why = "that is a token, not its number"
	case why == "":
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: why, Hint: "`holdfast agent token` says the number, and `holdfast ledger tail --events` tells it"}
}

// nameFault says what is wrong with a name of at most so many code points; ""
// for nothing.
func nameFault(what, text string, most int) string {
	switch {
	case !utf8.ValidString(text):
		return fmt.Sprintf("the %s is not valid UTF-8", what)
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("the %s has more than %d code points", what, most)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Sprintf("the %s holds a control character", what)
	}
	return ""
}

func named(agent, kind, session, intent string, chain ...string) error {
	fault := ""
	if agent == "" {
		fault = "the agent has no name"
	}
	for _, c := range chain {
		if fault == "" {
			fault = nameFault("chain", c, MaxName)
		}
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{{"agent", agent, MaxAgent}, {"kind", kind, MaxName}, {"session", session, MaxName}, {"intent", intent, MaxName}} {
		if fault == "" {
			fault = nameFault(f.name, f.text, f.most)
		}
	}
	if fault == "" {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fault}
}

// NotLocal is the PermissionError of whoever asks this machine's own issuer to
// speak for another tenant than holdfast.Local (D8).
func NotLocal() error {
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: "the tokens made here are for tenant " + holdfast.Local + " only",
		Hint: "leave --tenant out; another tenant's token comes from an issuer that the configuration lists under identity"}
}
