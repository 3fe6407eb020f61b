package operator

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
)

// The acts that need a person (D11).
const (
	Approve  = "approve"
	Reject   = "reject"
	Defer    = "defer"
	Changes  = "changes"
	Resume   = "resume"
	Unpause  = "unpause"
	Trust    = "trust"
	Policy   = "policy"
	Remember = "remember"
	Revoke   = "revoke"
	Forget   = "forget"
	Accept   = "accept"
	Erase    = "erase"
	Admit    = "admit"
	// AckGoal acknowledges one critical violation of a goal, ResumeGoals lets
	// goals be admitted again (D47).
	AckGoal     = "acknowledge"
	ResumeGoals = "resume goals"
	// Unblock lets a tenant go on whose budget of the day is spent (D41).
	Unblock = "unblock"
	// Rollback puts work trees back to a version (D40).
	Rollback = "rollback"
)

// InPart is the Value with which a person approves what was not shown whole: it
// was too long, or something in it was masked.
const InPart = "seen in part"

// Limits of a statement.
const (
	MaxStatement = 16 << 10 // bytes
	MaxName      = 256      // code points
	MaxText      = 2048     // code points of Reason and Value
	MaxRule      = 8 << 10  // code points of what is remembered
	MaxAge       = 5 * time.Minute
	MaxAhead     = time.Minute
)

// domain keeps a signature made here from meaning anything elsewhere.
const domain = "holdfast-operator-v1\n"

// Statement is what a person says: one act on one thing. It is valid for five
// minutes and once: whoever carries it out remembers ID at least that long,
// and compares Runtime with its own.
type Statement struct {
	Act string `json:"act"`
	// Subject is a review's id, an agent's name, a token id, a boundary, a
	// rule's id or a key's, by Act. Only Resume may leave it empty.
	Subject string `json:"subject,omitzero"`
	// Tenant is whose Subject it is; empty means holdfast.Local.
	Tenant string `json:"tenant_id,omitzero"`
	// Exact, PreviewHash, Policy and Nonce bind an answer to one question
	// (D11). The hashes are 64 lower-case hex digits. For Accept, Exact is
	// the pin of the tool as it is now, PreviewHash that of first sight.
	Exact       string `json:"exact_hash,omitzero"`
	PreviewHash string `json:"preview_hash,omitzero"`
	Policy      string `json:"policy,omitzero"`
	Nonce       string `json:"nonce,omitzero"`
	// Value is what is given: a trust level, a policy's hash, a narrow rule
	// in its canonical form; InPart with the approval of what was shown in
	// part.
	Value string `json:"value,omitzero"`
	// Reviewer is the person's name. The key proves the person; the name
	// is for the record.
	Reviewer string `json:"reviewer"`
	Reason   string `json:"reason,omitzero"`
	// Until ends what is deferred or remembered; UTC.
	Until time.Time `json:"until,omitzero"`
	// At is when it was said; UTC.
	At time.Time `json:"at"`
	// ID is a UUIDv4, fresh for every statement.
	ID string `json:"id"`
	// Runtime names the Holdfast that it was said to.
	Runtime string `json:"runtime"`
}

// Signed is a statement as it travels. Statement is the canonical text, kept
// as bytes (base64 in JSON) so that no encoder on the way can respell it.
type Signed struct {
	Statement []byte `json:"statement"`
	Signature []byte `json:"signature"`
}

// Sign signs a statement. A statement that Verify would refuse for its content
// is refused here.
func Sign(k Key, s Statement) (Signed, error) {
	if len(k.key()) == 0 {
		return Signed{}, refuse(holdfast.KindPermission, "there is no operator key", "", nil)
	}
	text, err := s.Encode()
	if err != nil {
		return Signed{}, err
	}
	return Signed{Statement: text, Signature: ed25519.Sign(k.key(), message(text))}, nil
}

// Verify returns the statement if the key signed exactly these bytes, they are
// the one spelling of a valid statement, and it was said at most five minutes
// before now and at most one minute after. Nothing is parsed before the
// signature holds. Errors are PermissionError (signature, age) or ValueError.
func Verify(pub Public, signed Signed, now time.Time) (Statement, error) {
	switch {
	case len(pub.key) != ed25519.PublicKeySize:
		return nothing(refuse(holdfast.KindPermission, "there is no operator key to verify with", "make one with `holdfast init`", nil))
	case now.IsZero():
		return nothing(refuse(holdfast.KindPermission, "the time is not known, so no statement can be judged", "", nil))
	case len(signed.Statement) > MaxStatement:
		return nothing(refuse(holdfast.KindValue, fmt.Sprintf("the statement is longer than %d bytes", MaxStatement), "", nil))
	case !ed25519.Verify(pub.key, message(signed.Statement), signed.Signature):
		return nothing(refuse(holdfast.KindPermission, "the statement is not signed by the operator key", "", nil))
	}
	s, err := Parse(signed.Statement)
	if err != nil {
		return nothing(err)
	}
	if now.Sub(s.At) > MaxAge {
		return nothing(refuse(holdfast.KindPermission, "the statement is older than 5 minutes", "say it again", nil))
	}
	if s.At.Sub(now) > MaxAhead {
		return nothing(refuse(holdfast.KindPermission, "the statement comes from the future", "compare the clocks", nil))
	}
	return s, nil
}

