package egress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// packed is text in an encoding.
func packed(t *testing.T, coding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare deflate":
		w, err = flate.NewWriter(&b, 6)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	default:
		return []byte(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read is readBody of a request that was made by hand.
func (x *outside) read(d *domain.Domain, contentType, encoding string, raw []byte) (*body, *holdfast.Error) {
	r, _ := http.NewRequest("POST", "http://x/", bytes.NewReader(raw))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	b, err := x.p.readBody(x.t.Context(), d, r)
	if err == nil {
		x.t.Cleanup(b.done)
	}
	return b, err
}

func TestEgress_Bypass28_NoEncodingHidesASecret(t *testing.T) {
	x := newOutside(t, redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("tr0ub4dor-and-3-horses")}})
	d := &domain.Domain{Name: "a.example"}
	doc := `{"note":"write to ` + someMail + `","key":"` + someKey + `"}`
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, _ := m.CreateFormFile("file", someKey+".txt")
	_, _ = io.WriteString(part, "the key is "+someKey)
	_ = m.Close()
	for name, c := range map[string]struct{ kind, coding, text string }{
		"JSON":            {"application/json", "", doc},
		"JSON, no type":   {"", "", doc},
		"gzip":            {"application/json", "gzip", doc},
		"deflate":         {"application/json", "deflate", doc},
		"bare deflate":    {"application/json", "bare deflate", doc},
		"br":              {"application/json", "br", doc},
		"zstd":            {"application/json", "zstd", doc},
		"JSON escapes":    {"application/json", "", `{"a":"` + strings.ReplaceAll(someKey, "a", `\u0061`) + `"}`},
		"JSON key":        {"application/json", "", `{"` + someKey + `":1}`},
		"base64 in JSON":  {"application/json", "", `{"a":"` + base64.StdEncoding.EncodeToString([]byte("key="+someKey)) + `"}`},
		"form":            {"application/x-www-form-urlencoded", "", "a=" + url.QueryEscape(someKey) + "&b=" + url.QueryEscape(someMail)},
		"multipart":       {m.FormDataContentType(), "", form.String()},
		"text":            {"text/plain", "", "the key is " + someKey},
		"bad UTF-8":       {"text/plain", "", "\xff\xfe\xff the key is \xff" + someKey + " \xff"},
		"false UTF-16":    {"", "", "\xff\xfemail " + someMail + " "},
		"half UTF-16":     {"", "", wide(strings.Repeat("some words ", 50)) + someKey},
		"UTF-16":          {"text/plain; charset=utf-16", "", wide("the key is " + someKey)},
		"literal in hex":  {"text/plain", "", "7472307562346... " + "74723075623464 6f722d616e642d332d686f72736573"},
		"literal, spaced": {"text/plain", "", "t.r.0.u.b.4.d.o.r.-.a.n.d.-.3.-.h.o.r.s.e.s"},
	} {
		encoding := strings.TrimPrefix(c.coding, "bare ")
		b, err := x.read(d, c.kind, encoding, packed(t, c.coding, c.text))
		if err != nil {
			if err.Kind != holdfast.KindDomainBlocked {
				t.Errorf("%s: %v", name, err)
			}
			continue // refused is safe too
		}
		if len(b.findings) == 0 || bytes.Equal(b.raw, []byte(c.text)) {
			t.Errorf("%s: it went on as it came: %q", name, b.raw)
		}
		if bytes.Contains(b.raw, []byte("Zk3vQ9xL2mT8")) || bytes.Contains(b.raw, []byte(someMail)) {
			t.Errorf("%s: %q", name, b.raw)
		}
		if b.size != int64(len(b.raw)) {
			t.Errorf("%s: size %d of %d", name, b.size, len(b.raw))
		}
	}
	// The twin: what holds nothing goes on byte for byte.
	clean := `{"a": [1, 2.50, "x\u00e9"],  "b":null}`
	if b, err := x.read(d, "application/json", "gzip", packed(t, "gzip", clean)); err != nil || string(b.raw) != clean {
		t.Errorf("%v, %v", b, err)
	}
}

func wide(s string) string {
	out := []byte{0xff, 0xfe}
	for _, c := range []byte(s) {
		out = append(out, c, 0)
	}
	return string(out)
}

