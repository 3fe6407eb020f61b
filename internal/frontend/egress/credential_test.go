package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func TestEgress_Bypass27_TheAgentsOwnAccountIsNotUsed(t *testing.T) {
	x := newOutside(t, redact.Options{})
	const tenants = "the-tenants-own-credential-4711"
	x.p.cfg.Credential = func(context.Context, *domain.Domain) (holdfast.Secret, error) {
		return holdfast.NewSecret(tenants), nil
	}
	var got http.Header
	d, o := x.upstream(domain.Domain{Credential: &domain.Credential{Header: "x-api-key", Source: "file"}}, true, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		// An upstream that tells what it was sent, as echo servers do.
		w.Header().Set("X-Echo", r.Header.Get("X-Api-Key"))
		_, _ = io.WriteString(w, "you sent "+r.Header.Get("X-Api-Key"))
	})
	sent := http.Header{"Cookie": {"sid=agents-session"}, "X-Kept": {"1"}}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Private-Token", "Proxy-Authorization", "X-Auth-Token",
		"X-Amz-Security-Token", "X-Vault-Token-Secret", "X-Vault-Token", "X-Figma-Token", "X-Registry-Auth", "DD-APPLICATION-KEY", "Openai-Api_key", "X-HTTP-Method-Override", "X-Original-URL", "X-Forwarded-For", "Range"} {
		sent.Set(name, "attackers-own-value")
	}
	resp, text, err := do(t, "GET", x.front(d, o).URL, sent, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %s", err, text)
	}
	for name, values := range got {
		if v := strings.Join(values, ","); strings.Contains(v, "attackers") || strings.Contains(v, "agents-session") {
			t.Errorf("%s: %s reached the upstream", name, v)
		}
	}
	if got.Get("X-Api-Key") != tenants || got.Get("X-Kept") != "1" {
		t.Errorf("the upstream got %v", got)
	}
	if strings.Contains(text+resp.Header.Get("X-Echo"), tenants) || !strings.Contains(text, "you sent ") {
		t.Errorf("the credential came back: %q, %q", text, resp.Header.Get("X-Echo"))
	}
	// Nor does it where nothing else is looked for.
	for _, mode := range []domain.Domain{{Binary: true}} {
		mode.Credential = d.Credential
		row, at := x.upstream(mode, true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Echo", r.Header.Get("X-Api-Key"))
			_, _ = w.Write(append(make([]byte, maxWhole), "you sent "...))
			_ = http.NewResponseController(w).Flush()
			for _, c := range r.Header.Get("X-Api-Key") {
				_, _ = io.WriteString(w, string(c))
				_ = http.NewResponseController(w).Flush()
			}
		})
		resp, text, err := do(t, "GET", x.front(row, at).URL, nil, nil)
		if err == nil || strings.Contains(text+resp.Header.Get("X-Echo"), tenants[:9]) {
			t.Errorf("it came back: %v, header %q", err, resp.Header.Get("X-Echo"))
		}
	}
	// The twin: a row may let the agent's own pass.
	d, o = x.upstream(domain.Domain{AgentCredentials: true}, true, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Set-Cookie", "sid=fresh")
	})
	resp, _, err = do(t, "GET", x.front(d, o).URL, sent, nil)
	if err != nil || got.Get("Authorization") != "attackers-own-value" || got.Get("Cookie") != "sid=agents-session" || resp.Header.Get("Set-Cookie") != "sid=fresh" {
		t.Errorf("%v: %v", err, got)
	}
	if got.Get("Proxy-Authorization")+got.Get("X-Http-Method-Override")+got.Get("Range") != "" {
		t.Errorf("what misleads passes: %v", got)
	}
}

func TestEgress_ACredentialThatCannotBeHadSendsNothing(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example", Credential: &domain.Credential{Header: "Authorization", Prefix: "Bearer "}}
	for name, f := range map[string]func(context.Context, *domain.Domain) (holdfast.Secret, error){
		"no source": nil,
		"an error": func(context.Context, *domain.Domain) (holdfast.Secret, error) {
			return holdfast.Secret{}, errors.New("cannot read s3cr3t-words")
		},
		"empty": func(context.Context, *domain.Domain) (holdfast.Secret, error) { return holdfast.Secret{}, nil },
		"two fields": func(context.Context, *domain.Domain) (holdfast.Secret, error) {
			return holdfast.NewSecret("a\r\nb: c"), nil
		},
	} {
		x.p.cfg.Credential = f
		err := x.p.credential(t.Context(), d, http.Header{})
		if holdfast.KindOf(err) != holdfast.KindForward || !errors.Is(err, holdfast.ErrNotStarted) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEgress_Bypass29_HeadersAreRedacted(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example"}
	h, found, err := x.p.outgoing(d, http.Header{"X-Note": {"ask " + someMail}, "User-Agent": {"curl/8"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Referer": {"https://u:" + someKey + "@x.test/"}})
	if err != nil || len(found) < 2 {
		t.Fatalf("%v, %v", found, err)
	}
	for name, values := range h {
		if v := strings.Join(values, ""); strings.Contains(v, someMail) || strings.Contains(v, someKey) {
			t.Errorf("%s: %s", name, v)
		}
	}
	if h.Get("User-Agent") != "curl/8" || h.Get("X-Hop")+h.Get("Connection") != "" {
		t.Errorf("%v", h)
	}
	d.Request = domain.Refuse
	if _, _, err := x.p.outgoing(d, http.Header{"X-Note": {"use " + someKey}}); err == nil || err.Kind != holdfast.KindDomainBlocked {
		t.Errorf("refuse: %v", err)
	}
}
