package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// How many links, sessions and notes of a session there are at most; one more
// takes the place of the oldest.
const (
	maxTickets  = 16
	maxSessions = 16
	maxNotes    = 8
)

// newSecret is 256 random bits as text, and what is kept of it.
func newSecret() (string, [32]byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	text := base64.RawURLEncoding.EncodeToString(b[:])
	return text, sha256.Sum256([]byte(text))
}

// tickets are the one-time links that have not been used, by the hash of what
// stands in them.
type tickets struct {
	mu sync.Mutex
	m  map[[32]byte]time.Time // guarded by mu; when each was issued
}

func (t *tickets) issue(now time.Time) string {
	text, sum := newSecret()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[[32]byte]time.Time{}
	}
	for len(t.m) >= maxTickets {
		var oldest [32]byte
		for k, at := range t.m {
			if was, ok := t.m[oldest]; !ok || at.Before(was) {
				oldest = k
			}
		}
		delete(t.m, oldest)
	}
	t.m[sum] = now
	return text
}

// redeem says whether the ticket is good, which it then never is again.
func (t *tickets) redeem(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.m[sum]
	delete(t.m, sum)
	return ok && fresh(at, now, LinkTime)
}

func (t *tickets) sweep(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, at := range t.m {
		if !fresh(at, now, LinkTime) {
			delete(t.m, k)
		}
	}
}

// fresh says whether less than limit has passed. A clock that was set back
// makes nothing last longer.
func fresh(at, now time.Time, limit time.Duration) bool {
	d := now.Sub(at)
	return d >= 0 && d < limit
}

// note is what a page says once about what was just done.
type note struct {
	ID, Text string
	Bad      bool
	at       time.Time
}

// session is one browser that may look. Its key is there while it may decide.
type session struct {
	csrf string
	gone chan struct{} // closed when the session ends

	wrong tally // of the passphrase, in this session

	mu    sync.Mutex
	last  time.Time // guarded by mu
	notes []note    // guarded by mu
	// streams are those that its pages hold open, the oldest first; one that
	// is closed must end.
	streams []chan struct{} // guarded by mu
	// key is the opened operator key, with the secret path and the hash of
	// the cookie that let a request use it.
	key     *operator.Key // guarded by mu
	area    string        // guarded by mu
	keyHash [32]byte      // guarded by mu
	used    time.Time     // guarded by mu; the key's last use
}

// sessions are the browsers that are signed in, by the hash of their cookie.
type sessions struct {
	mu sync.Mutex
	m  map[[32]byte]*session // guarded by mu
}

func (ss *sessions) open(now time.Time) string {
	text, sum := newSecret()
	csrf, _ := newSecret()
	s := &session{csrf: csrf, gone: make(chan struct{}), last: now}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.m == nil {
		ss.m = map[[32]byte]*session{}
	}
	for len(ss.m) >= maxSessions {
		var oldest [32]byte
		var at time.Time
		for k, s := range ss.m {
			if seen := s.seen(); at.IsZero() || seen.Before(at) {
				oldest, at = k, seen
			}
		}
		ss.drop(oldest)
	}
	ss.m[sum] = s
	return text
}

// drop ends a session; ss.mu is held.
func (ss *sessions) drop(k [32]byte) {
	if s := ss.m[k]; s != nil {
		delete(ss.m, k)
		s.lock()
		close(s.gone)
	}
}

func (ss *sessions) find(cookie string, now time.Time) *session {
	sum := sha256.Sum256([]byte(cookie))
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.m[sum]
	if s != nil && !fresh(s.seen(), now, LookTime) {
		ss.drop(sum)
		return nil
	}
	return s
}

func (ss *sessions) end(cookie string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.drop(sha256.Sum256([]byte(cookie)))
}

func (ss *sessions) sweep(now time.Time) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k, s := range ss.m {
		if !fresh(s.seen(), now, LookTime) {
			ss.drop(k)
			continue
		}
		s.mu.Lock()
		if s.key != nil && !fresh(s.used, now, KeyTime) {
			s.forget()
		}
		s.mu.Unlock()
	}
}

func (ss *sessions) clear() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k := range ss.m {
		ss.drop(k)
	}
}

func (s *session) seen() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *session) touch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
}

// forget wipes the key; s.mu is held.
func (s *session) forget() {
	if s.key != nil {
		s.key.Wipe()
	}
	s.key, s.area, s.keyHash = nil, "", [32]byte{}
}

func (s *session) lock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// unlock keeps an opened key, in the place of an earlier one, and returns the
// name of its area and the cookie that goes with it.
func (s *session) unlock(k operator.Key, now time.Time) (area, cookie string) {
	area, _ = newSecret()
	cookie, sum := newSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.key, s.area, s.keyHash, s.used = &k, area, sum, now
	return area, cookie
}

// decides says whether a request that came through that area, with that cookie,
// may use the key.
func (s *session) decides(area, cookie string, now time.Time) bool {
	sum := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil && !fresh(s.used, now, KeyTime) {
		s.forget()
	}
	return s.key != nil && area != "" && equal(area, s.area) && subtle.ConstantTimeCompare(sum[:], s.keyHash[:]) == 1
}

// reviewer is the name that the key says.
func (s *session) reviewer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		return ""
	}
	return s.key.Public().ID()
}

// sign makes the person's statement. The key's name is the reviewer's.
func (s *session) sign(st operator.Statement, runtime string, now time.Time) (operator.Signed, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return operator.Signed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil || !fresh(s.used, now, KeyTime) {
		s.forget()
		return operator.Signed{}, locked()
	}
	s.used = now
	st.Reviewer, st.Runtime, st.ID, st.At = s.key.Public().ID(), runtime, id.String(), now.UTC()
	return operator.Sign(*s.key, st)
}

func locked() error {
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: "deciding is locked", Hint: "type the operator's passphrase"}
}

// say keeps a note and returns its name; the page that names it shows it.
func (s *session) say(text string, bad bool, now time.Time) string {
	id, _ := newSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) >= maxNotes {
		s.notes = s.notes[1:]
	}
	s.notes = append(s.notes, note{id[:12], text, bad, now})
	return id[:12]
}

// said finds a note again. Reading it changes nothing: a browser may fetch a
// page before its person asks for it.
func (s *session) said(id string, now time.Time) *note {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.notes {
		if n.ID == id && fresh(n.at, now, 2*time.Minute) {
			return &n
		}
	}
	return nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// setCookie gives a cookie to the browser; an empty value takes it away.
func setCookie(w http.ResponseWriter, name, value, path string) {
	c := &http.Cookie{Name: name, Value: value, Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func cookieOf(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil || len(c.Value) > 64 {
		return ""
	}
	return strings.TrimSpace(c.Value)
}
