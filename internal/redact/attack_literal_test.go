package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// planted are registered secrets: letters, signs that encodings escape, and
// letters beyond ASCII.
var planted = []string{"kestrel-plover-4471x", `T!nk3r/b&l~"wr x'9<q`, "zażółć-gęślą-jaźń", "Correct42horseBatt"}

func plantedEngine(t testing.TB) *Engine {
	t.Helper()
	var list []holdfast.Secret
	for _, s := range planted {
		list = append(list, holdfast.NewSecret(s))
	}
	e, err := New(Options{Literals: list})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// eachByte writes every byte of s by format.
func eachByte(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

func runewise(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, format, r)
		}
		return b.String()
	}
}

func unitwise(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, format, u)
		}
		return b.String()
	}
}

// between puts x behind every n characters.
func between(x string, n int) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i, r := range []rune(s) {
			if i > 0 && i%n == 0 {
				b.WriteString(x)
			}
			b.WriteRune(r)
		}
		return b.String()
	}
}

func base64Lines(before, width int, end string) func(string) string {
	return func(s string) string {
		const prose = "The quick brown fox jumps over the lazy dog, and then it sleeps for a day. "
		return between(end, width)(base64.StdEncoding.EncodeToString([]byte(prose[:before] + s + prose)))
	}
}

func disguises() map[string]func(string) string {
	m := map[string]func(string) string{
		"percent, every byte":            eachByte("%%%02x"),
		"percent, twice":                 eachByte("%%25%02X"),
		"percent, four times":            eachByte("%%252525%02X"),
		"percent, what must be":          url.QueryEscape,
		"percent twice, what must be":    func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"\\u, lower case":                unitwise(`\u%04x`),
		"\\u, upper case":                unitwise(`\u%04X`),
		"\\u in a string in a string":    unitwise(`\\u%04x`),
		"\\U":                            runewise(`\U%08x`),
		"\\u{}":                          runewise(`\u{%x}`),
		"\\x":                            eachByte(`\x%02x`),
		"\\x, upper case":                eachByte(`\x%02X`),
		"octal":                          eachByte(`\%03o`),
		"octal of echo":                  eachByte(`\0%03o`),
		"a list of hexadecimal numbers":  eachByte("0x%02x, "),
		"a list of numbers":              func(s string) string { return fmt.Sprint([]byte(s)) },
		"an array of JavaScript":         eachByte("%d,"),
		"references, decimal":            runewise("&#%d;"),
		"references, hexadecimal":        runewise("&#x%X;"),
		"references in escaped HTML":     runewise("&amp;#%d;"),
		"HTML, twice":                    func(s string) string { return html.EscapeString(html.EscapeString(s)) },
		"quoted, three times":            func(s string) string { return fmt.Sprintf("%q", fmt.Sprintf("%q", fmt.Sprintf("%q", s))) },
		"quoted-printable, every byte":   eachByte("=%02X"),
		"hexadecimal":                    func(s string) string { return hex.EncodeToString([]byte(s)) },
		"bytes of a fingerprint":         eachByte("%02X:"),
		"bytes with blanks":              eachByte("%02x "),
		"UTF-16":                         func(s string) string { return string(utf16Bytes(s)) },
		"UTF-32":                         runewise("\x00\x00\x00%c"),
		"full width":                     fullWidthOf,
		"a shell's quotes":               func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
		"SQL's quotes":                   func(s string) string { return strings.ReplaceAll(s, "'", "''") },
		"CSV's quotes":                   func(s string) string { return strings.ReplaceAll(s, `"`, `""`) },
		"quoted-printable, broken lines": quotedPrintable,
	}
	for name, x := range map[string]string{
		"zero width space": "\u200b", "soft hyphen": "\u00ad", "byte order mark": "\ufeff", "combining mark": "\u0301", "tag": "\U000e0041",
		"right to left": "\u202e", "NUL": "\x00", "colour": "\x1b[0;31m", "line": "\n", "CRLF and indent": "\r\n        ", "quoted line": "\n> ",
		"diff": "\n+", "escaped line": `\n`, "continued line": "\\\n", "strings added": `" + "`, "array items": `", "`, "blank": " ", "stars": "**",
	} {
		for _, n := range []int{1, 6} {
			m[fmt.Sprintf("%s behind every %d", name, n)] = between(x, n)
		}
	}
	for before := range 3 {
		for _, width := range []int{4, 19, 60, 64, 76} {
			for _, end := range []string{"\n", "\r\n", `\n`, "\n    ", "=\r\n", "\n> "} {
				m[fmt.Sprintf("base64 at %d in lines of %d and %q", before, width, end)] = base64Lines(40+before, width, end)
			}
		}
	}
	return m
}

