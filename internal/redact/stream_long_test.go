package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

// long are texts whose spans do not fit a stream's window: what is open for
// more than span.MaxLen hides the rest of its line.
func long() map[string]string {
	run := strings.Repeat("aB3", 10_000)
	words := strings.Repeat("one two three ", 3000)
	body := strings.Repeat(strings.Repeat("MIIEpAIB", 8)+"\n", 300)
	begin, end := "-----BEGIN RSA "+"PRIVATE KEY-----\n", "-----END RSA "+"PRIVATE KEY-----"
	ssh2 := "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\n"
	return map[string]string{
		"run":                   "x " + run + " y\nz",
		"token":                 "x ghp_" + run + " y bob@example.com\nz " + ghp,
		"token to the end":      "x ghp_" + run,
		"jwt":                   "x " + jwt[:40] + run + " y\nz",
		"no jwt":                "x eyJ" + run + ".eyJ" + run + " y\nz",
		"bearer":                "x Bearer " + run + " y\nz",
		"line":                  "Cookie: a=" + words + "\nnext line bob@example.com\n",
		"line of runs":          "Cookie: " + strings.Repeat(run+" ", 3) + "\nnext line\n",
		"quoted":                "password = \"" + words + "\" and more\nnext line\n",
		"quoted, open":          "password = \"" + words,
		"escaped":               `password = \"` + strings.Repeat(`a\\\" `, 4000) + "\\\" and more\nnext line\n",
		"element":               "<password>" + words + "</password> and more\nnext line\n",
		"list":                  "passwords: [" + words + "] and more\nnext line\n",
		"armour":                "x\n" + begin + body + end + " tail\nnext line\n",
		"armour, open":          "x\n" + begin + body,
		"armour, short line":    "x\n" + begin + body + end + "\nnext line\n",
		"ssh2":                  "x\n" + ssh2 + body + "---- END SSH2 ENCRYPTED " + "PRIVATE KEY ----\nnext line\n",
		"armour in a line":      "Cookie: a=" + words + begin + body + end + " tail\nnext line\n",
		"armour deep in a line": "Cookie: a=" + words + begin + "MIIE\n" + end + words + "\nnext line\n",
		"short armour at E":     "Cookie: a=" + words + begin + "MIIE\naBc1\n" + end + " tail\nnext line\n",
		"line in armour":        "x\n" + begin + "Cookie: a=" + words + "\n" + body + end + " Cookie: a\nnext line\n",
		"two lines":             "Cookie: a=" + words + "\nSet-Cookie: " + words + "\nnext line\n",
		"chain":                 strings.Repeat("password=password=", 2000) + "\nnext line\n",
		"chain of mails":        strings.Repeat("bob@example.com", 2000) + "\nnext line\n",
		"pii line":              "home address: " + words + "\n",
		"null blanks":           "password: \"" + strings.Repeat(" ", 5000) + "none\" x\n",
		"far blanks":            "password:" + strings.Repeat(" ", 5000) + "hunter2 x\n",
		"brackets":              "password: aaa" + strings.Repeat(")", 5000) + " x\n" + "password: aaa" + strings.Repeat(")", 5000) + "x\n",
		"digits":                "x " + strings.Repeat("4111111111111111", 2000) + " y\n",
		"mail":                  strings.Repeat("a", 20_000) + "@" + strings.Repeat("b.", 10_000) + "com y\n",
		"escapes":               "x " + strings.Repeat(`\u0041`, 5000) + " y " + `\u0041KIA` + "IOSFODNN7EXAMPLE z\n",
		"escaped line":          `Cook\u0069e: ` + words + "\nnext line\n",
		"escaped in a run":      "x " + run + `\u0020ghp_` + b62 + " y\n",
		"high bytes":            strings.Repeat("日本語のテキスト", 3000) + "。\nbob@example.com\n",
		"nul":                   strings.Repeat("\x00", 20_000) + akia + strings.Repeat("\x00", 20_000),
		"no blanks":             strings.Repeat(`{"a":"b","c":[1,2,3]},`, 2000) + `{"password":"hunter2"}`,
		"params":                "?sig=" + strings.Repeat("a", 9000) + "1 x",
		"putty":                 "Private-Lines: 300\n" + body + "Private-MAC: x\nnext\n",
		"putty, one line":       "Private-Lines: 1\n" + strings.ReplaceAll(body, "\n", "") + "\nPrivate-MAC: x\nnext\n",
		"block":                 "password: |\n" + strings.Repeat("  one two three\n", 600) + "next\n",
		"basic":                 "basic YTpi" + strings.Repeat("=", 9000) + " x\n",
		"literal":               "x " + strings.Repeat("literal ", 8000) + "y\n" + strings.Repeat("literal ", 7999) + "z",
	}
}

