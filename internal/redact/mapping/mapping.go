// Package mapping replaces values in what is sent to a model by placeholders, and restores them in its
// answer (D13a). A mapping belongs to one owner: a tenant, an agent, its session and a row of the
// allowlist. A placeholder is derived from its value under the owner's key, so that the same value has the
// same placeholder in every request of a session, also after a restart.
//
// Values are kept in memory and, sealed, by a Keeper, which a restarted daemon reads.
package mapping

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Owner is whose values are mapped. Agent and Session are those of the token.
type Owner struct{ Tenant, Agent, Session, Row string }

// Session is the mapping of one owner. It may be used by several goroutines.
type Session struct {
	key   []byte
	owner Owner
	group *group

	mu            sync.Mutex
	byValue       map[string]*entry // guarded by mu
	byPlaceholder map[string]*entry // guarded by mu
	order         []*entry          // guarded by mu; oldest first
	last          *Snapshot         // guarded by mu; of the last change, nil if it must be made
	encodings     *valueIndex       // guarded by mu; as last
	bytes         int               // guarded by mu; of the values
	sought        int               // guarded by mu; rises with each change of the values that are sought everywhere
	again         []finder          // guarded by mu; of those values
	againOf       int               // guarded by mu; what sought was when again was made, -1 for never

	requests  int             // guarded by mu; how many began
	real      map[string]bool // guarded by mu; placeholders that are real text
	ended     []string        // guarded by mu; placeholders that mean nothing any more, as the keeper must know
	loaded    bool            // guarded by mu; entries were loaded since the last Begin
	unsaved   bool            // guarded by mu; an entry is unsaved, or one has ended
	forgotten bool            // guarded by mu; it was erased
	batches   []batchSize     // guarded by mu; what the keeper has, oldest first
}

// entry is one value and its placeholder.
type entry struct {
	rule, value, placeholder string
	kept                     int // how much of the placeholder's beginning is the value's own
	oneWay                   bool
	restored                 bool // an answer had it
	used                     int  // the last request that had it

	forms *entryForms

	unsaved bool      // the keeper does not have it, or another state of it
	saved   time.Time // when the keeper got it
}

// Request is one request in which values are replaced. It belongs to one goroutine.
type Request struct {
	s     *Session
	texts [][]byte // of the request, decoded: what is real text in it
	seen  *windows // of texts; nil until it is needed
	owned func([]byte) bool
	now   time.Time
	id    int  // of the session's requests
	lost  bool // a value that it has was forgotten for another one
	// search replaces what is found in a decoded text; nil finds nothing.
	search  func(text []byte) []byte
	depth   int              // of decodings
	letters map[string]piece // of the values; nil until they are needed
	// Kinds counts what was found, by the kind of rule: "email", "card", "secret" and so on.
	Kinds map[string]int
	// Replaced is the number of values that were replaced.
	Replaced int
}

// Begin begins a request with texts, all that an agent or a person wrote in it. A placeholder that occurs
// in one of them is real text: its value gets another one, and it is never restored again. owned reports whether a
// value has a secret of Holdfast's own; nil says no.
func (s *Session) Begin(texts [][]byte, owned func([]byte) bool) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		s.loaded = false
		for _, e := range s.order {
			e.oneWay = e.oneWay || owned != nil && owned([]byte(e.value)) // registered since
		}
		s.dropSnapshot()
	}
	for _, p := range s.takeSnapshot().findIndex(false).listIn(texts) {
		if e := s.byPlaceholder[p]; e != nil {
			s.forgetEntry(e)
			s.noteReal(p)
			s.noteEnded(e)
		}
	}
	s.requests++
	return &Request{s: s, texts: texts, owned: owned, now: s.group.all.now(), id: s.requests, Kinds: map[string]int{}}
}

// SearchWith has search replace what is found in the content of an encoded text, with the request's own functions.
func (r *Request) SearchWith(search func(text []byte) []byte) { r.search = search }

// maxReal bounds how many placeholders that are real text are known.
const maxReal = 1024

// noteReal notes that a placeholder is real text in the session, so that it means no value again. mu must be held.
func (s *Session) noteReal(placeholder string) {
	if s.real == nil || len(s.real) >= maxReal {
		s.real = map[string]bool{}
	}
	s.real[placeholder] = true
}

