package egress

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	lentPassword = "k9/Wq+7tZ=rNv2&cB<4m'x"
	lentUser     = "robot-of-the-tenant"
)

// TestAttackInside_AnUpstreamQuotesTheCredential: services repeat what they were
// sent, or a part of it, in the ways of their languages.
func TestAttackInside_AnUpstreamQuotesTheCredential(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte(lentUser + ":" + lentPassword))
	jsonOf := func(s string) string {
		r := strings.NewReplacer(`/`, `\/`, `<`, `\u003c`, `&`, `\u0026`, `'`, `\u0027`, `+`, `\u002b`, `=`, `\u003d`)
		return r.Replace(s)
	}
	htmlOf := strings.NewReplacer("&", "&amp;", "<", "&lt;", "'", "&#39;", "/", "&#x2F;", "=", "&#x3D;", "+", "&#43;").Replace
	for name, answer := range map[string]func(secret string) (kind, body string){
		"as it is":         func(s string) (string, string) { return "text/plain", "user unknown: " + s },
		"JSON, PHP's":      func(s string) (string, string) { return "application/json", `{"a":"` + jsonOf(s) + `"}` },
		"HTML, escaped":    func(s string) (string, string) { return "text/html", "<p>" + htmlOf(s) + "</p>" },
		"a script":         func(s string) (string, string) { return "text/javascript", `x="` + eachByte(s, `\x%02x`) + `"` },
		"URL":              func(s string) (string, string) { return "text/plain", "/?t=" + url.QueryEscape(s) },
		"URL, whole":       func(s string) (string, string) { return "text/plain", "/?t=" + percent(s) },
		"quoted printable": func(s string) (string, string) { return "text/plain", quoted(s) },
		"base64, glued": func(s string) (string, string) {
			return "text/plain", base64.StdEncoding.EncodeToString([]byte("a" + s))
		},
		"XML":    func(s string) (string, string) { return "application/xml", "<a>" + htmlOf(s) + "</a>" },
		"UTF-16": func(s string) (string, string) { return "text/plain; charset=utf-16", utf16le("so "+s, true) },
		"dump":   func(s string) (string, string) { return "text/plain", spacedHex(s, " ") },
		"JSON in JSON": func(s string) (string, string) {
			return "application/json", `{"a":"{\"b\":\"` + strings.ReplaceAll(jsonOf(s), `\`, `\\`) + `\"}"}`
		},
		"a Go string":         func(s string) (string, string) { return "text/plain", fmt.Sprintf("%q", s) },
		"a shell's words":     func(s string) (string, string) { return "text/plain", "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"lines of one length": func(s string) (string, string) { return "text/plain", strings.Join(everyNth(s, 8), "\n") },
	} {
		for part, secret := range map[string]string{"pair": lentUser + ":" + lentPassword, "password": lentPassword, "header": pair} {
			for _, length := range []bool{true, false} {
				x := newOutside(t, redact.Options{})
				x.p.cfg.Credential = func(context.Context, *domain.Domain) (holdfast.Secret, error) { return holdfast.NewSecret(pair), nil }
				d := domain.Domain{Credential: &domain.Credential{Header: "Authorization", Prefix: "Basic ", Source: "file"}}
				row, o := x.upstream(d, true, func(w http.ResponseWriter, r *http.Request) {
					kind, body := answer(secret)
					w.Header().Set("Content-Type", kind)
					if length {
						w.Header().Set("Content-Length", fmt.Sprint(len(body)))
					}
					io.WriteString(w, body[:len(body)/2])
					w.(http.Flusher).Flush()
					io.WriteString(w, body[len(body)/2:])
				})
				resp, text, _ := do(t, "GET", x.front(row, o).URL+"/a", nil, nil)
				if _, body := answer(secret); resp != nil && strings.Contains(text, body) {
					t.Errorf("%s, of the %s, with a length: %t: the agent reads %q", name, part, length, text)
				}
			}
		}
	}
}

// TestAttackInside_WhatIsBesideTheMessagesOfAWebSocket: the protocol that is
// asked for and the reason of its end go to the upstream too.
func TestAttackInside_WhatIsBesideTheMessagesOfAWebSocket(t *testing.T) {
	got := make(chan string, 4)
	x := newOutside(t, redact.Options{})
	d, o := x.upstream(domain.Domain{WebSocket: true}, true, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"chat"}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		_, _, err = c.Read(r.Context())
		got <- fmt.Sprint(r.Header["Sec-Websocket-Protocol"], err)
	})
	front := x.front(d, o).URL + "/ws"
	for name, s := range map[string]string{"as it is": plantedGit, "base64": base64.RawURLEncoding.EncodeToString([]byte(plantedGit)), "hex": eachByte(plantedGit, "%02x")} {
		c, _, err := websocket.Dial(t.Context(), front, &websocket.DialOptions{Subprotocols: []string{"chat", s}})
		if err == nil {
			c.CloseNow()
			t.Errorf("%s as a protocol: it was sent: %s", name, <-got)
		}
		if c, _, err = websocket.Dial(t.Context(), front, nil); err != nil {
			t.Fatal(err)
		}
		_ = c.Close(websocket.StatusNormalClosure, s)
		if said := <-got; strings.Contains(said, s) {
			t.Errorf("%s as the reason of an end: %s", name, said)
		}
	}
	for _, own := range []string{"openai-insecure-api-key.of-the-agent", "base64url.bearer.authorization.k8s.io.b2YtdGhlLWFnZW50"} {
		c, _, err := websocket.Dial(t.Context(), front, &websocket.DialOptions{Subprotocols: []string{own, "chat"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close(websocket.StatusNormalClosure, "ordinary words")
		if said := <-got; strings.Contains(said, own) || !strings.Contains(said, "ordinary words") || !strings.Contains(said, "chat") {
			t.Errorf("with %s: %s", own, said)
		}
	}
}

// TestAttackInside_ASecretInTheNameOfAHost: under a star the agent chooses labels,
// and whoever has the name servers below it reads them. Names have no case.
func TestAttackInside_ASecretInTheNameOfAHost(t *testing.T) {
	w := attacked(t, setup{})
	for _, label := range []string{plantedAWS, strings.ToLower(plantedAWS), "a." + strings.ToLower(plantedAWS) + ".b", planted, strings.ToUpper(planted), plantedCard} {
		name := label + ".wild.test"
		c, err := w.tunnel(w.at(name), strings.ToLower(name))
		if err == nil {
			say(c, get(w.at(name), "/"))
		}
	}
	for _, r := range w.up.requests() {
		t.Errorf("it was sent to %s", r.Host)
	}
	c, err := w.tunnel(w.at("ordinary-name.wild.test"), "ordinary-name.wild.test")
	w.must(err)
	w.passed(say(c, get(w.at("ordinary-name.wild.test"), "/")))
}

// TestAttackInside_FieldsByWhichAServerAnswersForAnotherRequest: with them the
// answer would be a part, or another path's or method's than was judged.
func TestAttackInside_FieldsByWhichAServerAnswersForAnotherRequest(t *testing.T) {
	x := newOutside(t, redact.Options{})
	got := make(chan http.Header, 1)
	d, o := x.upstream(domain.Domain{}, true, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	h := http.Header{"X-Kept": {"1"}}
	for _, name := range []string{"Range", "If-Range", "X-Ms-Range", "X-Original-Uri", "X-Original-URL", "X-Rewrite-Url", "X-HTTP-Method-Override",
		"X_HTTP_Method_Override", "X-Forwarded-Host", "X_Forwarded_Proto", "Forwarded", "Proxy-Authorization", "Proxy-Connection"} {
		h[name] = []string{"bytes=0-1"}
	}
	do(t, "GET", x.front(d, o).URL+"/a", h, nil)
	arrived := <-got
	if arrived.Get("X-Kept") == "" {
		t.Error("nothing arrived: this test sees nothing")
	}
	for name := range h {
		if name != "X-Kept" && len(arrived[name])+len(arrived[http.CanonicalHeaderKey(name)]) > 0 {
			t.Errorf("%s arrived", name)
		}
	}
}
