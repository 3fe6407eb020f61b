// Package review judges what a person's answer is worth (K7, D11): a review
// is bound to one exact request under one policy, expires, and is used once.
package review

import (
	"cmp"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// State is where a review stands. The words are stored.
type State string

// The states. Deferred still waits. Used means that the approved crossing has
// begun; Voided that the policy changed after the approval.
const (
	None     State = ""
	Pending  State = "pending"
	Deferred State = "deferred"
	Approved State = "approved"
	Rejected State = "rejected"
	Changes  State = "changes_requested"
	Expired  State = "expired"
	Voided   State = "voided"
	Used     State = "used"
)

// AboutEscape is what a review is about that was opened because code tried to
// leave its sandbox (D21). A person looks at the attempt, and the answer records
// who has seen it. Approved lets the agent go on that the attempt has paused,
// Rejected keeps it stopped; to unpause the agent is to approve. It lasts until it
// is answered, and lets no request pass.
const AboutEscape = "escape"

// AboutBudget is what a review is about that was opened because an agent has spent
// a budget of its own (D41). Approved adds as much again and lets the agent go on,
// Rejected keeps it stopped. It lasts until it is answered, and lets no request
// pass.
const AboutBudget = "budget"

// AboutAnomaly is what a review is about that was opened because an agent did what
// is out of the ordinary (D41a). Approved lets the agent go on, and what it did
// before counts no more; Rejected keeps it stopped, or stops it. It lasts until it
// is answered, and lets no request pass.
const AboutAnomaly = "anomaly"

// Lifetime is how long a question waits for its answer, and an approval for
// its use (D11).
const Lifetime = 24 * time.Hour

// AlwaysAsked is why a review of a boundary of high risk waits. Every such
// review says so; a list leaves it out.
const AlwaysAsked = "the risk is HIGH, which is always put to a person"

// CauseRisk is the Cause of a review that waits for AlwaysAsked alone.
const CauseRisk = "risk"

// Unusual is why a person is asked, or "" where it is AlwaysAsked alone.
func (r *Review) Unusual() string {
	cause := r.Cause
	if cause == "" {
		cause = ReadSentence(r.Why, map[string]string{AlwaysAsked: CauseRisk})
	}
	if r.About == "" && cause == CauseRisk {
		return ""
	}
	return r.Why
}

// ReadSentence returns the code of a sentence, or "". It reads records before 2026-11-27,
// which have the sentence and no code. A key of codes is the sentence, or begins it if the
// key ends in ": ".
func ReadSentence(sentence string, codes map[string]string) string {
	for text, code := range codes {
		if sentence == text || strings.HasSuffix(text, ": ") && strings.HasPrefix(sentence, text) {
			return code
		}
	}
	return ""
}

// Binding is what an approval is for, and nothing else.
type Binding struct {
	Tenant   string `json:"tenant_id"`
	Agent    string `json:"agent"`
	Boundary string `json:"boundary"`
	// Exact is the exact hash of the payload (D10), Policy the version of
	// contracts and rules under which it was judged.
	Exact  string `json:"exact_hash"`
	Policy string `json:"policy"`
}

// Review is a question put to a person.
type Review struct {
	ID       string `json:"id"`
	Crossing string `json:"crossing"`
	// About is empty where a crossing is held for the answer; else it is
	// AboutEscape, AboutBudget or AboutAnomaly, and Crossing is the one that it happened in.
	About string `json:"about,omitzero"`
	Binding
	// Asker is who asked within the agent, AGENT/ID; empty where the agent did. An
	// answer is the agent's to use. Owner is of a question about the budget of one
	// within an agent that agent; empty elsewhere.
	Asker       string        `json:"asker,omitempty"`
	Owner       string        `json:"owner,omitempty"`
	Principal   string        `json:"principal"`
	Session     string        `json:"session,omitempty"`
	Intent      string        `json:"intent,omitempty"`
	Correlation string        `json:"correlation_id"`
	Risk        holdfast.Risk `json:"risk"`
	Why         string        `json:"why"`
	// Cause is the code of Why, if code asks for it: CauseRisk, or of AboutAnomaly the
	// condition's name.
	Cause      string   `json:"cause,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	Threshold  *float64 `json:"threshold,omitempty"`
	// Preview is the redacted payload that the reviewer sees, in canonical
	// form and cut at 4 KiB, and PreviewHash the SHA-256 of exactly that
	// text (D11). Cut says that there is more than it shows, Masked that
	// redaction has replaced something in it: what an agent dresses as a
	// secret is masked too, so that nobody has seen the whole.
	Preview     string    `json:"preview"`
	PreviewHash string    `json:"preview_hash"`
	Cut         bool      `json:"cut,omitzero"`
	Masked      bool      `json:"masked,omitzero"`
	Key         string    `json:"key"`
	Nonce       string    `json:"nonce"`
	State       State     `json:"state"`
	Created     time.Time `json:"created_at"`
	// Expires is Created plus Lifetime while it waits (deferring never
	// extends it), decision plus Lifetime once approved. Zero is never.
	Expires  time.Time `json:"expires_at,omitzero"`
	Decided  time.Time `json:"reviewed_at,omitzero"`
	Reviewer string    `json:"reviewer_id,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	// Word is the person's signed statement, which is checked again where
	// the approval is used.
	Word []byte `json:"word,omitempty"`
	// Entry is the ledger entry of the held crossing as far as it is known,
	// so that a rejection or an expiry can close it after a restart. The
	// kernel writes and reads it.
	Entry []byte `json:"entry,omitempty"`
	// Until is when a deferred review is asked again.
	Until time.Time `json:"deferred_until,omitzero"`
	// Contract is the hash of the boundary's contract when it was asked, and
	// Pin the tool's, if it is one. Gates are those that asked for a person.
	Contract string          `json:"contract,omitempty"`
	Pin      string          `json:"pin,omitempty"`
	Gates    []holdfast.Gate `json:"gates,omitempty"`
	// Shape is what is known of the arguments' members; nil where they have
	// none, or none that may be shown.
	Shape []Arg `json:"shape,omitempty"`
}

// InPart says whether the reviewer sees less than what is asked.
func (r *Review) InPart() bool { return r.Cut || r.Masked }

// Asks is who asked, for people: the agent, or one within it.
func (r *Review) Asks() string { return cmp.Or(r.Asker, r.Agent) }

// Waiting says whether a person may still answer.
func (r *Review) Waiting(now time.Time) bool {
	return (r.State == Pending || r.State == Deferred) && !r.Over(now)
}

// Over says whether the review's time is over. One that never expires waits for
// ever, and its answer stays.
func (r *Review) Over(now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }

// MayBe says whether an answer is one to this review: of an attempt, and of a
// spent budget, there is nothing to change.
func (r *Review) MayBe(answer State) bool { return r.About == "" || answer != Changes }
