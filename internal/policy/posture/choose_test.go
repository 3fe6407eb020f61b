package posture

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func num(f float64) *float64 { return &f }

func level(l holdfast.Level) *holdfast.Level { return &l }

// TestSelectionPolicy_000 is the table of document 000, "Sandbox selection
// policy", at each of its edges. A missing value counts as its worst where
// another is given, and so does what is no value.
func TestSelectionPolicy_000(t *testing.T) {
	under, over := func(f float64) float64 { return math.Nextafter(f, -1) }, func(f float64) float64 { return math.Nextafter(f, 1e9) }
	medium, high := level(holdfast.MediumTrust), level(holdfast.Highest)
	for _, tc := range []struct {
		e    Evidence
		want Tier
		why  string
	}{
		{Evidence{}, TierProcess, "process: nothing asks for more"},
		{Evidence{num(5), num(0.1), medium}, TierProcess, "process: predicted entropy 5, novelty 0.1 and the trust level medium ask for no more"},
		{Evidence{num(0), num(0), high}, TierProcess, ""},
		{Evidence{num(under(10)), num(0.1), high}, TierProcess, ""},
		{Evidence{num(10), num(0.8), medium}, TierProcess, ""},
		{Evidence{num(over(10)), num(0.1), high}, TierContainer, "is over 10"},
		{Evidence{num(30), num(0.8), high}, TierContainer, "container: predicted entropy 30 is over 10"},
		{Evidence{num(over(30)), num(0.1), high}, TierVM, "is over 30"},
		{Evidence{num(31), num(0.9), level(holdfast.Baseline)}, TierVM, "vm: predicted entropy 31 is over 30"},
		{Evidence{num(5), num(under(0.8)), high}, TierProcess, ""},
		{Evidence{num(5), num(over(0.8)), high}, TierVM, "is over 0.8"},
		{Evidence{num(5), num(0.9), high}, TierVM, "vm: novelty 0.9 is over 0.8"},
		{Evidence{num(5), num(1), high}, TierVM, ""},
		{Evidence{num(5), num(1.5), high}, TierVM, ""},
		{Evidence{num(5), num(0.1), level(holdfast.Baseline)}, TierContainer, "container: the agent's trust level is baseline"},
		{Evidence{num(5), num(0.1), level(-1)}, TierContainer, ""},
		{Evidence{num(5), num(0.1), level(holdfast.Highest + 1)}, TierContainer, ""},
		{Evidence{num(5), num(0.1), nil}, TierContainer, "container: no trust level is known, which counts as the lowest"},
		{Evidence{num(20), num(0.1), nil}, TierContainer, ""},
		{Evidence{nil, num(0.1), high}, TierVM, "vm: no entropy is predicted, which counts as its worst"},
		{Evidence{num(5), nil, high}, TierVM, "vm: no novelty is known, which counts as its worst"},
		{Evidence{nil, nil, high}, TierVM, ""},
		{Evidence{num(5), nil, nil}, TierVM, ""},
		{Evidence{nil, num(0), nil}, TierVM, ""},
		{Evidence{num(math.NaN()), num(0.1), high}, TierVM, "vm: NaN is no predicted entropy, which counts as its worst"},
		{Evidence{num(5), num(math.NaN()), high}, TierVM, "vm: NaN is no novelty, which counts as its worst"},
		{Evidence{num(-1), num(0.1), high}, TierVM, "vm: -1 is no predicted entropy, which counts as its worst"},
		{Evidence{num(5), num(-0.1), high}, TierVM, ""},
		{Evidence{num(math.Inf(1)), num(0.1), high}, TierVM, ""},
		{Evidence{num(math.Inf(-1)), num(0.1), high}, TierVM, ""},
		{Evidence{num(5), num(math.Inf(1)), high}, TierVM, ""},
		{Evidence{num(math.Copysign(0, -1)), num(0), high}, TierProcess, ""},
	} {
		got := Choose(tc.e)
		if got.Tier != tc.want || !strings.HasPrefix(got.Why, got.Tier.String()+": ") || !strings.Contains(got.Why, tc.why) {
			t.Errorf("%s: %+v, want %v %q", said(tc.e), got, tc.want, tc.why)
		}
	}
}

func said(e Evidence) string {
	var b strings.Builder
	for _, f := range []*float64{e.Entropy, e.Novelty} {
		if f == nil {
			b.WriteString("nil ")
		} else {
			fmt.Fprint(&b, *f, " ")
		}
	}
	if e.Trust == nil {
		return b.String() + "nil"
	}
	return b.String() + e.Trust.String()
}

// A stronger demand wins and says whose it is; a lesser one changes nothing.
func TestTheStrongestDemandIsChosen(t *testing.T) {
	c := Choose(Evidence{Entropy: num(20), Novelty: num(0), Trust: level(holdfast.HighTrust)})
	for _, tier := range []Tier{TierNone, TierProcess, TierContainer} {
		if got := c.AtLeast(tier, "somebody asks for it"); got != c {
			t.Errorf("%v: %+v", tier, got)
		}
	}
	if got := c.AtLeast(TierVM, "the request asks for it"); got != (Choice{TierVM, "vm: the request asks for it"}) {
		t.Errorf("%+v", got)
	}
}

// For an intent of which nothing is predicted there is its agent's trust alone.
func TestTrustAloneChooses(t *testing.T) {
	for l, want := range map[*holdfast.Level]Tier{nil: TierContainer, level(holdfast.Baseline): TierContainer, level(-3): TierContainer, level(9): TierContainer,
		level(holdfast.MediumTrust): TierProcess, level(holdfast.HighTrust): TierProcess, level(holdfast.Highest): TierProcess} {
		if got := ByTrust(l); got.Tier != want || !strings.HasPrefix(got.Why, want.String()+": ") {
			t.Errorf("%v: %+v", l, got)
		}
	}
}

// What can be no prediction is refused where it comes in.
func TestEvidenceThatIsNone(t *testing.T) {
	for _, e := range []Evidence{{Entropy: num(-1)}, {Entropy: num(100.1)}, {Entropy: num(math.NaN())}, {Entropy: num(math.Inf(1))},
		{Novelty: num(-0.1)}, {Novelty: num(1.1)}, {Novelty: num(math.NaN())}, {Trust: level(-1)}, {Trust: level(4)}} {
		if err := e.Check(); holdfast.KindOf(err) != holdfast.KindProtocol {
			t.Errorf("%s: %v", said(e), err)
		}
	}
	for _, e := range []Evidence{{}, {num(0), num(0), level(holdfast.Baseline)}, {num(100), num(1), level(holdfast.Highest)}} {
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", said(e), err)
		}
	}
}
