package dissimilar

import (
	"fmt"
	"slices"
	"strings"
)

// maxOpen is how many crossings may be open at once before the oldest are no
// longer followed.
const maxOpen = 1 << 18

// begun judges a begin: everything that had to be right before the act.
func (v *Verifier) begun(r *record) {
	t := v.t
	id := id16(r.ID)
	_, again := t.ids.get(id)
	_, open := t.open[r.ID]
	switch {
	case open:
		v.bad(Order, "a begin", "the crossing had begun and was open")
	case again:
		v.bad(Order, "a begin", "the crossing had its entry already")
	default:
		v.good(Order)
	}
	v.flow(r)
	v.paused(r)
	v.permission(r, true)
	v.reserve(r)
	v.payloadKey(r)
	v.claim(r)
	v.human(r)
	if len(t.open) < maxOpen {
		t.open[r.ID] = r
	} else {
		v.unknown(Order, "too many crossings are open at once")
	}
}

// entered judges an entry, and closes its crossing.
func (v *Verifier) entered(r *record) {
	t := v.t
	id := id16(r.ID)
	b := t.open[r.ID]
	_, again := t.ids.get(id)
	switch {
	case b == nil && again:
		v.bad(Order, "an entry", "the crossing had its entry already")
	case b == nil && r.BeginSeq != nil && len(t.open) >= maxOpen:
		v.unknown(Order, "too many crossings are open at once")
	case b == nil && r.BeginSeq != nil:
		v.badf(Order, fmt.Sprintf("that it began at leaf %d", *r.BeginSeq), "it did not begin")
	case b != nil && (r.BeginSeq == nil || *r.BeginSeq != b.seq):
		v.badf(Order, "that it began at leaf "+number(r.BeginSeq), "it began at leaf %d", b.seq)
	case b != nil && v.differs(b, r):
	case t.ids.forgot && b == nil:
		v.unknown(Order, "older ids are forgotten")
	default:
		v.good(Order)
	}
	t.ids.put(id, struct{}{})
	delete(t.open, r.ID)
	v.times(r)
	v.state(r)
	v.opinions(r)
	v.valid(r)
	if b == nil {
		v.flow(r)
		v.permission(r, false)
		v.payloadKey(r)
	}
	v.bounds(r, b)
	v.result(r, b)
	v.answered(r, b)
	v.replayed(r, b)
	v.settle(r, b)
}

func number(n *int64) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

// differs compares what begin and entry both say; the first difference is
// named.
func (v *Verifier) differs(b, e *record) bool {
	same := func(name, x, y string) bool {
		if x != y {
			v.badf(Order, name+" "+quote(y), "the begin at leaf %d says %s", b.seq, quote(x))
		}
		return x == y
	}
	for _, f := range [][3]string{
		{"correlation_id", b.Correlation, e.Correlation}, {"boundary_crossing", b.Boundary, e.Boundary}, {"caller_user_id", b.Caller, e.Caller},
		{"caller_roles", fmt.Sprint(b.Roles), fmt.Sprint(e.Roles)}, {"agent", b.Name, e.Name}, {"owner", b.Owner, e.Owner}, {"agent_kind", b.AgentKind, e.AgentKind},
		{"session", b.Session, e.Session}, {"intent", b.Intent, e.Intent}, {"chain", b.Chain, e.Chain}, {"tier", b.Tier, e.Tier},
		{"parent", b.Parent, e.Parent}, {"risk", b.Risk, e.Risk}, {"exact_hash", b.Exact, e.Exact}, {"k5_idempotency_key", b.key(), e.key()},
		{"policy", b.Policy, e.Policy}, {"k7_human_approved", word(b.Approved), word(e.Approved)}, {"review", b.Review, e.Review},
		{"reviewer_id", b.Reviewer, e.Reviewer}, {"timestamp", b.Timestamp.String(), e.Timestamp.String()},
		{"k2_required_permissions", fmt.Sprint(b.Required), fmt.Sprint(e.Required)}, {"k2_granted_permissions", fmt.Sprint(b.Granted), fmt.Sprint(e.Granted)},
		{"k7_confidence_score", score(b.Confidence), score(e.Confidence)},
	} {
		if !same(f[0], f[1], f[2]) {
			return true
		}
	}
	taken := make([]draw, 0, len(e.Uses))
	for _, u := range e.Uses {
		taken = append(taken, u.draw)
	}
	return !slices.Equal(taken, []draw(b.Draws)) && !same("k3_all", fmt.Sprint(b.Draws), fmt.Sprint(taken))
}

func score(f *float64) string {
	if f == nil {
		return "null"
	}
	return string(appendNumber(nil, *f))
}

