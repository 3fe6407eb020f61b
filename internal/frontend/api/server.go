package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

// maxBody bounds a request: the largest payload, base64, and its envelope.
const maxBody = holdfast.MaxPayload*4/3 + 1<<20

// Server answers commands. All fields but Ending and Network are required.
type Server struct {
	Kernel Kernel
	// Mint makes a token for an agent of this machine.
	Mint func(holdfast.Identity) (holdfast.Secret, error)
	// Status, Now, Backup and Checkpoint are the daemon's.
	Status     func(context.Context) (*Status, error)
	Now        func(ctx context.Context, tenant string) (*Now, error)
	Backup     func(ctx context.Context, file string) error
	Checkpoint func(context.Context) (int, error)
	// Budgets says how budgets stand.
	Budgets func(context.Context, survey.Ask) (survey.Standings, error)
	// TestAlerts sends a test through the channel of that name, or through all.
	TestAlerts func(ctx context.Context, channel string) ([]AlertTried, error)
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
	// Sandbox runs code.
	Sandbox Sandbox
	// Room bounds what runs in it; the zero value is DefaultRoom.
	Room Room
	// Secret says whether a text holds a secret; nil takes every text for one.
	Secret func(string) bool
	// Mask takes out of a text what must not be shown.
	Mask func(string) string
	Log  *slog.Logger
	// Own are the files and directories that are Holdfast's own, absolute, which
	// no workspace may reach; without it none is run.
	Own func() []string
	// Egress is the one way out.
	Egress Egress
	// Network is the way out that workspaces have; nil is none.
	Network Network
	// Snapshots keeps versions of work trees.
	Snapshots Snapshots
	// Ending is closed when the owner ends; nil means never.
	Ending <-chan struct{}
	// Busy counts the workspaces that are open; nil counts none.
	Busy *sync.WaitGroup

	executions executions
	underway   underway
	handovers  handovers
}

// Handler returns the routes. It trusts its listener to admit only this
// machine's own user.
func (s *Server) Handler() http.Handler {
	mux, k := http.NewServeMux(), s.Kernel
	at := mux.HandleFunc
	at("GET /v1/status", alive(looking(s, s.status)))
	at("GET /v1/now", looking(s, func(r *http.Request) (*Now, error) { return s.Now(r.Context(), r.URL.Query().Get("tenant")) }))
	at("POST /v1/cross", s.asking(stepBoundary, s.step))
	at("POST /v1/goal", s.asking(goalrule.Boundary, s.step))
	at("GET /v1/goals", looking(s, s.goals))
	at("GET /v1/goals/violations", looking(s, s.goalViolations))
	at("POST /v1/goals/ack", sayingOf(s, k.AckGoal))
	at("POST /v1/goals/resume", sayingOf(s, nothingOf(k.ResumeGoals)))
	at("GET /v1/budgets", looking(s, s.budgets))
	at("POST /v1/budget/unblock", sayingOf(s, k.UnblockTenant))
	at("POST /v1/check", s.asking("", k.Check))
	at("POST /v1/explain", s.asking("", k.Explain))
	at("POST /v1/exec", s.exec)
	at("POST /v1/exec/explain", s.explainExec)
	at("POST /v1/exec/stop", taking(s, s.stopRun))
	at("POST /v1/halt", taking(s, s.halt))
	at("POST /v1/poke", looking(s, s.poke))
	at("POST /v1/resume", saying(s, nothing(k.Resume)))
	at("GET /v1/reviews", looking(s, s.reviews))
	at("GET /v1/reviews/{id}", looking(s, s.review))
	at("GET /v1/reviews/{id}/life", looking(s, s.life))
	at("POST /v1/decide", saying(s, k.Decide))
	at("GET /v1/remembered", looking(s, s.remembered))
	at("POST /v1/remember", saying(s, k.Remember))
	at("POST /v1/forget", saying(s, k.Forget))
	at("GET /v1/changed", looking(s, s.changed))
	at("POST /v1/accept", saying(s, k.Accept))
	at("POST /v1/admit", saying(s, k.Admit))
	at("GET /v1/agents", looking(s, s.agents))
	at("POST /v1/pause", taking(s, s.pause))
	at("POST /v1/unpause", sayingOf(s, k.Unpause))
	at("POST /v1/trust", sayingOf(s, nothingOf(k.Trust)))
	at("POST /v1/token", taking(s, s.token))
	at("POST /v1/revoke", taking(s, s.revoke))
	at("POST /v1/erase", sayingOf(s, k.Erase))
	at("POST /v1/backup", taking(s, s.backup))
	at("POST /v1/snapshot", taking(s, s.takeSnapshot))
	at("GET /v1/snapshots", looking(s, func(r *http.Request) (json.RawMessage, error) { return s.Snapshots.List(r.Context()) }))
	at("GET /v1/snapshots/{id}", looking(s, func(r *http.Request) (json.RawMessage, error) {
		return s.Snapshots.Show(r.Context(), r.PathValue("id"))
	}))
	at("POST /v1/snapshots/verify", taking(s, func(ctx context.Context, in SnapshotAsk) (json.RawMessage, error) {
		return s.Snapshots.Verify(ctx, in.ID)
	}))
	at("POST /v1/snapshots/archive", taking(s, func(ctx context.Context, in SnapshotAsk) (json.RawMessage, error) {
		return s.Snapshots.Archive(ctx, in.Who, in.ID)
	}))
	at("POST /v1/rollback/find", taking(s, func(ctx context.Context, in SnapshotAsk) (json.RawMessage, error) {
		return s.Snapshots.Find(ctx, in.ID, in.Tree)
	}))
	at("POST /v1/rollback/look", taking(s, func(ctx context.Context, in SnapshotAsk) (json.RawMessage, error) {
		return s.Snapshots.Look(ctx, in.ID, in.Tree)
	}))
	at("POST /v1/rollback", taking(s, func(ctx context.Context, w PersonsWord) (json.RawMessage, error) {
		return s.Snapshots.Rollback(ctx, tenant(w.Tenant), w.Signed)
	}))
	at("POST /v1/checkpoint", looking(s, s.checkpoint))
	at("POST /v1/alerts/test", taking(s, s.testAlerts))
	at("POST /v1/open", taking(s, s.open))
	at("POST /v1/egress/ca", taking(s, s.egressCA))
	at("POST /v1/egress/check", taking(s, s.egressCheck))
	at("POST /v1/mcp", s.mcp)
	at("POST /v1/run", s.run)
	at("POST /v1/run/sockets", s.takeSockets)
	return mux
}