func TestEgress_Bypass31_WhatCannotBeReadIsRefused(t *testing.T) {
	x := newOutside(t, redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("tr0ub4dor-and-3-horses")}})
	d, binary := &domain.Domain{Name: "a.example"}, &domain.Domain{Name: "a.example", Binary: true}
	noise := bytes.Repeat([]byte{0, 1, 2, 0xfe, 0x80, 7}, 500)
	for name, c := range map[string]struct {
		encoding string
		raw      []byte
		kind     holdfast.Kind
	}{
		"unknown encoding":  {"snappy", []byte("x"), holdfast.KindValidation},
		"false gzip":        {"gzip", []byte("not gzip"), holdfast.KindValidation},
		"broken gzip":       {"gzip", packed(t, "gzip", strings.Repeat("abc", 999))[:40], holdfast.KindValidation},
		"broken br":         {"br", packed(t, "br", strings.Repeat("abcdefg", 999))[:10], holdfast.KindValidation},
		"broken zstd":       {"zstd", packed(t, "zstd", strings.Repeat("abcdefg", 999))[:15], holdfast.KindValidation},
		"four encodings":    {"gzip, gzip, gzip, gzip", []byte("x"), holdfast.KindValidation},
		"binary":            {"", noise, holdfast.KindDomainBlocked},
		"undeclared zstd":   {"", packed(t, "zstd", "the key is "+someKey), holdfast.KindDomainBlocked},
		"encrypted archive": {"", []byte("Salted__12345678abcdefgh"), holdfast.KindDomainBlocked},
	} {
		if _, err := x.read(d, "", c.encoding, c.raw); err == nil || err.Kind != c.kind || err.Hint == "" {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
		}
	}
	// The twin: where the row says so a binary body goes on as it is, hashed.
	b, err := x.read(binary, "application/octet-stream", "", noise)
	if err != nil || !bytes.Equal(b.raw, noise) || b.sum == [32]byte{} {
		t.Errorf("binary: %v", err)
	}
	if _, err := x.read(binary, "", "", append(bytes.Clone(noise), "tr0ub4dor-and-3-horses"...)); err == nil {
		t.Error("a registered secret passes in a binary body")
	}
	if _, err := x.read(binary, "text/plain", "", []byte(strings.Repeat("[", 20000))); err == nil {
		t.Error("text that cannot be read passes as binary")
	}
}

// bombText is eight times what comes out of any encoding, and packs into less than a
// coding.maxRatio-th of itself.
var bombText = strings.Repeat(" ", 8<<20)

func TestEgress_ABombIsRefusedWhateverItsDepth(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example", MaxRequest: 256 << 20}
	for _, enc := range []string{"gzip", "deflate", "br", "zstd"} {
		bomb := packed(t, enc, bombText)
		if _, err := x.read(d, "text/plain", enc, bomb); err == nil || !errors.Is(err, coding.ErrBomb) {
			t.Errorf("%s (%d bytes): %v", enc, len(bomb), err)
		}
		twice := packed(t, "gzip", string(bomb))
		if _, err := x.read(d, "text/plain", enc+", gzip", twice); err == nil || !errors.Is(err, coding.ErrBomb) {
			t.Errorf("%s in gzip (%d bytes): %v", enc, len(twice), err)
		}
	}
	// The twin: ordinary text packs well and passes.
	d.MaxRequest = 0
	if _, err := x.read(d, "text/plain", "gzip", packed(t, "gzip", strings.Repeat("a quick brown fox\n", 50_000))); err != nil {
		t.Error(err)
	}
}

