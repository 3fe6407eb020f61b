package redact

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	b32 "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// shape is a way of carrying one value: how it is written, and the value read
// back out of the result by a reader that is not ours.
type shape struct {
	name, kind string
	wrap       func(value string) []byte
	read       func(t *testing.T, out []byte) string
}

func asJSON(t *testing.T, out []byte) string {
	t.Helper()
	if !json.Valid(out) {
		t.Errorf("no longer JSON: %q", out)
	}
	return string(out)
}

func asForm(t *testing.T, out []byte) string {
	t.Helper()
	v, err := url.ParseQuery(string(out))
	if err != nil || len(v) != 3 || v.Get("a") != "1" || v.Get("z") != "x y" {
		t.Errorf("no longer the form: %q, %v", out, err)
	}
	return fmt.Sprint(v)
}

func asMultipart(t *testing.T, out []byte) string {
	t.Helper()
	r := multipart.NewReader(bytes.NewReader(out), "Xx-7")
	var b strings.Builder
	n := 0
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Errorf("no longer multipart: %q, %v", out, err)
			break
		}
		content, err := io.ReadAll(p)
		if err != nil {
			t.Errorf("part %d: %v", n, err)
		}
		fmt.Fprintf(&b, "%v %s %s\n", p.Header, p.FileName(), content)
		n++
	}
	if n != 2 {
		t.Errorf("%d parts in %q", n, out)
	}
	return b.String()
}

func asIs(_ *testing.T, out []byte) string { return string(out) }

func formOf(name string) func(string) []byte {
	return func(v string) []byte { return []byte("a=1&" + name + "=" + url.QueryEscape(v) + "&z=x+y") }
}

func multipartOf(head string, encode func(string) string) func(string) []byte {
	return func(v string) []byte {
		return fmt.Appendf(nil, "--Xx-7\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--Xx-7\r\n%s\r\n\r\n%s\r\n--Xx-7--\r\n", head, encode(v))
	}
}

func same(s string) string { return s }

