package redact

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// BenchmarkBody stands beside JSON on the same bytes, and reads what a model is
// sent: a conversation, one with a picture in it, a form, and a page.
func BenchmarkBody(b *testing.B) {
	e := newEngine(b)
	chat := append([]byte("["), samples()["chat"]...)
	chat[len(chat)-1] = ']'
	picture := []byte(`{"image":"` + base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n\x00\x00"), noise(48<<10)...)) + `"}`)
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"chat", chat}, {"picture", picture}, {"prose", samples()["prose"]}, {"form", []byte("a=1&q=" + url.QueryEscape(string(samples()["prose"])))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if r, err := e.Body("", c.body); err != nil || r.Found() {
					b.Fatal(err, r.Rules())
				}
			}
		})
	}
	b.Run("chat/JSON", func(b *testing.B) {
		b.SetBytes(int64(len(chat)))
		for b.Loop() {
			if r, err := e.JSON(chat); err != nil || r.Found() {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSealChat is a leaf that holds what a model's API is sent.
func BenchmarkSealChat(b *testing.B) {
	e := newEngine(b)
	lines := bytes.TrimSuffix(sample.Chat(1, 4<<10), []byte("\n"))
	doc := append(append([]byte(`{"batch":[`), bytes.ReplaceAll(lines, []byte("\n"), []byte(","))...), `]}`...)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Seal(doc); err != nil {
			b.Fatal(err)
		}
	}
}