// endless gives n bytes of text and counts them.
type endless struct {
	left, gave int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := min(int64(len(p)), e.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left, e.gave = e.left-n, e.gave+n
	return int(n), nil
}

func TestEgress_AGigabyteIsRefusedWithoutBeingHeld(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example"}
	for _, length := range []int64{1 << 30, -1} {
		in := &endless{left: 1 << 30}
		r, _ := http.NewRequest("POST", "http://x/", in)
		r.ContentLength = length
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := x.p.readBody(t.Context(), d, r)
		runtime.ReadMemStats(&after)
		if err == nil || err.Kind != holdfast.KindPayloadTooLarge {
			t.Fatalf("length %d: %v", length, err)
		}
		if in.gave > d.MaxRequest+domain.DefaultMaxRequest+pieceSize || length > 0 && in.gave > 0 {
			t.Errorf("length %d: %d bytes were read", length, in.gave)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
			t.Errorf("length %d: %d bytes were allocated", length, got)
		}
		if used := x.p.out.memory.Used.Load(); used != 0 {
			t.Errorf("length %d: %d bytes are still counted", length, used)
		}
	}
}

func TestEgress_BodiesTogetherAreBounded(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.memory.Most = 3 << 20
	d := &domain.Domain{Name: "a.example", Request: domain.Off}
	text := bytes.Repeat([]byte("abcdefgh\n"), 100_000)
	var held []*body
	for range 50 {
		b, err := x.read(d, "text/plain", "", text)
		if err != nil {
			if err.Rule != refusal.RuleBusy {
				t.Fatal(err)
			}
			break
		}
		held = append(held, b)
	}
	if len(held) == 0 || len(held) > 3 {
		t.Fatalf("%d bodies are held", len(held))
	}
	for _, b := range held {
		b.done()
		b.done()
	}
	if used := x.p.out.memory.Used.Load(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
	if _, err := x.read(d, "text/plain", "", text); err != nil {
		t.Errorf("after the others: %v", err)
	}
}

func TestEgress_Failure4_RedactionThatFaultsOrLingersSendsNothing(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example"}
	text := []byte(strings.Repeat("some words, some words\n", 100_000))
	x.p.out.cleaners.Limit = time.Microsecond
	if _, err := x.read(d, "text/plain", "", text); err == nil || err.Kind != holdfast.KindRedaction {
		t.Errorf("too slow: %v", err)
	}
	x.p.out.cleaners.Limit = 0
	x.engine = &redact.Engine{}
	if _, err := x.read(d, "text/plain", "", text); err == nil || err.Kind != holdfast.KindRedaction {
		t.Errorf("an engine that is not ready: %v", err)
	}
	x.engine = nil
	if _, err := x.read(d, "text/plain", "", text); err == nil || err.Kind != holdfast.KindRedaction {
		t.Errorf("no engine: %v", err)
	}
	if err := x.p.out.cleaners.RunWithin(5000, func() error { panic(someKey) }); err == nil || strings.Contains(err.Error(), someKey) {
		t.Errorf("a panic: %v", err)
	}
}

func TestEgress_RefuseRefusesWhatMaskWouldHide(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d := &domain.Domain{Name: "a.example", Request: domain.Refuse}
	if _, err := x.read(d, "text/plain", "", []byte("key "+someKey)); err == nil || err.Kind != holdfast.KindDomainBlocked ||
		strings.Contains(err.Error(), someKey) {
		t.Errorf("refuse: %v", err)
	}
	d.Personal = domain.Refuse
	if _, err := x.read(d, "text/plain", "", []byte("mail "+someMail)); err == nil ||
		err.Kind != holdfast.KindDomainBlocked || strings.Contains(err.Error(), someMail) {
		t.Errorf("refuse personal data: %v", err)
	}
	if b, err := x.read(d, "text/plain", "", []byte("nothing in it")); err != nil || string(b.raw) != "nothing in it" {
		t.Errorf("refuse, clean: %v", err)
	}
	d.Request = domain.Off
	if b, err := x.read(d, "text/plain", "", []byte("mail "+someMail)); err != nil || string(b.raw) != "mail "+someMail {
		t.Errorf("off: %v", err)
	}
}

func TestEgress_TheMaskedBodyIsMeasuredAgain(t *testing.T) {
	x := newOutside(t, redact.Options{})
	text := strings.Repeat("a@b.co ", 1000) // [email] is longer than what it hides
	d := &domain.Domain{Name: "a.example", MaxRequest: int64(len(text))}
	if _, err := x.read(d, "text/plain", "", []byte(text)); err == nil || err.Kind != holdfast.KindPayloadTooLarge {
		t.Errorf("err = %v", err)
	}
}