// flow judges that a correlation id stays in one tenant, and that a child's is
// its parent's. Of requests without a verified token the id is anybody's.
func (v *Verifier) flow(r *record) {
	const unverified = "unverified"
	if v.t.name == unverified || r.Correlation == "" {
		return
	}
	id := id16(r.Correlation)
	owner, known := v.flows.get(id)
	switch {
	case known && owner != v.t.number:
		v.badf(K4Flow, "correlation "+quote(r.Correlation), "that id is tenant %s's", quote(v.tenantName(owner)))
		return
	case !known:
		v.flows.put(id, v.t.number)
	}
	if p := v.t.open[r.Parent]; r.Parent != "" && p != nil && p.Correlation != r.Correlation {
		v.badf(K4Flow, "correlation "+quote(r.Correlation), "its parent %s has %s", quote(r.Parent), quote(p.Correlation))
		return
	}
	if v.orphan(r) {
		v.bad(K4Flow, "a begin inside crossing "+quote(r.Parent), "no such crossing had begun")
		return
	}
	if !known && v.flows.forgot {
		v.unknown(K4Flow, "older ids are forgotten")
		return
	}
	v.good(K4Flow)
}

// orphan says whether a begin names a crossing around it that nobody knows. A
// judge is asked before the crossing that it judges begins (D37).
func (v *Verifier) orphan(r *record) bool {
	if r.Kind != "begin" || strings.HasPrefix(r.Boundary, "judge/") || r.Parent == "" || v.t.open[r.Parent] != nil || v.t.ids.forgot || len(v.t.open) >= maxOpen {
		return false
	}
	_, ended := v.t.ids.get(id16(r.Parent))
	return !ended
}

func (v *Verifier) tenantName(n uint32) string {
	for name, i := range v.names {
		if i == n {
			return name
		}
	}
	return "?"
}

// times judges an entry's own times.
func (v *Verifier) times(r *record) {
	took := max(0, int64(r.Created-r.Timestamp))
	switch {
	case r.Created < r.Timestamp:
		v.badf(Times, "created_at "+r.Created.String(), "it was asked at %s", r.Timestamp)
	case r.Duration != took:
		v.badf(Times, fmt.Sprintf("duration_us %d", r.Duration), "%d", took)
	case r.Partition != r.Created.day():
		v.badf(Times, "partition_date "+quote(r.Partition), "%s", r.Created.day())
	default:
		v.good(Times)
	}
}

// fate says of an outcome whether its crossing had begun, and whether it can
// have ended in IDLE.
func fate(outcome string) (begun, mayIdle, known bool) {
	switch outcome {
	case "done":
		return true, true, true
	case "failed", "unknown", "canceled", "halted", "abandoned", "withheld":
		return true, false, true
	case "denied", "held_expired":
		return false, false, true
	case "replayed":
		return false, true, true
	}
	return false, false, false
}

// state holds outcome, state and exit code against each other.
func (v *Verifier) state(r *record) {
	begun, mayIdle, known := fate(r.Outcome)
	idle := r.State == "IDLE"
	switch {
	case !known:
		v.bad(State, "outcome "+quote(r.Outcome), "there is no such outcome")
	case !idle && r.State != "FAULTED":
		v.bad(State, "state "+quote(r.State), "a crossing ends in IDLE or FAULTED")
	case begun != (r.BeginSeq != nil):
		v.badf(State, "outcome "+r.Outcome+" with begin_seq "+number(r.BeginSeq), "that outcome has a begin: %v", begun)
	case idle && !mayIdle:
		v.bad(State, "outcome "+r.Outcome+" in state IDLE", "that outcome is FAULTED")
	case idle && r.ErrorKind != "":
		v.bad(State, "state IDLE with "+quote(r.ErrorKind), "an error ends in FAULTED")
	case !idle && r.ErrorKind == "":
		v.bad(State, "state FAULTED without an error kind", "a fault has a kind")
	case !idle && *r.ExitCode < 1:
		v.badf(State, fmt.Sprintf("exit code %d in state FAULTED", *r.ExitCode), "a fault's exit code is at least 1")
	case (r.Outcome == "replayed") != (r.ReplayOf != ""):
		v.bad(State, "outcome "+r.Outcome+" with replay_of "+quote(r.ReplayOf), "a replay, and nothing else, names its original")
	default:
		v.good(State)
	}
}

