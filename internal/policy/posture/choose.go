package posture

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Evidence is what is known of the work that code does; nil is not known.
type Evidence struct {
	// Entropy is predicted, 0 to 100 (D27).
	Entropy *float64 `json:"predicted_entropy,omitempty"`
	// Novelty is 0 to 1 (D28).
	Novelty *float64        `json:"novelty,omitempty"`
	Trust   *holdfast.Level `json:"trust,omitempty"`
}

// Empty says that nothing is known.
func (e Evidence) Empty() bool { return e == Evidence{} }

// Check is a ProtocolError where a number can be no prediction at all: below 0,
// not a number, above what there is.
func (e Evidence) Check() error {
	if v := e.Entropy; v != nil && !(*v >= 0 && *v <= MaxEntropy) {
		return refuseEvidence("it is 0 to 100", "%v is no predicted entropy", *v)
	}
	if v := e.Novelty; v != nil && !(*v >= 0 && *v <= 1) {
		return refuseEvidence("it is 0 to 1", "%v is no novelty", *v)
	}
	if v := e.Trust; v != nil && (*v < holdfast.Baseline || *v > holdfast.Highest) {
		return refuseEvidence("it is baseline, medium, high or highest", "%d is no trust level", *v)
	}
	return nil
}

// MaxEntropy is the most that there is (D27).
const MaxEntropy = 100

// Choice is a tier, and why it: one sentence, which begins with the tier.
type Choice struct {
	Tier Tier
	Why  string
}

func choice(t Tier, why string, args ...any) Choice {
	return Choice{t, t.String() + ": " + fmt.Sprintf(why, args...)}
}

// Choose is the policy of spec 000 "Sandbox selection policy". With no evidence
// at all the process tier is enough; where there is some, what is missing counts
// as its worst, and so does a number below 0 and what is none.
func Choose(e Evidence) Choice {
	if e.Empty() {
		return choice(TierProcess, "nothing asks for more")
	}
	switch entropy, novelty := e.Entropy, e.Novelty; {
	case entropy == nil:
		return choice(TierVM, "no entropy is predicted, which counts as its worst")
	case !(*entropy >= 0):
		return choice(TierVM, "%v is no predicted entropy, which counts as its worst", *entropy)
	case *entropy > 30:
		return choice(TierVM, "predicted entropy %v is over 30", *entropy)
	case novelty == nil:
		return choice(TierVM, "no novelty is known, which counts as its worst")
	case !(*novelty >= 0):
		return choice(TierVM, "%v is no novelty, which counts as its worst", *novelty)
	case *novelty > 0.8:
		return choice(TierVM, "novelty %v is over 0.8", *novelty)
	case *entropy > 10:
		return choice(TierContainer, "predicted entropy %v is over 10", *entropy)
	}
	if c := ByTrust(e.Trust); c.Tier > TierProcess {
		return c
	}
	return choice(TierProcess, "predicted entropy %v, novelty %v and the trust level %v ask for no more", *e.Entropy, *e.Novelty, *e.Trust)
}

// ByTrust is the policy's row on trust alone, which is all that can be asked for
// an intent of which nothing is predicted. No level is as the lowest.
func ByTrust(level *holdfast.Level) Choice {
	switch {
	case level == nil:
		return choice(TierContainer, "no trust level is known, which counts as the lowest")
	case *level <= holdfast.Baseline || *level > holdfast.Highest:
		return choice(TierContainer, "the agent's trust level is baseline")
	}
	return choice(TierProcess, "the trust level %v asks for no more", *level)
}

// AtLeast is c, or the least tier that is demanded by whom it says, where that is
// stronger.
func (c Choice) AtLeast(least Tier, by string) Choice {
	if least <= c.Tier {
		return c
	}
	return choice(least, "%s", by)
}

// refuseEvidence is a ProtocolError with a hint.
func refuseEvidence(hint, why string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindProtocol, Why: fmt.Sprintf(why, args...), Hint: hint}
}