func TestStreamEqualsTextOfWhatIsLong(t *testing.T) {
	e := newEngine(t, strings.Repeat("literal ", 8000)+"y", "canary")
	rnd := rand.New(rand.NewPCG(7, 8))
	for name, text := range long() {
		t.Run(name, func(t *testing.T) {
			s := []byte(text)
			want := e.Text(s)
			if again := e.Text(want.Out); again.Found() {
				t.Errorf("redacted again: %v", again.Rules())
			}
			agrees(t, e, want, s)
			sizes := []int{7, 511, 4097}
			if len(s) < 20_000 {
				sizes = append(sizes, 1)
			}
			if testrepeat.Enduring {
				sizes = append(sizes, 100, 4096, 9000)
			}
			for _, n := range sizes {
				agrees(t, e, want, every(s, n)...)
			}
			for range testrepeat.Times(8, 2) {
				agrees(t, e, want, cuts(rnd, s)...)
			}
		})
	}
}

func every(s []byte, n int) (l [][]byte) {
	for len(s) > 0 {
		k := min(n, len(s))
		l, s = append(l, s[:k]), s[k:]
	}
	return l
}

// What is long hides everything up to its line's end, and nothing behind.
func TestLongSpansHideTheirLine(t *testing.T) {
	e := newEngine(t)
	l := long()
	for name, want := range map[string]string{
		"token":              "x [secret redacted]\nz [secret redacted]",
		"line":               "Cookie: [secret redacted]\nnext line [email hidden]\n",
		"quoted":             "password = \"[secret redacted]\nnext line\n",
		"armour":             "x\n[secret redacted]\nnext line\n",
		"armour, open":       "x\n[secret redacted]\n",
		"armour in a line":   "Cookie: [secret redacted]\nnext line\n",
		"short armour at E":  "Cookie: [secret redacted]\nnext line\n",
		"pii line":           "home address: [pii redacted]\n",
		"null blanks":        "password: \"[secret redacted]\" x\n",
		"putty, one line":    "Private-Lines: 1\n[secret redacted]\nPrivate-MAC: x\nnext\n",
		"ssh2":               "x\n[secret redacted]\nnext line\n",
		"armour, short line": "x\n[secret redacted]\nnext line\n",
	} {
		if got := string(e.Text([]byte(l[name])).Out); got != want {
			t.Errorf("%s: %.200q, want %q", name, got, want)
		}
	}
}