// opinions holds the eight opinions against the columns and the outcome. A
// crash leaves none.
func (v *Verifier) opinions(r *record) {
	if len(r.Opinions) == 0 {
		if r.Outcome != "unknown" {
			v.bad(Opinions, "outcome "+r.Outcome+" without an opinion", "only a crash leaves none")
			return
		}
		v.good(Opinions)
		return
	}
	if r.BeginSeq != nil || r.Outcome == "replayed" {
		for i, o := range r.Opinions {
			if o.Verdict != "allow" || o.Gate != fmt.Sprintf("K%d", i+1) || len(r.Opinions) != 8 {
				v.badf(Opinions, fmt.Sprintf("%s says %s as opinion %d of %d", o.Gate, o.Verdict, i+1, len(r.Opinions)),
					"what went on was allowed by K1 to K8, in this order")
				return
			}
		}
	} else if why := refusedBy(r); why != "" {
		v.bad(Opinions, "outcome "+r.Outcome+", "+r.Gate+" "+quote(r.ErrorKind), why)
		return
	}
	for _, c := range []struct {
		gate   string
		column *bool
		ends   bool // the column says what came of it, not what was asked
	}{{"K1", r.Valid, false}, {"K2", r.Authorized, false}, {"K3", r.Within, false}, {"K8", r.Passed, true}} {
		o := r.opinion(c.gate)
		switch {
		case c.ends && (r.BeginSeq != nil || c.column == nil):
		case o == nil && c.column != nil, o != nil && c.column == nil, o != nil && *c.column != (o.Verdict == "allow"):
			says := "nothing"
			if o != nil {
				says = o.Verdict
			}
			v.badf(Opinions, c.gate+" column "+word(c.column), "%s says %s", c.gate, says)
			return
		}
	}
	v.good(Opinions)
}

// refusedBy says what is wrong with the opinions of what was not let through;
// nothing where they fit.
func refusedBy(r *record) string {
	last, held := "", false
	for i := range r.Opinions {
		o := &r.Opinions[i]
		if o.Gate < last && last != "halt" && i < len(r.Opinions)-1 {
			return "the gates are asked in their order"
		}
		last = o.Gate
		held = held || o.Verdict == "hold"
		if o.Verdict == "deny" && o.Kind == r.ErrorKind && (r.Gate == o.Gate || r.Gate == "") {
			return ""
		}
	}
	switch {
	case held && r.Review != "":
		return ""
	case r.Outcome == "denied" && r.ErrorKind == "WALWriteError":
		return ""
	}
	return "no gate refused that"
}

// paused judges that nothing began for an agent that was paused: the begin's
// own transaction asks.
func (v *Verifier) paused(r *record) {
	a, known := v.t.agents.get(r.Agent)
	above, leaf := v.pausedAbove(r)
	switch {
	case r.Name != r.Agent && !strings.HasPrefix(r.Name, r.Agent+"/"):
		v.badf(Paused, "a begin of agent "+quote(r.Name), "it is none within its owner %s", quote(r.Agent))
	case above != "":
		v.badf(Paused, "a begin of agent "+quote(r.Name), "leaf %d paused %s", leaf, quote(above))
	case v.t.halted >= 0:
		v.badf(Paused, "a begin", "leaf %d halted everything, and nobody had resumed", v.t.halted)
	case known && a.paused >= 0:
		v.badf(Paused, "a begin of agent "+quote(r.Agent), "leaf %d paused it", a.paused)
	case !known && v.t.agents.forgot:
		v.unknown(Paused, "the agent is forgotten")
	default:
		v.good(Paused)
	}
}

// highest is how many may stand above each other within one agent.
const highest = 8

// pausedAbove is who within the agent is paused of who asks and those above, with the
// leaf that says so; "" where nobody is known to be.
func (v *Verifier) pausedAbove(r *record) (string, int64) {
	name := r.Name
	for n := 0; n < highest && name != r.Agent; n++ {
		a, known := v.t.agents.get(name)
		switch {
		case !known:
			return "", -1
		case a.paused >= 0:
			return name, a.paused
		}
		name = a.parent
	}
	return "", -1
}

// valid judges K1: what was not valid went no further, and exit code and
// outcome say so.
func (v *Verifier) valid(r *record) {
	switch {
	case r.Valid == nil && r.BeginSeq != nil:
		v.bad(K1Valid, "k1_valid null", "what began was asked")
	case r.Valid != nil && !*r.Valid && (r.BeginSeq != nil || r.Outcome != "denied" || *r.ExitCode < 1):
		v.badf(K1Valid, fmt.Sprintf("k1_valid false, outcome %s, exit code %d", r.Outcome, *r.ExitCode), "what is not valid is denied")
	case r.Valid != nil && !*r.Valid && len(r.Opinions) > 1:
		v.badf(K1Valid, "k1_valid false", "%s was asked after it", r.Opinions[1].Gate)
	default:
		v.good(K1Valid)
	}
	if r.SchemaID != nil && r.Valid != nil {
		v.unknown(K1Schema, "schemas are not in the ledger")
	}
}
