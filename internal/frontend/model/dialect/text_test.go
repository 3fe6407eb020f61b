package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

// hostile are texts that have a token for nearly each of their bytes.
var hostile = map[string]string{
	"letters that go together nowhere": "qfzohgyxhjwqgqzvqjyqzgqy",
	"letters of both sizes":            "BtGgHwHwBcJQKqUfGQyTtjLs",
	"figures apart":                    "0 7 1  5 8 5  4  6  3 8 ",
	"figures":                          "314159265358979323846264",
	"base64":                           "VrMjDxw2iOY5o3uIYDQZD9zq",
	"hex":                              "6b9e1a9b2e8e8a3f6e0d7d2a",
	"signs":                            ";^?#*!{[<#|/!-@%|`!-`!^,",
	"white space":                      "\n\t\n \n \n \n\t\n \n \t \n \t",
	"Chinese":                          "龘靐齉爩鱻麤灪籲",
	"a rare script":                    "𒀀𒁹𓀀𓁐𐎠𐏁",
	"emoji":                            "👩‍👩‍👧‍👦🏴‍☠️",
	"marks above marks":                "Z̸̡̛a̴͖l̷̥g̶̼o",
}

// No text is reserved at fewer tokens than it has bytes, in whatever part of a request
// it stands, and however it is escaped.
func TestBoundIsNoLessThanBytes(t *testing.T) {
	for name, piece := range hostile {
		text := strings.Repeat(piece, 10)
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			d    Dialect
			body string
		}{
			{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":%s}]}`},
			{Messages, `{"model":"m","max_tokens":1,"system":[{"type":"text","text":%s}],"messages":[]}`},
			{Messages, `{"model":"m","max_tokens":1,"tools":[{"name":"t","description":%s,"input_schema":{}}]}`},
			{Messages, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s}]}]}`},
			{Responses, `{"model":"m","max_output_tokens":16,"instructions":%s}`},
			{Chat, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":%s}]}]}`},
			{Completions, `{"model":"m","max_tokens":1,"prompt":[%s]}`},
			{Embeddings, `{"model":"m","input":%s}`},
		} {
			for _, word := range []string{string(plain), ascii(text)} {
				b, err := parsed(t, c.d, fmt.Sprintf(c.body, word)).Bound(Limits{})
				if err != nil || b.Input < int64(len(text)) {
					t.Errorf("%s in %s: %d bytes are at most %+v tokens, %v", name, c.d, len(text), b, err)
				}
				if most := int64(len(word)) * 2; b.Input > most+2000 {
					t.Errorf("%s in %s: %d bytes are reserved at %+v", name, c.d, len(word), b)
				}
			}
		}
	}
}

// ascii is a JSON string of which each letter is escaped.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if a, c := surrogates(r); a > 0 {
			fmt.Fprintf(&b, `\u%04x\u%04X`, a, c)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

