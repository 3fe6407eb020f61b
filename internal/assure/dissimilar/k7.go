package dissimilar

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// question is a review as events tell of it.
type question struct {
	crossing, agent, boundary string
	principal                 string
	exact, preview, policy    string
	about                     string  // what else than a request, "" for none
	payload                   payload // from what the reviewer saw
	decision                  string  // the last, "" for none
	reviewer                  string
	decided                   stamp
	word                      *said
	over                      string // why it can be used no more
	used                      int64  // the leaf that used it, -1 for none
}

// remembered is a rule that a person made of an approval.
type remembered struct {
	id, Review, Tenant, Agent, Principal, Boundary, Contract, Exact string

	word      *said
	until     stamp
	forgotten int64 // the leaf that ended it, -1 for none
}

// day is how long an answer holds (D11).
const day = stamp(24 * 60 * 60 * 1_000_000)

// longestRule is how long a remembered rule holds at most.
const longestRule = 90 * day

// data is what the events that are judged hold besides their names.
type data struct {
	Agent       string `json:"agent"`
	Boundary    string `json:"boundary"`
	Exact       string `json:"exact_hash"`
	PreviewHash string `json:"preview_hash"`
	Policy      string `json:"policy"`
	Decision    string `json:"decision"`
	Level       string `json:"level"`
	Statement   string `json:"statement"`
	Signature   string `json:"signature"`
	// Beside says that the preview and the exact hash are of more than the
	// payload.
	Beside bool `json:"beside"`
	// Key, Granted and Review are of a limit that a person has raised.
	Key     string `json:"key"`
	Granted int64  `json:"granted"`
	Review  string `json:"review"`
	// About says that the question is of no request.
	About string `json:"about"`
	// Parent is who started an agent within another.
	Parent string `json:"parent"`
}

// event follows what changes what a crossing may do. answer says that it belongs
// to the answer of an escape attempt.
func (v *Verifier) event(r *record, answer bool) {
	var d data
	if len(r.Data) > 0 && json.Unmarshal(r.Data, &d) != nil {
		d = data{}
	}
	if answer && r.Event == "trust_level_changed" {
		v.lowered(r, &d)
		return
	}
	switch r.Event {
	case "sandbox_escape_attempted":
		v.attempts(r)
	case "sandbox_violation", "sandbox_ended":
		v.violates(r)
	case "agent_first_seen":
		if a := v.agent(r.Subject); a.level == "" {
			a.level, a.changed = d.Level, r.Timestamp
		}
	case "subagent_first_seen":
		v.agent(r.Subject).parent = d.Parent
	case "agent_paused":
		v.agent(r.Subject).paused = r.seq
	case "token_revoked":
		v.t.gone[r.Subject] = r.seq
	case "review_proposed":
		v.proposed(r, &d)
	case "review_decided":
		v.decided(r, &d)
	case "budget_extended":
		v.extended(r, &d)
	case "review_voided", "review_expired":
		if q, known := v.t.reviews.get(r.Subject); known {
			q.over = strings.TrimPrefix(r.Event, "review_") + fmt.Sprintf(" at leaf %d", r.seq)
		}
	case "halted":
		v.t.halted = r.seq
	case "halt_latch_removed":
		v.t.halted = -1
	case "review_executed", "review_returned":
		v.carriedOut(r)
	default:
		if d.Statement != "" || acts(r.Event) != "" && !retention(r) {
			v.personal(r, &d)
		}
	}
}

// retention says whether an erasure is the policy's and nobody's: its parts had
// outlived what the policy keeps.
func retention(r *record) bool {
	return r.Event == "parts_erased" && r.Who == "holdfast" && r.Subject == "retention"
}

// carriedOut judges that what is said to have been carried out had begun.
func (v *Verifier) carriedOut(r *record) {
	_, ended := v.t.ids.get(id16(r.Crossing))
	switch {
	case ended || v.t.open[r.Crossing] != nil:
		v.good(Order)
	case v.t.ids.forgot || len(v.t.open) >= maxOpen:
		v.unknown(Order, "older ids are forgotten")
	default:
		v.bad(Order, r.Event+" of review "+quote(r.Subject), "crossing "+quote(r.Crossing)+" had not begun")
	}
}