func utf16le(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return out
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

var shapes = []shape{
	{"json value", "application/json", func(v string) []byte { return []byte(`{"a":[1,` + string(quote(v)) + `]}`) }, asJSON},
	{"json key", "application/json", func(v string) []byte { return []byte(`{` + string(quote(v)) + `:[null]}`) }, asJSON},
	{"json declared text", "text/plain", func(v string) []byte { return []byte(`{"a":` + string(quote(v)) + `}`) }, asJSON},
	{"json undeclared", "", func(v string) []byte { return []byte(" \n" + `{"a":` + string(quote(v)) + `}`) }, asJSON},
	{"json in json", "application/json", func(v string) []byte { return quoteIn(`{"a":%s}`, quoteIn(`{"b":%s}`, quote(v))) }, asJSON},
	{"json escaped", "application/json", func(v string) []byte {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return []byte(`{"a":"` + b.String() + `"}`)
	}, asJSON},
	{"json lines", "application/x-ndjson", func(v string) []byte { return []byte("{\"a\":1}\n{\"b\":" + string(quote(v)) + "}\n{}\n") }, asIs},
	{"events", "text/event-stream", func(v string) []byte {
		return []byte("event: x\ndata: {\"a\":" + string(quote(v)) + "}\n\ndata: [DONE]\n\n")
	}, asIs},
	{"event of lines", "text/event-stream", func(v string) []byte {
		return []byte("data: {\"a\":\ndata: " + string(quote(v)) + "}\n\n")
	}, asIs},
	{"form value", "application/x-www-form-urlencoded", formOf("q"), asForm},
	{"form undeclared", "", formOf("q"), asForm},
	{"form name", "application/x-www-form-urlencoded", func(v string) []byte { return []byte("a=1&" + url.QueryEscape(v) + "=2&z=x+y") }, asForm},
	{"json in form", "application/x-www-form-urlencoded", func(v string) []byte { return formOf("q")(string(quoteIn(`{"a":%s}`, quote(v)))) }, asForm},
	{"multipart field", "multipart/form-data; boundary=Xx-7", multipartOf(`Content-Disposition: form-data; name="q"`, same), asMultipart},
	{"multipart undeclared", "", multipartOf(`Content-Disposition: form-data; name="q"`, same), asMultipart},
	{"multipart file", "multipart/form-data; boundary=Xx-7", multipartOf("Content-Disposition: form-data; name=\"q\"; filename=\"x.png\"\r\nContent-Type: image/png", same), asMultipart},
	{"multipart base64", "multipart/mixed; boundary=\"Xx-7\"", multipartOf("Content-Type: text/plain\r\nContent-Transfer-Encoding: base64", b64), asMultipart},
	{"multipart json", "multipart/mixed; boundary=Xx-7", multipartOf("Content-Type: application/octet-stream", func(v string) string { return string(quoteIn(`{"a":%s}`, quote(v))) }), asMultipart},
	{"file name", "multipart/form-data; boundary=Xx-7", func(v string) []byte {
		return multipartOf(`Content-Disposition: form-data; name="q"; filename=`+string(quote(v)), same)("x")
	}, asMultipart},
	{"file name, percent", "multipart/form-data; boundary=Xx-7", func(v string) []byte {
		return multipartOf(`Content-Disposition: form-data; name="q"; filename*=UTF-8''`+url.PathEscape(v), same)("x")
	}, asMultipart},
	{"file name, word", "multipart/form-data; boundary=Xx-7", func(v string) []byte {
		return multipartOf(`Content-Disposition: form-data; name="q"; filename="`+mime.BEncoding.Encode("utf-8", v+"é")+`"`, same)("x")
	}, asMultipart},
	{"xml", "application/xml", func(v string) []byte { return []byte("<a b=\"" + v + "\">1</a>") }, asIs},
	{"html references", "text/html", func(v string) []byte {
		var b strings.Builder
		for i, c := range v {
			fmt.Fprintf(&b, []string{"&#%d;", "&#x%x;"}[i&1], c)
		}
		return []byte("<p>" + b.String() + "</p>")
	}, asIs},
	{"plain", "text/plain; charset=utf-8", func(v string) []byte { return []byte("say " + v + " now") }, asIs},
	{"tag characters", "text/plain", func(v string) []byte {
		return []byte("say " + strings.Map(func(r rune) rune { return 0xe0000 + r }, v) + " now")
	}, asIs},
	{"zero width", "text/plain", func(v string) []byte { return []byte("say " + strings.Join(strings.Split(v, ""), "\u200b") + " now") }, asIs},
	{"utf-16", "text/plain; charset=utf-16", func(v string) []byte { return utf16le("say " + v + " now") }, asIs},
	{"utf-16 without a mark", "", func(v string) []byte { return utf16le("say " + v + " now")[2:] }, asIs},
	{"utf-16 json", "application/json", func(v string) []byte { return utf16le(`{"a":` + string(quote(v)) + `}`) }, asIs},
	{"byte order mark", "", func(v string) []byte { return []byte("\xef\xbb\xbf" + `{"a":` + string(quote(v)) + `}`) }, asIs},
}

func quoteIn(format string, q []byte) []byte {
	doc := fmt.Sprintf(format, q)
	if strings.HasPrefix(format, `{"a"`) && q[0] == '{' {
		doc = fmt.Sprintf(format, quote(string(q)))
	}
	return []byte(doc)
}

// encoding is what a value can be wrapped in before it is carried.
var encodings = map[string]func(string) string{
	"plain":           same,
	"percent":         func(s string) string { return percentAll(s) },
	"percent twice":   func(s string) string { return url.QueryEscape(percentAll(s)) },
	"base64":          func(s string) string { return b64("it says " + s + " here") },
	"base64url":       func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("it says ÿÿ " + s)) },
	"base64 behind":   func(s string) string { return "prefix_" + b64("it says "+s+" here") },
	"base64 of json":  func(s string) string { return b64(`{"x":` + string(quote(s)) + `}`) },
	"base64 twice":    func(s string) string { return b64(b64("it says " + s + " here")) },
	"base64 of utf16": func(s string) string { return b64(string(utf16le("it says " + s)[2:])) },
	"base64 of gzip":  func(s string) string { return b64(string(gzipped("it says " + s))) },
	"hex":             func(s string) string { return hex.EncodeToString([]byte("it says " + s)) },
	"base32":          func(s string) string { return b32.StdEncoding.EncodeToString([]byte("it says " + s + " here")) },
}

