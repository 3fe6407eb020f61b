package redact

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/sample"
)

// missesNothing asks that what is found is what a search finds that stops at every
// trigger.
func missesNothing(t testing.TB, s []byte, last bool) {
	t.Helper()
	got, joined := certain.Find(s, last)
	want, all := certain.FindPlainly(s, last)
	if !slices.Equal(got, want) || joined != all {
		t.Fatalf("%.600q\n got %v\nwant %v", s, got, want)
	}
}

// neighbours are what decides whether a place is worth a look.
var neighbours = []string{
	" ", "\n", "\t", "-", "--", "----", ".", ",", ", ", "/", "//", ":", "=", "%", "%20", "%2B", "%3D", "%40", "+", "@", ">", "_", "(", ") ", "$", "~", "Q~", "\"", "'", "\\", `\n`, `\x41`, `\u0020`,
	"\x1b[1;32m", "\u00a0", "\u2009", "\u2013", "、", "0", "1", "4", "07", "12", "19", "2026", "1985", "555", "0132", "1234567", "T", "Z", "A", "AK", "IA", "eyJ", "AIza", "JQQJ99", "-us12", "_KEY ", "_k",
	"by ", "By '", "bearer ", "Basic ", "basi", "sw", "password ", "-p", " -u ", "--to", " --token ", "BEGIN ", " BEGIN SSH2 ", "March", " may ", " Sept. ", "born ", "phone ", "call ", "tax ", "SSN ", "NHS ",
	"is", "sk-", "hf_", "SG.", "hvs.", "t1.", "=", "x", "f", "m", "2026-03-04T05:06:07", "2026-03-04T00:00:00", "1985-03-12", "12/03/", "d7",
}

// mixed puts pieces of texts and neighbours together.
func mixed(r *rand.Rand, parts []string) []byte {
	var s []byte
	for range 1 + r.IntN(24) {
		from := neighbours
		if r.IntN(4) == 0 {
			from = parts
		}
		p := from[r.IntN(len(from))]
		if n := len(p); n > 1 && r.IntN(2) == 0 {
			p = p[r.IntN(n):]
			p = p[:1+r.IntN(len(p))]
		}
		s = append(s, p...)
	}
	return s
}

func findParts() []string {
	parts := append(labelledTexts(), joints...)
	for _, c := range lower16 { // no prefix ends in some of them
		parts = append(parts, strings.Repeat(string(c), 32)+"-us12")
	}
	for _, c := range lower26 + upper26 {
		for _, k := range "KPSTk" {
			parts = append(parts, "\nENV x"+string(c)+"_"+string(k)+"_password hunter22\n")
		}
	}
	for _, s := range []string{"with password 'hunter22'", "identified by 'hunter22'", "set password 'hunter22'"} {
		parts = append(parts, "alter user x "+s+";", strings.ToUpper("alter user x "+s+";"))
	}
	for _, s := range corpus() {
		parts = append(parts, string(s))
	}
	return parts
}

func TestFinderMissesNothingInOrdinaryAndHostileTexts(t *testing.T) {
	texts := [][]byte{sample.Short(), sample.Chat(1, 128<<10), sample.Escaped(1, 64<<10), sample.Code(1, 128<<10)}
	for _, s := range sample.Hostile(32 << 10) {
		texts = append(texts, s.Text)
	}
	for _, s := range samples() {
		texts = append(texts, s)
	}
	parts := findParts()
	for _, p := range parts {
		texts = append(texts, []byte(p))
	}
	for _, s := range texts {
		missesNothing(t, s, false)
		missesNothing(t, s, true)
	}
	// The same behind and before other things, at every place among 64.
	r := rand.New(rand.NewPCG(7, 8))
	for _, p := range parts {
		fill := bytes.Repeat([]byte("a b\n"), 16+r.IntN(16))
		missesNothing(t, slices.Concat(fill[:r.IntN(64)], []byte(p), fill), false)
	}
}

func TestFinderMissesNothingInRandomMixtures(t *testing.T) {
	parts := findParts()
	r := rand.New(rand.NewPCG(9, 10))
	for range testrepeat.Times(100_000, 12_000) {
		missesNothing(t, mixed(r, parts), r.IntN(8) == 0)
	}
	alphabet := []byte("0123456789@:=>+%-_.JKSzbBwW AIQyseat\"'\\/$,()\n\xc2\xa0\xe2\x80Z~u")
	for range testrepeat.Times(100_000, 12_000) {
		s := make([]byte, 1+r.IntN(160))
		for k := range s {
			s[k] = alphabet[r.IntN(len(alphabet))]
		}
		missesNothing(t, s, false)
	}
}

// FuzzFind asks that no trigger is passed over that leads to a finding.
func FuzzFind(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	parts := findParts()
	for range 400 {
		f.Add(mixed(r, parts), false)
	}
	for i, p := range parts {
		if i%40 == 0 {
			f.Add([]byte(p), i%80 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, s []byte, last bool) { missesNothing(t, s, last) })
}