func (v *Verifier) agent(name string) *agent {
	a, known := v.t.agents.get(name)
	if !known {
		a = &agent{paused: -1}
		v.t.agents.put(name, a)
	}
	return a
}

// acts is the act that a person must have signed for an event.
func acts(event string) string {
	switch event {
	case "resumed":
		return "resume"
	case "agent_unpaused":
		return "unpause"
	case "trust_level_changed":
		return "trust"
	case "policy_remembered":
		return "remember"
	case "policy_forgotten":
		return "forget"
	case "policy_tool_accepted":
		return "accept"
	case "operator_admitted":
		return "admit"
	case "parts_erased":
		return "erase"
	}
	return ""
}

// personal judges an event that needs a person besides a decision.
func (v *Verifier) personal(r *record, d *data) {
	s := v.signed(d.Statement, d.Signature)
	act := acts(r.Event)
	switch {
	case s.wrong != "" || act == "":
	case r.Event == "agent_unpaused" && s.Act == "approve":
		s.wrong = v.lifts(r, s)
	case s.Act != act:
		s.wrong = "what was signed is to " + quote(s.Act)
	case (act == "unpause" || act == "trust" || act == "forget" || act == "accept" || act == "admit" || act == "erase") && s.Subject != r.Subject:
		s.wrong = "what was signed is about " + quote(s.Subject)
	case act == "trust" && s.Value != d.Level:
		s.wrong = "what was signed is the level " + quote(s.Value)
	case act != "resume" && s.Tenant != "" && s.Tenant != v.t.name, act != "resume" && s.Tenant == "" && v.t.name != "local" && act != "remember":
		s.wrong = "what was signed is about tenant " + quote(s.Tenant)
	}
	if act == "erase" && s.wrong == "" {
		s.wrong = v.elsewhere(r, s)
	}
	ok := v.person(s, r.clock(), r.Event+" by "+quote(r.Who))
	switch r.Event {
	case "resumed":
		v.t.halted = -1
	case "agent_unpaused":
		v.agent(r.Subject).paused = -1
	case "trust_level_changed":
		a := v.agent(r.Subject)
		a.was, a.level, a.changed = a.level, d.Level, r.Timestamp
	case "policy_remembered":
		v.remember(r, s, ok)
	case "policy_forgotten":
		if rule := v.t.rules[r.Subject]; rule != nil {
			rule.forgotten = r.seq
		}
	}
}

// elsewhere says what else than its crossing an erasure took a part of.
func (v *Verifier) elsewhere(r *record, s *said) string {
	if strings.HasPrefix(s.Subject, "before ") {
		return ""
	}
	var d struct {
		From int64 `json:"from"`
		To   int64 `json:"to"`
	}
	if json.Unmarshal(r.Data, &d) != nil {
		return "it does not say which leaves it erased"
	}
	at, known := v.t.parts.get(d.From)
	switch {
	case d.To != d.From+1:
		return fmt.Sprintf("it is about one crossing, and the leaves %d to %d were erased", d.From, d.To)
	case known && at != id16(s.Subject):
		return fmt.Sprintf("it is about crossing %s, and leaf %d is not of it", quote(s.Subject), d.From)
	case !known && !v.t.parts.forgot:
		return fmt.Sprintf("leaf %d has no part", d.From)
	}
	return ""
}

