package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/review"
)

// maxBody bounds a request: the largest payload, base64, and its envelope.
const maxBody = holdfast.MaxPayload*4/3 + 1<<20

// Server answers commands. All fields but Ending are required.
type Server struct {
	Kernel Kernel
	// Mint makes a token for an agent of this machine.
	Mint func(holdfast.Identity) (holdfast.Secret, error)
	// Status, Backup and Checkpoint are the daemon's.
	Status     func(context.Context) (*Status, error)
	Backup     func(ctx context.Context, file string) error
	Checkpoint func(context.Context) (int, error)
	// Drained waits until the crossings that a halt cut are recorded, and
	// returns how many still are not.
	Drained func(ctx context.Context) int
	// Open makes a one-time link to the pages.
	Open func(review string) (string, error)
	// Token makes a token that somebody takes away.
	Token func(TokenAsk) (Token, error)
	// MCP opens what a Hello asks for and returns what serves one connection
	// until either side ends. It must be called once; it closes conn.
	MCP func(h Hello) (serve func(ctx context.Context, conn io.ReadWriteCloser) error, err error)
	// Mask takes out of a text what must not be shown.
	Mask func(string) string
	Log  *slog.Logger
	// Ending is closed when the owner ends; nil means never.
	Ending <-chan struct{}
}

// Handler returns the routes. It trusts its listener to admit only this
// machine's own user.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", s.status)
	mux.HandleFunc("POST /v1/cross", s.cross)
	mux.HandleFunc("POST /v1/check", s.judge(s.Kernel.Check))
	mux.HandleFunc("POST /v1/explain", s.judge(s.Kernel.Explain))
	mux.HandleFunc("GET /v1/reviews", s.reviews)
	mux.HandleFunc("GET /v1/reviews/{id}", s.review)
	mux.HandleFunc("GET /v1/reviews/{id}/life", s.life)
	mux.HandleFunc("POST /v1/decide", s.decide)
	mux.HandleFunc("GET /v1/remembered", s.remembered)
	mux.HandleFunc("POST /v1/remember", s.remember)
	mux.HandleFunc("POST /v1/forget", s.forget)
	mux.HandleFunc("GET /v1/stay", s.stay)
	mux.HandleFunc("GET /v1/changed", s.changed)
	mux.HandleFunc("POST /v1/admit", s.admit)
	mux.HandleFunc("POST /v1/accept", s.accept)
	mux.HandleFunc("POST /v1/halt", s.halt)
	mux.HandleFunc("POST /v1/poke", s.poke)
	mux.HandleFunc("POST /v1/resume", s.resume)
	mux.HandleFunc("GET /v1/agents", s.agents)
	mux.HandleFunc("POST /v1/pause", s.pause)
	mux.HandleFunc("POST /v1/unpause", s.unpause)
	mux.HandleFunc("POST /v1/trust", s.trust)
	mux.HandleFunc("POST /v1/erase", s.erase)
	mux.HandleFunc("POST /v1/revoke", s.revoke)
	mux.HandleFunc("POST /v1/backup", s.backup)
	mux.HandleFunc("POST /v1/checkpoint", s.checkpoint)
	mux.HandleFunc("POST /v1/open", s.open)
	mux.HandleFunc("POST /v1/token", s.token)
	mux.HandleFunc("POST /v1/mcp", s.mcp)
	return mux
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	st, err := s.Status(r.Context())
	s.answer(w, st, err)
}

// stayTime bounds how long one command keeps the owner.
const stayTime = time.Hour

// stay lasts until the caller goes: a daemon that ends when nobody is
// connected must not end while a person is being asked for a passphrase.
func (s *Server) stay(w http.ResponseWriter, r *http.Request) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		s.answer(w, nil, err)
		return
	}
	t := time.NewTimer(stayTime)
	defer t.Stop()
	select {
	case <-r.Context().Done():
	case <-s.Ending:
	case <-t.C:
	}
}

// The longest names, in code points: a token's own limit, and for an agent so
// much less that the principal and the session made of its name fit too.
const (
	MaxName  = 256
	MaxAgent = 240
)

// Named is a UsageError where a claim of the Ask could not stand in a token
// made of it: an empty agent, a name that is too long or holds what cannot be
// seen. An Ask that brings a token has no such claims.
func (a Ask) Named() error {
	if a.Token != "" {
		return nil
	}
	return named(a.Agent, a.Kind, a.Session, a.Intent)
}

