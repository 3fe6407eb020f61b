package review

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/holdfast-dev/holdfast"
)

// Scores are what a judge gives an action (spec 001, layer 2): five criteria,
// each from 1 to 5, in the order of Criteria. The zero value is out of range
// and safe for nobody.
type Scores [5]float64

// The places of the criteria in Scores.
const (
	strategic = iota
	autonomy
	quality
	efficiency
	learning
)

// What a judge may print, in bytes, and the range of one criterion.
const (
	MaxScores    = 64 << 10
	LeastScore   = 1.0
	HighestScore = 5.0
)

// safeSum is five times the average of 4.0 that an action needs, in millionths.
const safeSum = 20_000_000

// Criteria are the names of the five, as a judge writes them.
func Criteria() [5]string {
	return [5]string{"strategic_alignment", "autonomy_appropriateness", "output_quality", "resource_efficiency", "learning_application"}
}

// scored is the only form that a judge's answer may have.
type scored struct {
	Strategic  *float64 `json:"strategic_alignment"`
	Autonomy   *float64 `json:"autonomy_appropriateness"`
	Quality    *float64 `json:"output_quality"`
	Efficiency *float64 `json:"resource_efficiency"`
	Learning   *float64 `json:"learning_application"`
}

// ParseScores reads a judge's answer: one JSON object with the five criteria and
// nothing else, each a number from 1 to 5. A member that is missing, unknown or
// there twice, and whatever follows the object, is a *holdfast.Error of
// ConfidenceError: what is not understood is no score.
func ParseScores(text []byte) (Scores, error) {
	if len(text) > MaxScores {
		return Scores{}, unusable(fmt.Sprintf("the answer has more than %d bytes", MaxScores))
	}
	var got scored
	if err := json.Unmarshal(text, &got, json.RejectUnknownMembers(true)); err != nil {
		return Scores{}, unusable("the answer is not the five criteria and nothing else")
	}
	var s Scores
	for i, v := range []*float64{got.Strategic, got.Autonomy, got.Quality, got.Efficiency, got.Learning} {
		if v == nil {
			return Scores{}, unusable("the answer has no " + Criteria()[i])
		}
		s[i] = *v
	}
	return s, s.Check()
}

// Check refuses a criterion outside 1 to 5, and NaN.
func (s Scores) Check() error {
	for i, v := range s {
		if !(v >= LeastScore && v <= HighestScore) { // so that NaN is refused
			return unusable(fmt.Sprintf("%s is not between 1 and 5", Criteria()[i]))
		}
	}
	return nil
}

func unusable(why string) error {
	return &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Why: why}
}

// Average is the mean of the five.
func (s Scores) Average() float64 { return float64(s.sum()) / 5e6 }

// sum is in millionths, so that tenths add up as they are written.
func (s Scores) sum() int64 {
	var n int64
	for _, v := range s {
		n += int64(math.Round(v * 1e6))
	}
	return n
}

// Unsafe is why the action may not be done without a person, or "" where it may:
// the average is at least 4.0, no criterion is 1 or less, and the appropriateness
// of autonomy is above 2.
func (s Scores) Unsafe() string {
	if err := s.Check(); err != nil {
		return "a criterion is not between 1 and 5"
	}
	for i, v := range s {
		if v <= LeastScore {
			return Criteria()[i] + " is 1"
		}
	}
	switch {
	case s[autonomy] <= 2:
		return "autonomy_appropriateness is not above 2"
	case s.sum() < safeSum:
		return fmt.Sprintf("the average %s is below 4.0", figure(float64(s.sum())/5e6))
	}
	return ""
}

// String names the five, in their order.
func (s Scores) String() string {
	var b strings.Builder
	for i, name := range Criteria() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + " " + figure(s[i]))
	}
	return b.String()
}

// figure writes a number without noughts at its end, and never rounds it up to
// what it does not reach.
func figure(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", v), "0"), ".")
}

// MarshalJSON writes what ParseScores reads.
func (s Scores) MarshalJSON() ([]byte, error) {
	return json.Marshal(scored{&s[strategic], &s[autonomy], &s[quality], &s[efficiency], &s[learning]})
}

// UnmarshalJSON is ParseScores.
func (s *Scores) UnmarshalJSON(text []byte) (err error) {
	*s, err = ParseScores(text)
	return err
}