// remember keeps a rule. Its id is of what was signed.
func (v *Verifier) remember(r *record, s *said, ok bool) {
	rule := &remembered{}
	var said struct {
		Review    string `json:"review"`
		Tenant    string `json:"tenant_id"`
		Agent     string `json:"agent"`
		Principal string `json:"principal"`
		Boundary  string `json:"boundary"`
		Contract  string `json:"contract"`
		Exact     string `json:"exact_hash"`
	}
	if ok && json.Unmarshal([]byte(s.Value), &said) != nil {
		v.bad(K7Person, r.Event, "what was signed holds no rule")
		return
	}
	rule.Review, rule.Tenant, rule.Agent, rule.Principal, rule.Boundary, rule.Contract, rule.Exact =
		said.Review, said.Tenant, said.Agent, said.Principal, said.Boundary, said.Contract, said.Exact
	rule.id, rule.word, rule.until, rule.forgotten = r.Subject, s, stamp(s.Until.UnixMicro()), -1
	if id := "rr_" + hexDigest(s.text)[:10]; ok && id != r.Subject {
		v.bad(K7Person, "the rule "+quote(r.Subject), "what was signed is the rule "+id)
	}
	v.t.rules[r.Subject] = rule
}

func (v *Verifier) proposed(r *record, d *data) {
	if _, again := v.t.reviews.get(r.Subject); again {
		v.bad(K7Approval, "a question under the name "+quote(r.Subject), "that question was asked before")
		return
	}
	q := &question{crossing: r.Crossing, agent: d.Agent, boundary: d.Boundary, principal: r.Who, exact: d.Exact,
		preview: d.PreviewHash, policy: d.Policy, about: d.About, used: -1}
	switch {
	case r.part == nil:
		q.payload = payload{why: "the payload was erased"}
	case len(r.part) < saltSize || hexDigest(r.part[saltSize:]) != d.PreviewHash:
		v.bad(K7Approval, "preview_hash "+d.PreviewHash, "the recorded preview gives another hash")
		q.payload = payload{why: "the payload is recorded in part"}
	case d.About != "":
		q.payload = payload{why: "the question is of no payload"}
	case d.Beside:
		q.payload = payload{why: "the question is of more than the payload"}
	default:
		q.payload = payloadOf(r.part)
	}
	v.t.reviews.put(r.Subject, q)
}

// decided judges a person's answer: signed, and about exactly what was asked.
func (v *Verifier) decided(r *record, d *data) {
	says := fmt.Sprintf("review %s %s by %s", quote(r.Subject), d.Decision, quote(r.Who))
	q, known := v.t.reviews.get(r.Subject)
	if !known {
		if v.t.reviews.forgot {
			v.unknown(K7Person, "older reviews are forgotten")
			return
		}
		v.bad(K7Person, says, "nothing was asked under that name")
		return
	}
	s := v.signed(d.Statement, d.Signature)
	want := map[string]string{"approved": "approve", "rejected": "reject", "changes_requested": "changes", "deferred": "defer"}[d.Decision]
	switch {
	case s.wrong != "":
	case s.Act == "unpause" && want == "approve" && (q.about == aboutEscape || q.about == aboutAnomaly): // the agent goes on, and that answers it
		if s.Subject != q.agent {
			s.wrong = "what was signed is about " + quote(s.Subject)
		}
	case s.Act != want:
		s.wrong = "what was signed is to " + quote(s.Act)
	case s.Subject != r.Subject:
		s.wrong = "what was signed is about " + quote(s.Subject)
	case s.Exact != q.exact || s.Policy != q.policy || s.Act == "approve" && s.PreviewHash != q.preview:
		s.wrong = "what was signed is about other arguments, another preview or another policy than was asked"
	}
	switch {
	case s.wrong != "":
	case s.Tenant != "" && s.Tenant != v.t.name:
		s.wrong = "what was signed is about tenant " + quote(s.Tenant)
	case s.Reviewer != r.Who:
		s.wrong = "it was signed by " + quote(s.Reviewer)
	case want == "approve" && (sameName(s.Reviewer, q.principal) || sameName(s.Reviewer, q.agent)):
		s.wrong = "who asked has answered: " + quote(q.principal)
	case q.over != "":
		s.wrong = "the review was " + q.over
	case q.decision != "" && q.decision != "deferred":
		s.wrong = "it was " + q.decision + " already"
	}
	v.person(s, r.clock(), says)
	q.decision, q.reviewer, q.decided, q.word = d.Decision, r.Who, r.Timestamp, s
}

