package redact

import (
	"bytes"
	base32std "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

// breakLines breaks code into lines.
func breakLines(code string, width int, end string) string {
	var b strings.Builder
	for len(code) > width {
		b.WriteString(code[:width] + end)
		code = code[width:]
	}
	return b.String() + code
}

// encodedTexts are texts with a finding that is encoded, and what is to be left of each.
func encodedTexts() map[string]string {
	std, url := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	found := "the key is " + ghp + ", use it well, and for nothing else"
	const masked = "[secret redacted]"
	return map[string]string{
		`echo ` + std([]byte(found)) + ` | base64 -d`:                                            `echo ` + masked + ` | base64 -d`,
		`x := decode("` + hex.EncodeToString([]byte(found)) + `") // it`:                         `x := decode("` + masked + `") // it`,
		"a\n" + breakLines(std([]byte(found+found)), 64, "\n") + "\nend":                         "a\n" + masked + "\nend",
		"a\r\n" + breakLines(std([]byte(found+found)), 76, "\r\n") + "\r\nend":                   "a\r\n" + masked + "\r\nend",
		"powershell -EncodedCommand " + std(utf16le(found)[2:]) + " -NoExit":                     "powershell -EncodedCommand " + masked + " -NoExit",
		"v=" + std([]byte(std([]byte(found)))) + ";":                                             "v=" + masked + ";",
		"in " + base32std.StdEncoding.EncodeToString([]byte(found)) + ".":                        "in " + masked + ".",
		"at https://h.test/" + url([]byte(ghp+"?")) + "/x":                                       "at https://h.test/" + masked + "/x",
		"data " + std([]byte("mail bob.smith@example.com now")) + " end":                         "data [email hidden] end",
		"data " + std([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01"+ghp+"\x00")) + " end": "data " + masked + " end",
	}
}

// A text is opened as a body is, and a stream gives what the whole text gives for every cut.
func TestTextOpensRuns(t *testing.T) {
	e := newEngine(t)
	for text, want := range encodedTexts() {
		r := e.Text([]byte(text))
		if string(r.Out) != want {
			t.Errorf("Text(%q) = %q, want %q", text, r.Out, want)
		}
		for i := range len(text) + 1 {
			agrees(t, e, r, []byte(text[:i]), []byte(text[i:]))
		}
		agrees(t, e, r, bytewise([]byte(text))...)
		if again := e.Text(r.Out); again.Found() {
			t.Errorf("a second time: %q became %q", r.Out, again.Out)
		}
	}
}

// A long run is opened in windows: the finding is masked wherever it is, most of the run stays, and a stream gives what
// the whole text gives.
func TestLongRunIsOpenedInWindows(t *testing.T) {
	e := newEngine(t)
	rnd := rand.New(rand.NewPCG(31, 32))
	prose := []byte(strings.Repeat("It was a bright cold day in April, and the clocks were striking. ", 500))
	noise := make([]byte, len(prose))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for range 60 {
		content := bytes.Clone([][]byte{prose, noise}[rnd.IntN(2)][:2000+rnd.IntN(28000)])
		at := rnd.IntN(len(content) - 60)
		copy(content[at:], " "+ghp+" ")
		code := base64.StdEncoding.EncodeToString(content)
		if width := rnd.IntN(3); width > 0 {
			code = breakLines(code, 52+12*width, "\n")
		}
		text := []byte("before " + code + " after")
		r := e.Text(text)
		if !r.Found() || len(r.Out) < len(text)-3*4096 || !bytes.HasPrefix(r.Out, []byte("before ")) {
			t.Errorf("%d bytes, token at %d: %d bytes left, %v", len(text), at, len(r.Out), r.Findings)
		}
		for range 4 {
			agrees(t, e, r, cuts(rnd, text)...)
		}
		agrees(t, e, r, bytewise(text)...)
	}
}

// What is random, or text in which nothing is found, stays in every encoding.
func TestTextKeepsRunsWithoutFinding(t *testing.T) {
	e := newEngine(t)
	rnd := rand.New(rand.NewPCG(33, 34))
	for _, code := range []string{"3HOKFQREEG6E4ZD5WQH7YSFMGSPK4Q7EQHYXE4C5RCFHVDXAMWKA====",
		"JJAME6VD3FNMTT6PNGDGYOZ3HEF2AWIFSGVAEJEH2FZHYJT3RKYA===="} {
		if r := e.Text([]byte("got " + code + " of it")); r.Found() {
			t.Errorf("random base32 became %s", r.Out)
		}
	}
	for range 40 {
		noise := make([]byte, 75000)
		for i := range noise {
			noise[i] = byte(rnd.Uint32())
		}
		for name, encode := range encoders {
			if r := e.Text([]byte("x " + encode(noise) + " y")); r.Found() {
				t.Errorf("%s of noise: %v", name, r.Findings)
			}
			if r := e.Text([]byte("x " + encode([]byte("nothing is in this text, it is as it is")) + " y")); r.Found() {
				t.Errorf("%s of text: %v", name, r.Findings)
			}
		}
	}
}
