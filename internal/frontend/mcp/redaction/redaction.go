// Package redaction searches what an MCP server gets, and what it answers, for secrets and personal data, as the
// redact of a contract says (D13a). A masked value keeps its JSON type. A text that begins with
// "[holdfast]" tells the caller.
package redaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// Rule is the rule of a refusal.
const Rule = "contract/redact"

// Engine searches the calls of contracts.
type Engine struct {
	*redact.Engine
	// Detector returns the program that a contract names, nil for "". Nil refuses what is to be searched by one.
	Detector func(spec string) detector.Finder
}

// findDetector returns the program that searches for names and addresses, nil for none.
func (e *Engine) findDetector(spec string) detector.Finder {
	switch {
	case spec == "":
		return nil
	case e.Detector == nil:
		return detector.Failing()
	}
	return e.Detector(spec)
}

// Search searches one call. Only Request changes it.
type Search struct {
	rules   holdfast.Redaction
	engine  *Engine
	method  string
	request report
	kept    bool // see Kept
}

// New returns the search for one call of a method. A nil engine refuses everything that is to be searched.
func New(rules holdfast.Redaction, engine *Engine, method string) *Search {
	return &Search{rules: rules, engine: engine, method: method}
}

// Rules returns what the search was made of.
func (s *Search) Rules() holdfast.Redaction { return s.rules }

// SearchesResults reports whether results are searched.
func (s *Search) SearchesResults() bool { return s.rules.Response != "off" }

// Request searches a JSON document that goes to the server, and returns it masked. Where nothing is found it is doc
// itself. place names the document, for people. The error is an *holdfast.Error: the document is refused.
func (s *Search) Request(place string, doc []byte) ([]byte, error) {
	out, found, err := s.applyPolicy(doc, policyOf(s.rules.Request, s.rules.Personal), place)
	if err != nil {
		return nil, err
	}
	if found.masked > 0 && !canTell(s.method) {
		return nil, newRefusal(found.places, found.listKinds(), "", "nothing could tell the caller that it was masked")
	}
	s.request.addReport(found)
	return out, nil
}

// IsClean reports whether nothing in a document for the server would be refused or masked.
func (s *Search) IsClean(doc []byte) bool {
	out, _, err := s.applyPolicy(doc, policyOf(s.rules.Request, s.rules.Personal), "")
	return err == nil && bytes.Equal(out, doc)
}

// ToDenial returns the denial of a crossing whose request cannot be sent.
func ToDenial(err error) holdfast.Opinion {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok {
		e, _ = errors.AsType[*holdfast.Error](newFailure("the request", err))
	}
	return holdfast.Opinion{Gate: e.Gate, Verdict: holdfast.Deny, Kind: e.Kind, Rule: e.Rule, Why: e.Why, Hint: e.Hint}
}

// policy has a word for secrets and one for personal data.
type policy struct{ secrets, personal string }

const (
	mask   = "mask"
	refuse = "refuse"
	pass   = "pass"
)

// policyOf reads the words of a contract. An unknown word refuses.
func policyOf(secrets, personal string) policy {
	word := func(said, leave string) string {
		switch said {
		case mask:
			return mask
		case leave:
			return pass
		}
		return refuse
	}
	return policy{word(secrets, "off"), word(personal, pass)}
}

// chooseClass returns what is searched for, and reports whether anything is.
func (p policy) chooseClass() (redact.Class, bool) {
	switch {
	case p.secrets == pass && p.personal == pass:
		return 0, false
	case p.secrets == pass:
		return redact.OnlyPersonal, true
	case p.personal == pass:
		return redact.OnlySecrets, true
	}
	return redact.AnyClass, true
}

// isRefused reports whether a finding refuses the document.
func (p policy) isRefused(f redact.Finding) bool {
	if f.IsSecret() {
		return p.secrets == refuse
	}
	return p.personal == refuse
}