// Prose that comes word by word is never held longer than two words: at most
// 32 bytes here, where no word is longer than 14.
func TestStreamLatencyOfProse(t *testing.T) {
	const most = 32
	e := newEngine(t, canary)
	for _, text := range []string{
		strings.Repeat("The agent opened the report and wrote three lines: a note, and the next step. Nothing else changed; see the section about baskets, bearers and tokens for more.\n", 20),
		strings.Repeat("We sold 42 of them in 2026, at 3.50 each; the other 17 (of 59) stay in Block B, says \"Kim\".\n", 20),
		strings.Repeat("秘書は報告書を開いて、三行を書いた。 次の段階は、明日の会議で決める。 ", 20),
		strings.Repeat("Don't use my_name or a-b here - it's the first of May, and may be so.\r\n", 20),
	} {
		var out bytes.Buffer
		s := e.Stream(&out)
		given, worst, sum, n := 0, 0, 0, 0
		for _, w := range asWords(text) {
			if _, err := io.WriteString(s, w); err != nil {
				t.Fatal(err)
			}
			given += len(w)
			held := given - out.Len()
			if held > worst {
				worst = held
				t.Logf("%d held after %q", held, text[max(0, given-40):given])
			}
			sum, n = sum+held, n+1
		}
		if worst > most {
			t.Errorf("%d bytes of prose held", worst)
		}
		t.Logf("worst %d, mean %.1f", worst, float64(sum)/float64(n))
	}
}

// asWords cuts a text behind blanks, and behind what stands for them.
func asWords(text string) (l []string) {
	from := 0
	for i := range text {
		if i > from && (char.Class[text[i-1]]&char.Space != 0 || char.IsStop([]byte(text), i)) {
			l, from = append(l, text[from:i]), i
		}
	}
	return append(l, text[from:])
}

// brittle fails at its nth write.
type brittle struct{ left int }

var errBrittle = errors.New("broken")

func (b *brittle) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return len(p) / 2, errBrittle
	}
	return len(p), nil
}

func TestStreamStaysFailed(t *testing.T) {
	e := newEngine(t)
	s := e.Stream(&brittle{left: 1})
	for range 4 {
		_, _ = s.Write([]byte("one two "))
	}
	for range 2 {
		if n, err := s.Write([]byte("one two ")); n != 0 || !errors.Is(err, errBrittle) {
			t.Errorf("Write = %d, %v", n, err)
		}
		if err := s.Close(); !errors.Is(err, errBrittle) {
			t.Errorf("Close = %v", err)
		}
	}
}

func TestStreamCloses(t *testing.T) {
	var out bytes.Buffer
	s := newEngine(t).Stream(&out)
	if _, err := s.Write([]byte("password: hunt")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := s.Write([]byte("er2")); n != 0 || holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Errorf("Write after Close = %d, %v", n, err)
	}
	if out.String() != "password: [secret redacted]" {
		t.Errorf("%q", out.String())
	}
	if f := s.Findings(); fmt.Sprint(f.Counts, f.First) != "map[secret.assignment:1] [{secret.assignment 10 4}]" {
		t.Errorf("%v", f)
	}
}

// A fault masks what is held, and no text is taken after it.
func TestStreamFailsClosed(t *testing.T) {
	broken := brokenEngine()
	for name, e := range map[string]*Engine{"nil": nil, "zero": {}, "panic": broken} {
		var out bytes.Buffer
		s := e.Stream(&out)
		for range 3 {
			if n, err := s.Write([]byte("harmless text")); n != 0 || holdfast.KindOf(err) != holdfast.KindRedaction {
				t.Errorf("%s: Write = %d, %v", name, n, err)
			}
		}
		if err := s.Close(); holdfast.KindOf(err) != holdfast.KindRedaction {
			t.Errorf("%s: Close = %v", name, err)
		}
		if out.String() != mask.Secret || s.Findings().Counts["fault"] != 1 {
			t.Errorf("%s: %q, %v", name, out.String(), s.Findings())
		}
	}
	if _, err := new(stream.Stream).Write([]byte("x")); holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Errorf("the zero stream: %v", err)
	}
}

// Only the first findings are kept, and all are counted.
func TestStreamFindingsAreBounded(t *testing.T) {
	s := newEngine(t).Stream(io.Discard)
	for range 3000 {
		if _, err := io.WriteString(s, "a bob@example.com b\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f := s.Findings()
	if f.Counts["email"] != 3000 || len(f.First) != 1000 || f.First[999].Offset != 999*20+2 {
		t.Errorf("%v, %d", f.Counts, len(f.First))
	}
}
