package redact

import (
	"bytes"
	_ "embed"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/guess"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

//go:embed testdata/probable_dev.tsv
var devSet string

func guessing(t testing.TB, style placeholder.Masks) *Engine {
	t.Helper()
	e, err := New(Options{Probable: guess.Everything, Masks: style})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// devCase is one line of the set: a text, and what in it must be masked.
type devCase struct {
	kind, text string
	want       [][2]int
}

func development() []devCase {
	var out []devCase
	for line := range strings.Lines(devSet) {
		kind, marked, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		c := devCase{kind: kind}
		marked = strings.ReplaceAll(marked, `\n`, "\n")
		for marked != "" {
			before, rest, found := strings.Cut(marked, "⟦")
			c.text += before
			if !found {
				break
			}
			hit, after, _ := strings.Cut(rest, "⟧")
			c.want = append(c.want, [2]int{len(c.text), len(c.text) + len(hit)})
			c.text += hit
			marked = after
		}
		out = append(out, c)
	}
	return out
}

// TestDevelopmentSet holds precision and recall on the lines that the guesser
// was built with; the judgement on lines it never saw is another test's.
func TestDevelopmentSet(t *testing.T) {
	e := guessing(t, placeholder.Egress)
	type score struct{ hit, missed, wrong int }
	scores := map[string]*score{}
	for _, c := range development() {
		s := scores[c.kind]
		if s == nil {
			s = new(score)
			scores[c.kind] = s
		}
		r := e.Text([]byte(c.text))
		used := make([]bool, len(r.Findings))
		for _, w := range c.want {
			hidden := 0
			for k, f := range r.Findings {
				if n := min(w[1], f.Offset+f.Length) - max(w[0], f.Offset); n > 0 {
					hidden += n
					used[k] = true
				}
			}
			if hidden*10 >= (w[1]-w[0])*9 {
				s.hit++
			} else {
				s.missed++
				t.Logf("missed %q in %q: %q", c.text[w[0]:w[1]], c.text, r.Out)
			}
		}
		for k, f := range r.Findings {
			if !used[k] && strings.HasPrefix(f.Rule, "guess.") {
				s.wrong++
				t.Logf("wrong: %s in %q: %q", f.Rule, c.text, r.Out)
			}
		}
	}
	for kind, s := range scores {
		precision, recall := float64(s.hit)/float64(s.hit+s.wrong), float64(s.hit)/float64(s.hit+s.missed)
		t.Logf("%s: precision %.3f recall %.3f of %d", kind, precision, recall, s.hit+s.missed)
		if precision < 0.95 || recall < 0.95 {
			t.Errorf("%s: precision %.3f, recall %.3f", kind, precision, recall)
		}
	}
}

// TestGuessesNeedTheirBit: each kind is masked only where it is wanted, under
// its own rule and mask.
func TestGuessesNeedTheirBit(t *testing.T) {
	const text = "Dear Margaret Hill, the signing key, q7Zp2LmX9vRt4KwB8sNd. 221B Baker Street. Au 01 23 45 67 89."
	for _, c := range []struct {
		want         guess.Probable
		style        placeholder.Masks
		rule, hidden string
		mask         string
	}{
		{guess.Secrets, placeholder.Egress, "guess.secret", "q7Zp2LmX9vRt4KwB8sNd", "[secret]"},
		{guess.Phones, placeholder.Egress, "guess.phone", "01 23 45 67 89", "[phone]"},
		{guess.Names, placeholder.Egress, "guess.name", "Margaret Hill", "[pii]"},
		{guess.Addresses, placeholder.Egress, "guess.address", "221B Baker Street", "[pii]"},
		{guess.Secrets, placeholder.Ledger, "guess.secret", "q7Zp2LmX9vRt4KwB8sNd", placeholder.Secret},
		{guess.Phones, placeholder.Ledger, "guess.phone", "01 23 45 67 89", placeholder.PII},
		{guess.Names, placeholder.Ledger, "guess.name", "Margaret Hill", placeholder.PII},
		{guess.Addresses, placeholder.Ledger, "guess.address", "221B Baker Street", placeholder.PII},
	} {
		e, err := New(Options{Probable: c.want, Masks: c.style})
		if err != nil {
			t.Fatal(err)
		}
		r := e.Text([]byte(text))
		if want := strings.Replace(text, c.hidden, c.mask, 1); string(r.Out) != want || len(r.Findings) != 1 || r.Findings[0].Rule != c.rule {
			t.Errorf("%d: %q by %v", c.want, r.Out, r.Rules())
		}
		if r.PII() != (c.want != guess.Secrets) {
			t.Errorf("%d: PII is %t", c.want, r.PII())
		}
	}
	if r := newEngine(t).Text([]byte(text)); strings.Contains(strings.Join(r.Rules(), " "), "guess.") {
		t.Errorf("the zero options guess: %v", r.Rules())
	}
}

// certainIn returns what is certain in s, each to its line's end, in order and apart.
func certainIn(s []byte) []span.Span {
	list, _ := certain.Find(s, true)
	return span.Union(list)
}

// TestGuessesLeaveWhatIsCertain: findings of the deterministic tier are the
// same with guesses and without.
func TestGuessesLeaveWhatIsCertain(t *testing.T) {
	all := guessing(t, placeholder.Ledger)
	for _, c := range mustMask {
		s := []byte(c.text)
		sure := certainIn(s)
		for _, g := range all.text.Guess.Find(s, sure) {
			for _, sp := range sure {
				if g.Start < sp.End && sp.Start < g.End {
					t.Errorf("%q: the guess %v touches %v", c.text, g, sp)
				}
			}
		}
		if r := all.Text(s); c.rule != "" && !strings.Contains(strings.Join(r.Rules(), " "), c.rule) {
			t.Errorf("Text(%q) = %q by %v, want %s", c.text, r.Out, r.Rules(), c.rule)
		}
	}
}

// mixture is random text made of pieces of the tables.
func mixture(rnd *rand.Rand, pieces []string) []byte {
	var b []byte
	for range 1 + rnd.IntN(8) {
		p := pieces[rnd.IntN(len(pieces))]
		if rnd.IntN(3) == 0 && len(p) > 0 {
			p = p[rnd.IntN(len(p)):]
		}
		b = append(b, p...)
	}
	return b
}

// TestGuessesAreIdempotent: a second redaction changes nothing, in whatever
// style it is done.
func TestGuessesAreIdempotent(t *testing.T) {
	var pieces []string
	for _, c := range development() {
		pieces = append(pieces, c.text)
	}
	for _, c := range mustMask {
		pieces = append(pieces, c.text)
	}
	pieces = append(pieces, "[secret]", "[pii]", "[phone]", "<email:7f3a91c2>", placeholder.PII, " ", "\n", "=", ":", "\"", "<", "Dear ", "Mr ", "name=", ", ", "12 ", "key ", "\xe2\x80\x9c", "\u00a0")
	rnd := rand.New(rand.NewPCG(3, 5))
	ledger, egress := guessing(t, placeholder.Ledger), guessing(t, placeholder.Egress)
	for range testrepeat.Times(20_000, 4_000) {
		s := mixture(rnd, pieces)
		one := ledger.Text(s)
		if two := ledger.Text(one.Out); two.Found() {
			t.Fatalf("%q -> %q -> %q", s, one.Out, two.Out)
		}
		if two := egress.Text(one.Out); two.Found() {
			t.Fatalf("%q -> %q -> %q in the other style", s, one.Out, two.Out)
		}
	}
}

// FuzzProbable asks for what always holds: guesses lie in order and apart, none
// touches what is certain, what is not masked stays as it was, and a second
// redaction changes nothing.
func FuzzProbable(f *testing.F) {
	for _, c := range development() {
		f.Add([]byte(c.text))
	}
	for _, s := range []string{"\xff\xfe", "\xe2\x80", "Mr \xc3", "12 \xe2", "<[email]", "Dear Dr. Prof. ", "key=\xc2", "0", "+", "PO Box "} {
		f.Add([]byte(s))
	}
	all := guessing(f, placeholder.Egress)
	f.Fuzz(func(t *testing.T, s []byte) {
		taken := certainIn(s)
		at := 0
		for _, g := range all.text.Guess.Find(s, taken) {
			if g.Start < at || g.End <= g.Start || g.End > len(s) {
				t.Fatalf("%q: guess %v behind %d", s, g, at)
			}
			for _, sp := range taken {
				if g.Start < sp.End && sp.Start < g.End {
					t.Fatalf("%q: guess %v touches %v", s, g, sp)
				}
			}
			at = g.End
		}
		r := all.Text(s)
		out := r.Out
		last := 0
		for _, fd := range r.Findings {
			between := s[last:fd.Offset]
			n := bytes.Index(out, between)
			if n < 0 {
				t.Fatalf("%q became %q: %q is gone", s, r.Out, between)
			}
			out = out[n+len(between):]
			last = fd.Offset + fd.Length
		}
		if !bytes.HasSuffix(out, s[last:]) {
			t.Fatalf("%q became %q: it does not end in %q", s, r.Out, s[last:])
		}
		if two := all.Text(r.Out); two.Found() {
			t.Fatalf("%q -> %q -> %q", s, r.Out, two.Out)
		}
	})
}

// TestGuessesAreLinear: many candidates of every kind take linear time, and so does one
// long run of each.
func TestGuessesAreLinear(t *testing.T) {
	e := guessing(t, placeholder.Egress)
	for _, u := range []string{
		"key=q7Zp2LmX9vRt ", "q7Zp2LmX9vRt4KwB8sNdYh3 ", "q7Zp2LmX", "q7Z-p2L_mX9/", "key ", "key: ", "0 ", "01 ", "030 901820 ", "call 030 9018 ", "(030) ",
		"Dear ", "Dear Ada ", "Mr. ", "Ada Lovelace ", "Ada ", "A. ", "von ", "name: ", "name=Ada+", "name=Ada%20", "Name is ", "by ", "signed by ", "Regards,\n",
		"12 Elm ", "12 Elm St, ", "1 ", "5 rue de la ", "Hauptstraße 1, ", "PO Box 1 ", "Box 1", "Springfield, IL 62704 ", "SW1A 1AA ", "Flat 3, ", "<", "\"<", "Ada <", "[secret]",
		"\xe2\x80\x9c", "\xc3\x9c", "\xc2\xa0", "=", ":", "x:", "x=", "a.b", "a/b", "==", "'", "O'", "-a", "\n", "base64,aB3", "abcdefghijklmnopqrstuvwxyz012345678901234567890123456789aBcDe/\n",
	} {
		checkLinear(t, u, 1<<17, func(n int) { e.Text(bytes.Repeat([]byte(u), n/len(u))) })
	}
}

// TestManyCandidates: the number of findings does not make the time grow
// faster than the text.
func TestManyCandidates(t *testing.T) {
	e := guessing(t, placeholder.Egress)
	unit := []byte("call 030 901820 now, Mr Hill;\n")
	checkLinear(t, "candidates", 16_000, func(n int) {
		if r := e.Text(bytes.Repeat(unit, n/2)); len(r.Findings) < n {
			t.Errorf("%d findings in %d lines", len(r.Findings), n/2)
		}
	})
}

// BenchmarkProbable reads the ordinary texts with every guess on, beside the
// same with none.
func BenchmarkProbable(b *testing.B) {
	for _, name := range []string{"prose", "code", "chat"} {
		s := samples()[name]
		if name == "chat" {
			s = bytes.ReplaceAll(s, []byte("msg_01XFDUDYJgAACzvnptvVoYEL"), []byte("msg_41"))
		}
		for tier, e := range map[string]*Engine{"certain": newEngine(b), "everything": guessing(b, placeholder.Ledger)} {
			b.Run(name+"/"+tier, func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					if r := e.Text(s); r.Found() {
						b.Fatalf("found %v", r.Rules())
					}
				}
			})
		}
	}
}

// TestGuessesInPiecesEqualTheWhole: a stream makes the guesses that Text makes,
// wherever the pieces end.
func TestGuessesInPiecesEqualTheWhole(t *testing.T) {
	e := guessing(t, placeholder.Egress)
	rnd := rand.New(rand.NewPCG(8, 1))
	for _, c := range development() {
		for _, text := range []string{c.text, "we saw " + c.text + " and then nothing else was said\n"} {
			want := e.Text([]byte(text)).Out
			for round := range 3 {
				var got bytes.Buffer
				s := e.Stream(&got)
				for rest := []byte(text); len(rest) > 0; {
					n := 1
					if round > 0 {
						n = 1 + rnd.IntN(min(len(rest), 12))
					}
					if _, err := s.Write(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%q in pieces is %q, at once %q", text, got.Bytes(), want)
					break
				}
			}
		}
	}
}
