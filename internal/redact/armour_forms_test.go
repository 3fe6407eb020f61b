package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const keyLine = "MIIEpAIBAAKCAQEA7bq3Z1mYv0Qe8sXkT2uWc5rN9hJdLfGpRbVxKaEiOyUt4wS6" // 64 characters

// A line that begins a private key's armour, and nothing of a key behind it, is code or
// prose about keys.
func TestNamedArmoursStay(t *testing.T) {
	e := newEngine(t)
	for _, kind := range []string{"RSA PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY",
		"OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "OpenVPN Static key V1"} {
		begin, end := "-----BEGIN "+kind+"-----", "-----END "+kind+"-----"
		for _, text := range []string{
			"if bytes.HasPrefix(b, []byte(\"§\")) {\n\treturn true\n}\nfunc other() int { return 42 }\n",
			"The file begins with §, then come the lines.\n\nA key looks like this:\n",
			"const (\n\tbegin = \"§\"\n\tend = \"¶\"\n)\n",
			"header := '§'\nfooter := '¶'\n", "§\n...\n¶\n", "§\n<your key here>\n¶\n",
			"§\nREDACTED\n\nmore text", "`§` and `¶`", "§¶", "§\n¶\n", "re.compile(r'§[\\s\\S]+¶')",
			"§\n\n## Next section\nwords of prose follow it\n", "| § | a key |\n| ¶ | its end |\n",
			"grep -l '§' *.pem\necho done\n", "§\n${PRIVATE_KEY}\n¶\n", "§\\n%s\\n¶",
			"§\n[secret redacted]\n¶", "§ /etc/ssl/private/ssl-cert-snakeoil.key",
			"§, privateKeyConfigurationBuilderForTests)", "§\nProc-Type: 4,ENCRYPTED\nand so on\n",
			"throw new Error(`missing §`);\nreturn next;\n",
		} {
			text = strings.NewReplacer("§", begin, "¶", end).Replace(text)
			r := e.Text([]byte(text))
			if string(r.Out) != text {
				t.Errorf("Text(%q) = %q", text, r.Out)
			}
			agrees(t, e, r, bytewise([]byte(text))...)
		}
	}
}

// A key is masked with its armour, in whatever way code, patches and configuration
// write it, and the text around it stays.
func TestArmouredKeysAreMasked(t *testing.T) {
	e := newEngine(t)
	for _, kind := range []string{"RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		lines := []string{"-----BEGIN " + kind + "-----", keyLine, keyLine, keyLine[:30] + "==", "-----END " +
			kind + "-----"}
		for name, text := range map[string]string{
			"plain": strings.Join(lines, "\n"), "crlf": strings.Join(lines, "\r\n"),
			"indented": strings.Join(lines, "\n    "), "one line": strings.Join(lines, ""),
			"blanks":  strings.Join(lines, " "),
			"escaped": strings.Join(lines, `\n`), "escaped twice": strings.Join(lines, `\\n`),
			"strings": strings.Join(lines, "\\n\" +\n\t\""), "adjacent strings": strings.Join(lines,
				"\\n\"\n  \""), "list": strings.Join(lines, "\",\n\""),
			"patch": strings.Join(lines, "\n+"), "removed": strings.Join(lines, "\n-"),
			"quoted": strings.Join(lines, "\n> "), "comment": strings.Join(lines, "\n# "),
			"continued": strings.Join(lines, "\\\n"),
			"numbered":  strings.Join(lines, "\n2\t"), "numbered by cat": strings.Join(lines, "\n    12\t"),
			"numbered by grep": strings.Join(lines, "\n314:"), "arrows": strings.Join(lines, "\n    7\u2192"),
			"numbered by bat": strings.Join(lines, "\n  12 | "), "numbered in JSON": strings.Join(lines, `\n2\t`),
			"slashes": strings.ReplaceAll(strings.Join(lines, "\n"), "7bq", `\/`), "fields": lines[0] +
				"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + strings.Join(lines[1:],
				"\n"),
			"comment field": lines[0] + "\nVersion: GnuPG v2\nComment: of a test\n\n" + strings.Join(lines[1:4],
				"\n") + "\n=AbC1\n" + lines[4],
		} {
			whole := "key: \"" + text + "\"\nport: 8080\n"
			r := e.Text([]byte(whole))
			if want := "key: \"[secret redacted]\"\nport: 8080\n"; string(r.Out) != want {
				t.Errorf("%s, %s: %q", kind, name, r.Out)
			}
			agrees(t, e, r, every([]byte(whole), 7)...)
			agrees(t, e, r, bytewise([]byte(whole))...)
			for i := 0; strings.HasPrefix(name, "numbered") && i < len(whole); i++ {
				agrees(t, e, r, []byte(whole[:i]), []byte(whole[i:]))
			}
			doc, err := json.Marshal(map[string]any{"a": whole, "n": 1})
			if err != nil {
				t.Fatal(err)
			}
			if b, err := e.Body("application/json", doc); err != nil || bytes.Contains(b.Out,
				[]byte("MIIEpAIB")) || !bytes.Contains(b.Out, []byte("8080")) {
				t.Errorf("%s, %s: body %s, %v", kind, name, b.Out, err)
			}
		}
	}
}

