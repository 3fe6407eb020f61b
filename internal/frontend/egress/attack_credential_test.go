package egress

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const tenants = "kd83-ZebraCrossing-tenants-own-99"

// lending is an outside whose rows have the tenant's credential.
func lending(t *testing.T) *outside {
	x := newOutside(t, redact.Options{})
	x.p.cfg.Credential = func(context.Context, *domain.Domain) (holdfast.Secret, error) {
		return holdfast.NewSecret(tenants), nil
	}
	return x
}

func lent() *domain.Credential {
	return &domain.Credential{Header: "Authorization", Prefix: "Bearer ", Source: "file"}
}

// TestAttack_AnEchoingUpstreamTellsTheCredential: the upstream is allowed and
// tells what it was sent, in every place and form that an answer has.
func TestAttack_AnEchoingUpstreamTellsTheCredential(t *testing.T) {
	x := lending(t)
	b64 := base64.StdEncoding.EncodeToString
	noise := strings.Repeat("\x00\x01\xfe\xff", 2000)
	modes := map[string]domain.Domain{"mask": {Credential: lent()}, "binary": {Credential: lent(), Binary: true}, "refuse": {Credential: lent(), Response: domain.Refuse}}
	for name, answer := range map[string]http.HandlerFunc{
		"body":        func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "got "+r.Header.Get("Authorization")) },
		"header":      func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Got", r.Header.Get("Authorization")) },
		"header name": func(w http.ResponseWriter, r *http.Request) { w.Header()["X-"+tenants] = []string{"1"} },
		"location": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/x?t="+url.QueryEscape(r.Header.Get("Authorization")))
			w.WriteHeader(302)
		},
		"etag":         func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Etag", `"`+tenants+`"`) },
		"content type": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", "text/"+tenants) },
		"error page": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, "failed with "+r.Header.Get("Authorization"))
		},
		"base64":      func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, b64([]byte(tenants))) },
		"base64, off": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, b64([]byte("xy"+tenants))) },
		"hex":         func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, hex.EncodeToString([]byte(tenants))) },
		"JSON": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"headers":{"authorization":"%s"}}`, escapedJSON("Bearer "+tenants))
		},
		"gzip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, gzipped("got "+tenants))
		},
		"trailer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-End")
			io.WriteString(w, "x")
			w.Header().Set("X-End", tenants)
		},
		"slowly": func(w http.ResponseWriter, r *http.Request) {
			for _, c := range "got " + tenants + " it was" {
				fmt.Fprintf(w, "%c", c)
				w.(http.Flusher).Flush()
			}
		},
		"events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; i < len(tenants); i += 5 {
				fmt.Fprintf(w, "data: {\"delta\":{\"text\":%q}}\n\n", tenants[i:min(len(tenants), i+5)])
				w.(http.Flusher).Flush()
			}
		},
		"event's id": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: %s\nevent: %s\n: %s\ndata: x\n\n", tenants, tenants, tenants)
		},
		"lines": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprintf(w, "{\"a\":\"%s\"}\n", escapedJSON(tenants))
		},
		"early hints": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</"+tenants+">")
			w.WriteHeader(103)
			w.WriteHeader(200)
		},
		"behind noise": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, noise+tenants+noise) },
		"behind much noise": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat(noise, 200)+tenants+noise)
		},
		"behind noise, slowly": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, noise+tenants[:11])
			w.(http.Flusher).Flush()
			io.WriteString(w, tenants[11:]+noise)
		},
		"unknown encoding": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "x-other")
			io.WriteString(w, "got "+tenants)
		},
		"part of it": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-1/2")
			w.WriteHeader(206)
			io.WriteString(w, "got "+tenants)
		},
		"not asked": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="bad token `+tenants+`"`)
			w.WriteHeader(401)
		},
		"cookie": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Set-Cookie", "a="+tenants) },
		"in pieces of a header": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Got"] = []string{tenants[:12], tenants[12:]}
		},
	} {
		for mode, d := range modes {
			resp, text, _ := do(t, "GET", x.openPair(d, answer)+"/a", http.Header{"Authorization": {"Bearer of-the-agent"}}, nil)
			if resp == nil {
				continue // cut: nothing to read
			}
			all := text
			for k, v := range resp.Header {
				all += "\n" + k + ": " + strings.Join(v, "")
			}
			for _, r := range readings(all) {
				if strings.Contains(strings.ToLower(strings.ReplaceAll(r, "-", "")), strings.ToLower(strings.ReplaceAll(tenants, "-", ""))) {
					t.Errorf("%s (%s): the agent reads the credential", name, mode)
					break
				}
			}
		}
	}
}

