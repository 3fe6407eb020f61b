package schema

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// twenty is a document of about 1 KB with 20 fields, and a schema for it.
func twenty() (schema, doc string) {
	var s, d []string
	for i := range 20 {
		switch i % 4 {
		case 0:
			s = append(s, fmt.Sprintf(`"f%02d":{"type":"string","maxLength":200}`, i))
			d = append(d, fmt.Sprintf(`"f%02d":"a value of ordinary length, number %d, with words in it"`, i, i))
		case 1:
			s = append(s, fmt.Sprintf(`"f%02d":{"type":"integer","minimum":0}`, i))
			d = append(d, fmt.Sprintf(`"f%02d":%d`, i, i*1000003))
		case 2:
			s = append(s, fmt.Sprintf(`"f%02d":{"type":"object","properties":{"path":{"type":"string"},"mode":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"]}`, i))
			d = append(d, fmt.Sprintf(`"f%02d":{"path":"/srv/data/file-%d.txt","mode":420,"tags":["x","y"]}`, i, i))
		case 3:
			s = append(s, fmt.Sprintf(`"f%02d":{"enum":["open","closed"]}`, i))
			d = append(d, fmt.Sprintf(`"f%02d":"open"`, i))
		}
	}
	return `{"type":"object","properties":{` + strings.Join(s, ",") + `},"required":["f00","f01"],"additionalProperties":false}`,
		`{` + strings.Join(d, ",") + `}`
}

// BenchmarkValidate is ours, BenchmarkPeer the peer's validator on the
// same schema and tree.
func BenchmarkValidate(b *testing.B) {
	raw, doc := twenty()
	s, v := mustCompile(b, raw), tree(b, doc)
	b.ReportAllocs()
	for b.Loop() {
		if found, err := s.Validate(context.Background(), v); err != nil || found != nil {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkPeer(b *testing.B) {
	raw, doc := twenty()
	s, err := peer(raw)
	if err != nil {
		b.Fatal(err)
	}
	v := tree(b, doc)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	raw, _ := twenty()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("x", []byte(raw)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstCompile is what the first schema of a dialect costs besides:
// its own schema is read and compiled.
func BenchmarkFirstCompile(b *testing.B) {
	for _, d := range []dialect{draft7, draft2019, draft2020} {
		b.Run(d.standardFile(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trees.Clear()
				if _, err := buildMetaschema(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPeerCompile is BenchmarkCompile for the peer.
func BenchmarkPeerCompile(b *testing.B) {
	raw, _ := twenty()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := peer(raw); err != nil {
			b.Fatal(err)
		}
	}
}