// status adds to the owner's status whether the owner is ending.
func (s *Server) status(r *http.Request) (*statusReply, error) {
	st, err := s.Status(r.Context())
	select {
	case <-s.Ending:
		if st != nil {
			st.Ending = true
		}
	default:
	}
	if st == nil {
		return nil, err
	}
	return &statusReply{st, st.Conditions}, err
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
	tok, err := s.Mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent, Chain: a.Chain})
	req.Token = tok
	return req, err
}

// stepBoundary is a boundary whose act is nothing but being counted, as goal/admit
// is one whose act is nothing but being judged.
const stepBoundary = "agent/step"

// step makes a crossing of it: the step itself is the act (D41). Any other
// boundary has a hand, which this door does not have, so that a crossing made
// here would claim an act that nobody did.
func (s *Server) step(ctx context.Context, req holdfast.Request) (*holdfast.Outcome, error) {
	return s.Kernel.Cross(ctx, req, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte("{}")}, nil
	})
}

func (s *Server) outcome(w http.ResponseWriter, out *holdfast.Outcome, err error) {
	ans := Answer{Outcome: s.masked(out)}
	if err != nil {
		ans.Failure = s.failure(err)
		s.logInner(err)
	}
	s.write(w, http.StatusOK, ans)
}

// asking takes an Ask to ask; only is the one boundary that it may name, "" for
// any.
func (s *Server) asking(only string, ask func(context.Context, holdfast.Request) (*holdfast.Outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a Ask
		if !s.read(w, r, &a) {
			return
		}
		if only != "" && a.Boundary != only {
			s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "this door crosses " + only + " only", Hint: "`holdfast check` says what would happen at any other boundary"})
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

func tenant(t string) string {
	if t == "" {
		return holdfast.Local
	}
	return t
}

// read parses a bounded JSON body, strictly.
func (s *Server) read(w http.ResponseWriter, r *http.Request, v any) bool {
	return s.readUpTo(w, r, v, maxBody)
}

func (s *Server) readUpTo(w http.ResponseWriter, r *http.Request, v any, limit int64) bool {
	if err := parse(w, r, v, limit); err != nil {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "the request is not what this door takes: " + err.Error()})
		return false
	}
	return true
}

// unread is how much of a refused body is read all the same, in bytes, so that
// whoever is still sending it hears why: a connection that is closed behind the
// answer takes it away with what was not read.
const unread = 256 << 10

// parse reads a JSON body of at most limit bytes, strictly.
func parse(w http.ResponseWriter, r *http.Request, v any, limit int64) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("trailing data")
	}
	if err != nil {
		_, _ = io.CopyN(io.Discard, r.Body, unread)
	}
	return err
}

func (s *Server) answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		s.logInner(err)
		f := s.failure(err)
		s.write(w, errorcode.Lookup(f.Kind).API, Answer{Failure: f})
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
	own.Boundary, own.PutBack = s.Mask(out.Boundary), s.Mask(out.PutBack)
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

func asError(err error) (*holdfast.Error, bool) {
	var e *holdfast.Error
	ok := errors.As(err, &e)
	return e, ok
}
