package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// bodyKinds are the hints that a fuzzed body comes with.
var bodyKinds = []string{
	"", "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=Xx-7", "text/event-stream", "application/x-ndjson",
	"text/html; charset=utf-8", "text/plain; charset=iso-8859-1", "text/plain; charset=utf-16", "multipart/mixed", "application/octet-stream", "; ;=",
}

// FuzzBody asks for what holds of every body: it is refused by a
// RedactionError that no fault caused, or what comes out holds no registered
// literal, changes nothing when it is redacted again, and is JSON or a form
// where it was.
func FuzzBody(f *testing.F) {
	for i, sh := range shapes {
		for k, s := range secrets {
			f.Add(uint8(i+k), sh.wrap(s.text))
		}
		for _, encode := range encodings {
			f.Add(uint8(i), sh.wrap(encode(secrets[3].text)))
		}
	}
	for _, c := range mustMask {
		f.Add(uint8(0), []byte(c.text))
	}
	for _, in := range []string{
		string(gzipped("x")), string(deflated("mail bob@example.com")), string(zipped("a", "tenant-own-secret")), "\x89PNG\r\n\x1a\n\x00\x01tenant-own-secret\x00\x01",
		"%PDF-", "x^2", "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b--", "\xff\xfe", "\xff\xfe\x00\xd8x", "{\"a\":1,\"a\":2}", "data:\ndata", "a=&&=%&=%2",
	} {
		f.Add(uint8(0), []byte(in))
	}
	const literal = "tenant-own-secret"
	all := []*Engine{newEngine(f, literal), egress(f, literal), pseudonyms(f, literal)}
	f.Fuzz(func(t *testing.T, which uint8, in []byte) {
		kind := bodyKinds[int(which)%len(bodyKinds)]
		e := all[int(which)/len(bodyKinds)%len(all)]
		before := bytes.Clone(in)
		r, err := e.Body(kind, in)
		if !bytes.Equal(before, in) {
			t.Fatalf("%q became %q", before, in)
		}
		if err != nil {
			var h *holdfast.Error
			if !errors.As(err, &h) || h.Kind != holdfast.KindRedaction || !strings.HasPrefix(h.Rule, "redact/") || r.Out != nil {
				t.Fatalf("Body(%q, %q): %v: %v", kind, in, err, errors.Unwrap(err))
			}
			return
		}
		ordered(t, in, r)
		if bytes.Contains(r.Out, []byte(literal)) {
			t.Errorf("Body(%q, %q) = %q", kind, in, r.Out)
		}
		again, err := e.Body(kind, r.Out)
		if err != nil || !bytes.Equal(again.Out, r.Out) {
			t.Errorf("Body(%q, %q) = %q, then %q, %v", kind, in, r.Out, again.Out, err)
		}
		if json.Valid(in) && !json.Valid(r.Out) && kind != bodyKinds[3] {
			t.Errorf("Body(%q, %q) = %q", kind, in, r.Out)
		}
		if _, bad := url.ParseQuery(string(in)); bad == nil && kind == bodyKinds[2] && !json.Valid(in) && !mayBeWide(in) {
			if _, bad = url.ParseQuery(string(r.Out)); bad != nil {
				t.Errorf("Body(%q, %q) = %q: %v", kind, in, r.Out, bad)
			}
		}
		out, _ := e.URL(string(in))
		if again, list := e.URL(out); again != out || strings.Contains(out, literal) {
			t.Errorf("URL(%q) = %q, then %q by %v", in, out, again, list)
		}
	})
}

func pseudonyms(t testing.TB, literal string) *Engine {
	t.Helper()
	e, err := New(Options{Masks: mask.Pseudonyms, Key: holdfast.NewSecret(tenantKey),
		Literals: []holdfast.Secret{holdfast.NewSecret(literal)}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// mayBeWide reports whether b begins with a mark of UTF-16 or UTF-32, or holds a
// NUL, as texts without a mark do.
func mayBeWide(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) || bytes.IndexByte(b, 0) >= 0
}
