// Package mapping replaces values in what is sent to a model by placeholders, and restores them in its
// answer (D13a). A mapping belongs to one owner: a tenant, an agent, its session and a row of the
// allowlist. A placeholder is derived from its value under the owner's key, so that the same value has the
// same placeholder in every request of a session, also after a restart.
//
// It keeps values in memory and nowhere else.
package mapping

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Owner is whose values are mapped. Agent and Session are those of the token.
type Owner struct{ Tenant, Agent, Session, Row string }

// The bounds of what is kept.
const (
	maxSessions = 1024
	maxEntries  = 1 << 16        // of one session; the oldest go first
	maxValue    = 64 << 10       // bytes; a longer value is replaced in one direction
	maxBytes    = 16 << 20       // of the values of one session; the oldest go first
	maxAge      = 24 * time.Hour // since the session's last request
)

// Sessions keeps the mappings of all owners. It may be used by several goroutines.
type Sessions struct {
	key []byte
	now func() time.Time

	mu    sync.Mutex
	list  map[Owner]*Session // guarded by mu
	swept time.Time          // guarded by mu; when old sessions were last looked for
}

// NewSessions returns one whose placeholders are derived under key, which stays with the state and is known
// to no one else. now is the clock.
func NewSessions(key []byte, now func() time.Time) *Sessions {
	return &Sessions{key: bytes.Clone(key), now: now, list: map[Owner]*Session{}}
}

// Find returns the session of an owner, a new one for a new owner. Sessions that were not used for a day
// are forgotten, and the one that was not used for longest where there are too many.
func (s *Sessions) Find(o Owner) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if have := s.list[o]; have != nil && now.Sub(have.used) < maxAge {
		have.used = now
		if now.Before(s.swept.Add(maxAge / 24)) {
			return have
		}
	}
	s.swept = now
	var oldest Owner
	for k, have := range s.list {
		if now.Sub(have.used) >= maxAge {
			delete(s.list, k)
		} else if old := s.list[oldest]; old == nil || have.used.Before(old.used) {
			oldest = k
		}
	}
	if have := s.list[o]; have != nil {
		return have
	}
	if len(s.list) >= maxSessions {
		delete(s.list, oldest)
	}
	mac := hmac.New(sha256.New, s.key)
	for _, part := range []string{o.Tenant, o.Agent, o.Session, o.Row} {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	made := &Session{key: mac.Sum(nil), used: now, againOf: -1, byValue: map[string]*entry{},
		byPlaceholder: map[string]*entry{}}
	s.list[o] = made
	return made
}

// Session is the mapping of one owner. It may be used by several goroutines.
type Session struct {
	key  []byte
	used time.Time // guarded by Sessions.mu

	mu            sync.Mutex
	byValue       map[string]*entry // guarded by mu
	byPlaceholder map[string]*entry // guarded by mu
	order         []*entry          // guarded by mu; oldest first
	last          *Snapshot         // guarded by mu; of the last change, nil if it must be made
	bytes         int               // guarded by mu; of the values
	sought        int               // guarded by mu; rises with each change of the values that are sought everywhere
	again         []*redact.Engine  // guarded by mu; find those values
	againOf       int               // guarded by mu; what sought was when again was made, -1 for never

	real   map[string]bool   // guarded by mu; placeholders that are real text
	signed map[[32]byte]bool // guarded by mu; the parts that the provider signed, by their SHA-256
}

// maxSigned bounds how many signed parts of one session are known.
const maxSigned = 4096

// NoteSigned notes a part that the provider signed, by the SHA-256 of its bytes.
func (s *Session) NoteSigned(sum [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signed == nil || len(s.signed) >= maxSigned {
		s.signed = map[[32]byte]bool{}
	}
	s.signed[sum] = true
}

// IsSigned reports whether these bytes came from the provider in this session.
func (s *Session) IsSigned(sum [32]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed[sum]
}

// entry is one value and its placeholder.
type entry struct {
	rule, value, placeholder string
	kept                     int // how much of the placeholder's beginning is the value's own
	oneWay                   bool
	restored                 bool // an answer had it
}

// Request is one request in which values are replaced. It belongs to one goroutine.
type Request struct {
	s     *Session
	texts [][]byte // of the request, decoded: what is real text in it
	seen  *windows // of texts; nil until it is needed
	owned func([]byte) bool
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
	for _, p := range s.takeSnapshot().index(false).listIn(texts) {
		if e := s.byPlaceholder[p]; e != nil {
			s.forgetEntry(e)
			s.noteReal(p)
		}
	}
	return &Request{s: s, texts: texts, owned: owned, Kinds: map[string]int{}}
}

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
func (s *Session) dropSnapshot() { s.last = nil }

// Replace returns the placeholder of a value that rule found. What is a placeholder of the session already
// is returned as it is, and so is the name of a scheme before a credential. It is the function for
// redact.Engine.WithReplace.
func (r *Request) Replace(rule string, text []byte) []byte {
	if n := schemeOf(text); n > 0 {
		return append(bytes.Clone(text[:n]), r.Replace(rule, text[n:])...)
	}
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPlaceholder[string(text)] != nil {
		return text
	}
	oneWay := isOneWay(rule) || len(text) > maxValue || r.owned != nil && r.owned(text)
	if e := s.byValue[string(text)]; e != nil {
		if oneWay && !e.oneWay {
			e.oneWay = true
			s.dropSnapshot()
		}
		return []byte(e.placeholder)
	}
	e := &entry{rule: rule, value: string(text), oneWay: oneWay}
	for n := byte(0); ; n++ {
		e.placeholder, e.kept = derivePlaceholder(s.key, rule, text, n)
		if n == 255 || s.byPlaceholder[e.placeholder] == nil && !s.real[e.placeholder] && !r.isReal(e.placeholder) {
			break
		}
	}
	s.byValue[e.value], s.byPlaceholder[e.placeholder] = e, e
	s.order = append(s.order, e)
	if s.bytes += len(e.value); e.isSought() {
		s.sought++
	}
	for len(s.order) > maxEntries || s.bytes > maxBytes {
		s.forgetEntry(s.order[0])
	}
	s.dropSnapshot()
	return []byte(e.placeholder)
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

// IsPlaceholder reports whether text is a placeholder of the session.
func (r *Request) IsPlaceholder(text []byte) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.byPlaceholder[string(text)] != nil
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

// FindAgain returns engines that find the secret values of the session at any place, also without a name
// before them and in other encodings, and replace them.
func (r *Request) FindAgain() (list []*redact.Engine, err error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.againOf != s.sought {
		if s.again, err = newFinders(s.order); err != nil {
			return nil, err
		}
		s.againOf = s.sought
	}
	for _, e := range s.again {
		list = append(list, e.WithReplace(r.replaceAgain))
	}
	return list, nil
}

// replaceAgain is Replace for what FindAgain found: a value itself, or an encoding of one.
func (r *Request) replaceAgain(_ string, text []byte) []byte { return r.Replace("secret.again", text) }
