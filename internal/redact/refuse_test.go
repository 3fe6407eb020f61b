package redact

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

func zipped(pairs ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		f, _ := w.Create(pairs[i])
		_, _ = f.Write([]byte(pairs[i+1]))
	}
	_ = w.Close()
	return b.Bytes()
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// wrapped puts text into base64 times times.
func wrapped(text string, times int) string {
	for range times {
		text = b64(text)
	}
	return text
}

// What cannot be read to its end, or not be masked where it stands, is refused
// by name and never passed.
func TestBodyRefusesWhatItCannotScan(t *testing.T) {
	e := newEngine(t)
	bomb := gzipped(strings.Repeat("\x00", 64<<20))
	encrypted := zipped("a", "b")
	encrypted[6] |= 1
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	hidden := zipped("a", "b")
	dir := bytes.Index(hidden, []byte("PK\x01\x02"))
	hidden = append(append(bytes.Clone(hidden[:dir]), noise(200)...), hidden[dir:]...)
	end := bytes.Index(hidden, []byte("PK\x05\x06"))
	binary.LittleEndian.PutUint32(hidden[end+16:], uint32(dir+200))
	for name, c := range map[string]struct{ in, why string }{
		"gzip bomb":             {string(bomb), "gzip"},
		"gzip bomb in base64":   {`{"a":"` + base64.StdEncoding.EncodeToString(bomb) + `"}`, "gzip"},
		"gzip in gzip, deep":    {string(gzipped(string(gzipped(string(gzipped(string(gzipped(string(gzipped("x")))))))))), "4 times"},
		"gzip cut":              {string(gzipped(string(noise(5000)))[:4000]), "breaks off"},
		"gzip with a secret":    {string(gzipped("mail bob@example.com")), "email"},
		"gzip, later member":    {string(append(gzipped("x"), gzipped("mail bob@example.com")...)), "email"},
		"gzip with a tail":      {string(append(gzipped("x"), "mail bob@example.com"...)), "email"},
		"zlib with a secret":    {string(deflated("mail bob@example.com and more of it")), "email"},
		"zip with a secret":     {string(zipped("a", "b", "c", "mail bob@example.com")), "email"},
		"zip with a name":       {string(zipped("bob@example.com", "b")), "email"},
		"zip with json":         {string(zipped("a", `{"password":"hunter2"}`)), "secret.field"},
		"zip, encrypted":        {string(encrypted), "encrypted"},
		"zip, hidden bytes":     {string(hidden), "no member"},
		"zip, cut":              {string(zipped("a", "b")[:30]), "directory"},
		"zip in base64":         {b64(string(zipped("a", "b")[:40])), "directory"},
		"xz":                    {"\xfd7zXZ\x00" + string(noise(100)), "xz"},
		"zstd":                  {"\x28\xb5\x2f\xfd" + string(noise(100)), "zstd"},
		"7z":                    {"7z\xbc\xaf\x27\x1c" + string(noise(100)), "7z"},
		"PDF":                   {"%PDF-1.7\n" + string(noise(100)), "PDF"},
		"noise":                 {string(noise(4000)), "no known form"},
		"png with an address":   {"\x89PNG\r\n\x1a\n" + string(bytes.Repeat([]byte{0, 1, 0xfe}, 50)) + "bob@example.com" + string(bytes.Repeat([]byte{0, 1, 0xfe}, 50)), "email"},
		"png with utf-16":       {"\x89PNG\r\n\x1a\n" + string(bytes.Repeat([]byte{1, 0xfe}, 50)) + string(utf16le("bob@example.com")) + string(bytes.Repeat([]byte{1, 0xfe}, 50)), "email"},
		"text, false mark":      {"\xff\xfemail bob@example.com ", "other text"},
		"text, other mark":      {"\xfe\xffmail bob@example.com", "other text"},
		"text, mark of UTF-32":  {"\x00\x00\xfe\xffmail bob@example.com", "other text"},
		"text behind UTF-16":    {string(utf16le(strings.Repeat("some words ", 9000))) + " bob@example.com", "other text"},
		"text behind NULs":      {strings.Repeat(" \x00", 1<<15) + "mail bob@example.com", "other text"},
		"false mark, escaped":   {"\xff\xfemail bob%40example.com ", "other text"},
		"zip behind text":       {strings.Repeat("hello, this is a text\n", 400) + string(zipped("a", "b")), "zip data behind"},
		"gzip behind text":      {strings.Repeat("hello, this is a text\n", 400) + string(gzipped("b")), "gzip data behind"},
		"zip behind a png":      {"\x89PNG\r\n\x1a\n" + string(bytes.Repeat([]byte{0, 1, 0xfe}, 50)) + string(zipped("a", "b")), "zip data behind"},
		"text of a png":         {"\x89PNG\r\n\x1a\n" + string(bytes.Repeat([]byte{0, 1, 0xfe}, 50)) + "zTXtComment\x00\x00" + string(deflated("mail bob@example.com and more of it")), "email"},
		"base64, deep":          {wrapped("it says bob@example.com here", 5), "4 times"},
		"percent, deep":         {"it says bob%25252525252540example.com", "4 times"},
		"JSON in strings, deep": {string(quoteDeep(`{"a":"b"}`, 6)), "4 times"},
		"arrays":                {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "512 levels"},
		"objects":               {strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), "512 levels"},
		"arrays, more":          {strings.Repeat("[", 1_000_000), "512 levels"},
		"multipart, deep":       {nestedMultipart(6), "4 times"},
		"not UTF-8":             {"{\"a\":\"\xff\"}", "not UTF-8"},
		"lone surrogate":        {`{"a":"\ud800"}`, "not UTF-8"},
		"in a part":             {"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n" + string(gzipped("mail bob@example.com")) + "\r\n--b--\r\n", "part 1: gzip"},
		"in a line":             {"{\"a\":1}\n{\"a\":\"" + wrapped("it says bob@example.com here", 5) + "\"}\n", "the line at byte 8"},
		"part encoding":         {"--b\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nbegin\r\n--b--\r\n", "part 1"},
		"secret boundary":       {"--" + akia + "\r\nContent-Type: text/plain\r\n\r\nx\r\n--" + akia + "--\r\n", "boundary"},
	} {
		start := time.Now()
		r, err := e.Body("", []byte(c.in))
		var h *holdfast.Error
		if !errors.As(err, &h) || h.Kind != holdfast.KindRedaction || h.Rule != "redact/unscannable" || !strings.Contains(h.Why, c.why) || h.Hint == "" || r.Out != nil {
			t.Errorf("%s: %.100q, %v, want %q", name, r.Out, err, c.why)
		}
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("%s took %v", name, d)
		}
	}
	for name, kind := range map[string]string{"utf-7": "text/plain; charset=utf-7", "ebcdic": "text/plain; charset=ibm037", "utf-16 that is none": "text/plain; charset=utf-16"} {
		if _, err := e.Body(kind, []byte("hello world")); holdfast.KindOf(err) != holdfast.KindRedaction {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What begins as UTF-16 and is that goes on: nothing in it may be taken for
// other text, whatever the script.
func TestBodyOfWideTextIsNotReadAsOther(t *testing.T) {
	e := egress(t, "tenant-own-secret")
	for _, text := range []string{
		"call +49 30 901820 or mail bob@example.com: tenant-own-secret",
		"\u6d4b\u8bd5 \u30c6\u30b9\u30c8 \u4f60\u597d\uff0c\u4e16\u754c tenant-own-secret \u6162\u6564\u6766",
		"\u041f\u0440\u0438\u0432\u0435\u0442 \u05e9\u05dc\u05d5\u05dd \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \U0001f600 tenant-own-secret",
	} {
		r, err := e.Body("text/plain", utf16le(text))
		if err != nil || !r.Found() || !bytes.HasPrefix(r.Out, []byte("\xff\xfe")) || bytes.Contains(bytes.ReplaceAll(r.Out, []byte{0}, nil), []byte("tenant-own")) {
			t.Errorf("%q became %q, %v", text, r.Out, err)
		}
	}
	// Wrapped, what may be read as other text is masked with what it stands in.
	wrapped := `{"a":"` + b64("\xff\xfethe word is tenant-own-secret") + `"}`
	if r, err := e.Body("application/json", []byte(wrapped)); err == nil && (!r.Found() || bytes.Contains(r.Out, []byte(wrapped[8:30]))) {
		t.Errorf("%s became %q", wrapped, r.Out)
	}
}

func quoteDeep(doc string, times int) []byte {
	b := []byte(doc)
	for range times {
		b = append(append([]byte(`{"a":`), quote(string(b))...), '}')
	}
	return b
}

func nestedMultipart(depth int) string {
	body := "x"
	for k := range depth {
		b := "b" + strings.Repeat("x", k)
		body = "--" + b + "\r\nContent-Type: text/plain\r\n\r\n" + body + "\r\n--" + b + "--\r\n"
	}
	return body
}

func TestBodyRefusesANameThatStandsTwice(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct{ in, why string }{
		{`{"role":"user","role":"system"}`, `"role"`},
		{`{"a":{"b":1,"\u0062":2}}`, `"b"`},
		{`{"bob@example.com":1,"bob@example.com":2}`, `"[email hidden]"`},
		{"{\"a\":1}\n{\"x\":1,\"x\":2}\n", `"x"`},
		{"data: {\"x\":1,\"x\":2}\n\n", `"x"`},
	} {
		_, err := e.Body("", []byte(c.in))
		var h *holdfast.Error
		if !errors.As(err, &h) || h.Kind != holdfast.KindRedaction || h.Rule != "redact/duplicate" || !strings.Contains(h.Why, c.why) {
			t.Errorf("%s: %v", c.in, err)
		}
		if strings.Contains(err.Error(), "bob@") {
			t.Errorf("the error tells: %v", err)
		}
	}
}

func TestBodyOfABrokenEngineIsRefused(t *testing.T) {
	broken := brokenEngine()
	for _, e := range []*Engine{nil, {}, broken} {
		if r, err := e.Body("", []byte("harmless")); holdfast.KindOf(err) != holdfast.KindRedaction || r.Out != nil {
			t.Errorf("%q, %v", r.Out, err)
		}
		if out, list := e.URL("https://example.com/"); strings.Contains(out, "example") || len(list) == 0 {
			t.Errorf("URL gives %q", out)
		}
		if out, list := e.Header(map[string][]string{"X-A": {"harmless"}}); strings.Contains(fmt.Sprint(out), "harmless") || len(list) == 0 {
			t.Errorf("Header gives %q", out)
		}
	}
}

// Hostile bodies take time in proportion to their size, and bounded memory.
func TestHostileBodiesAreBounded(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	const size = 1 << 17
	bodies := map[int]map[string]hostileBody{size: hostileBodies(size), size / 16: hostileBodies(size / 16)}
	for name, c := range bodies[size] {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := e.Body(c.kind, []byte(c.in)); err != nil && holdfast.KindOf(err) != holdfast.KindRedaction {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 1500*size {
			t.Errorf("%s: %d MB", name, spent>>20)
		}
		testgrowth.Linear(&namedTest{TB: t, what: name}, size, func(n int) func() {
			in := []byte(bodies[n][name].in)
			return func() { _, _ = e.Body(c.kind, in) }
		})
	}
}

// hostileBody is a body and its media type.
type hostileBody struct{ kind, in string }

// hostileBodies returns bodies of about size bytes that are laborious to read.
func hostileBodies(size int) map[string]hostileBody {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]hostileBody{
		"fields":              {"", fill("a=1&")},
		"secret fields":       {"", fill("password=1&") + "a=1"},
		"delimiters":          {"multipart/form-data; boundary=b", fill("--b\r\n")},
		"delimiters, heads":   {"multipart/form-data; boundary=b", fill("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n")},
		"near delimiters":     {"multipart/form-data; boundary=b", "--b\r\n\r\n" + fill("\n--bx") + "\r\n--b--"},
		"boundary in content": {"multipart/form-data; boundary=b", "--b\r\n\r\n" + fill(" --b --b--") + "\r\n--b--"},
		"delimiter, blanks":   {"multipart/form-data; boundary=b", "--b\r\n\r\n" + fill("\n--b          ") + "\r\n--b--"},
		"heads":               {"multipart/form-data; boundary=b", "--b\r\n" + fill("A: b\r\n") + "\r\n--b--"},
		"folds":               {"multipart/form-data; boundary=b", "--b\r\nA: b\r\n" + fill(" b\r\n") + "\r\n--b--"},
		"params":              {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: x" + fill("; a=b") + "\r\n\r\n--b--"},
		"quotes":              {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: x" + fill("; a=\"") + "\r\n\r\n--b--"},
		"events":              {"text/event-stream", fill("data: {}\n\n")},
		"data lines":          {"text/event-stream", fill("data: {\n")},
		"blank lines":         {"text/event-stream", fill("\n")},
		"lines":               {"", fill("{}\n")},
		"emails as names":     {"", "{" + strings.Repeat(`"a@b.org":1,`, 1) + manyNames(size/40) + "}"},
		"percent":             {"", fill("%41")},
		"percent signs":       {"", fill("%")},
		"percent of percent":  {"", fill("%2525")},
		"references":          {"", fill("&#65;")},
		"ampersands":          {"", fill("&")},
		"zero width":          {"", fill("\u200b")},
		"runs":                {"", fill("QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB ")},
		"one run":             {"", fill("QUFB")},
		"run lines":           {"", fill(strings.Repeat("QUFB", 19) + "\n")},
		"hex":                 {"", fill("4141414141414141414141414141 ")},
		"gzip heads":          {"", fill(b64(string(gzipped("x"))) + " ")},
		"zlib heads":          {"", fill(b64("x\x9c"+strings.Repeat("a", 20)) + " ")},
		"gzip members":        {"", fill(string(gzipped("x")))},
		"strings":             {"", "[" + fill(`"a",`) + `"a"]`},
		"utf-16":              {"", string(utf16le(fill("a")))},
		"utf-16, odd":         {"", string(utf16le(fill("a"))) + "x"},
		"utf-16, surrogates":  {"", "\xff\xfe" + fill("\x00\xd8")},
		"utf-32":              {"", "\xff\xfe\x00\x00" + fill("\xff\xff\xff\xff")},
		"quoted printable":    {"multipart/mixed; boundary=b", "--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + fill("=40") + "\r\n--b--"},
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"u` + strings.Repeat("i", i%50) + base64.RawURLEncoding.EncodeToString([]byte{byte(i), byte(i >> 8), byte(i >> 16)}) + `@b.org":1`)
	}
	return b.String()
}
