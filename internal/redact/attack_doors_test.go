package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

const elm = "ghp_" + "Zx81kQ0vRt5Yw2Lm9Nb7Hc3Jd6Fg4Sa0Pe5T"

func gzipOf(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.Bytes()
}

// TestAttackBodies holds that no body lets a token through, whatever its type
// says and however it is wrapped: it is masked or refused.
func TestAttackBodies(t *testing.T) {
	e := plantedEngine(t)
	b64 := base64.StdEncoding.EncodeToString
	zipped := gzipOf(elm)
	for name, c := range map[string][2]string{
		"JSON that lies":          {"image/png", `{"a":"` + elm + `"}`},
		"binary that lies":        {"application/octet-stream", elm},
		"form that is JSON":       {"application/x-www-form-urlencoded", `{"a":"` + elm + `"}`},
		"no type":                 {"", elm},
		"odd type":                {";;;=", elm},
		"names":                   {"application/json", `{"` + elm + `":1,"` + elm + `":2}`},
		"one name twice":          {"application/json", `{"a":1,"a":"` + elm + `"}`},
		"names that collide":      {"application/json", `{"` + elm + `":1,"[secret redacted]":2}`},
		"JSON and more":           {"application/json", `{"a":1} ` + elm},
		"JSON that breaks off":    {"application/json", `{"a":"` + elm},
		"depth":                   {"application/json", strings.Repeat("[", 20_000) + `"` + elm + `"` + strings.Repeat("]", 20_000)},
		"gzip":                    {"application/gzip", string(zipped)},
		"gzip that breaks off":    {"text/plain", string(zipped[:len(zipped)-9])},
		"gzip behind text":        {"text/plain", "hello " + string(zipped)},
		"base64 of gzip":          {"text/plain", "x " + b64(zipped) + " y"},
		"base64 of base64":        {"text/plain", b64([]byte(b64([]byte("key " + elm))))},
		"entities":                {"text/html", strings.ReplaceAll(elm, "p_", "&#112;&#x5f;")},
		"zero width":              {"text/plain", strings.ReplaceAll(elm, "Yw2", "Y\u200bw\u2060\u00ad2")},
		"NUL":                     {"text/plain", strings.ReplaceAll(elm, "Yw2", "Y\x00w2")},
		"UTF-16":                  {"text/plain", string(utf16Bytes("\ufeff" + elm))},
		"UTF-16 that says UTF-8":  {"text/plain; charset=utf-8", string(utf16Bytes("token " + elm + " is it"))},
		"percent, twice":          {"application/x-www-form-urlencoded", "a=" + strings.ReplaceAll(elm, "_", "%255F")},
		"multipart without end":   {"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + elm},
		"multipart without names": {"multipart/form-data", "--b\r\n\r\n" + elm + "\r\n--b--"},
		"an event":                {"text/event-stream", "data: {\"a\":\"" + elm + "\"}\n\n"},
		"events that carry on": {"text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + elm[:15] + "\"}}]}\n\n" +
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + elm[15:] + "\"}}]}\n\n"},
	} {
		r, err := e.Body(c[0], []byte(c[1]))
		var refused *holdfast.Error
		switch {
		case errors.As(err, &refused):
			if strings.Contains(refused.Error(), elm[4:20]) {
				t.Errorf("%s: the refusal says it: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !r.Found() || bytes.Contains(r.Out, []byte(elm[4:15])) || bytes.Contains(r.Out, []byte(elm[15:])):
			t.Errorf("%s: %q became %q", name, c[1], r.Out)
		}
	}
}

// TestAttackMasks holds that what looks like a mask hides nothing.
func TestAttackMasks(t *testing.T) {
	for _, style := range []mask.Masks{mask.Ledger, mask.Egress, mask.Pseudonyms} {
		e, err := New(Options{Masks: style, Key: holdfast.NewSecret("0123456789abcdef")})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{
			"[secret redacted]" + elm, elm + "[secret redacted]", "[secret " + elm + " redacted]", "[" + elm + "]", "<secret:" + elm + ">", "<" + elm + ":7f3a91c2>",
			"password: [secret redacted]" + elm, "password: [secret]hunter22-elm", "password: <secret:7f3a91c2>hunter22-elm", "****-****-****-1234" + elm,
			"token=[secret redacted] " + elm, "[email hidden" + elm + "]", "<email:ann@example.com>", "[pii redacted " + elm,
		} {
			r := e.Text([]byte(in))
			for _, s := range []string{elm[4:], "hunter22-elm", "ann@"} {
				if bytes.Contains(r.Out, []byte(s)) {
					t.Errorf("style %d: %q became %q", style, in, r.Out)
				}
			}
			if again := e.Text(r.Out); again.Found() {
				t.Errorf("style %d: %q became %q", style, r.Out, again.Out)
			}
			if out := bytewiseStream(t, e, in); out != string(r.Out) {
				t.Errorf("style %d: stream %q, text %q", style, out, r.Out)
			}
		}
	}
}

// TestAttackTogether holds that one engine serves many readers at once.
func TestAttackTogether(t *testing.T) {
	e := plantedEngine(t)
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for k := range 40 {
				in := fmt.Sprintf("%d %s %d kestrel-\nplover-4471x ann@example.com", n, elm, k)
				want := fmt.Sprintf("%d [secret redacted] %d [secret redacted] [email hidden]", n, k)
				if got := string(e.Text([]byte(in)).Out); got != want {
					t.Errorf("%q became %q", in, got)
				}
				var b bytes.Buffer
				s := e.Stream(&b)
				_, _ = s.Write([]byte(in))
				if err := s.Close(); err != nil || b.String() != want {
					t.Errorf("%q became %q, %v", in, b.String(), err)
				}
			}
		})
	}
	all.Wait()
}

// TestAttackStreamMisuse holds that a stream that is misused writes nothing that
// it holds.
func TestAttackStreamMisuse(t *testing.T) {
	e := plantedEngine(t)
	var b bytes.Buffer
	s := e.Stream(&b)
	_, _ = s.Write([]byte("kestrel-plover-"))
	if b.Len() > 0 {
		t.Errorf("half of a registered secret came out: %q", b.String())
	}
	_ = s.Close()
	_ = s.Close()
	if n, err := s.Write([]byte("4471x")); err == nil || n != 0 {
		t.Errorf("a closed stream took %d bytes", n)
	}
	if err := e.Stream(nil).Close(); err != nil {
		t.Error(err)
	}
	var zero stream.Stream
	if _, err := zero.Write([]byte(elm)); err == nil {
		t.Error("the zero Stream writes")
	}
	_ = zero.Close()
}
