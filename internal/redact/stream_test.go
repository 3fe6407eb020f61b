package redact

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/stream"
)

// streamed is what a stream writes of pieces.
func streamed(t testing.TB, e *Engine, pieces ...[]byte) ([]byte, stream.Found) {
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
func agrees(t testing.TB, e *Engine, want finding.Result, pieces ...[]byte) {
	t.Helper()
	got, found := streamed(t, e, pieces...)
	if !bytes.Equal(got, want.Out) {
		t.Fatalf("pieces %.400q\n got %.400q\nwant %.400q", pieces, got, want.Out)
	}
	if a, b := fmt.Sprint(found.First), fmt.Sprint(want.Findings); a != b && len(want.Findings) < 1000 {
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
	return append(l, []byte("連絡先は、bob@example.comです。電話は+81 3-1234-5678。パスワード: hunter2。鍵は"+ghp+"。"))
}

func TestStreamEqualsTextForEveryCut(t *testing.T) {
	e := newEngine(t, canary, "the quick brown dog")
	rnd := rand.New(rand.NewPCG(15, 16))
	for n, s := range corpus() {
		if n%2 == 1 && !testrepeat.Enduring {
			continue // it is the text before it, among prose: the random mixtures have that
		}
		want := e.Text(s)
		for i := range len(s) + 1 {
			agrees(t, e, want, s[:i], s[i:])
		}
		agrees(t, e, want, bytewise(s)...)
		if len(s) < 40 && testrepeat.Enduring {
			for i := range len(s) + 1 {
				for k := i; k <= len(s); k++ {
					agrees(t, e, want, s[:i], s[i:k], s[k:])
				}
			}
			continue
		}
		for range 8 {
			agrees(t, e, want, cuts(rnd, s)...)
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

// engines are one of each style.
func engines(t testing.TB) (l []*Engine) {
	t.Helper()
	for _, o := range []Options{
		{},
		{Masks: mask.Egress},
		{Masks: mask.Pseudonyms, Key: holdfast.NewSecret(tenantKey)},
	} {
		for _, s := range []string{canary, "the quick brown dog", "token=\nx"} {
			o.Literals = append(o.Literals, holdfast.NewSecret(s))
		}
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, e)
	}
	return l
}

const canary = "canary-of-the-tenant"

// labelledTexts are the labelled set, which holds what every rule finds and
// what it must leave.
func labelledTexts() (l []string) {
	set := labelled()
	for _, kind := range slices.Sorted(maps.Keys(set)) {
		for _, x := range set[kind] {
			l = append(l, x.text)
		}
	}
	return l
}

func TestStreamEqualsTextOfTheLabelledSet(t *testing.T) {
	es := engines(t)[:2]
	rnd := rand.New(rand.NewPCG(5, 6))
	for n, text := range labelledTexts() {
		if n%4 > 0 && !testrepeat.Enduring {
			continue
		}
		s := []byte("we saw " + text + " and then\nwent on to the end")
		for _, e := range es {
			want := e.Text(s)
			agrees(t, e, want, bytewise(s)...)
			for range 3 {
				i := rnd.IntN(len(s) + 1)
				agrees(t, e, want, s[:i], s[i:])
			}
		}
	}
}

// joints are what holds texts together, and takes them apart.
var joints = []string{
	canary, "canary-of-", "the quick brown ", mask.Email, mask.PII, mask.Secret, mask.Card + "1234", "[secret]", "<email:7f3a91c2>", "=", ":", "\"", "'", " ", "\n", "-", "@",
	"{", "}", "\\", `\u0041`, `\u00`, `\u0022`, "password", "password ", "token=", "cookie: ", "\r\n", "\x00", "-----BEGIN ", "-----END ", "-----", "phone ", "call ", "Bearer ",
}

func TestStreamEqualsTextForRandomMixtures(t *testing.T) {
	es := engines(t)
	parts := append(labelledTexts(), joints...)
	for _, s := range corpus() {
		parts = append(parts, string(s))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range testrepeat.Times(20_000, 4_000) {
		var s []byte
		for range 1 + rnd.IntN(6) {
			p := parts[rnd.IntN(len(parts))]
			if rnd.IntN(3) == 0 && len(p) > 0 {
				p = p[rnd.IntN(len(p)):]
			}
			s = append(s, p...)
			if rnd.IntN(2) == 0 {
				s = append(s, " \n"[rnd.IntN(2)])
			}
		}
		if rnd.IntN(8) == 0 && len(s) < 2000 {
			s = bytes.ReplaceAll(s, []byte("o"), []byte(`\u006f`))
		}
		e := es[rnd.IntN(len(es))]
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