func nothing(err error) (Statement, error) { return Statement{}, err }

func message(text []byte) []byte { return append([]byte(domain), text...) }

// Encode returns the one spelling of a valid statement: RFC 8785, empty fields
// left out, times in UTC.
func (s Statement) Encode() ([]byte, error) {
	s.At, s.Until = s.At.UTC(), s.Until.UTC()
	if err := s.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, malformed("cannot be written", err)
	}
	if err := (*jsontext.Value)(&text).Canonicalize(); err != nil {
		return nil, malformed("cannot be written", err)
	}
	if len(text) > MaxStatement {
		return nil, malformed(fmt.Sprintf("is longer than %d bytes", MaxStatement), nil)
	}
	return text, nil
}

// Parse reads what Encode writes and nothing else: unknown or repeated fields,
// another spelling, or a statement that is not valid is a ValueError. It does
// not look at any signature.
func Parse(text []byte) (Statement, error) {
	if len(text) > MaxStatement {
		return nothing(malformed(fmt.Sprintf("is longer than %d bytes", MaxStatement), nil))
	}
	var s Statement
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
		return nothing(malformed("is not the JSON of a statement", err))
	}
	again, err := s.Encode()
	if err != nil {
		return nothing(err)
	}
	if !bytes.Equal(again, text) {
		return nothing(malformed("is not in its canonical form", nil))
	}
	return s, nil
}

func malformed(why string, cause error) error {
	return refuse(holdfast.KindValue, "the statement "+why, "", cause)
}

// check judges the content.
func (s *Statement) check() error {
	if err := s.texts(); err != nil {
		return malformed(err.Error(), nil)
	}
	if err := s.times(); err != nil {
		return malformed(err.Error(), nil)
	}
	if err := s.act(); err != nil {
		return malformed(err.Error(), nil)
	}
	return nil
}

func (s *Statement) texts() error {
	for _, f := range []struct {
		name, text string
		limit      int
	}{
		{"act", s.Act, MaxName}, {"subject", s.Subject, MaxName}, {"tenant", s.Tenant, MaxName}, {"policy", s.Policy, MaxName}, {"nonce", s.Nonce, MaxName},
		{"reviewer", s.Reviewer, MaxName}, {"runtime", s.Runtime, MaxName}, {"value", s.Value, s.mostValue()}, {"reason", s.Reason, MaxText},
	} {
		if fault := textFault(f.text, f.limit); fault != "" {
			return fmt.Errorf("has a %s that %s", f.name, fault)
		}
	}
	for _, hash := range []string{s.Exact, s.PreviewHash} {
		if hash != "" && !isHash(hash) {
			return errors.New("has a hash that is not 64 lower-case hex digits")
		}
	}
	if id, err := uuid.Parse(s.ID); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 || id.String() != s.ID {
		return errors.New("has an id that is not a UUIDv4 in lower case")
	}
	return nil
}

func (s *Statement) mostValue() int {
	if s.Act == Remember {
		return MaxRule
	}
	return MaxText
}

// textFault refuses what could make one text look like another on a terminal.
func textFault(s string, limit int) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	if utf8.RuneCountInString(s) > limit {
		return fmt.Sprintf("is longer than %d code points", limit)
	}
	if strings.TrimSpace(s) != s {
		return "begins or ends with a space"
	}
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return "holds a control character"
		}
	}
	return ""
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func (s *Statement) times() error {
	if s.At.IsZero() {
		return errors.New("does not say when")
	}
	for _, t := range []time.Time{s.At, s.Until} {
		if t.Year() > 9999 || t.Year() < 1 {
			return errors.New("has a time outside the years 1 to 9999")
		}
	}
	if !s.Until.IsZero() && !s.Until.After(s.At) {
		return errors.New("ends before it begins")
	}
	return nil
}

// act judges which fields the act needs.
func (s *Statement) act() error {
	need := []struct{ name, text string }{{"reviewer", s.Reviewer}, {"runtime", s.Runtime}}
	add := func(name, text string) { need = append(need, struct{ name, text string }{name, text}) }
	if s.Act != Resume {
		add("subject", s.Subject)
	}
	switch s.Act {
	case Approve, Reject, Defer, Changes, Remember:
		add("exact hash", s.Exact)
		add("policy", s.Policy)
		add("nonce", s.Nonce)
	case Trust, Policy, Erase, Admit:
		add("value", s.Value)
	case Accept:
		add("pin", s.Exact)
		add("first pin", s.PreviewHash)
	case Resume, Unpause, Revoke, Forget, AckGoal, ResumeGoals, Unblock, Rollback:
	default:
		return errors.New("has an act that does not exist")
	}
	switch s.Act {
	case Remember:
		add("preview hash", s.PreviewHash)
		add("value", s.Value)
	case Approve:
		add("preview hash", s.PreviewHash)
	case Changes:
		add("reason", s.Reason)
	}
	for _, n := range need {
		if n.text == "" {
			return fmt.Errorf("to %s has no %s", s.Act, n.name)
		}
	}
	if slices.Contains([]string{Defer, Remember}, s.Act) && s.Until.IsZero() {
		return fmt.Errorf("to %s does not say until when", s.Act)
	}
	var level holdfast.Level
	if s.Act == Trust && level.UnmarshalText([]byte(s.Value)) != nil {
		return errors.New("to trust has a value that is no trust level")
	}
	return nil
}
