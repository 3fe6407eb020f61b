package dissimilar

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// attempt is an attempt to leave a sandbox whose answer is to stand in the
// leaves right behind its own, all of one transaction (D21).
type attempt struct {
	r    *record
	need map[string]bool // what is still missing, by name
	to   string
	asks string // the review
	late bool   // the crossing had its entry already
}

// What answers an attempt, beside its own event.
const (
	lowers = "the trust one level down"
	pauses = "the agent paused"
	asks   = "a person asked"
	fails  = "the crossing failed"
)

// attempted is what the event of an attempt holds.
type attempted struct {
	Level     string `json:"level"`
	Run       string `json:"request_id"`
	Principal string `json:"principal"`
	Agent     string `json:"agent"`
	Crossing  string `json:"crossing"`
	From      string `json:"trust_from"`
	To        string `json:"trust_to"`
	Review    string `json:"review"`
	Late      bool   `json:"late"`
	Call      struct {
		Name string `json:"name"`
	} `json:"call"`
}

// attempts judges the event of an attempt, and awaits what answers it.
func (v *Verifier) attempts(r *record) {
	var d attempted
	says := "an escape attempt of " + quote(r.Subject)
	if json.Unmarshal(r.Data, &d) != nil {
		v.bad(Escape, says, "nothing of it can be read")
		return
	}
	a, known := v.t.agents.get(r.Subject)
	t := &attempt{r: r, to: d.To, asks: d.Review, late: d.Late, need: map[string]bool{asks: true}}
	v.t.attempt = t
	if d.From != d.To {
		t.need[lowers] = true
	}
	if !d.Late {
		t.need[fails] = true
	}
	switch {
	case known && a.paused >= 0: // it is paused once
	case !known && v.t.agents.forgot:
		v.unknown(Escape, "the agent is forgotten")
	default:
		t.need[pauses] = true
	}
	begin := v.t.open[r.Crossing]
	_, ended := v.t.ids.get(id16(r.Crossing))
	forgot := v.t.ids.forgot || len(v.t.open) >= maxOpen
	switch {
	case d.Level != "CRITICAL":
		v.bad(Escape, says+" of level "+quote(d.Level), "an attempt is CRITICAL")
	case d.Agent != r.Subject || d.Principal != r.Who || d.Crossing != r.Crossing:
		v.bad(Escape, says, "it says in two places whose it was, and not the same")
	case begin == nil && !ended && !forgot, begin == nil && !d.Late && !forgot, begin != nil && d.Late:
		v.bad(Escape, says+" in crossing "+quote(r.Crossing), "that crossing was not under way")
	case begin != nil && (begin.Agent != r.Subject || begin.Caller != r.Who):
		v.badf(Escape, says, "the crossing is of agent %s for %s", quote(begin.Agent), quote(begin.Caller))
	case ladder(d.From) < 0 || ladder(d.To) != max(0, ladder(d.From)-1):
		v.bad(Escape, says+", trust from "+quote(d.From)+" to "+quote(d.To), "it goes down by one level, and not below the lowest")
	case known && a.level != "" && a.level != d.From:
		v.bad(Escape, says+" at trust level "+quote(d.From), "the agent had "+a.level)
	}
}

// answers says whether a record belongs to the answer of the attempt before it,
// and notes that it is there.
func (t *attempt) answers(r *record) bool {
	what := ""
	switch {
	case t == nil:
		return false
	case r.Kind == "entry" && r.ID == t.r.Crossing && r.ErrorKind == escapeKind && r.Outcome == "failed":
		what = fails
	case r.Kind != "event" || r.Crossing != t.r.Crossing:
	case r.Event == "trust_level_changed" && r.Subject == t.r.Subject && r.Who == nobody:
		what = lowers
	case r.Event == "agent_paused" && r.Subject == t.r.Subject:
		what = pauses
	case r.Event == "review_proposed" && r.Subject == t.asks:
		what = asks
	}
	if !t.need[what] {
		return false
	}
	delete(t.need, what)
	return true
}

const (
	escapeKind = "SandboxEscapeError"
	nobody     = "holdfast" // who does what no person asked for
)

// follow looks whether the record in hand is part of the answer to the attempt
// before it; where it is not, the answer is over.
func (v *Verifier) follow(r *record) (answer bool) {
	if v.t.attempt == nil {
		return false
	}
	if answer = v.t.attempt.answers(r); !answer {
		v.settled()
	}
	return answer
}

// settled judges what an attempt came to, once nothing more can answer it.
func (v *Verifier) settled() {
	t := v.t.attempt
	if t == nil {
		return
	}
	hand := v.r
	v.r, v.t.attempt = t.r, nil
	defer func() { v.r = hand }()
	if len(t.need) == 0 {
		v.good(Escape)
		return
	}
	var missing []string
	for _, what := range []string{lowers, pauses, asks, fails} {
		if t.need[what] {
			missing = append(missing, what)
		}
	}
	v.bad(Escape, "an escape attempt of "+quote(t.r.Subject), "what answers it is not there: "+strings.Join(missing, ", "))
}

// lowered takes the trust level that an attempt has cost.
func (v *Verifier) lowered(r *record, d *data) {
	if d.Level != v.t.attempt.to {
		v.badf(Escape, "trust level "+quote(d.Level), "the attempt at leaf %d lowers it to %s", v.t.attempt.r.seq, quote(v.t.attempt.to))
	}
	a := v.agent(r.Subject)
	a.was, a.level, a.changed = a.level, d.Level, r.Timestamp
}

// untold judges that an entry that failed by an attempt stands right behind it.
func (v *Verifier) untold(r *record, answer bool) {
	if r.ErrorKind == escapeKind && r.Outcome == "failed" && !answer {
		v.bad(Escape, "an entry that failed by an escape attempt", "no event before it tells of the attempt")
	}
}

// What a review says that it is about, of an attempt, of a spent budget, and of what
// was out of the ordinary.
const (
	aboutEscape  = "escape"
	aboutBudget  = "budget"
	aboutAnomaly = "anomaly"
)

// lifts says why an approval is not one of a review about why the agent that it lets
// go on was paused, "" where it is.
func (v *Verifier) lifts(r *record, s *said) string {
	q, known := v.t.reviews.get(s.Subject)
	switch {
	case !known && v.t.reviews.forgot:
		return ""
	case !known:
		return "what was signed is about " + quote(s.Subject) + ", and nothing was asked under that name"
	case q.about != aboutEscape && q.about != aboutBudget && q.about != aboutAnomaly || q.agent != r.Subject:
		return "what was signed is about " + quote(s.Subject) + ", which is about no pause of that agent"
	case q.decision != "approved" || q.word == nil || q.word.ID != s.ID:
		return "that is not how review " + quote(s.Subject) + " was answered"
	}
	return ""
}

// violates judges that a violation, or a run that was ended, belongs to a crossing
// under way.
func (v *Verifier) violates(r *record) {
	b, what := v.t.open[r.Crossing], "a violation of "
	if r.Event == "sandbox_ended" {
		what = "a run's end of "
	}
	switch {
	case b != nil && (b.Agent != r.Subject || b.Caller != r.Who):
		v.badf(Escape, what+quote(r.Subject), "the crossing is of agent %s for %s", quote(b.Agent), quote(b.Caller))
	case b != nil:
		v.good(Escape)
	case len(v.t.open) >= maxOpen:
		v.unknown(Escape, "too many crossings are open at once")
	default:
		v.bad(Escape, fmt.Sprintf("%s%s in crossing %s", what, quote(r.Subject), quote(r.Crossing)), "that crossing was not under way")
	}
}