// human judges K7 of a crossing that begins.
func (v *Verifier) human(r *record) {
	why := needs(r)
	switch {
	case bad(r.Confidence) || bad(r.Threshold):
		v.badf(K7Threshold, "confidence "+score(r.Confidence)+", threshold "+score(r.Threshold), "both are between 0 and 1")
	case r.Risk == "PROHIBITED":
		v.bad(K7Threshold, "a begin at risk PROHIBITED", "nobody can approve that")
	case r.Risk != "LOW" && r.Risk != "MEDIUM" && r.Risk != "HIGH":
		v.bad(K7Threshold, "a begin at risk "+quote(r.Risk), "there is no such risk, and what nobody set is PROHIBITED")
	case why != "" && !r.approved():
		v.bad(K7Threshold, "a begin without an answer", why+", and nobody had answered")
	case r.Confidence != nil && r.Threshold == nil:
		v.unknown(K7Threshold, "the record has no threshold")
	default:
		v.good(K7Threshold)
	}
	if !r.approved() {
		if r.Reviewer != "" {
			v.bad(K7Approval, "a begin that "+quote(r.Reviewer)+" reviewed", "it says of no approval")
		}
		return
	}
	if id, ok := strings.CutPrefix(r.Review, "remembered/"); ok {
		v.byRule(r, id)
		return
	}
	v.approval(r)
}

func bad(f *float64) bool { return f != nil && !(*f >= 0 && *f <= 1) }

// needs says why a person must answer, or nothing (D37).
func needs(r *record) string {
	switch {
	case r.Risk == "HIGH":
		return "the risk is HIGH"
	case r.Confidence != nil && r.Threshold != nil && *r.Confidence < *r.Threshold:
		return fmt.Sprintf("the confidence %s is below %s", score(r.Confidence), score(r.Threshold))
	}
	return ""
}

// approval judges the one that a begin uses.
func (v *Verifier) approval(r *record) {
	says := "approved in review " + quote(r.Review) + " by " + quote(r.Reviewer)
	q, known := v.t.reviews.get(r.Review)
	if !known {
		if v.t.reviews.forgot {
			v.unknown(K7Approval, "older reviews are forgotten")
			return
		}
		v.bad(K7Approval, says, "nothing was asked under that name")
		return
	}
	governs := r.Governs
	if governs == "" {
		governs = q.policy
	}
	switch {
	case q.about != "":
		v.bad(K7Approval, says, "what was asked is about "+quote(q.about)+", and lets nothing pass")
	case q.decision != "approved":
		v.bad(K7Approval, says, "nobody approved it: "+quote(q.decision))
	case q.over != "":
		v.bad(K7Approval, says, "the review was "+q.over)
	case q.used >= 0:
		v.badf(K7Approval, says, "the approval was used already at leaf %d", q.used)
	case q.crossing != r.ID:
		v.bad(K7Approval, says, "it was given for crossing "+quote(q.crossing))
	case q.exact != r.Exact:
		v.bad(K7Approval, says+" for "+r.Exact, "it was given for the arguments "+q.exact)
	case q.agent != r.Agent || q.boundary != r.Boundary:
		v.badf(K7Approval, says, "it was given to agent %s at %s", quote(q.agent), quote(q.boundary))
	case q.principal != r.Caller:
		v.bad(K7Approval, says, "the question was "+quote(q.principal)+"'s")
	case q.policy != governs:
		v.bad(K7Approval, says+" under "+governs, "it was given under "+q.policy)
	case q.reviewer != r.Reviewer:
		v.bad(K7Approval, says, "who answered is "+quote(q.reviewer))
	case sameName(q.reviewer, r.Caller) || sameName(q.reviewer, r.Agent):
		v.bad(K7Approval, says, "who asked has answered")
	case r.clock() > q.decided+day+second:
		v.badf(K7Approval, says, "the answer of %s had expired", q.decided)
	case q.word.wrong != "":
		v.bad(K7Approval, says, "the answer is not an operator's: "+q.word.wrong)
	case q.word.unsure != "":
		v.unknown(K7Approval, q.word.unsure)
	case r.Timestamp > q.decided+day+second:
		v.unknown(K7Approval, setBack)
	default:
		v.good(K7Approval)
	}
	if q.used < 0 {
		q.used = r.seq
	}
}

