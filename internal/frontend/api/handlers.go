package api

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// none is the answer of what only succeeds or fails.
type none struct{}

// looking answers what do makes of a request whose body is not read.
func looking[Out any](s *Server, do func(*http.Request) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := do(r)
		s.answer(w, out, err)
	}
}

// alive says at once that there will be an answer: who asks knows by it that the owner
// is busy and not stopped.
func alive(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		h(w, r)
	}
}

// taking answers what do makes of a body that is one In.
func taking[In, Out any](s *Server, do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if s.read(w, r, &in) {
			out, err := do(r.Context(), in)
			s.answer(w, out, err)
		}
	}
}

// saying carries out what a person signed, where the statement alone says whose
// it is about; sayingOf where the kernel compares that with the tenant.
func saying[Out any](s *Server, do func(operator.Signed) (Out, error)) http.HandlerFunc {
	return taking(s, func(_ context.Context, p PersonsWord) (Out, error) { return do(p.Signed) })
}

func sayingOf[Out any](s *Server, do func(string, operator.Signed) (Out, error)) http.HandlerFunc {
	return taking(s, func(_ context.Context, p PersonsWord) (Out, error) { return do(tenant(p.Tenant), p.Signed) })
}

// nothing and nothingOf answer none for what only succeeds or fails.
func nothing(do func(operator.Signed) error) func(operator.Signed) (none, error) {
	return func(signed operator.Signed) (none, error) { return none{}, do(signed) }
}

func nothingOf(do func(string, operator.Signed) error) func(string, operator.Signed) (none, error) {
	return func(tenant string, signed operator.Signed) (none, error) { return none{}, do(tenant, signed) }
}

// asked is a parameter of the address.
func asked(r *http.Request, name string) string { return r.URL.Query().Get(name) }

func (s *Server) reviews(r *http.Request) ([]review.Review, error) {
	return s.Kernel.Reviews(r.Context(), asked(r, "tenant"), review.State(asked(r, "state")))
}

func (s *Server) review(r *http.Request) (review.Review, error) {
	return s.Kernel.Review(r.Context(), r.PathValue("id"))
}

func (s *Server) life(r *http.Request) ([]review.Step, error) {
	steps, err := s.Kernel.Life(r.Context(), r.PathValue("id"))
	return append([]review.Step{}, steps...), err
}

func (s *Server) remembered(r *http.Request) ([]review.Remembered, error) {
	return s.Kernel.Remembered(r.Context(), tenant(asked(r, "tenant")))
}

func (s *Server) changed(r *http.Request) (review.Change, error) {
	return s.Kernel.Changed(r.Context(), asked(r, "boundary"))
}

func (s *Server) agents(r *http.Request) ([]holdfast.Agent, error) {
	return s.Kernel.Agents(r.Context(), asked(r, "tenant"))
}

func (s *Server) halt(ctx context.Context, h Word) (Cutting, error) {
	return s.cutting(ctx, func() (int, error) { return s.Kernel.Halt(h.Who, h.Why) })
}

// poke tells the owner that the latch has changed on disk.
func (s *Server) poke(r *http.Request) (Cutting, error) {
	return s.cutting(r.Context(), s.Kernel.Halted)
}

// cutting is what cut comes to, once what it cut is recorded.
func (s *Server) cutting(ctx context.Context, cut func() (int, error)) (Cutting, error) {
	start := time.Now()
	n, err := cut()
	left := s.Drained(ctx)
	return Cutting{Cut: n, Micros: time.Since(start).Microseconds(), Waiting: left}, err
}

func (s *Server) pause(_ context.Context, h Word) (Cutting, error) {
	n, err := s.Kernel.Pause(tenant(h.Tenant), h.Subject, h.Who, h.Why)
	return Cutting{Cut: n}, err
}

// token makes a token for an agent of this machine.
func (s *Server) token(_ context.Context, a TokenAsk) (Token, error) {
	if err := named(a.Agent, a.Kind, a.Session, a.Intent, a.Chain); err != nil {
		return Token{}, err
	}
	if tenant(a.Tenant) != holdfast.Local {
		return Token{}, NotLocal()
	}
	return s.Token(a)
}

func (s *Server) revoke(_ context.Context, h Word) (none, error) {
	if err := numbered(h.Subject); err != nil {
		return none{}, err
	}
	return none{}, s.Kernel.Revoke(tenant(h.Tenant), h.Subject, h.Who, h.Why)
}

func (s *Server) backup(ctx context.Context, b Backup) (Backup, error) {
	return b, s.Backup(ctx, b.File)
}

func (s *Server) checkpoint(r *http.Request) (map[string]int, error) {
	n, err := s.Checkpoint(r.Context())
	return map[string]int{"signed": n}, err
}

func (s *Server) open(_ context.Context, o Opened) (Opened, error) {
	url, err := s.Open(o.Review)
	return Opened{o.Review, url}, err
}
