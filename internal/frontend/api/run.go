package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// A workspace runs in the caller's own process, which has its terminal, and
// crosses here: the caller asks, is told to go on when the begin is durable, and
// says what came of it. The connection is the hand. Where it ends first, what
// became of the run is not known, and where the owner's end is gone the caller
// kills what it runs.
//
// Both directions carry lines of JSON: RunAsk, RunWord, RunSaid, and a last
// RunWord with the answer.

// RunAsk asks to run a program on a work tree.
type RunAsk struct {
	Agent          string            `json:"agent"`
	Kind           string            `json:"kind,omitempty"`
	Session        string            `json:"session,omitempty"`
	Intent         string            `json:"intent,omitempty"`
	Chain          string            `json:"chain,omitempty"`
	Token          string            `json:"token,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Space          sandbox.Workspace `json:"workspace"`
	// Network is "none" or "proxy"; empty is the proxy's where the owner has one.
	Network string `json:"network,omitempty"`
}

// RunWord is what the owner says: go on, stop, or what it all came to.
type RunWord struct {
	// Go says that the crossing has begun, and what must stand around it.
	Go *RunTerms `json:"go,omitempty"`
	// Stop says that it was cut, and why.
	Stop *Failure `json:"stop,omitempty"`
	// Done is the end.
	Done *executedReply `json:"done,omitempty"`
}

// RunTerms are what the boundary's contract demands.
type RunTerms struct {
	Crossing string         `json:"crossing"`
	Need     []posture.Wall `json:"need,omitempty"`
	// Network is what the workspace's is made with, nil for none, and Ticket lets
	// its sockets be handed over. Closed says why there is none, where the owner
	// has one in general.
	Network *sandbox.Network `json:"network,omitempty"`
	Ticket  string           `json:"ticket,omitempty"`
	Closed  string           `json:"closed,omitempty"`
}

// RunSaid is what the caller says of its run: the result, or why nothing ran.
type RunSaid struct {
	Result  *posture.Document `json:"result,omitempty"`
	Failure *Failure          `json:"error,omitempty"`
}

const (
	upgradeRun = "holdfast-run"
	// maxRunLine bounds a line of either side, in bytes.
	maxRunLine = 4 << 20
	// askWithin is how long a caller may take to ask.
	askWithin = 10 * time.Second
)

// run takes the connection over for one workspace.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != upgradeRun {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "a workspace is run by `holdfast run`"})
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "a workspace needs a connection of its own: a daemon"})
		return
	}
	defer conn.Close()
	if s.Busy != nil {
		s.Busy.Add(1)
		defer s.Busy.Done()
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgradeRun+"\r\n\r\n"); err != nil {
		return
	}
	h := &runHand{s: s, conn: conn, lines: newLines(conn, buf.Reader), over: make(chan struct{})}
	ans := h.serve(context.WithoutCancel(r.Context()))
	_ = h.lines.write(RunWord{Done: newExecutedReply(ans)})
	h.late()
}

// runHand is one workspace as the owner sees it.
type runHand struct {
	s     *Server
	conn  net.Conn
	lines *lineConn
	ask   RunAsk
	net   *sandbox.Network // nil is none, and closed says why
	close string
	who   Runner
	begun atomic.Bool   // the act was called
	over  chan struct{} // closed when it has returned

	mu           sync.Mutex
	placeholders *holdfast.Placeholders // guarded by mu; of all requests to models, nil for none
}

// notePlaceholders adds what was replaced in one request to a model.
func (h *runHand) notePlaceholders(p holdfast.Placeholders) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.placeholders == nil {
		h.placeholders = &holdfast.Placeholders{}
	}
	h.placeholders.Add(p)
}

// sumPlaceholders returns what was replaced so far; nil for nothing.
func (h *runHand) sumPlaceholders() *holdfast.Placeholders {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.placeholders == nil {
		return nil
	}
	sum := *h.placeholders
	return &sum
}

// lateWithin is how long a caller whose run was cut may take to say how it
// ended: it may have tried to get out.
const lateWithin = 5 * time.Second

// late hears a caller whom the crossing did not wait for.
func (h *runHand) late() {
	if !h.begun.Load() {
		return
	}
	select {
	case <-h.over:
	case <-time.After(lateWithin):
	}
}

func (h *runHand) serve(ctx context.Context) *Executed {
	s := h.s
	no := func(err error) *Executed {
		s.logInner(err)
		return &Executed{Failure: s.failure(err)}
	}
	_ = h.conn.SetReadDeadline(time.Now().Add(askWithin))
	if err := h.lines.read(&h.ask); err != nil {
		return no(&holdfast.Error{Kind: holdfast.KindUsage, Why: "the request is not what this door takes: " + err.Error()})
	}
	_ = h.conn.SetReadDeadline(time.Time{})
	secret := s.Secret
	if secret == nil {
		secret = func(string) bool { return true }
	}
	space, err := sandbox.CheckWorkspace(h.ask.Space, secret)
	if err != nil {
		return no(err)
	}
	if h.net, h.close, err = s.network(h.ask.Network); err != nil {
		return no(err)
	}
	h.ask.Space = space
	a := h.ask
	ask := Ask{Boundary: RunBoundary(space.Name), Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent, Chain: a.Chain, Token: a.Token, IdempotencyKey: a.IdempotencyKey,
		Correlation: uuid.NewString()}
	if s.Own == nil {
		return no(&holdfast.Error{Kind: holdfast.KindUsage, Why: "this daemon cannot say which files are its own"})
	}
	if ask.Payload, err = runPayload(space, s.Own(), h.net != nil); err != nil {
		return no(err)
	}
	req, err := s.request(ask)
	if err != nil {
		return no(err)
	}
	h.who = Runner{Run: space.ID, Correlation: ask.Correlation, Note: h.notePlaceholders,
		Token: func() (holdfast.Secret, error) {
			fresh, err := s.request(ask)
			return fresh.Token, err
		}}
	return h.cross(ctx, req)
}

func (h *runHand) cross(ctx context.Context, req holdfast.Request) *Executed {
	s := h.s
	ctx, end := s.underway.begin(ctx, h.ask.Space.ID, s.Ending)
	defer end()
	out, err := s.Kernel.Cross(ctx, req, func(ctx context.Context) (holdfast.Output, error) {
		h.begun.Store(true)
		return h.act(ctx, req.Boundary)
	})
	ans := &Executed{Outcome: s.masked(out), Placeholders: h.sumPlaceholders()}
	if out != nil && out.Output != nil {
		ans.Result = &posture.Document{}
		if bad := json.Unmarshal(out.Output.Body, ans.Result); bad != nil {
			ans.Result, err = nil, errors.Join(err, fmt.Errorf("read a run's result again: %w", bad))
		}
	}
	if err != nil {
		ans.Failure = s.failure(err)
		s.logInner(err)
	}
	return ans
}

// act lets the caller run it, and waits for what it says.
func (h *runHand) act(ctx context.Context, boundary string) (holdfast.Output, error) {
	defer close(h.over)
	var none holdfast.Output
	terms := &RunTerms{}
	spec := sandbox.Spec{}
	if least := h.s.needs(boundary, &spec); least > posture.TierProcess {
		return none, fmt.Errorf("%w: %w", &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the contract demands the %s tier, and programs on a work tree are run in the process tier alone", least), Hint: "let the contract of " + boundary + " say tier: process"}, holdfast.ErrNotStarted)
	}
	terms.Need, terms.Crossing, terms.Closed = spec.Need, kernel.CrossingID(ctx), h.close
	cut := func() {}
	if h.net != nil {
		sockets := h.s.expect(h.who)
		cut = sockets.end
		defer cut()
		terms.Network, terms.Ticket = h.net, sockets.ticket
	}
	if err := h.lines.write(RunWord{Go: terms}); err != nil {
		return none, errors.Join(err, holdfast.ErrNotStarted)
	}
	type heard struct {
		said RunSaid
		err  error
	}
	end := make(chan heard, 1)
	go func() {
		var said RunSaid
		err := h.lines.read(&said)
		end <- heard{said, err}
	}()
	var got heard
	select {
	case got = <-end:
	case <-ctx.Done():
		go cut() // its network does not wait for its end, nor it for its network's
		_ = h.lines.write(RunWord{Stop: h.s.failure(context.Cause(ctx))})
		got = <-end
	}
	if got.err != nil {
		return none, &holdfast.Error{Kind: holdfast.KindOperation, Why: "the command that ran the workspace went away; with it everything that it had started was killed", Err: got.err}
	}
	return h.came(ctx, got.said)
}

// came is what the caller's word comes to: the output, and the run's news.
func (h *runHand) came(ctx context.Context, said RunSaid) (holdfast.Output, error) {
	if said.Result == nil {
		err := said.Failure.Err()
		if err == nil {
			err = &holdfast.Error{Kind: holdfast.KindOperation, Why: "the command that ran the workspace said nothing of it"}
		}
		return holdfast.Output{}, errors.Join(err, holdfast.ErrNotStarted)
	}
	d := said.Result
	d.RequestID = h.ask.Space.ID
	d.Stdout, d.OutputFiles = "", map[string][]byte{} // the terminal's text is nobody's record
	d.Stderr, d.ErrorMessage = h.s.Mask(d.Stderr), h.s.Mask(d.ErrorMessage)
	body, err := json.Marshal(d)
	if err != nil {
		return holdfast.Output{}, err
	}
	out := holdfast.Output{Body: body, ExitCode: d.ExitCode, Ran: ran(d.State, d.Posture, ""), Used: map[holdfast.Resource]int64{
		holdfast.CPUMillis:  time.Duration(d.UserTime + d.SystemTime).Milliseconds(),
		holdfast.WallMillis: time.Duration(d.WallTime).Milliseconds(),
		holdfast.MemoryMB:   d.MemoryPeakMB,
	}}
	call := posture.Call{}
	if d.Syscall != nil {
		call = *d.Syscall
	}
	return out, came(ctx, &posture.Result{ID: d.RequestID, Reason: d.Reason, Call: &call})
}

var unnamed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^A-Za-z0-9._+-]+`)
})