// applyPolicy searches a document, and returns it masked and what was masked.
func (s *Search) applyPolicy(doc []byte, p policy, place string) ([]byte, report, error) {
	class, any := p.chooseClass()
	if !any || len(doc) == 0 {
		return doc, report{}, nil
	}
	if s.engine == nil || s.engine.Engine == nil {
		return nil, report{}, newFailure(place, errors.New("there is no redaction engine"))
	}
	r, err := s.engine.BodyOf(class, "application/json", doc)
	if err == nil {
		r, err = s.searchNames(p, r)
	}
	if err != nil {
		return nil, report{}, newFailure(place, err)
	}
	if !r.Found() || bytes.Equal(r.Out, doc) {
		return doc, report{}, nil
	}
	var bad, all report
	at := s.locateFindings(doc, place, r.Findings)
	for i, f := range r.Findings {
		all.addFinding(at[i], f)
		if p.isRefused(f) {
			bad.addFinding(at[i], f)
		}
	}
	if bad.masked > 0 {
		return nil, report{}, newRefusal(bad.places, bad.listKinds(), bad.sayMore(), "")
	}
	if !sameShape(doc, r.Out) {
		return nil, report{}, newRefusal(all.places, all.listKinds(), all.sayMore(),
			"masked, it would have another type")
	}
	return r.Out, all, nil
}

// searchNames has the detector of the contract search a document that the engine has searched, with r as the result. It
// does not where the policy refuses what the engine found.
func (s *Search) searchNames(p policy, r redact.Result) (redact.Result, error) {
	finder := s.engine.findDetector(s.rules.Detector)
	if finder == nil || p.personal == pass || slices.ContainsFunc(r.Findings, p.isRefused) {
		return r, nil
	}
	more, err := detector.SearchBody(context.Background(), s.engine.Engine, finder, "application/json", r.Out)
	if err != nil {
		return r, err
	}
	return redact.Result{Out: more.Out, Findings: mergeFindings(r, more)}, nil
}

// mergeFindings returns the findings of a document and of its masked form. Those of the second are of the whole
// document if the first has some, since masks moved them.
func mergeFindings(first, second redact.Result) []redact.Finding {
	if len(first.Findings) > 0 {
		for i := range second.Findings {
			second.Findings[i].Offset, second.Findings[i].Length = 0, len(first.Out)
		}
	}
	return append(slices.Clone(second.Findings), first.Findings...)
}

// sameShape reports whether two documents have the same brackets, members and types.
func sameShape(a, b []byte) bool {
	da, db := jsontext.NewDecoder(bytes.NewReader(a)), jsontext.NewDecoder(bytes.NewReader(b))
	for {
		k := da.PeekKind()
		if k != db.PeekKind() {
			return false
		}
		var errA, errB error
		switch k {
		case 0:
			return true
		case '{', '}', '[', ']':
			_, errA = da.ReadToken()
			_, errB = db.ReadToken()
		default:
			errA, errB = da.SkipValue(), db.SkipValue()
		}
		if errA != nil || errB != nil {
			return false
		}
	}
}

// newRefusal returns the refusal of what may not be sent, or shown.
func newRefusal(places []string, kinds, more, why string) error {
	text := fmt.Sprintf("%s%s: what is there (%s) may not pass", strings.Join(places, ", "), more, kinds)
	if why != "" {
		text += ": " + why
	}
	return &holdfast.Error{
		Kind: holdfast.KindValidation, Gate: holdfast.K1, Rule: Rule, Why: text,
		Hint: "leave it out, or name it in another way; a person decides by `redact:` of the contract what may pass",
	}
}

// newFailure returns the refusal of an unsearchable document.
func newFailure(place string, err error) error {
	out := &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact", Err: err,
		Why: "cannot search " + place, Hint: "nothing of it was passed on",
	}
	if e, ok := errors.AsType[*holdfast.Error](err); ok {
		out.Rule, out.Why = e.Rule, place+": "+e.Why
		if detector.IsFailure(err) {
			out.Hint = "nothing of it was passed on; check the program of `redact: detector` in the contract"
		}
	}
	return out
}
