package tokens

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

const (
	small  = "abcdefghijklmnopqrstuvwxyz"
	large  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	signs  = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// classes are the texts of which the worst is looked for, by their letters.
var classes = []struct{ name, letters string }{
	{"small letters", small},
	{"small letters and spaces", small + " "},
	{"capital letters", large},
	{"letters", small + large},
	{"figures", digits},
	{"figures and spaces", digits + " "},
	{"hexadecimal", digits + "abcdef"},
	{"base64", small + large + digits + "+/"},
	{"signs", signs},
	{"white space", " \n\t"},
}

const schema = `{"name":"get_weather","description":"Get the current weather in a given location","input_schema":{"type":"object","properties":{"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location"]}}`

const code = `func (s *server) handle(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return fmt.Errorf("method %s is not allowed", r.Method)
	}
	for i, row := range s.rows {
		if row.ID == r.PathValue("id") {
			s.rows = append(s.rows[:i], s.rows[i+1:]...)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"ok": true, "left": len(s.rows)})
}
`

// samples are texts as they come.
func samples(t *testing.T) []struct{ name, text string } {
	prose, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 3000)
	rand.New(rand.NewSource(1)).Read(random)
	return []struct{ name, text string }{
		{"prose", string(prose)},
		{"code", code},
		{"a tool's schema", schema},
		{"random bytes in base64", base64.StdEncoding.EncodeToString(random)},
		{"random bytes in hexadecimal", hex.EncodeToString(random)},
		{"one letter many times", strings.Repeat("a", 4000)},
		{"Chinese", strings.Repeat("我们的生活充满了各种各样的选择。", 20)},
		{"rare Chinese", strings.Repeat("龘靐齉爩鱻麤灪籲", 20)},
		{"Amharic", strings.Repeat("ሰላም ለዓለም ሁሉ ", 20)},
		{"cuneiform", strings.Repeat("𒀀𒁹𒂗𒃲", 20)},
		{"emoji", strings.Repeat("👩‍👩‍👧‍👦🏴‍☠️🫠🪿", 20)},
		{"marks above marks", strings.Repeat("Z̸̡̛a̴͖l̷̥g̶̼o", 20)},
		{"bytes that are no text", strings.ToValidUTF8(string(random), "\uFFFD")},
	}
}

// TestNoTextHasMoreTokensThanBytes looks for texts of each class that have many tokens,
// and finds the table of doc/models.md.
func TestNoTextHasMoreTokensThanBytes(t *testing.T) {
	doc, err := os.ReadFile("../../doc/models.md")
	if err != nil {
		t.Fatal(err)
	}
	var count [2]func(string) int
	for i, name := range []tokenizer.Encoding{tokenizer.Cl100kBase, tokenizer.O200kBase} {
		codec, err := tokenizer.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		count[i] = func(s string) int {
			n, err := codec.Count(s)
			if err != nil || n > len(s) {
				t.Errorf("%s: %d bytes have %d tokens: %q %v", name, len(s), n, s, err)
			}
			return n
		}
	}
	row := func(name string, of func(count func(string) int) float64) {
		line := fmt.Sprintf("| %s | %.2f | %.2f |", name, of(count[0]), of(count[1]))
		if !strings.Contains(string(doc), line+"\n") {
			t.Errorf("doc/models.md has not: %s", line)
		}
	}
	for _, s := range samples(t) {
		row(s.name, func(count func(string) int) float64 { return float64(len(s.text)) / float64(count(s.text)) })
	}
	for _, c := range classes {
		row(c.name+", worst found", func(count func(string) int) float64 { return worst(c.letters, count) })
	}
}

// worst climbs, from several random texts, to one of few bytes a token.
func worst(letters string, count func(string) int) float64 {
	const period, times = 24, 4
	r := rand.New(rand.NewSource(1))
	most := 1
	for range 6 {
		text := make([]byte, period)
		for i := range text {
			text[i] = letters[r.Intn(len(letters))]
		}
		best := count(strings.Repeat(string(text), times))
		for range 1500 {
			next := append([]byte(nil), text...)
			for range 1 + r.Intn(3) {
				next[r.Intn(period)] = letters[r.Intn(len(letters))]
			}
			if n := count(strings.Repeat(string(next), times)); n >= best {
				text, best = next, n
			}
		}
		most = max(most, best)
	}
	return float64(period*times) / float64(most)
}
