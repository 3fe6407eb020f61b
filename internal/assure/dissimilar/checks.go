package dissimilar

import (
	"fmt"
	"strconv"
)

// Check is one question that is asked of a record.
type Check int8

// The checks.
const (
	Form Check = iota
	Order
	Times
	State
	Opinions
	Paused
	Escape
	K1Valid
	K1Schema
	K2Subset
	K2Level
	K2Token
	K2Roles
	K3Room
	K3Before
	K3Columns
	K3Rate
	K4Flow
	K5Key
	K5Pair
	K5Replay
	K7Threshold
	K7Approval
	K7Person
	K8Result
	K8Judged
	checks
)

func (c Check) row() (gate, name string) {
	rows := [checks][2]string{
		Form:        {"", "the record can be read and stands in its tenant's tree"},
		Order:       {"", "one begin at most, one entry, in this order, about one thing"},
		Times:       {"", "its times agree"},
		State:       {"", "state, outcome and exit code agree"},
		Opinions:    {"", "the gates' opinions, their columns and the outcome agree"},
		Paused:      {"halt", "nothing was halted, and the agent was not paused"},
		Escape:      {"halt", "an escape attempt failed its crossing, cost trust, paused its agent and asked a person"},
		K1Valid:     {"K1", "nothing went on that was not valid"},
		K1Schema:    {"K1", "the payload conforms to its schema"},
		K2Subset:    {"K2", "what was required was granted"},
		K2Level:     {"K2", "the trust level may do what was required"},
		K2Token:     {"K2", "the token was in time and not revoked"},
		K2Roles:     {"K2", "the roles grant what was granted"},
		K3Room:      {"K3", "used and asked together stay within the limit"},
		K3Before:    {"K3", "the usage before is what the ledger adds up to"},
		K3Columns:   {"K3", "the k3 columns show what had no room, else the tightest of all"},
		K3Rate:      {"K3", "the rate had room"},
		K4Flow:      {"K4", "a correlation id belongs to one tenant and one flow"},
		K5Key:       {"K5", "the key is that of the payload"},
		K5Pair:      {"K5", "one payload has one key"},
		K5Replay:    {"K5", "a result is given back for its own key, in time, and nothing is done twice"},
		K7Threshold: {"K7", "the confidence reaches the threshold, or a person answered"},
		K7Approval:  {"K7", "the approval is for this, signed, in time, another's, and used once"},
		K7Person:    {"K7", "an operator signed it"},
		K8Result:    {"K8", "what was refused gave no output"},
		K8Judged:    {"K8", "the rules and predicates judge so"},
	}
	if c < 0 || c >= checks {
		return "", "?"
	}
	return rows[c][0], rows[c][1]
}

func (c Check) gate() string { g, _ := c.row(); return g }

// String is what was asked, in a few words.
func (c Check) String() string { _, name := c.row(); return name }

// Tally is how often a check was right, wrong or undecidable.
type Tally struct {
	Gate        string `json:"gate,omitzero"`
	Check       string `json:"check"`
	Right       int64  `json:"right"`
	Wrong       int64  `json:"wrong"`
	Undecidable int64  `json:"undecidable"`
	// Why counts the reasons for what is undecidable.
	Why map[string]int64 `json:"why,omitempty"`
}

func (v *Verifier) good(c Check) { v.tally[c].Right++ }

// bad notes what is wrong with the record in hand.
func (v *Verifier) bad(c Check, says, found string) {
	v.tally[c].Wrong++
	v.wrong++
	if v.opt.Found == nil {
		return
	}
	f := Finding{Tenant: v.t.name, Seq: v.r.seq, Crossing: v.r.ID, Gate: c.gate(), Check: c.String(), Says: says, Found: found}
	if v.r.Kind == "event" {
		f.Crossing = v.r.Crossing
	}
	v.opt.Found(f)
}

func (v *Verifier) badf(c Check, says, format string, args ...any) {
	v.bad(c, says, fmt.Sprintf(format, args...))
}

// unknown counts what cannot be decided. The reasons are fixed texts.
func (v *Verifier) unknown(c Check, why string) {
	t := &v.tally[c]
	t.Undecidable++
	if t.Why == nil {
		t.Why = map[string]int64{}
	}
	t.Why[why]++
}

// quote makes text safe to be shown, and short.
func quote(s string) string {
	if len(s) > 96 {
		s = s[:96] + "..."
	}
	return strconv.QuoteToASCII(s)
}

func word(b *bool) string {
	if b == nil {
		return "null"
	}
	return strconv.FormatBool(*b)
}
