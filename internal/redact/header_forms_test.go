package redact

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
)

// A registered secret or a token leaves neither as the name of a header field or of a
// trailer nor as a host's label, in whatever case they are written on their way.
func TestNamesOfFieldsAndHostsAreSearched(t *testing.T) {
	const secret = "Tr0ub4dorXhorse"
	e := newEngine(t, secret, "correct-Horse.Battery")
	for _, name := range []string{
		secret, "X-" + secret, strings.ToLower(secret), "x-" + strings.ToUpper(secret) + "-y",
		http.CanonicalHeaderKey("x-" + secret), "X-" + hex.EncodeToString([]byte(secret)),
		"Correct-Horse.battery", "X-CORRECT_HORSE-BATTERY",
		ghp, "X-" + ghp, "x-" + strings.ToLower(akia), "Xoxb-123456789012-abcdefGHIJ", "X-" +
			hex.EncodeToString([]byte(ghp)), "X-Bob@example.com",
	} {
		h := http.Header{"Accept": {"*/*"}, name: {"v"}}
		out, found := e.Header(h)
		if len(found) == 0 || out[name] != nil || out["Redacted-1"] == nil {
			t.Errorf("%q left as %v", name, out)
		}
	}
	for _, label := range []string{secret, strings.ToLower(secret), "a" + strings.ToUpper(secret) + "b",
		hex.EncodeToString([]byte(secret)), "correct-horse.battery", strings.ToLower(akia)} {
		for _, url := range []string{"https://§.example.com/x", "https://x.§.example.com:8443/?y=1", "//§/x",
			"https://§"} {
			if out, found := e.URL(strings.ReplaceAll(url, "§", label)); len(found) == 0 || !strings.Contains(out,
				"redacted.invalid") {
				t.Errorf("%s: %s", label, out)
			}
		}
	}
	for _, name := range []string{"Accept", "X-Request-Id", "Content-Type", "Sec-Ch-Ua-Platform-Version",
		"X-Amz-Content-Sha256", "Grpc-Status", "X-Troubadour-Horse"} {
		if out, found := e.Header(http.Header{name: {"1"}}); len(found) != 0 {
			t.Errorf("%s became %v", name, out)
		}
	}
	for _, url := range []string{"https://api.example.com/x", "https://horse.example.com/Correct",
		"https://3f2a9c.cdn.example.net/"} {
		if out, found := e.URL(url); len(found) != 0 {
			t.Errorf("%s became %s", url, out)
		}
	}
}
