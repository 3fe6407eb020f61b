package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkParse is K1's parse and K5's two hashes on 1 KB with 20 fields.
func BenchmarkParse(b *testing.B) {
	doc := sample()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := Parse(doc)
		if err != nil || d.Key() == "" || d.Exact() == "" {
			b.Fatal(err)
		}
	}
}

// BenchmarkBare is the same work by the libraries called one after the other.
func BenchmarkBare(b *testing.B) {
	doc := sample()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		v := jsontext.Value(bytes.Clone(doc))
		if err := v.Canonicalize(); err != nil {
			b.Fatal(err)
		}
		sha256.Sum256(v)
		var tree any
		if err := json.Unmarshal(doc, &tree); err != nil {
			b.Fatal(err)
		}
	}
}