// TestAttack_TheAgentsAccountByAnotherName: a credential of the agent's own, in
// fields that servers read as the ones that are stripped.
func TestAttack_TheAgentsAccountByAnotherName(t *testing.T) {
	x := lending(t)
	var got http.Header
	row, o := x.upstream(domain.Domain{Credential: &domain.Credential{Header: "X-Tenant", Source: "file"}}, true, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	h := http.Header{}
	for _, name := range []string{"Authorization", "authorization", "AUTHORIZATION", "X_Tenant", "x-tenant", "X_TENANT", "Cookie", "X_Api_Key", "X-Figma-Token", "X-Postmark-Server-Token",
		"Circle-Token", "X-Vault-Token", "X-Trackertoken", "X-Auth-Email", "X-HTTP_Method_Override", "X_Http_Method_Override", "X_Forwarded_For", "X_Original_Url", "Proxy-Authorization", "Proxy_Authorization",
		"X-Amz-Security-Token", "Cf-Access-Client-Secret", "X-Gitlab-Token", "Linear-Token"} {
		h[name] = []string{"mallory"}
	}
	h["Connection"] = []string{"X-Tenant, close, Authorization"}
	if _, _, err := do(t, "GET", x.front(row, o).URL+"/a", h, nil); err != nil {
		t.Fatal(err)
	}
	for name, values := range got {
		if strings.Contains(strings.Join(values, ""), "mallory") && name != "X-Auth-Email" {
			t.Errorf("%s reached the upstream", name)
		}
	}
	if got.Get("X-Tenant") != tenants {
		t.Errorf("the tenant's own did not: %v", got)
	}
}

// TestAttack_TheUpstreamSpeaksAsHoldfast: an answer names a crossing of its own
// choice, or fields that only a proxy says.
func TestAttack_TheUpstreamSpeaksAsHoldfast(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Holdfast-Crossing", "00000000-0000-4000-8000-000000000000")
		rw.Header().Set("Proxy-Authenticate", "Basic")
		rw.Header().Set("Alt-Svc", `h3="evil:443"`)
		rw.Header().Set("Connection", "close")
	})
	got := w.send("GET", w.url("good.test"), "")
	e := w.entries(1)[0]
	if ids := got.Header.Values(refusal.HeaderCrossing); len(ids) != 1 || ids[0] != e.ID {
		t.Errorf("the crossing is %s, the answer says %v", e.ID, ids)
	}
	for _, name := range []string{"Proxy-Authenticate", "Alt-Svc"} {
		if v := got.Header.Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// TestAttack_TheTargetThatIsSentIsAnother: whatever the allowlist accepted
// leaves byte for byte, so that no path is judged and another asked for.
func TestAttack_TheTargetThatIsSentIsAnother(t *testing.T) {
	got := make(chan string, 1)
	port := serving(t, func(c net.Conn) {
		b := make([]byte, 8<<10)
		n, _ := c.Read(b)
		line, _, _ := strings.Cut(string(b[:n]), "\r\n")
		got <- line
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	w := newEgress(t, setup{rows: func(_, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Ports: []uint16{port}, Plain: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}
	}})
	var targets []string
	for c := '!'; c < 0x7f; c++ {
		letter := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if letter && !strings.ContainsRune("0aZ", c) && !testrepeat.Enduring {
			continue // one of each kind stands for the others
		}
		for _, form := range []string{"/a%cb", "/%%2f%cx", "/x%%2e%%2e%%2f%c", "/a?b%cc", "//a%cb", "/a%%41%%5c%c"} {
			targets = append(targets, fmt.Sprintf(form, c))
		}
	}
	targets = append(targets, "/?", "/??", "//", "//evil.test/x", "/a;b=c/../d", "/:80/x", "/a:b@c", "/?a=%zz", "/?%", "/a/./b/../c", "/%2e%2e/x", "/*", "/a//b")
	sent := 0
	for _, target := range targets {
		r := say(w.dial(w.explicit), fmt.Sprintf("GET http://plain.test:%d%s HTTP/1.1\r\nHost: plain.test:%d\r\nConnection: close\r\n\r\n", port, target, port))
		if r == nil || r.StatusCode != 200 {
			continue
		}
		sent++
		if line := <-got; line != "GET "+target+" HTTP/1.1" && line != "GET "+plainly(target)+" HTTP/1.1" {
			t.Errorf("%q was judged, %q was sent", target, line)
		}
	}
	if sent < 100 {
		t.Errorf("only %d passed", sent)
	}
}

// plainly is target with what no path may hold escaped.
func plainly(target string) string {
	path, query, has := strings.Cut(target, "?")
	for _, c := range "\"<>^`{|}" {
		path = strings.ReplaceAll(path, string(c), fmt.Sprintf("%%%02X", c))
	}
	if has {
		path += "?" + query
	}
	return path
}

// TestAttack_ACredentialWhoseAnswersNobodyReads: such a row would lend the
// credential to whoever can make the upstream repeat it.
func TestAttack_ACredentialWhoseAnswersNobodyReads(t *testing.T) {
	if _, err := domain.NewTable([]domain.Domain{{Name: "a.example", Source: "test:1", Response: domain.Off, Credential: lent()}}); err == nil {
		t.Error("the row is taken")
	}
}