// numbered is a UsageError where id can be no token's number. A token itself is
// none: it would be written down.
func numbered(id string) error {
	why := nameFault("token's number", id, MaxName)
	switch {
	case id == "":
		why = "the token has no number"
	case strings.Count(id, ".") == 2 && strings.HasPrefix(id, "eyJ"):
		why = "that is a token, not its number"
	case why == "":
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: why, Hint: "`holdfast agent token` says the number, and `holdfast ledger tail --events` tells it"}
}

// nameFault says what is wrong with a name of at most so many code points; ""
// for nothing.
func nameFault(what, text string, most int) string {
	switch {
	case !utf8.ValidString(text):
		return fmt.Sprintf("the %s is not valid UTF-8", what)
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("the %s has more than %d code points", what, most)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Sprintf("the %s holds a control character", what)
	}
	return ""
}

func named(agent, kind, session, intent string) error {
	fault := ""
	if agent == "" {
		fault = "the agent has no name"
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{{"agent", agent, MaxAgent}, {"kind", kind, MaxName}, {"session", session, MaxName}, {"intent", intent, MaxName}} {
		if fault == "" {
			fault = nameFault(f.name, f.text, f.most)
		}
	}
	if fault == "" {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fault}
}

// request turns an Ask into a kernel request with a token of its own.
func (s *Server) request(a Ask) (holdfast.Request, error) {
	req := holdfast.Request{Boundary: a.Boundary, Payload: a.Payload, IdempotencyKey: a.IdempotencyKey, Correlation: a.Correlation}
	if a.Token != "" {
		req.Token = holdfast.NewSecret(a.Token)
		return req, nil
	}
	if err := a.Named(); err != nil {
		return req, err
	}
	tok, err := s.Mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent})
	req.Token = tok
	return req, err
}

// stepBoundary is the one boundary whose act is nothing but being counted.
const stepBoundary = "agent/step"

// cross makes a crossing of it: the step itself is the act (D41). Any other
// boundary has a hand, which this door does not have, so that a crossing made
// here would claim an act that nobody did.
func (s *Server) cross(w http.ResponseWriter, r *http.Request) {
	var a Ask
	if !s.read(w, r, &a) {
		return
	}
	if a.Boundary != stepBoundary {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "this door crosses " + stepBoundary + " only", Hint: "`holdfast check` says what would happen at any other boundary"})
		return
	}
	req, err := s.request(a)
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	out, err := s.Kernel.Cross(r.Context(), req, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte("{}")}, nil
	})
	s.outcome(w, out, err)
}

func (s *Server) outcome(w http.ResponseWriter, out *holdfast.Outcome, err error) {
	ans := Answer{Outcome: s.masked(out)}
	if err != nil {
		ans.Failure = s.failure(err)
		s.logInner(err)
	}
	s.write(w, http.StatusOK, ans)
}

func (s *Server) judge(ask func(context.Context, holdfast.Request) (*holdfast.Outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a Ask
		if !s.read(w, r, &a) {
			return
		}
		req, err := s.request(a)
		if err != nil {
			s.answer(w, nil, err)
			return
		}
		out, err := ask(r.Context(), req)
		s.outcome(w, out, err)
	}
}

func (s *Server) reviews(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rs, err := s.Kernel.Reviews(r.Context(), q.Get("tenant"), review.State(q.Get("state")))
	s.answer(w, rs, err)
}

func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	rv, err := s.Kernel.Review(r.Context(), r.PathValue("id"))
	s.answer(w, rv, err)
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		rv, err := s.Kernel.Decide(p.Signed)
		s.answer(w, rv, err)
	}
}

func (s *Server) halt(w http.ResponseWriter, r *http.Request) {
	var h Word
	if !s.read(w, r, &h) {
		return
	}
	start := time.Now()
	n, err := s.Kernel.Halt(h.Who, h.Why)
	left := s.Drained(r.Context())
	s.answer(w, Cutting{Cut: n, Micros: time.Since(start).Microseconds(), Waiting: left}, err)
}