// RunBoundary is the boundary of a program: run/NAME.
func RunBoundary(program string) string {
	name := unnamed().ReplaceAllString(path.Base(program), "_")
	if name = name[:min(len(name), 100)]; name == "" || name == "." || name == ".." || name == "/" {
		name = "_"
	}
	return "run/" + name
}

// runPayload is what the gates judge: everything that decides what runs, where
// and with what. Of Holdfast's own files it names those that the run would reach,
// and is refused for that.
func runPayload(w sandbox.Workspace, own []string, network bool) ([]byte, error) {
	way := NetworkNone
	if network {
		way = NetworkProxy
	}
	return json.Marshal(map[string]any{
		"holds":   append([]string{}, reached(append([]string{w.Tree}, w.Toolbox...), own)...),
		"program": w.Argv[0], "argv": append([]string{w.Name}, w.Argv[1:]...), "tree": w.Tree, "directory": w.Dir, "environment": w.Environment,
		"toolbox": append([]string{}, w.Toolbox...), "exec_tree": w.ExecTree, "timeout_ms": w.Timeout.Milliseconds(),
		"memory_limit_mb": w.MemoryMB, "processors": w.Processors, "processes": w.Processes,
		"network": way,
	})
}

// lineConn carries values as lines of JSON.
type lineConn struct {
	conn io.Writer
	in   *bufio.Reader
}

