package filter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

func filtering(t *testing.T, in io.Reader, out io.Writer) *Redaction {
	t.Helper()
	e, err := redact.New(redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("correct-horse")}})
	if err != nil {
		t.Fatal(err)
	}
	return NewRedaction(detector.NewRecords(e, nil), in, out)
}

// dripping gives one byte at a time.
type dripping struct{ r io.Reader }

func (d dripping) Read(b []byte) (int, error) { return d.r.Read(b[:min(1, len(b))]) }

func TestRedactFilterKeepsWhatItIsGiven(t *testing.T) {
	secret := "\"correct-horse\""
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"  \n", "  \n"},
		{"plain correct-horse\n", "plain [secret redacted]\n"},
		{`{"password": 7}`, `{"password": 0}`},
		{" {\"a\":" + secret + "} \n\n[" + secret + "]\t\r\n{}", " {\"a\":\"[secret redacted]\"} \n\n[\"[secret redacted]\"]\t\r\n{}"},
		{"{\"a\":1}\nthen " + secret, "{\"a\":1}\nthen \"[secret redacted]\""},
		{"[INFO] password=hunter22 x\n", "[INFO] password=[secret redacted] x\n"},
		{"[\"password\"]: hunter22\n", "[\"password\"]: [secret redacted]\n"},
		{"{\"a\": correct-horse}", "{\"a\": [secret redacted]}"},
		{"{unfinished correct-horse", "{unfinished [secret redacted]"},
		{"4111 1111 1111 1111\n", "****-****-****-1111\n"},
		{"a\x00b correct-horse \xff", "a\x00b [secret redacted] \xff"},
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(c.in), "dripping": dripping{strings.NewReader(c.in)}} {
			var out bytes.Buffer
			f := filtering(t, in, &out)
			if err := f.Run(1 << 20); err != nil || out.String() != c.want {
				t.Errorf("%s: %q became %q, want %q: %v", name, c.in, out.String(), c.want, err)
			}
			for _, x := range f.found {
				if x.Offset < 0 || x.Offset+x.Length > len(c.in) {
					t.Errorf("%q: finding %+v", c.in, x)
				}
			}
		}
	}
}

func TestRedactFilterSaysWhere(t *testing.T) {
	text := "{\"a\":\"correct-horse\"}\n{\"b\":1}\nand correct-horse\n"
	f := filtering(t, strings.NewReader(text), io.Discard)
	if err := f.Run(1 << 20); err != nil {
		t.Fatal(err)
	}
	for i, x := range f.found {
		if got := text[x.Offset : x.Offset+x.Length]; got != "correct-horse" {
			t.Errorf("finding %d is %q", i, got)
		}
	}
	if len(f.found) != 2 || f.counts["secret.literal"] != 2 {
		t.Errorf("%v, %v", f.found, f.counts)
	}
}

// A line is written when it is there, not when the input ends: somebody reads
// along.
func TestRedactFilterWritesLinesAsTheyCome(t *testing.T) {
	for _, lines := range [][2]string{{"{\"a\":\"correct-horse\"}\n", "\"[secret redacted]\"}"}, {"the word correct-horse and so many more words\n", "[secret redacted] and"}} {
		pr, pw := io.Pipe()
		or, ow := io.Pipe()
		done := make(chan error, 1)
		f := filtering(t, pr, ow)
		go func() { done <- f.Run(1 << 20) }()
		if _, err := io.WriteString(pw, lines[0]); err != nil {
			t.Fatal(err)
		}
		got, buf := "", make([]byte, 4096)
		late := time.AfterFunc(5*time.Second, func() { _ = or.CloseWithError(fmt.Errorf("nothing came")) })
		for !strings.Contains(got, lines[1]) {
			n, err := or.Read(buf)
			if got += string(buf[:n]); err != nil {
				t.Errorf("%q: %q, %v", lines[0], got, err)
				break
			}
		}
		late.Stop()
		go func() { _, _ = io.Copy(io.Discard, or) }()
		_ = pw.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A text that is larger than what is held passes; what must be held whole is
// refused by name.
func TestRedactFilterIsBounded(t *testing.T) {
	part := strings.Repeat("ordinary words in a row, ", 40) + "correct-horse\n"
	const n = 3000
	var seen int
	out := writerFunc(func(b []byte) (int, error) {
		seen += bytes.Count(b, []byte("[secret redacted]"))
		if bytes.Contains(b, []byte("correct-horse")) {
			t.Error("it is shown")
		}
		return len(b), nil
	})
	f := filtering(t, strings.NewReader(strings.Repeat(part, n)), out)
	if err := f.Run(1 << 16); err != nil || f.counts["secret.literal"] != n || len(f.found) != maxFound {
		t.Errorf("%v, %v, %d", err, f.counts, len(f.found))
	}
	long := "[\"" + strings.Repeat("x", 1<<17) + "\"]"
	var kept bytes.Buffer
	if err := filtering(t, strings.NewReader(long), &kept).Run(1 << 16); err != nil || kept.Len() != len(long) {
		t.Errorf("a document that is too long to be held is text: %v, %d", err, kept.Len())
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.Repeat(part, 3))
	_ = z.Close()
	kept.Reset()
	if err := filtering(t, &packed, &kept).Run(1 << 20); holdfast.KindOf(err) != holdfast.KindRedaction || kept.Len() > 0 {
		t.Errorf("a secret in what is compressed: %v, %q", err, kept.Bytes())
	}
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("the word correct-horse")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	kept.Reset()
	if err := filtering(t, bytes.NewReader(wide), &kept).Run(1 << 20); err != nil || bytes.Contains(kept.Bytes(), wide[20:40]) || !bytes.HasPrefix(kept.Bytes(), wide[:18]) {
		t.Errorf("UTF-16: %v, %q", err, kept.Bytes())
	}
	if err := filtering(t, bytes.NewReader(wide), &kept).Run(10); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge {
		t.Errorf("UTF-16 beyond what is held: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
