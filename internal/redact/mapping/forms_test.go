package mapping

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// replaceRequest replaces in texts what an engine finds, as the proxy does for one request.
func replaceRequest(t *testing.T, s *Session, texts ...string) []string {
	t.Helper()
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var in [][]byte
	for _, text := range texts {
		in = append(in, []byte(text))
	}
	own := in
	if strings.HasPrefix(texts[0], "assistant:") {
		own = nil
	}
	r := s.Begin(own, nil)
	all := []*redact.Engine{e.WithReplace(r.Replace)}
	replace := func(text []byte) []byte {
		for _, e := range all {
			got, _, err := e.Replace(text)
			if err != nil {
				t.Fatal(err)
			}
			text = got.Out
		}
		return text
	}
	r.SearchWith(replace)
	for i := range in {
		in[i] = replace(in[i])
	}
	again, err := r.FindAgain()
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, again...)
	var out []string
	for i := range in {
		in[i], _ = r.ReplaceEncoded(in[i])
		out = append(out, string(replace(in[i])))
	}
	return out
}

// testKey is a private key with two whole lines and a short one.
func testKey() string {
	return "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("b3BlbnNzaC1rZXk/", 4) + "\n" +
		strings.Repeat("q7Xz/+abKLMN0123", 4) + "\nKj4=\n-----END OPENSSH PRIVATE KEY-----\n"
}

// TestKeyIsRestoredInEveryLayout: a private key comes back however its lines are indented, quoted or escaped.
func TestKeyIsRestoredInEveryLayout(t *testing.T) {
	layouts := map[string]func(string) string{
		"as it is":  func(k string) string { return k },
		"indented":  func(k string) string { return "    " + strings.ReplaceAll(k, "\n", "\n    ") },
		"diff":      func(k string) string { return "+" + strings.ReplaceAll(k, "\n", "\n+") },
		"CRLF":      func(k string) string { return strings.ReplaceAll(k, "\n", "\r\n") },
		"escaped":   func(k string) string { return `key = "` + strings.ReplaceAll(k, "\n", `\n`) + `"` },
		"twice":     func(k string) string { return `{\"key\": \"` + strings.ReplaceAll(k, "\n", `\\n`) + `\"}` },
		"JSON":      func(k string) string { return `{"key": "` + quoteJSON(k) + `"}` },
		"quoted":    func(k string) string { return "> " + strings.ReplaceAll(k, "\n", "\n> ") },
		"each line": func(k string) string { return `"` + strings.ReplaceAll(k, "\n", "\\n\" +\n  \"") + `"` },
		"heredoc":   func(k string) string { return "key = <<EOT\n  " + strings.ReplaceAll(k, "\n", "\n  ") + "EOT\n" },
		"in reverse": func(k string) string {
			l := strings.Split(k, "\n")
			return l[3] + "\n" + l[2] + " and " + l[1]
		},
	}
	for sent, layout := range layouts {
		if sent == "in reverse" {
			continue
		}
		s := newTestSession()
		got := replaceRequest(t, s, layout(testKey()))[0]
		for line := range strings.Lines(testKey()) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "---") && strings.Contains(got, line) {
				t.Errorf("%s: sent %q in %q", sent, line, got)
			}
		}
		if back := restoreText(s, got); back != layout(testKey()) {
			t.Errorf("%s: %q came back as %q", sent, got, back)
		}
		// The model rewrites it: from the layout as it is to every other.
		if sent != "as it is" {
			continue
		}
		for name, other := range layouts {
			if back := restoreText(s, other(got)); back != other(testKey()) {
				t.Errorf("to %s: %q", name, back)
			}
		}
		if again := replaceRequest(t, s, "assistant: "+got)[0]; !strings.HasSuffix(again, got) {
			t.Errorf("a placeholder was replaced: %q", again)
		}
	}
}

