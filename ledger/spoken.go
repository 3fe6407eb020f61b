package ledger

// Spoken is one rule that spoke of a request or of its output: what rules only
// note or observe stops nothing, and is known by this alone.
type Spoken struct {
	// Rule is its id, Version what it said then (constitution.Info): 64
	// lower-case hex digits, or empty of what is no rule.
	Rule, Version string
	Severity      string
	How           How
}

// How is what came of a rule that spoke. The words are stored.
type How string

// The ways. RuleDenied and RuleHeld are what the rule asked for, whatever others did;
// RuleNoted is of info and warn, RuleObserved of mode observe, RuleErred of a failure
// that denied, RulePassed of one that its on_error let through.
const (
	RuleDenied   How = "denied"
	RuleHeld     How = "held"
	RuleNoted    How = "noted"
	RuleObserved How = "observed"
	RuleErred    How = "failed"
	RulePassed   How = "passed"
)

func hows() []How {
	return []How{RuleDenied, RuleHeld, RuleErred, RuleObserved, RulePassed, RuleNoted}
}

// MaxSpoken bounds the rules that one entry names; it counts the others.
const MaxSpoken = 64

// values stand in a flat list, as a draw's do.
func (s *Spoken) values(c *codec) {
	const key = "k8_rules"
	c.short(key, &s.Rule)
	c.lit(",")
	c.short(key, &s.Version)
	c.lit(",")
	c.short(key, &s.Severity)
	c.lit(",")
	word(c, key, &s.How, func(h How) string { return string(h) }, hows())
}