// forgetEntry removes a value and its placeholder. mu must be held.
func (s *Session) forgetEntry(e *entry) {
	s.bytes -= len(e.value)
	if e.isSought() {
		s.sought++
	}
	delete(s.byPlaceholder, e.placeholder)
	delete(s.byValue, e.value)
	if i := slices.Index(s.order, e); i == 0 {
		s.order = s.order[1:]
	} else if i > 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.dropSnapshot()
}

// dropSnapshot notes that the lists changed. mu must be held.
func (s *Session) dropSnapshot() { s.last, s.encodings = nil, nil }

// ruleAgain is the rule of what FindAgain found.
const ruleAgain = "secret.again"

// Replace returns the placeholder of a value that rule found. What is a placeholder of the session already
// is returned as it is, and so is the name of a scheme before a credential. An encoding of a value gets the same
// encoding of its placeholder, and the lines of a private key get one each. It is the function for
// redact.Engine.WithReplace.
func (r *Request) Replace(rule string, text []byte) []byte {
	if n := schemeOf(text); n > 0 {
		return append(bytes.Clone(text[:n]), r.Replace(rule, text[n:])...)
	}
	if p, known := r.findPlaceholder(rule, text); known {
		return p
	}
	oneWay := isOneWay(rule) || r.owned != nil && r.owned(text)
	if !oneWay {
		if isArmour(text) || rule == rulePrivateKey && bytes.Contains(text, []byte("-----")) {
			if p := r.replaceArmour(rule, text); p != nil {
				return p
			}
		}
		if p := r.replaceDecoded(rule, text); p != nil {
			return p
		}
		if p := r.replaceUserInfo(rule, text); p != nil {
			return p
		}
	}
	return r.addDerived(rule, text, oneWay)
}

// findPlaceholder returns the placeholder of a value that is known, or text itself if it is a placeholder.
func (r *Request) findPlaceholder(rule string, text []byte) (placeholder []byte, known bool) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPlaceholder[string(text)] != nil {
		return text, true
	}
	e := s.byValue[string(text)]
	if e == nil {
		return nil, false
	}
	e.used = r.id
	oneWay := isOneWay(rule) || r.owned != nil && r.owned(text)
	if oneWay && !e.oneWay {
		e.oneWay = true
		s.noteEnded(e)
		s.dropSnapshot()
	}
	if !oneWay && !e.unsaved && r.now.Sub(e.saved) > renewAfter {
		s.noteUnsaved(e)
	}
	return []byte(e.placeholder), true
}

// isPlaceholder reports whether a text is one placeholder of the session.
func (r *Request) isPlaceholder(text []byte) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.byPlaceholder[string(text)] != nil
}

// isRestorable reports whether the value of a placeholder may be restored.
func (r *Request) isRestorable(placeholder []byte) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	e := r.s.byPlaceholder[string(placeholder)]
	return e != nil && !e.oneWay
}

// addDerived adds a value with a placeholder that is derived from it.
func (r *Request) addDerived(rule string, text []byte, oneWay bool) []byte {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{rule: rule, value: string(text), oneWay: oneWay || len(text) > maxValue, used: r.id}
	for n := byte(0); ; n++ {
		e.placeholder, e.kept = derivePlaceholder(s.key, rule, text, n)
		if n == 255 || r.isFree(e.placeholder) {
			break
		}
	}
	r.addEntry(e)
	if !e.oneWay {
		s.noteUnsaved(e)
	}
	return []byte(e.placeholder)
}

// isFree reports whether a placeholder is not in use and not real text. mu must be held.
func (r *Request) isFree(placeholder string) bool {
	return r.s.byPlaceholder[placeholder] == nil && !r.s.real[placeholder] && !r.isReal(placeholder)
}

// addPlaceholder adds a value that rule found, with a placeholder that was made of others. It reports false if that
// is taken.
func (r *Request) addPlaceholder(rule string, text, placeholder []byte, isRestored bool) bool {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	p := string(placeholder)
	if len(p) < minEncoded || p == string(text) || !r.isFree(p) {
		return false
	}
	r.addEntry(&entry{rule: rule, value: string(text), placeholder: p, kept: len(p), oneWay: !isRestored,
		used: r.id})
	if isRestored {
		s.noteUnsaved(s.byPlaceholder[p])
	}
	return true
}

// addEntry adds a value of the request to the session. mu must be held.
func (r *Request) addEntry(e *entry) { r.lost = r.s.addEntry(e) >= r.id || r.lost }

