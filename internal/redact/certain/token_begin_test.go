package certain_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

const (
	b62   = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// quoted returns s as a string of JSON.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

func newEngine(t testing.TB) *redact.Engine {
	t.Helper()
	e, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// beginnings are what a value comes behind where its text was escaped, coloured
// or set by people who do not write blanks.
var beginnings = []string{
	`\n§`, `a\r\n§\n`, `\t§`, `\u0020§`, `\u201c§\u201d`, `\x20§`, "“§”", "「§」", "：§", "密钥：§。", "é§", "→§", "\ufeff§",
	"\x1b[32m§\x1b[0m", "\x1b[1;38;5;208m§\x1b[0m", `\u001b[32m§\u001b[0m`, "\x1b[m§", "%20§", "a%3D§", "%2520§", "%E2%80%9C§", "{\"x\":\"\\\\n§\"}",
}

// begun are values of all forms that want a beginning.
func begun() []string {
	values := []string{
		"Bearer abcdef0123456789abcdef", "Basic dXNlcjpodW50ZXIy", "DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19",
		"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"+14155550132", "+44 20 7946 0958", "415-555-0132", "4111-1111-1111-1111", "4111 1111 1111 1111", "123-45-6789",
		"1//0" + b62 + b62, hex64[:32] + "-us12", "abc8Q~" + b62[:33], "MTk4" + b62[:22] + ".GabcdE." + b62, "123456789:AA" + b62[:33],
		"AAAAabcdefg:APA91b" + b62 + b62 + b62, strings.Repeat("aB3d", 13) + "JQQJ99" + b62[:26], strings.Repeat("aB3", 26)[:76] + "+ASt" + "abcdef==",
	}
	return append(values, certain.ShortestTokens()...)
}

// Whatever form is found between blanks is found behind an escape, a colour,
// and the punctuation of any script.
func TestValuesBeginBehindEscapes(t *testing.T) {
	e := newEngine(t)
	for _, v := range begun() {
		core := slices.MaxFunc(strings.Fields(v), func(a, b string) int { return len(a) - len(b) })
		for _, c := range beginnings {
			text := strings.ReplaceAll(c, "§", v)
			if out := string(e.Text([]byte(text)).Out); strings.Contains(out, core) {
				t.Errorf("Text(%q) = %q", text, out)
			}
			r, err := e.JSON([]byte(`{"note":` + quoted(text) + `}`))
			if err != nil || strings.Contains(string(r.Out), core) {
				t.Errorf("JSON of %q = %q, %v", text, r.Out, err)
			}
		}
	}
}

// An address ends and begins at the signs of typography; what only looks like
// one is known behind an escape too.
func TestAddressesStandBetweenMarks(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]string{
		"“bob@example.com”": "“[email hidden]”", "→bob@example.com.»": "→[email hidden].»", "\ufeffbob@example.com": "\ufeff[email hidden]",
		"邮箱：bob@example.com。": "邮箱：[email hidden]。", "“git@github.com”": "“git@github.com”", `\ngit@github.com:a/b`: `\ngit@github.com:a/b`,
		"q=%20git@github.com": "q=%20git@github.com", "\x1b[32mgetty@tty1.service\x1b[0m": "\x1b[32mgetty@tty1.service\x1b[0m",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// An ASCII letter or digit still binds, and what only looks like an escape.
func TestWordsAreNotEscapes(t *testing.T) {
	x := cursor.Cursor{S: []byte(`an 12 \q %2g m] u0020 %4g`)}
	for i := range len(x.S) + 1 {
		if x.Escaped(i) {
			t.Errorf("an escape ends at %d of %q", i, x.S)
		}
	}
	e := newEngine(t)
	for _, text := range []string{"xhf_" + b62, "9sk_" + hex64[:48], "aDE89370400440532013000", "x4155550132", "12–415-555-0132", "flubearer x1y2z3"} {
		if r := e.Text([]byte(text)); len(r.Findings) > 0 {
			t.Errorf("Text(%q) = %q", text, r.Out)
		}
	}
	// A "%" may be a sign as well.
	if out := string(e.Text([]byte("card like '%4111111111111111%'")).Out); strings.Contains(out, "4111111111") {
		t.Errorf("a card behind a sign stays: %q", out)
	}
}