func newLines(conn io.Writer, in io.Reader) *lineConn {
	return &lineConn{conn, bufio.NewReaderSize(in, 64<<10)}
}

func (l *lineConn) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = l.conn.Write(append(b, '\n'))
	return err
}

func (l *lineConn) read(v any) error {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return json.Unmarshal(line, v)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(line) > maxRunLine {
			return errors.New("a line is longer than 4 MB")
		}
	}
}

// Run crosses with a workspace that act runs: act is called once the crossing
// has begun, on a context that ends when it is cut or its owner goes, and what
// it returns is recorded. The error is about the call; a refusal is in the
// answer. It needs a daemon.
func (c *Client) Run(ctx context.Context, ask RunAsk, act func(context.Context, RunTerms) (*posture.Result, error)) (*Executed, error) {
	if c.dial == nil {
		return nil, errors.New("a workspace needs a daemon")
	}
	conn, err := c.upgrade(ctx, "/v1/run", upgradeRun, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	return runOver(ctx, newLines(conn, conn), ask, act)
}

// runOver is Run on an open connection.
func runOver(ctx context.Context, l *lineConn, ask RunAsk, act func(context.Context, RunTerms) (*posture.Result, error)) (*Executed, error) {
	if err := l.write(ask); err != nil {
		return nil, err
	}
	var word RunWord
	if err := l.read(&word); err != nil {
		return nil, lostOwner(err)
	}
	if word.Go == nil {
		return done(word)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	last := make(chan RunWord, 1)
	go func() {
		defer close(last)
		for {
			var w RunWord
			if err := l.read(&w); err != nil {
				cancel(lostOwner(err))
				return
			}
			if w.Stop != nil {
				cancel(w.Stop.Err())
				continue
			}
			last <- w
			// Nothing goes on whose crossing has ended, whatever became of the word
			// to stop.
			cancel(&holdfast.Error{Kind: holdfast.KindCanceled, Why: "its crossing has ended"})
			return
		}
	}()
	res, err := act(ctx, *word.Go)
	said := RunSaid{}
	if err != nil {
		said.Failure = failure(err)
	} else {
		d := res.Document()
		said.Result = &d
	}
	// An owner that cut it has its answer ready, and does not wait for ever.
	_ = l.write(said)
	word, ok := <-last
	if !ok {
		return nil, context.Cause(ctx)
	}
	return done(word)
}

func done(w RunWord) (*Executed, error) {
	if w.Done == nil {
		return nil, lostOwner(errors.New("it said what cannot be read"))
	}
	return w.Done.toExecuted(), nil
}

func lostOwner(err error) error {
	return &holdfast.Error{Kind: holdfast.KindOperation, Why: "the daemon went away: everything that ran in the workspace was killed", Hint: "run it again; the ledger tells what is known of it", Err: err}
}