// byRule judges a crossing that began by a remembered rule.
func (v *Verifier) byRule(r *record, id string) {
	says := "approved by the rule " + quote(id)
	rule := v.t.rules[id]
	switch {
	case rule == nil:
		v.bad(K7Approval, says, "there is no such rule")
	case rule.word.wrong != "":
		v.bad(K7Approval, says, "the rule is not an operator's: "+rule.word.wrong)
	case rule.word.unsure == "" && rule.word.Reviewer != r.Reviewer:
		v.bad(K7Approval, says+" of "+quote(r.Reviewer), "the rule is "+quote(rule.word.Reviewer)+"'s")
	case rule.forgotten >= 0:
		v.badf(K7Approval, says, "the rule was ended at leaf %d", rule.forgotten)
	case r.clock() >= rule.until+second, rule.until > stamp(rule.word.At.UnixMicro())+longestRule:
		v.badf(K7Approval, says, "the rule held until %s, and at most 90 days", rule.until)
	case rule.Tenant != v.t.name || rule.Agent != r.Agent || rule.Principal != r.Caller || rule.Boundary != r.Boundary:
		v.badf(K7Approval, says, "the rule is for %s as agent %s at %s", quote(rule.Principal), quote(rule.Agent), quote(rule.Boundary))
	case rule.Exact != "" && rule.Exact != r.Exact:
		v.bad(K7Approval, says, "the rule is for the arguments "+rule.Exact)
	case sameName(rule.word.Reviewer, r.Caller) || sameName(rule.word.Reviewer, r.Agent):
		v.bad(K7Approval, says, "who asks has made the rule")
	case rule.word.unsure != "":
		v.unknown(K7Approval, rule.word.unsure)
	case rule.Exact == "":
		v.unknown(K7Approval, "whether the arguments have the rule's shape is not in the ledger")
	default:
		v.good(K7Approval)
	}
}

// answered judges K7 of an entry: its opinion, and what it says of a person
// where the crossing never began.
func (v *Verifier) answered(r, b *record) {
	if o := r.opinion("K7"); o != nil && o.Verdict == "hold" && o.Gate == "K7" && needs(r) == "" && (r.Confidence == nil || r.Threshold != nil) {
		v.bad(K7Threshold, "held by K7", "risk "+r.Risk+" and confidence "+score(r.Confidence)+" ask nobody")
	}
	if b != nil || r.Approved == nil || strings.HasPrefix(r.Review, "remembered/") {
		return
	}
	says := fmt.Sprintf("k7_human_approved %s by %s in review %s", word(r.Approved), quote(r.Reviewer), quote(r.Review))
	q, known := v.t.reviews.get(r.Review)
	switch {
	case !known && v.t.reviews.forgot:
		v.unknown(K7Approval, "older reviews are forgotten")
	case !known:
		v.bad(K7Approval, says, "nothing was asked under that name")
	case *r.Approved != (q.decision == "approved"):
		v.bad(K7Approval, says, "it was "+quote(q.decision))
	case q.reviewer != r.Reviewer:
		v.bad(K7Approval, says, "who answered is "+quote(q.reviewer))
	case q.word.wrong != "":
		v.bad(K7Approval, says, "the answer is not an operator's: "+q.word.wrong)
	case q.word.unsure != "":
		v.unknown(K7Approval, q.word.unsure)
	default:
		v.good(K7Approval)
	}
}