// TestOneLineOfAKeyIsKnownLater: a hunk with one line of a known key has its placeholder.
func TestOneLineOfAKeyIsKnownLater(t *testing.T) {
	s := newTestSession()
	key := replaceRequest(t, s, testKey())[0]
	line, placeholder := strings.Split(testKey(), "\n")[2], strings.Split(key, "\n")[2]
	for _, hunk := range []string{"@@ -2 +2 @@\n+%s\n", "- %s", `"%s\n"`} {
		got := replaceRequest(t, s, strings.ReplaceAll(hunk, "%s", line))[0]
		if want := strings.ReplaceAll(hunk, "%s", placeholder); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEncodedValueHasItsPlaceholderEncoded: an encoding of a known value becomes the same encoding of the placeholder,
// and comes back.
func TestEncodedValueHasItsPlaceholderEncoded(t *testing.T) {
	encodings := map[string]func(string) string{
		"base64":     func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
		"base64url":  func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
		"pair":       func(v string) string { return base64.StdEncoding.EncodeToString([]byte("bob:" + v)) },
		"hex":        func(v string) string { return hex.EncodeToString([]byte(v)) },
		"HEX":        func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
		"percent":    url.QueryEscape,
		"expression": regexp.QuoteMeta,
		"sed":        func(v string) string { return "s/" + strings.ReplaceAll(v, ".", `\.`) + "/x/" },
		"HTML":       func(v string) string { return strings.ReplaceAll(html.EscapeString(v), "@", "&#64;") },
		"unicode":    func(v string) string { return strings.ReplaceAll(v, "@", `\u0040`) },
		"all bytes": func(v string) (out string) {
			for _, c := range []byte(v) {
				out += fmt.Sprintf(`\x%02x`, c)
			}
			return out
		},
		"bytes of Go": func(v string) string {
			return strings.TrimSuffix(fmt.Sprintf("%#v", []byte(v))[len("[]byte{"):], "}")
		},
		"shell": func(v string) string { return `'` + strings.ReplaceAll(v, `'`, `'\''`) + `'` },
		"numbers": func(v string) string {
			return strings.ReplaceAll(strings.Trim(fmt.Sprint([]byte(v)), "[]"), " ", ", ")
		},
	}
	for kind, value := range map[string]string{"email": "alice.smith@corp-x.com", "secret": "Maple417!x@q.9z",
		"quoted": "Map'e417!x@q.9z"} {
		s := newTestSession()
		intro := "write to " + value
		if kind != "email" {
			intro = `DB_PASSWORD="` + value + `"`
		}
		sent := replaceRequest(t, s, intro)[0]
		p := strings.Trim(sent[strings.LastIndexAny(sent, " =")+1:], `"`)
		for name, encode := range encodings {
			if kind == "email" && (name == "all bytes" || name == "bytes of Go" || name == "numbers") {
				continue
			}
			if kind == "quoted" && name != "shell" && name != "base64" && name != "percent" {
				continue // a value with a quote is not sought everywhere
			}
			got := replaceRequest(t, s, "see "+encode(value)+" there")[0]
			if want := "see " + encode(p) + " there"; got != want {
				t.Errorf("%s, %s: %q, want %q", kind, name, got, want)
			}
			if back := restoreText(s, got); back != "see "+encode(value)+" there" {
				t.Errorf("%s, %s: came back as %q", kind, name, back)
			}
		}
	}
}

// TestEncodedPlaceholderIsValid: what takes the place of hexadecimal or base64 of unknown content can be decoded.
func TestEncodedPlaceholderIsValid(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	for i := range 50 {
		random := newSource([]byte("k"), fmt.Append(nil, i), 0)
		var b []byte
		for range 16 + i%3 {
			b = append(b, random.nextByte())
		}
		h := r.Replace("secret.token", []byte(hex.EncodeToString(b)))
		if _, err := hex.DecodeString(string(h)); err != nil {
			t.Errorf("%s: %v", h, err)
		}
		p := r.Replace("secret.token", []byte(base64.StdEncoding.EncodeToString(b)))
		if _, err := base64.StdEncoding.Strict().DecodeString(string(p)); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	address := string(r.Replace("email", []byte("dora%40corp.com")))
	if !strings.HasSuffix(address, "%40mail.example") {
		t.Errorf("%q is at no reserved host", address)
	}
}

// TestBrokenSecretIsReplaced: a known secret that code breaks into pieces has the pieces of its placeholder.
func TestBrokenSecretIsReplaced(t *testing.T) {
	s := newTestSession()
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	sent := replaceRequest(t, s, "token "+token)[0]
	p := strings.TrimPrefix(sent, "token ")
	for _, between := range []string{"\" +\n  \"", "\\\n", "' + '", "\n    "} {
		text := `x = "` + token[:12] + between + token[12:] + `"`
		got := replaceRequest(t, s, text)[0]
		if want := `x = "` + p[:12] + between + p[12:] + `"`; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if back := restoreText(s, got); back != text {
			t.Errorf("came back as %q", back)
		}
	}
	if got := replaceRequest(t, s, "without its prefix: "+token[4:])[0]; got != "without its prefix: "+p[4:] {
		t.Errorf("%q", got)
	}
}

// TestKeyInUnknownLayoutDoesNotLeave: a block without whole lines of base64 is replaced as a whole.
func TestKeyInUnknownLayoutDoesNotLeave(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	const head, foot = "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----"
	for _, body := range []string{strings.Repeat("q7 Xz/ +ab KLM\n", 20), strings.Repeat("q7Xz/+abKLM012\n", 20)} {
		got := string(r.Replace(rulePrivateKey, []byte(head+body+foot)))
		if strings.Contains(got, "KLM") || !strings.HasPrefix(got, head) || !strings.HasSuffix(got, foot) {
			t.Errorf("%q", got)
		}
		if back := restoreText(s, got); back != head+body+foot {
			t.Errorf("came back as %q", back)
		}
	}
}

// TestEncodedPlaceholderOfAModelStays: base64 that a model made of a placeholder is not replaced when it comes again.
func TestEncodedPlaceholderOfAModelStays(t *testing.T) {
	s := newTestSession()
	p := strings.TrimPrefix(replaceRequest(t, s, "to alice.smith@corp-x.com")[0], "to ")
	code := "assistant: " + base64.StdEncoding.EncodeToString([]byte(p))
	if got := replaceRequest(t, s, code)[0]; got != code {
		t.Errorf("%q became %q", code, got)
	}
}

// TestAlteredPlaceholdersAreCounted: a placeholder whose case, encoding or length a model changed, or that it broke,
// counts as altered, once.
func TestAlteredPlaceholdersAreCounted(t *testing.T) {
	s := newTestSession()
	r := s.Begin(nil, nil)
	mail := string(r.Replace("email", []byte("alice@corp.com")))
	token := string(r.Replace("secret.github", []byte("ghp_0123456789abcdefghijABCDEFGHIJ012345")))
	for name, text := range map[string]string{
		"capitals": strings.ToUpper(mail), "title": strings.ToUpper(mail[:1]) + mail[1:],
		"small": strings.ToLower(token), "base64": base64.StdEncoding.EncodeToString([]byte(token)),
		"base64 of more": base64.StdEncoding.EncodeToString([]byte("to: " + mail)),
		"shorter":        token[:len(token)-3], "without its beginning": token[7:],
		"in pieces": token[:14] + `" + "` + token[14:], "another host": strings.Replace(mail, "example", "com", 1),
	} {
		var out strings.Builder
		stream := s.Snapshot().Restore(false, &out)
		for _, c := range []byte("see " + text + " there") {
			if _, err := stream.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Close(); err != nil {
			t.Fatal(err)
		}
		got, n := s.Snapshot().RestoreText(false, []byte("see "+text+" there"))
		if string(got) != "see "+text+" there" || n.Altered != 1 || n.Restored != 0 {
			t.Errorf("%s: %q: %+v, %q", name, text, n, got)
		}
		if out.String() != string(got) || stream.Counts() != n {
			t.Errorf("%s in pieces: %q, %+v", name, out.String(), stream.Counts())
		}
	}
	exact := []byte(mail + " " + token + " Bearer ghp_ @mail.example")
	if _, n := s.Snapshot().RestoreText(false, exact); n != (Counts{Restored: 2}) {
		t.Errorf("exact ones: %+v", n)
	}
}

// TestShortValueIsReplacedOnlyBehindItsName: a value that is shorter than six bytes changes no other text.
func TestShortValueIsReplacedOnlyBehindItsName(t *testing.T) {
	s := newTestSession()
	texts := []string{"password: Al", "PIN_PASSWORD=4711", "Also Al said 4711 or 47110, and Alas: QWw= 416c 34373131"}
	got := replaceRequest(t, s, texts...)
	if got[0] == texts[0] || got[1] == texts[1] || got[2] != texts[2] {
		t.Fatalf("%q", got)
	}
	for i := range got {
		if back := restoreText(s, got[i]); back != texts[i] {
			t.Errorf("%q came back as %q", got[i], back)
		}
	}
}