// poke tells the owner that the latch has changed on disk.
func (s *Server) poke(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	n, err := s.Kernel.Halted()
	left := s.Drained(r.Context())
	s.answer(w, Cutting{Cut: n, Micros: time.Since(start).Microseconds(), Waiting: left}, err)
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		s.answer(w, struct{}{}, s.Kernel.Resume(p.Signed))
	}
}

func (s *Server) agents(w http.ResponseWriter, r *http.Request) {
	as, err := s.Kernel.Agents(r.Context(), r.URL.Query().Get("tenant"))
	s.answer(w, as, err)
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	var h Word
	if s.read(w, r, &h) {
		n, err := s.Kernel.Pause(tenant(h.Tenant), h.Subject, h.Who, h.Why)
		s.answer(w, Cutting{Cut: n}, err)
	}
}

func (s *Server) unpause(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		s.answer(w, struct{}{}, s.Kernel.Unpause(tenant(p.Tenant), p.Signed))
	}
}

func (s *Server) trust(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		s.answer(w, struct{}{}, s.Kernel.Trust(tenant(p.Tenant), p.Signed))
	}
}

func (s *Server) erase(w http.ResponseWriter, r *http.Request) {
	var p PersonsWord
	if s.read(w, r, &p) {
		out, err := s.Kernel.Erase(tenant(p.Tenant), p.Signed)
		s.answer(w, out, err)
	}
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	var h Word
	if !s.read(w, r, &h) {
		return
	}
	err := numbered(h.Subject)
	if err == nil {
		err = s.Kernel.Revoke(tenant(h.Tenant), h.Subject, h.Who, h.Why)
	}
	s.answer(w, struct{}{}, err)
}

func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	var b Backup
	if s.read(w, r, &b) {
		s.answer(w, b, s.Backup(r.Context(), b.File))
	}
}

func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	n, err := s.Checkpoint(r.Context())
	s.answer(w, map[string]int{"signed": n}, err)
}

func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	var o Opened
	if s.read(w, r, &o) {
		url, err := s.Open(o.Review)
		s.answer(w, Opened{o.Review, url}, err)
	}
}

func tenant(t string) string {
	if t == "" {
		return holdfast.Local
	}
	return t
}

// read parses a bounded JSON body, strictly.
func (s *Server) read(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("trailing data")
	}
	if err != nil {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "the request is not what this door takes: " + err.Error()})
		return false
	}
	return true
}

func (s *Server) answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		s.logInner(err)
		f := s.failure(err)
		s.write(w, statusOf(f.Kind), Answer{Failure: f})
		return
	}
	s.write(w, http.StatusOK, v)
}

// failure is what the caller learns of an error. Its words may quote what was
// sent, and pass on to a log that is not ours.
func (s *Server) failure(err error) *Failure {
	f := failure(err)
	f.Rule, f.Why, f.Hint = s.Mask(f.Rule), s.Mask(f.Why), s.Mask(f.Hint)
	return f
}

// masked is out with the gates' words redacted.
func (s *Server) masked(out *holdfast.Outcome) *holdfast.Outcome {
	if out == nil {
		return nil
	}
	own := *out
	own.Opinions = slices.Clone(out.Opinions)
	for i := range own.Opinions {
		o := &own.Opinions[i]
		o.Rule, o.Why, o.Hint = s.Mask(o.Rule), s.Mask(o.Why), s.Mask(o.Hint)
	}
	return &own
}

func (s *Server) logInner(err error) {
	if e, ok := asError(err); !ok || e.Err != nil {
		s.Log.Error("a request failed", "err", err, "cause", errors.Unwrap(err))
	}
}

func (s *Server) write(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.Log.Warn("an answer could not be written", "err", err)
	}
}

// statusOf maps an error kind to HTTP, in one place.
func statusOf(k holdfast.Kind) int {
	switch k {
	case holdfast.KindUsage, holdfast.KindValue, holdfast.KindValidation:
		return http.StatusBadRequest
	case holdfast.KindNotFound:
		return http.StatusNotFound
	case holdfast.KindConflict, holdfast.KindApprovalUsed:
		return http.StatusConflict
	case holdfast.KindPermission, holdfast.KindSelfApproval, holdfast.KindPaused:
		return http.StatusForbidden
	case holdfast.KindHalted, holdfast.KindWALWrite:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func asError(err error) (*holdfast.Error, bool) {
	var e *holdfast.Error
	ok := errors.As(err, &e)
	return e, ok
}
