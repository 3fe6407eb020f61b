package ledger

import "time"

// Facts are what a crossing was judged by that no column of the document
// holds: with them, somebody who trusts nobody can judge it again from the
// ledger alone. Each is left out of the record where it is empty. Of a crossing
// that began they stand in the begin, and only Until and Predicates in the
// entry.
type Facts struct {
	// Clock is the clock by which it was judged, where Timestamp, which never
	// goes back, lay more than a second ahead of it.
	Clock time.Time
	// TokenID and TokenExpires are the token's jti and exp (K2).
	TokenID      string
	TokenExpires time.Time
	// Level is the agent's trust level as it was judged (K2), key trust_level.
	Level string
	// Scope says whose idempotency key it is: SHA-256 over tenant, boundary,
	// agent, principal and key (D10), empty where no replay is asked for, key k5_scope.
	// Until is how long the key stays taken, or its result is kept; what was
	// not kept at all has none. Key k5_until.
	Scope string
	Until time.Time
	// Threshold is what the confidence had to reach, from 0 to 1, nil where
	// K7 did not come to ask, key k7_threshold.
	Threshold *float64
	// Governs is what the approval that was used is bound to beside the
	// request (D11): the policy, and a tool's pin.
	Governs string
	// Predicates are the contract's, asked of the output, key k8_predicates.
	Predicates []string
	// Fetched are the facts that rules were given, key fetched: of a crossing that
	// began those on the request stand in the begin, those on the output in the
	// entry.
	Fetched []Fetched
	// Features are what features decided by, key features.
	Features []FeatureFacts
}

// FeatureFacts is what one feature decided a crossing by.
type FeatureFacts struct {
	Name string
	// Text is redacted JSON, at most MaxFeatureText bytes.
	Text string
}

// Bounds of Features in one record: how many, and the bytes of one Text.
const (
	MaxFeatures    = 16
	MaxFeatureText = maxShort
)

func (f *FeatureFacts) values(c *codec) {
	const key = "features"
	c.short(key, &f.Name)
	c.lit(",")
	c.short(key, &f.Text)
}

// Bounds of the facts in one record: how many, and the bytes of one Text.
const (
	MaxFetched     = 64
	MaxFetchedText = 512
)

// Fetched is one fact that rules were given.
type Fetched struct {
	Name string
	// Seal stands for the value, 32 hex digits under the key of the marks: two that
	// are equal were given the same text.
	Seal string
	// Text is the value's JSON, empty where it is not kept: it is long, hangs on
	// the request, or redaction would change it.
	Text string
	// Why says why there was no value; then the others but Name are empty.
	Why string
}

// values stand in a flat list, as a draw's do.
func (f *Fetched) values(c *codec) {
	const key = "fetched"
	c.short(key, &f.Name)
	c.lit(",")
	c.short(key, &f.Seal)
	c.lit(",")
	c.short(key, &f.Text)
	c.lit(",")
	c.short(key, &f.Why)
}

func (f *Facts) fields(c *codec) {
	c.optTime("clock", &f.Clock)
	c.optText("token_id", &f.TokenID)
	c.optTime("token_expires", &f.TokenExpires)
	c.optText("trust_level", &f.Level)
	c.optText("k5_scope", &f.Scope)
	c.optTime("k5_until", &f.Until)
	c.optFloat("k7_threshold", &f.Threshold)
	c.optText("governs", &f.Governs)
	c.optTexts("k8_predicates", &f.Predicates)
	flatList(c, "fetched", &f.Fetched, func(c *codec, v *Fetched) { v.values(c) })
	flatList(c, "features", &f.Features, func(c *codec, v *FeatureFacts) { v.values(c) })
}

func (f *Facts) check(c *codec) {
	c.hash("k5_scope", f.Scope)
	if len(f.Fetched) > MaxFetched {
		c.failf("fetched", "more than %d facts", MaxFetched)
	}
	if len(f.Features) > MaxFeatures {
		c.failf("features", "more than %d features", MaxFeatures)
	}
}

// Rate is one place that a crossing took in a rate (D9): at most Limit in any
// Window, in microseconds.
type Rate struct {
	Key    string
	Limit  int64
	Window int64
	Name   string
}

// values stand in a flat list, as a draw's do.
func (r *Rate) values(c *codec) {
	const key = "rates"
	c.short(key, &r.Key)
	c.lit(",")
	c.intValue(key, &r.Limit)
	c.lit(",")
	c.intValue(key, &r.Window)
	c.lit(",")
	c.short(key, &r.Name)
}