// Of a key without an end its own lines are masked, and nothing more, also where it is
// longer than a stream's window; and at most 64 KiB.
func TestUnendedArmoursMaskTheirLines(t *testing.T) {
	e := newEngine(t)
	begin := "-----BEGIN RSA " + "PRIVATE KEY-----\n"
	for _, n := range []int{1, 2, 12, 100, 300, 900, 2000} {
		for _, tail := range []string{"", "\n", "\nok\n", "\nfunc main() {}\n",
			"\n\nThe next paragraph is here.\n", " tail\nnext line\n", "\"\nport: 80\n"} {
			text := []byte("x\n" + begin + strings.Repeat(keyLine+"\n", n-1) + keyLine + tail)
			r := e.Text(text)
			if n*65 < maxArmourBytes && bytes.Contains(r.Out, []byte("MIIE")) || n*65 > maxArmourBytes &&
				!bytes.HasSuffix(r.Out, []byte(keyLine+tail)) {
				t.Errorf("%d lines, %q: %.200q", n, tail, r.Out)
			}
			if n < 100 && string(r.Out) != "x\n[secret redacted]"+tail {
				t.Errorf("%d lines, %q: %.200q", n, tail, r.Out)
			}
			for _, size := range []int{61, 4096, 9000} {
				agrees(t, e, r, every(text, size)...)
			}
		}
	}
}

const maxArmourBytes = 64 << 10

// A private JSON Web Key keeps its public members only; another object keeps all.
func TestPrivateWebKeysAreMasked(t *testing.T) {
	e := newEngine(t)
	long := strings.Repeat(b62, 10)[:342]
	part := b62 + "abcDEF7"
	for _, c := range []struct{ in, want string }{
		{`{"kty":"OKP","crv":"Ed25519","x":"11qY","d":"` + part + `"}`,
			`{"kty":"OKP","crv":"Ed25519","x":"11qY","d":"§"}`},
		{`{"d":"` + part + `","crv":"P-256","kty":"EC","x":"` + part + `","y":"` + part + `"}`,
			`{"d":"§","crv":"P-256","kty":"EC","x":"` + part + `","y":"` + part + `"}`},
		{`{"kty":"RSA","n":"` + long + long + `","e":"AQAB","d":"` + long + `","p":"` + part + `","q":"` + part +
			`","dp":"` + part + `","dq":"` + part + `","qi":"` + part + `"}`,
			`{"kty":"RSA","n":"` + long + long + `","e":"AQAB","d":"§","p":"§","q":"§","dp":"§","dq":"§","qi":"§"}`},
		{`{"keys":[{"kid":"1","kty":"oct","k":"` + part + `"},{"kty":"EC","x":"` + part + `"}]}`,
			`{"keys":[{"kid":"1","kty":"oct","k":"§"},{"kty":"EC","x":"` + part + `"}]}`},
		{`{"d": "` + long + `", "dp": "` + part + `", "e": "AQAB", "kid": "a", "kty": "RSA", "n": "` + long +
			`"}`, `{"d": "§", "dp": "§", "e": "AQAB", "kid": "a", "kty": "RSA", "n": "` + long + `"}`},
		{`{"kty":"AKP","alg":"ML-DSA-44","pub":"` + part + `","priv":"` + part + `"}`,
			`{"kty":"AKP","alg":"ML-DSA-44","pub":"` + part + `","priv":"§"}`},
		{`{"d":"` + part + `","k":"` + part + `","p":"` + part + `"}`, ""}, {`{"a":{"kty":"EC"},"b":{"d":"` +
			part + `"}}`, ""}, {`{"kty":"RSA","n":"` + long + `","e":"AQAB","kid":"k1"}`, ""},
		{`{"kty":"soft","d":"short"}`, ""},
	} {
		want := strings.ReplaceAll(c.want, "§", "[secret redacted]")
		if want == "" {
			want = c.in
		}
		j, err := e.JSON([]byte(c.in))
		b, err2 := e.Body("application/json", []byte(c.in))
		if err != nil || err2 != nil || string(j.Out) != want && !strings.Contains(c.in, "soft") ||
			string(b.Out) != string(j.Out) {
			t.Errorf("%s became %s and %s, %v, %v", c.in, j.Out, b.Out, err, err2)
		}
		if strings.Contains(c.in, `"a":{"kty"`) {
			continue // text has no objects
		}
		r := e.Text([]byte(c.in + "\n"))
		if string(r.Out) != want+"\n" {
			t.Errorf("Text(%s) = %s", c.in, r.Out)
		}
		for _, n := range []int{1, 13, 300} {
			agrees(t, e, r, every([]byte(c.in+"\n"), n)...)
		}
	}
	for text, want := range map[string]string{
		"kty: OKP\ncrv: X25519\nd: " + part +
			"\nx: 11qY\n": "kty: OKP\ncrv: X25519\nd: [secret redacted]\nx: 11qY\n",
		"key = {'kty': 'EC', 'd': '" + part +
			"'}": "key = {'kty': 'EC', 'd': '[secret redacted]'}",
		"jwk := {kty: \"oct\", k: \"" + part +
			"\"}": "jwk := {kty: \"oct\", k: \"[secret redacted]\"}",
		`{\"kty\":\"OKP\",\"d\":\"` + part +
			`\"}`: `{\"kty\":\"OKP\",\"d\":\"[secret redacted]\"}`,
		"d: " + part + "\n": "d: " + part + "\n",
		"the kty of a key is its type, d: private, and n: its modulus\n": "the kty of a key is its type, d: private, and n: its modulus\n",
	} {
		if out := string(e.Text([]byte(text)).Out); out != want {
			t.Errorf("Text(%q) = %q", text, out)
		}
	}
}