func utf16Bytes(s string) (b []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

func fullWidthOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xfee0
		}
		return r
	}, s)
}

func quotedPrintable(s string) string {
	var b strings.Builder
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(strings.Repeat("x", 66) + s))
	_ = w.Close()
	return b.String()
}

// TestAttackRegistered holds that a registered secret goes through no reader in
// any disguise that keeps its bytes in order: one finding at least, and the
// same from text, from a stream by bytes and from a JSON string.
func TestAttackRegistered(t *testing.T) {
	e := plantedEngine(t)
	for name, disguise := range disguises() {
		for _, s := range planted {
			in := "before it " + disguise(s) + " behind it\n"
			r := e.Text([]byte(in))
			if !has(r, rule.Names[rule.Literal]) {
				t.Errorf("%s: text keeps %q", name, r.Out)
				continue
			}
			if left := e.Text(r.Out); left.Found() {
				t.Errorf("%s: a second time finds %v in %q", name, left.Rules(), r.Out)
			}
			if out := bytewiseStream(t, e, in); out != string(r.Out) {
				t.Errorf("%s: stream\n%q, text\n%q", name, out, r.Out)
			}
			if !utf8.ValidString(in) {
				continue
			}
			doc, _ := json.Marshal(map[string]string{"note": in})
			if r, err := e.JSON(doc); err != nil || !has(r, rule.Names[rule.Literal]) {
				t.Errorf("%s: JSON keeps %q, %v", name, r.Out, err)
			}
		}
	}
}

func has(r finding.Result, name string) bool {
	for _, f := range r.Findings {
		if f.Rule == name {
			return true
		}
	}
	return false
}

// bytewiseStream writes in by single bytes.
func bytewiseStream(t *testing.T, e *Engine, in string) string {
	t.Helper()
	var out bytes.Buffer
	s := e.Stream(&out)
	for i := range len(in) {
		if _, err := s.Write([]byte{in[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAttackRegisteredPieces cuts texts full of halves of registered secrets,
// escapes and masks anywhere.
func TestAttackRegisteredPieces(t *testing.T) {
	e := plantedEngine(t)
	rnd := rand.New(rand.NewPCG(4, 7))
	parts := []string{"k", "kestrel", "-plover", "-4471x", "Correct", "42horse", "Batt", "%", "%6", "%6b", `\`, `\u00`, `\u006b`, `\x6`, "&#", "&#107;", "=",
		"=6B", "\n", "\r\n> ", " ", "\u200b", "\xe2\x80", "[secret redacted]", "[", "****-****-****-1234", "<email:7f3a91c2>", "<", "\x1b[", "1m", "0x", "0x6b",
		"ann@example.com", "a2Vz", "dHJl", "6b65", "password: hunter22"}
	for range 3000 {
		var in strings.Builder
		for range 1 + rnd.IntN(24) {
			in.WriteString(parts[rnd.IntN(len(parts))])
		}
		want := e.Text([]byte(in.String()))
		var got bytes.Buffer
		s := e.Stream(&got)
		for rest := in.String(); rest != ""; {
			n := 1 + rnd.IntN(min(len(rest), 9))
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want.Out) {
			t.Fatalf("of %q\nstream %q\ntext   %q", in.String(), got.String(), want.Out)
		}
	}
}

// TestAttackRegisteredStaysLinear reads what nearly is a registered secret at
// every place.
func TestAttackRegisteredStaysLinear(t *testing.T) {
	e := plantedEngine(t)
	for name, unit := range map[string]string{
		"beginnings": "kestrel-plover-4471", "first letters": "k", "references": "&amp;#107;", "gaps": "k" + strings.Repeat("\u200b", 40), "escapes": `\u006b`,
	} {
		checkLinear(t, name, 1<<17, func(n int) { e.Text([]byte(strings.Repeat(unit, n/len(unit)))) })
	}
}

// TestAttackRegisteredOrdinary holds that what only resembles a registered
// secret stays.
func TestAttackRegisteredOrdinary(t *testing.T) {
	e := plantedEngine(t)
	for _, s := range []string{
		"a kestrel and a plover, 4471 times", "KESTREL-PLOVER-4471X is not it", "kestrel-plover-4472x", "Correct horse, 42 batteries",
		"107 101 115 116 114 101 108 are the first", "kestrel" + strings.Repeat("-", 60) + "plover-4471x", "6b:65:73:74:72:65:6c:2d:70:6c",
	} {
		if r := e.Text([]byte(s)); r.Found() {
			t.Errorf("%q became %q", s, r.Out)
		}
	}
}
