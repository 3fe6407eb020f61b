package mapping

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

// TestPartsOfACredentialAreKnownAlone: an agent that takes a password out of a URL, or decodes one, neither shows it
// to the provider afterwards nor gets another one.
func TestPartsOfACredentialAreKnownAlone(t *testing.T) {
	const user, password = "admin7", "s3cr3tP4ss-77"
	encoded := base64.StdEncoding.EncodeToString([]byte(password + "\n"))
	joined := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	for name, text := range map[string]string{
		"URL":                   "postgres://" + user + ":" + password + "@db:5432/app",
		"URL without a user":    "redis://:" + password + "@db:6379/0",
		"argument":              "curl -u " + user + ":" + password + " https://x.io",
		"Basic":                 "Authorization: Basic " + joined,
		"Secret of Kubernetes":  "kind: Secret\ndata:\n  password: " + encoded + "\n",
		"percent-encoded":       "postgres://" + user + ":s3cr3tP4ss%2D77@db:5432/app",
		"hexadecimal in dotenv": "PASSWORD=733363723374503473732d3737",
	} {
		s := newTestSession()
		first := replaceRequest(t, s, text)[0]
		if back := restoreText(s, first); back != text {
			t.Errorf("%s: %q came back as %q", name, first, back)
		}
		again := replaceRequest(t, s, text, "log in with "+password+" now")
		if again[0] != first {
			t.Errorf("%s: the second request has %q, the first %q", name, again[0], first)
		}
		if strings.Contains(again[1], password) {
			t.Errorf("%s: the password leaves alone: %q", name, again[1])
		}
		if back := restoreText(s, again[1]); back != "log in with "+password+" now" {
			t.Errorf("%s: %q came back as %q", name, again[1], back)
		}
	}
	s := newTestSession()
	got := replaceRequest(t, s, "postgres://admin:"+password+"@db:5432/app")[0]
	hidden, _, _ := strings.Cut(strings.TrimPrefix(got, "postgres://"), "@")
	parts := strings.Split(hidden, ":")
	if env := restoreText(s, "PGUSER="+parts[0]+"\nPGPASSWORD="+parts[1]); env != "PGUSER=admin\nPGPASSWORD="+password {
		t.Errorf("parts of %q came back as %q", got, env)
	}
}

// TestRegisteredPartIsNeverRestored: a credential of Holdfast's own in a URL does not come back.
func TestRegisteredPartIsNeverRestored(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, func(v []byte) bool { return strings.Contains(string(v), "s3cr3tP4ss-77") })
	p := string(r.Replace("secret.url", []byte("admin:s3cr3tP4ss-77")))
	if back := restoreText(s, p); strings.Contains(back, "s3cr3t") {
		t.Errorf("%q came back as %q", p, back)
	}
}

// TestPatternsOfToolsAreRestored: a model writes a value into commands as sed and Python have it escaped.
func TestPatternsOfToolsAreRestored(t *testing.T) {
	s := newTestSession()
	const value = "Tr0ub/4dor.3*x&9-q#"
	p := replaceRequest(t, s, "PASSWORD="+value)[0]
	p = strings.TrimPrefix(p, "PASSWORD=")
	for _, signs := range []string{`\.*[]^$/`, `\/&`, `\.+*?()|[]{}^$/`, `\.+*?()|[]{}^$-#&~ `} {
		escape := func(v string) string {
			var out strings.Builder
			for _, c := range v {
				if slices.Contains([]rune(signs), c) {
					out.WriteByte('\\')
				}
				out.WriteRune(c)
			}
			return out.String()
		}
		text := "sed -i 's/" + escape(p) + "/x/' f"
		if back := restoreText(s, text); back != "sed -i 's/"+escape(value)+"/x/' f" {
			t.Errorf("%q came back as %q", text, back)
		}
	}
}
