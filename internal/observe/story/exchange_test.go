package story

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestExchange: what left and what came back is told in a line, from what the
// entry keeps; of what is erased, cut or another door's nothing is made up.
func TestExchange(t *testing.T) {
	kept := func(x holdfast.Exchange) string {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	whole := holdfast.Exchange{Method: "POST", Scheme: "https", Host: "api.example.com", Port: 443, Path: "/v1/x?a=1", Status: 200, Sent: 120, Received: 3400}
	long := whole
	long.Path = "/" + strings.Repeat("x", 500)
	for name, c := range map[string]struct{ boundary, text, want string }{
		"whole":     {"egress/api.example.com", kept(whole), "POST https://api.example.com/v1/x?a=1: 200, 120 bytes sent, 3400 bytes received"},
		"a row":     {"egress/*.example.com", kept(whole), "POST https://api.example.com/v1/x?a=1: 200, 120 bytes sent, 3400 bytes received"},
		"refused":   {"egress/evil.example", kept(holdfast.Exchange{Method: "GET", Scheme: "http", Host: "evil.example", Port: 8080, Path: "/"}), "GET http://evil.example:8080/"},
		"no answer": {"egress/a.example", kept(holdfast.Exchange{Method: "GET", Scheme: "https", Host: "a.example", Sent: 1}), "GET https://a.example: 1 byte sent"},
		"opaque":    {"egress/a.example", kept(holdfast.Exchange{Method: "CONNECT", Host: "a.example", Port: 443, Opaque: true, Received: 9}), "CONNECT a.example:443: not inspected, 9 bytes received"},
		"an address": {"egress/[2001:db8::1]", kept(holdfast.Exchange{Method: "GET", Scheme: "https", Host: "2001:db8::1", Port: 443, Path: "/"}),
			"GET https://[2001:db8::1]/"},
		"an address with a port": {"egress/[2001:db8::1]", kept(holdfast.Exchange{Method: "GET", Scheme: "https", Host: "2001:db8::1", Port: 8443}), "GET https://[2001:db8::1]:8443"},
		"with the ledger's note": {"egress/a.example", `{"method":"GET","host":"a.example","path":"/[secret redacted]"}... (72 bytes, sha256 70)`, "GET a.example/[secret redacted]"},
		"cut before the host":    {"egress/a.example", kept(whole)[:30] + "... (72 bytes, sha256 70)", ""},
		"cut in a text behind":   {"egress/a.example", strings.TrimSuffix(kept(whole), "}") + `,"text":"aa... (72 bytes, sha256 70)`, "POST https://api.example.com/v1/x?a=1: 200, 120 bytes sent, 3400 bytes received"},
		"of other types":         {"egress/a.example", `{"method":1,"host":"a.example"}`, ""},
		"another boundary":       {"exec/python3.11", kept(whole), ""},
		"an error's text":        {"egress/a.example", "ForwardError: nobody answers", ""},
		"no host":                {"egress/a.example", `{}`, ""},
		"a list":                 {"egress/a.example", `[1]`, ""},
	} {
		part := ledger.NewPart([ledger.SaltSize]byte{1}, []byte(c.text))
		if got := Exchange(&ledger.Entry{Boundary: c.boundary}, part); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	part := ledger.NewPart([ledger.SaltSize]byte{1}, []byte(kept(long)))
	if got := Exchange(&ledger.Entry{Boundary: "egress/a.example"}, part); len(got) > 300 || !strings.Contains(got, "200") {
		t.Errorf("a long path: %d bytes, %s", len(got), got)
	}
	if got := Exchange(&ledger.Entry{Boundary: "egress/a.example"}, nil); got != "" {
		t.Errorf("an erased part tells %q", got)
	}
}