func surrogates(r rune) (rune, rune) {
	if r < 0x10000 {
		return 0, 0
	}
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// A tokenizer may bring text into a normal form before: no form that composes letters
// is longer than what is reserved, and common text is reserved at its bytes.
func TestTextGrowsInItsForms(t *testing.T) {
	marks := []string{"\u0301", "\u0323\u0301", "\u031b\u0323\u0345", "\u0327\u0331\u0308"}
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		p := norm.NFKD.PropertiesString(string(r))
		if !utf8.ValidRune(r) || p.Decomposition() == nil && p.CCC() == 0 || r >= 0xac00 && r <= 0xd7a3 && r%101 > 0 {
			continue
		}
		for _, s := range append(marks, "") {
			s = "ế" + string(r) + s + string(r)
			for _, doc := range []string{s, ascii(s), strings.ReplaceAll(ascii(s), `\`, `\\`)} {
				most := int64(len(doc)) + expansion([]byte(doc))
				if c, k := len(norm.NFC.String(s)), len(norm.NFKC.String(s)); int64(max(c, k)) > most {
					t.Errorf("%s (%x) is %d or %d bytes in a form, and at most %d are reserved", doc, s, c, k, most)
				}
			}
		}
	}
	for text, want := range map[string]int64{
		strings.Repeat("word 1234 \n", 100): 0, "中文字 かな 한국어 Ещё é ñ ß İ العربية हिन्दी ไทย 👍🏽 – “x”": 0,
		"\uFDFA": 30, "½": 3, "\uFDFA" + strings.Repeat("a", 21) + "\uFDFA": 60,
		`\ufdfa`: 27, `\\uFDFA`: 27, `\u00e9`: 0, `\ud83d\udc4d`: 0, `\ufdf`: 0, `\ufdfx`: 0, `\u+dfa`: 0, `\u`: 0, `\`: 0, "\xff": 0, "a\xe4": 0,
	} {
		if got := expansion([]byte(text)); got != want {
			t.Errorf("%q grows by %d, not %d", text, got, want)
		}
	}
	for n := range 20 { // wherever it stands, and whatever stands before and behind
		for _, c := range []struct{ before, behind string }{{"a", "a"}, {"é", ""}, {"中", "\xe4"}, {`\`, `\`}, {`\u00e9`, `\u`}, {"\xff", "b"}} {
			before := strings.Repeat(c.before, n)
			if got := expansion([]byte(before + "\uFDFA" + strings.Repeat(c.behind, n))); got != 30 {
				t.Errorf("%d of %q: %d", n, c.before, got)
			}
			if got := expansion([]byte(before + `\ufdfa` + c.behind)); got != 27 {
				t.Errorf("%d of %q, escaped: %d", n, c.before, got)
			}
		}
	}
}

// Text of any length and kind is looked at once.
func TestTextIsLookedAtOnce(t *testing.T) {
	for _, piece := range []string{"word ", `\\\\\\`, `\\u`, `\ufdfa`, "\uFDFA", "e\u0301", "中", "\xff"} {
		testgrowth.Linear(t, 1<<17, func(n int) func() {
			doc := []byte(strings.Repeat(piece, n/len(piece)))
			return func() { expansion(doc) }
		})
	}
}

// FuzzTextGrows: whatever text it is, and however its letters are escaped, its forms
// are no longer than what is reserved.
func FuzzTextGrows(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, uint8(0))
		f.Add("\uFDFA"+s+"\u0344", uint8(1))
	}
	f.Fuzz(func(t *testing.T, s string, how uint8) {
		s = strings.ToValidUTF8(s, "?")
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if how%2 == 1 {
			doc = []byte(ascii(s))
		}
		most := int64(len(doc)) + expansion(doc)
		for _, form := range []norm.Form{norm.NFC, norm.NFKC} {
			n := len(form.String(s))
			// Go alone puts a joiner into long rows of marks.
			n -= 2 * (strings.Count(form.String(s), "\u034f") - strings.Count(s, "\u034f"))
			if int64(n) > most {
				t.Fatalf("%q is %d bytes in a form, and at most %d are reserved", s, n, most)
			}
		}
	})
}

// BenchmarkExpansion is held against a look at each byte: its ratio is how much longer
// it takes.
func BenchmarkExpansion(b *testing.B) {
	const size = 1 << 20
	for _, c := range []struct{ name, piece string }{
		{"prose", "The quick brown fox jumps over the lazy dog. "},
		{"code", `\tif err != nil {\n\t\treturn fmt.Errorf(\"%w\", err)\n\t}\n`},
		{"base64", "VrMjDxw2iOY5o3uIYDQZD9zq"},
		{"Chinese", "中文字"},
		{"Cyrillic", "Съешь же ещё этих мягких французских булок "},
		{"emoji", "👩‍👩‍👧‍👦"},
		{"escapes", `\u4e2d`},
	} {
		doc := []byte(strings.Repeat(c.piece, size/len(c.piece)))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				expansion(doc)
			}
			each := float64(b.Elapsed()) / float64(b.N)
			sum, from := byte(0), time.Now()
			for range 20 {
				for _, x := range doc {
					sum += x
				}
			}
			b.ReportMetric(each*20/float64(time.Since(from)), "times_a_plain_pass")
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}