// addEntry adds a value, and forgets the oldest ones if there are too many. It returns the last request that had one
// of these. mu must be held.
func (s *Session) addEntry(e *entry) (lost int) {
	s.byValue[e.value], s.byPlaceholder[e.placeholder] = e, e
	s.order, e.forms = append(s.order, e), &entryForms{}
	if s.bytes += len(e.value); e.isSought() {
		s.sought++
	}
	for len(s.order) > maxEntries || s.bytes > maxBytes {
		lost = max(lost, s.order[0].used)
		s.forgetEntry(s.order[0])
	}
	s.dropSnapshot()
	return lost
}

// schemeOf returns the length of the name of a scheme, and the blank behind it, that text begins with.
func schemeOf(text []byte) int {
	for _, scheme := range []string{"Bearer ", "Basic ", "Token ", "bearer ", "basic ", "token "} {
		if len(text) > len(scheme) && string(text[:len(scheme)]) == scheme {
			return len(scheme)
		}
	}
	return 0
}

// noteRestored notes that an answer had the value of a placeholder, so that the history has it from now on.
func (s *Session) noteRestored(placeholder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byPlaceholder[placeholder]; e != nil && !e.restored {
		was := e.isSought()
		if e.restored = true; e.isSought() != was {
			s.sought++
			s.noteUnsaved(e)
		}
	}
}

// isOneWay reports whether what a rule found is Holdfast's own, or of no known form: it is never restored.
func isOneWay(rule string) bool { return rule == "secret.literal" }

// isReal reports whether a text occurs in the request as an agent or a person wrote it.
func (r *Request) isReal(placeholder string) bool {
	if r.seen == nil {
		r.seen = newWindows(r.texts)
	}
	if !r.seen.mayHave([]byte(placeholder)) {
		return false
	}
	for _, t := range r.texts {
		if bytes.Contains(t, []byte(placeholder)) {
			return true
		}
	}
	return false
}

// Snapshot returns the placeholders by which the answer to the request is restored. It is called when all of the
// request is replaced.
func (r *Request) Snapshot() *Snapshot { return r.s.Snapshot() }

// HasLost reports whether the request has more values than a session may: the placeholders of the first ones could
// not be restored.
func (r *Request) HasLost() bool { return r.lost }

// IsPlaceholder reports whether text is a placeholder of the session.
func (r *Request) IsPlaceholder(text []byte) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.byPlaceholder[string(text)] != nil || isArmour(text) && r.s.isKnownArmour(text)
}

// FindPlaceholders returns where the placeholders of the session are in a text, in order and apart.
func (r *Request) FindPlaceholders(text []byte) (found []redact.Finding) {
	r.s.mu.Lock()
	index := r.s.takeSnapshot().findIndex(false)
	r.s.mu.Unlock()
	for i := index.findHead(text, 0); i < len(text); i = index.findHead(text, i) {
		f := index.findAt(text, i)
		if f == nil {
			i++
			continue
		}
		found = append(found, redact.Finding{Offset: i, Length: len(f.find)})
		i += len(f.find)
	}
	return found
}

// Count notes what a text's redaction found.
func (r *Request) Count(list []redact.Finding) {
	for _, f := range list {
		r.Replaced++
		r.Kinds[KindOf(f.Rule)]++
	}
}

// KindOf returns the kind of what a rule finds, in a word for people: "email", "card", "secret", "phone",
// "name" or "personal".
func KindOf(rule string) string {
	head, tail, _ := strings.Cut(rule, ".")
	switch {
	case head == "email" || head == "card":
		return head
	case head == "secret" || rule == "fault":
		return "secret"
	case tail == "phone":
		return "phone"
	case tail == "name":
		return "name"
	}
	return "personal"
}

// FindAgain returns engines that find the secret values of the session, of other rows too, at any place, also without
// a name before them and in other encodings, and replace them.
func (r *Request) FindAgain() (list []*redact.Engine, err error) {
	s := r.s
	others, changes := s.group.listSought(s.owner.Row)
	s.mu.Lock()
	defer s.mu.Unlock()
	if changes += s.sought; s.againOf != changes {
		if s.again, err = newFinders(append(others, s.order...), redact.Options{FewForms: true}, s.again); err != nil {
			return nil, err
		}
		s.againOf = changes
	}
	for _, f := range s.again {
		list = append(list, f.engine.WithReplace(r.replaceAgain))
	}
	return list, nil
}

// replaceAgain is Replace for what FindAgain found: a value itself, or an encoding of one.
func (r *Request) replaceAgain(_ string, text []byte) []byte { return r.Replace(ruleAgain, text) }
