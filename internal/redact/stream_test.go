package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// streamed is what a stream writes of pieces.
func streamed(t testing.TB, e *Engine, pieces ...[]byte) ([]byte, Found) {
	t.Helper()
	var out bytes.Buffer
	s := e.Stream(&out)
	for _, p := range pieces {
		if n, err := s.Write(p); n != len(p) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", p, n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s.Findings()
}

// agrees asks that pieces streamed equal the whole.
func agrees(t testing.TB, e *Engine, want Result, pieces ...[]byte) {
	t.Helper()
	got, found := streamed(t, e, pieces...)
	if !bytes.Equal(got, want.Out) {
		t.Fatalf("pieces %.400q\n got %.400q\nwant %.400q", pieces, got, want.Out)
	}
	if a, b := fmt.Sprint(found.First), fmt.Sprint(want.Findings); a != b && len(want.Findings) < maxFound {
		t.Fatalf("pieces %.400q found %.400s\nwant %.400s", pieces, a, b)
	}
}

// corpus is every text that the tables know, alone and among prose.
func corpus() [][]byte {
	var l [][]byte
	for _, c := range mustMask {
		l = append(l, []byte(c.text), []byte("the quick brown "+c.text+" jumps over it\nand on"))
	}
	for _, c := range mustNotMask {
		l = append(l, []byte(c), []byte("the quick brown "+c+" jumps over it\nand on"))
	}
	return l
}

func TestStreamEqualsTextForEveryCut(t *testing.T) {
	e := engine(t, "canary-of-the-tenant", "the quick brown dog")
	for _, s := range corpus() {
		want := e.Text(s)
		for i := range len(s) + 1 {
			agrees(t, e, want, s[:i], s[i:])
		}
		agrees(t, e, want, bytewise(s)...)
		if len(s) < 40 {
			for i := range len(s) + 1 {
				for k := i; k <= len(s); k++ {
					agrees(t, e, want, s[:i], s[i:k], s[k:])
				}
			}
		}
	}
}

func bytewise(s []byte) [][]byte {
	l := make([][]byte, len(s))
	for i := range s {
		l[i] = s[i : i+1]
	}
	return l
}

// The labelled set holds what every rule finds and what it must leave.
func TestStreamEqualsTextOfTheLabelledSet(t *testing.T) {
	e := engine(t, "canary-of-the-tenant")
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, list := range labelled() {
		for _, x := range list {
			s := []byte("we saw " + x.text + " and then\nwent on to the end")
			want := e.Text(s)
			agrees(t, e, want, bytewise(s)...)
			for range 4 {
				i := rnd.IntN(len(s) + 1)
				agrees(t, e, want, s[:i], s[i:])
			}
		}
	}
}

func TestStreamEqualsTextForRandomMixtures(t *testing.T) {
	e := engine(t, "canary-of-the-tenant", "the quick brown dog", "token=\nx")
	var parts []string
	for _, s := range corpus() {
		parts = append(parts, string(s))
	}
	for _, list := range labelled() {
		for _, x := range list {
			parts = append(parts, x.text)
		}
	}
	parts = append(parts, "canary-of-the-tenant", "canary-of-", "the quick brown ", MaskEmail, MaskPII, MaskSecret, MaskCard+"1234", "=", ":", "\"", "'", " ", "\n", "-", "@", "{",
		"}", "\\", `\u0041`, `\u00`, `\u0022`, "password", "password ", "token=", "cookie: ", "\r\n", "\x00", "-----BEGIN ", "-----END ", "-----", "phone ", "call ", "Bearer ")
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		var s []byte
		for range 1 + rnd.IntN(6) {
			p := parts[rnd.IntN(len(parts))]
			if rnd.IntN(3) == 0 && len(p) > 0 {
				p = p[rnd.IntN(len(p)):]
			}
			s = append(s, p...)
		}
		agrees(t, e, e.Text(s), cuts(rnd, s)...)
	}
}

// cuts cuts s at random places.
func cuts(rnd *rand.Rand, s []byte) [][]byte {
	var l [][]byte
	most := 1 + rnd.IntN(1+len(s))
	for len(s) > 0 {
		n := min(len(s), 1+rnd.IntN(most))
		l = append(l, s[:n])
		s = s[n:]
	}
	return l
}