func percentAll(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

// secrets are a value and the part of it that must not survive.
var secrets = []masked{
	{ghp, b62[8:20], "secret.github"},
	{"bob.smith@example.com", "bob.smith", "email"},
	{akia, "IOSFODNN7", "secret.aws_key_id"},
	{"tenant-own-secret", "own-secret", "secret.literal"},
	{"paid 4111 1111 1111 1111 today", "4111 1111", "card"},
	{"password=hunter2-yes", "hunter2-yes", "secret.assignment"},
}

// Every secret goes out of every shape, in every encoding; the shape stays one
// for a reader that is not ours, and a second redaction changes nothing.
func TestBodyOfEveryShapeSecretAndEncoding(t *testing.T) {
	for style, e := range map[string]*Engine{"ledger": newEngine(t, "tenant-own-secret"), "egress": egress(t,
		"tenant-own-secret")} {
		for _, sh := range shapes {
			for name, encode := range encodings {
				for _, s := range secrets {
					value := encode(s.text)
					in := sh.wrap(value)
					r, err := e.Body(sh.kind, in)
					if err != nil {
						t.Errorf("%s, %s, %s of %s: %v", style, sh.name, name, s.rule, err)
						continue
					}
					read := sh.read(t, r.Out)
					if !r.Found() || strings.Contains(read, encode(s.secret)) || strings.Contains(read, value) || strings.Contains(read, s.secret) {
						t.Errorf("%s, %s, %s of %s:\n%.300q\n%.300q by %v", style, sh.name, name, s.rule, in, r.Out, r.Rules())
					}
					stable(t, e, sh.kind, r.Out)
					ordered(t, in, r)
				}
			}
		}
	}
}

func egress(t testing.TB, literals ...string) *Engine {
	t.Helper()
	o := Options{Masks: mask.Egress}
	for _, l := range literals {
		o.Literals = append(o.Literals, holdfast.NewSecret(l))
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func stable(t *testing.T, e *Engine, kind string, out []byte) {
	t.Helper()
	again, err := e.Body(kind, out)
	if err != nil || !bytes.Equal(again.Out, out) {
		t.Errorf("again %.300q becomes %.300q by %v, %v", out, again.Out, again.Rules(), err)
	}
}

func ordered(t *testing.T, in []byte, r finding.Result) {
	t.Helper()
	at := 0
	for _, f := range r.Findings {
		if f.Offset < at && f.Offset != 0 || f.Length < 0 || f.Offset+f.Length > len(in) {
			t.Errorf("findings of %.200q: %v", in, r.Findings)
			return
		}
		at = f.Offset
	}
}

// What holds nothing passes byte for byte.
func TestBodyLeavesCleanBodiesAlone(t *testing.T) {
	e := newEngine(t, "tenant-own-secret")
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{0, 1, 0xfe, 'a'}, 500)...)
	for _, sh := range shapes {
		for name, encode := range encodings {
			in := sh.wrap(encode("the quick brown fox jumps"))
			r, err := e.Body(sh.kind, in)
			if err != nil || r.Found() || !bytes.Equal(r.Out, in) {
				t.Errorf("%s, %s: %.300q becomes %.300q by %v, %v", sh.name, name, in, r.Out, r.Rules(), err)
			}
		}
	}
	for _, text := range mustNotMask {
		if r, err := e.Body("text/plain", []byte(text)); err == nil && r.Found() {
			t.Errorf("%q becomes %q by %v", text, r.Out, r.Rules())
		}
	}
	for name, in := range map[string][]byte{
		"nothing": nil, "png": png, "png in json": []byte(`{"image":"` + base64.StdEncoding.EncodeToString(png) + `"}`),
		"gzip": gzipped("the quick brown fox"), "zlib": deflated("the quick brown fox"), "two members": append(gzipped("a"), gzipped("b")...),
		"zip": zipped("a.txt", "the quick brown fox"), "x^2": []byte("x^2 + y^2"), "100%": []byte("100% of 5%"),
		"jpeg in form": []byte("img=" + url.QueryEscape(base64.StdEncoding.EncodeToString(append([]byte("\xff\xd8\xff\xe0"), png...))) + "&x=1"),
		"number":       []byte("12345678901234567890123456789012345678901234567890"), "big numbers": []byte(`{"n":[1e400,-0,123456789012345678901234567890]}`),
		"nul": []byte(`{"a":"b\u0000c"}`), "surrogate pair": []byte(`{"a":"\ud83d\ude00"}`),
		"hashes": []byte(`["` + strings.Repeat("9f86d081", 8) + `","` + strings.Repeat("e3b0c44298fc1c14", 4) + `"]`),
		"latin":  []byte("caf\xe9 and cr\xe8me br\xfbl\xe9e"),
	} {
		r, err := e.Body("", in)
		if err != nil || r.Found() || !bytes.Equal(r.Out, in) {
			t.Errorf("%s: %.200q becomes %.200q by %v, %v", name, in, r.Out, r.Rules(), err)
		}
	}
}

func TestBodyKeepsWhatItDoesNotMask(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct{ kind, in, want string }{
		{"", `{"a":"x@y.org", "b" : 1.0e2}`, `{"a":"[email hidden]", "b" : 1.0e2}`},
		{"", `{"password":{"a":[1,"x"]},"pan":4111111111111111}`, `{"password":{"a":[0,"[secret redacted]"]},"pan":0}`},
		{"", `{"a@x.org":1,"b@x.org":2,"[email hidden] #2":3}`, `{"[email hidden]":1,"[email hidden] #3":2,"[email hidden] #2":3}`},
		{"", `{"[email hidden]":1,"a@x.org":2}`, `{"[email hidden]":1,"[email hidden] #2":2}`},
		{"", "{\"a\":\"x@y.org\"}\n\n{\"b\":2}\r\n", "{\"a\":\"[email hidden]\"}\n\n{\"b\":2}\r\n"},
		{"", "\x1e{\"a\":\"x@y.org\"}\n\x1e{\"b\":2}\n", "\x1e{\"a\":\"[email hidden]\"}\n\x1e{\"b\":2}\n"},
		{"", "a=1&password=x+y&b=%7e", "a=1&password=%5Bsecret+redacted%5D&b=%7e"},
		{"", "a=1&p%61ssword=x&b=2", "a=1&p%61ssword=%5Bsecret+redacted%5D&b=2"},
		{"application/x-www-form-urlencoded", "password=hunter2", "password=%5Bsecret+redacted%5D"},
		{"application/x-www-form-urlencoded", "a=<b>\nc&token=zz9plural\n", "a=<b>\nc&token=%5Bsecret+redacted%5D"},
		{"text/event-stream", ": hello\nid: 7\ndata: {\"a\":\"x@y.org\"}\n\ndata: [DONE]\n\n", ": hello\nid: 7\ndata: {\"a\":\"[email hidden]\"}\n\ndata: [DONE]\n\n"},
		{"text/event-stream", "data: x@y.org\r\ndata: two\r\n\r\n", "data: [email hidden]\ndata: two\r\n\r\n"},
		{"text/html", "<a href=\"mailto:x@y.org\">&amp;</a>", "<a href=\"mailto:[email hidden]\">&amp;</a>"},
		{"", "say eHh4IGJvYkBleGFtcGxlLmNvbSB4eHg= now", "say [email hidden] now"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=password\r\n\r\nhunter2\r\n--b--\r\n", "--b\r\nContent-Disposition: form-data; name=password\r\n\r\n[secret redacted]\r\n--b--\r\n"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=a; filename=x@y.org\r\n\r\n--bad\r\n--b--\r\n", "--b\r\nContent-Disposition: form-data; name=a; filename=\"[email hidden]\"\r\n\r\n--bad\r\n--b--\r\n"},
		{"multipart/mixed; boundary=b", "--b\r\nX-From: x@y.org\r\nX-Api-Key: zz9plural\r\n\r\n1\r\n--b--", "--b\r\nX-From: [email hidden]\r\nX-Api-Key: [secret redacted]\r\n\r\n1\r\n--b--"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"x@y.org\"\r\n\r\n1\r\n--b--", "--b\r\nContent-Disposition: form-data; name=\"[email hidden]\"\r\n\r\n1\r\n--b--"},
		{"multipart/mixed; boundary=b", "pre x@y.org\r\n--b\r\n\r\n1\r\n--b--\r\npost x@y.org", "pre [email hidden]\r\n--b\r\n\r\n1\r\n--b--\r\npost [email hidden]"},
		{"multipart/mixed; boundary=b", "--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nmail x=40y.org=\r\n now\r\n--b--\r\n", "--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nmail [email hidden] now\r\n--b--\r\n"},
		{"multipart/mixed; boundary=b", "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nx@y.org\r\n--c--\r\n--b--\r\n", "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n[email hidden]\r\n--c--\r\n--b--\r\n"},
	} {
		r, err := e.Body(c.kind, []byte(c.in))
		if err != nil || string(r.Out) != c.want {
			t.Errorf("Body(%q) = %q, %v, want %q", c.in, r.Out, err, c.want)
		}
		stable(t, e, c.kind, r.Out)
	}
}

// In XML a pseudonym would be a tag; there the masks of section 3.1 stand.
func TestBodyOfMarkupHasNoPseudonyms(t *testing.T) {
	e := newStyled(t, mask.Pseudonyms, tenantKey)
	r, err := e.Body("text/xml", []byte("<a>x@y.org</a>"))
	if err != nil || string(r.Out) != "<a>[email]</a>" {
		t.Errorf("%s, %v", r.Out, err)
	}
	r, err = e.Body("", []byte("to=x%40y.org&a=1"))
	if v, bad := url.ParseQuery(string(r.Out)); err != nil || bad != nil || !strings.HasPrefix(v.Get("to"), "<email:") {
		t.Errorf("%s, %v", r.Out, err)
	}
	stable(t, e, "", r.Out)
}

func TestKeysInDERAreMasked(t *testing.T) {
	der := append([]byte{0x30, 0x82, 0x04, 0xa4, 2, 1, 0, 2, 0x82, 1, 1, 0}, bytes.Repeat([]byte{0x9c, 1, 0x7f}, 60)...)
	e := newEngine(t)
	r, err := e.Body("", []byte(`{"k":"`+base64.StdEncoding.EncodeToString(der)+`"}`))
	if err != nil || string(r.Out) != `{"k":"[secret redacted]"}` || !slices.Equal(r.Rules(), []string{"secret.private_key"}) {
		t.Errorf("%s, %v", r.Out, err)
	}
	if _, err = e.Body("", der); holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Errorf("the key itself: %v", err)
	}
}
