package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Sandbox runs code behind walls.
type Sandbox interface {
	// Language returns the exact name of a language that can be run here; false
	// where Prepare would say why it cannot.
	Language(ctx context.Context, asked string) (exact string, ok bool)
	// Prepare returns spec with every default of its tier and the exact language
	// in it, or the document's error where it can be run nowhere.
	Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error)
	// Run runs what Prepare returned, in the tier that it names or a stronger one.
	// Beside an error there is a result where a wall was at fault.
	Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error)
}

// Execution asks to run code (003 2.1). Code and files are base64 in JSON.
type Execution struct {
	Agent          string            `json:"agent"`
	Kind           string            `json:"kind,omitempty"`
	Session        string            `json:"session,omitempty"`
	Intent         string            `json:"intent,omitempty"`
	Chain          string            `json:"chain,omitempty"`
	Token          string            `json:"token,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	RequestID      string            `json:"request_id"`
	Language       string            `json:"language"`
	Code           []byte            `json:"code"`
	Environment    map[string]string `json:"environment,omitempty"`
	Files          map[string][]byte `json:"files,omitempty"`
	Timeout        time.Duration     `json:"timeout,omitempty"`
	MemoryMB       int64             `json:"memory_limit_mb,omitempty"`
	CPUPeriod      time.Duration     `json:"cpu_period,omitempty"`
	CPUQuota       time.Duration     `json:"cpu_quota,omitempty"`
	Narrow         []string          `json:"narrow,omitempty"`
	// Tier is the least that is asked for; none is what contract and Evidence
	// come to.
	Tier     posture.Tier     `json:"tier,omitempty"`
	Evidence posture.Evidence `json:"evidence,omitzero"`
}

// Executed is what came of it.
type Executed struct {
	Outcome *holdfast.Outcome `json:"outcome,omitempty"`
	Result  *posture.Document `json:"result,omitempty"`
	Failure *Failure          `json:"error,omitempty"`
	// Placeholders are what was replaced in a run's requests to models; nil for nothing.
	Placeholders *holdfast.Placeholders `json:"placeholders,omitempty"`
}

// executedReply is an Executed as it travels.
type executedReply struct {
	Executed
	PutBack bool `json:"failure_tells_put_back,omitempty"`
}

func newExecutedReply(x *Executed) *executedReply {
	return &executedReply{*x, x.Failure != nil && x.Failure.PutBack}
}

func (r *executedReply) toExecuted() *Executed {
	if r.Failure != nil {
		r.Failure.PutBack = r.PutBack
	}
	return &r.Executed
}

// maxExecution bounds an Execution: code and files in base64, and their names.
const maxExecution = (sandbox.MaxCode+sandbox.MaxFileBytes)*4/3 + 16<<20

// exec runs code as a crossing of exec/LANGUAGE, whose output is the document's
// ExecutionResult.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	s.taken(w, r, func(e Execution) {
		ans, err := s.Execute(r.Context(), e)
		if err != nil {
			s.refuseRun(w, err)
			return
		}
		s.write(w, http.StatusOK, newExecutedReply(ans))
	})
}

// explainExec asks all eight gates of the crossing that exec would make, recording
// nothing and running nothing.
func (s *Server) explainExec(w http.ResponseWriter, r *http.Request) {
	s.taken(w, r, func(e Execution) {
		req, _, err := s.prepared(r.Context(), &e)
		if err != nil {
			s.refuseRun(w, err)
			return
		}
		out, err := s.Kernel.Explain(r.Context(), req)
		s.outcome(w, out, err)
	})
}

// taken reads an Execution once there is room for it, and calls do with it, which
// answers.
func (s *Server) taken(w http.ResponseWriter, r *http.Request, do func(Execution)) {
	leave, err := s.Enter(r.Context(), r.ContentLength)
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	defer leave()
	var e Execution
	// Who says nothing more keeps its place from others for no longer than that.
	// Where the connection has no deadlines, the error says so and all is as it was.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyWithin(r.ContentLength)))
	err = parse(w, r, &e, maxExecution)
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil {
		err = &holdfast.Error{Kind: holdfast.KindProtocol, Why: "the request is not what this door takes: " + err.Error(), Hint: "send an execution request as JSON, code and files in base64"}
		s.tellRefused(e.RequestID, err)
		s.refuseRun(w, err)
		return
	}
	do(e)
}

// bodyWithin is how long a body of that size may take to come; below 0 it is not
// known.
func bodyWithin(size int64) time.Duration {
	if size < 0 || size > largeBody {
		return 30 * time.Second
	}
	return 5 * time.Second
}

// Enter waits for room to run code, before a byte of the request is read; size
// is what it says of itself, below 0 if nothing. The error is a TimeoutError.
// The caller leaves.
func (s *Server) Enter(ctx context.Context, size int64) (leave func(), err error) {
	return s.executions.enter(ctx, s.Room, size)
}

// Execute runs code as a crossing of exec/LANGUAGE for a caller who has entered.
// An error is one of the request: there was no crossing, and nothing ran.
func (s *Server) Execute(ctx context.Context, e Execution) (*Executed, error) {
	req, spec, err := s.prepared(ctx, &e)
	if err != nil {
		s.tellRefused(e.RequestID, err)
		return nil, err
	}
	return s.executed(ctx, &e, req, spec), nil
}

// prepared makes of an Execution what the gates are asked and what is run.
func (s *Server) prepared(ctx context.Context, e *Execution) (req holdfast.Request, spec sandbox.Spec, err error) {
	spec = e.spec()
	if err = errors.Join(sandbox.CheckNames(spec), e.Evidence.Check()); err != nil {
		return req, spec, err
	}
	var unnamed error // told last: what is wrong with the code comes before who asks
	exact, ok := s.Sandbox.Language(ctx, spec.Language)
	if ok {
		ask := Ask{Boundary: "exec/" + exact, Agent: e.Agent, Kind: e.Kind, Session: e.Session, Intent: e.Intent, Chain: e.Chain, Token: e.Token, IdempotencyKey: e.IdempotencyKey}
		req, unnamed = s.request(ask)
		// Who asks with no good token the gates refuse, and record.
		choice, _ := s.choose(ctx, e, req.Token, req.Boundary)
		spec.Language, spec.Tier, spec.Chosen = exact, choice.Tier, choice.Why
	}
	if spec, err = s.Sandbox.Prepare(ctx, spec); err != nil {
		return req, spec, err
	}
	if unnamed != nil {
		return req, spec, unnamed
	}
	if !ok || spec.Language != exact {
		return req, spec, &holdfast.Error{Kind: holdfast.KindLanguage, Why: fmt.Sprintf("the language is not the same in each tier: %q and %q", exact, spec.Language), Hint: "name it exactly, such as python3.11"}
	}
	req.Payload, err = executionPayload(spec)
	return req, spec, err
}

func (s *Server) executed(ctx context.Context, e *Execution, req holdfast.Request, spec sandbox.Spec) *Executed {
	ctx, end := s.underway.begin(ctx, spec.ID, s.Ending)
	defer end()
	var done *posture.Result
	out, err := s.Kernel.Cross(ctx, req, func(ctx context.Context) (holdfast.Output, error) {
		at := posture.Instants{Received: time.Now(), Parsed: time.Now()}
		s.needs(req.Boundary, &spec)
		err := s.still(ctx, e, req, &spec)
		var res *posture.Result
		if err == nil {
			res, err = s.Sandbox.Run(ctx, spec)
		}
		if err != nil && res == nil {
			at.Ended = time.Now()
			res = sandbox.Unbegun(spec, posture.Posture{}, at, err)
		}
		if res != nil && res.Chosen == "" {
			res.Chosen = spec.Chosen
		}
		done = res
		if err != nil {
			return unbegun(spec, res, err)
		}
		out, err := outputOf(res)
		if err != nil {
			return out, err
		}
		return out, withCode(came(ctx, res), spec.Code)
	})
	ans := &Executed{Outcome: s.masked(out)}
	if ans.Result, err = passed(out, done, err); ans.Result != nil && ans.Result.State == posture.SpawnError {
		ans.Result.Stderr, ans.Result.ErrorMessage = s.Mask(ans.Result.Stderr), s.Mask(ans.Result.ErrorMessage)
	}
	if err != nil {
		ans.Failure = s.failure(err)
		s.logInner(err)
	}
	return ans
}

// unbegun is what the act of a run comes to of which nothing ran.
func unbegun(spec sandbox.Spec, res *posture.Result, err error) (holdfast.Output, error) {
	n := &posture.News{Run: spec.ID, State: posture.StateOf(err), Signals: posture.Refused(err), Err: err}
	if res != nil {
		n.Exit = res.ExitCode
	}
	return holdfast.Output{ExitCode: n.Exit}, n
}

// tellRefused tells of a request that cannot be run, before anything is asked of
// the gates: the state PROTOCOL_ERROR of 003 2.1, with its trace event.
func (s *Server) tellRefused(run string, err error) {
	f := s.failure(err)
	for _, row := range posture.Refused(err) {
		s.Log.Log(context.Background(), row.Level, "refused", "trace", row.Event, "state", string(posture.StateOf(err)),
			"request_id", s.Mask(excerpt.Of(run, 64)), "kind", string(f.Kind), "why", f.Why)
	}
}

// refuseRun answers such a request.
func (s *Server) refuseRun(w http.ResponseWriter, err error) {
	f := s.failure(err)
	f.State = posture.StateOf(err)
	s.logInner(err)
	s.write(w, errorcode.Lookup(f.Kind).API, Answer{Failure: f})
}

// passed is what the caller may see of a run: what the kernel let out, of this
// run or, where it was one before, of that. What K8 or a halt withholds stays
// withheld. Of an attempt to leave the sandbox, of whose output nobody was asked,
// it is how the run ended and nothing that the code wrote; of a run whose walls
// could not be built, why.
func passed(out *holdfast.Outcome, done *posture.Result, err error) (*posture.Document, error) {
	switch {
	case out != nil && out.Output != nil:
		var d posture.Document
		if bad := json.Unmarshal(out.Output.Body, &d); bad != nil {
			return nil, errors.Join(err, fmt.Errorf("read a run's result again: %w", bad))
		}
		return &d, err
	case done != nil && done.State == posture.SpawnError && posture.StateOf(err) == posture.SpawnError:
		d := done.Document()
		return &d, err
	case holdfast.KindOf(err) == holdfast.KindEscape && done != nil:
		own := *done
		own.Stdout, own.Stderr, own.OutputFiles, own.Skipped, own.Cut = nil, []byte(own.Err+"\n"), nil, nil, nil
		d := own.Document()
		return &d, err
	}
	return nil, err
}

// Room bounds what runs and waits at once.
type Room struct {
	Running int           // at least 1
	Waiting int           // how many more wait
	Wait    time.Duration // how long each of them
}

// DefaultRoom is the specification's (003 2.1, as its interface document has
// it): 10 run, 100 wait, at most 30 s.
func DefaultRoom() Room { return Room{Running: 10, Waiting: 100, Wait: 30 * time.Second} }

// largeBody is from where on requests are taken one at a time: some of them
// would fill a machine's memory.
const largeBody = 8 << 20

// executions counts them. Its zero value counts from none.
type executions struct {
	once    sync.Once
	room    Room
	running chan struct{}
	large   chan struct{}
	waiting atomic.Int32
}

// enter waits for room; the first sets how much there is.
func (x *executions) enter(ctx context.Context, room Room, size int64) (leave func(), err error) {
	x.once.Do(func() {
		if room.Running < 1 {
			room = DefaultRoom()
		}
		x.room, x.running, x.large = room, make(chan struct{}, room.Running), make(chan struct{}, 1)
	})
	rooms := []chan struct{}{x.running}
	if size < 0 || size > largeBody {
		rooms = []chan struct{}{x.large, x.running}
	}
	if leave := take(closedChannel(), rooms); leave != nil {
		return leave, nil
	}
	if int(x.waiting.Add(1)) > x.room.Waiting {
		x.waiting.Add(-1)
		return nil, busy("%d requests to run code wait already", x.room.Waiting)
	}
	defer x.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, x.room.Wait)
	defer cancel()
	if leave := take(ctx.Done(), rooms); leave != nil {
		return leave, nil
	}
	return nil, busy("%d programs run already, and none ended in time", x.room.Running)
}

// take takes a place in each of rooms, in their order, and returns what gives
// them back; nil where one had none before end.
func take(end <-chan struct{}, rooms []chan struct{}) (leave func()) {
	var taken []chan struct{}
	leave = func() {
		for _, c := range taken {
			<-c
		}
	}
	for _, room := range rooms {
		select {
		case room <- struct{}{}:
			taken = append(taken, room)
			continue
		default:
		}
		select {
		case room <- struct{}{}:
			taken = append(taken, room)
		case <-end:
			leave()
			return nil
		}
	}
	return leave
}

// closedChannel is an end that has come already.
func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func busy(why string, n int) error {
	return &holdfast.Error{Kind: holdfast.KindTimeout, Why: fmt.Sprintf(why, n), Hint: "try again in a moment"}
}

// needs is what the boundary's contract demands of the sandbox: a tier, and the
// walls where it names fewer than all (D20).
func (s *Server) needs(boundary string, spec *sandbox.Spec) posture.Tier {
	c, _ := s.Kernel.Contract(boundary)
	spec.Need = nil
	for _, w := range c.Walls {
		spec.Need = append(spec.Need, posture.Wall(w))
	}
	if t, ok := posture.ParseTier(c.Tier); ok {
		return t
	}
	return posture.TierProcess
}

func (e *Execution) spec() sandbox.Spec {
	return sandbox.Spec{
		ID: e.RequestID, Language: e.Language, Code: e.Code, Environment: e.Environment, Files: e.Files,
		Timeout: e.Timeout, MemoryMB: e.MemoryMB, CPUPeriod: e.CPUPeriod, CPUQuota: e.CPUQuota, Narrow: e.Narrow,
	}
}

// shownCode is how much code stands in the payload for rules and people; more is
// there by its hash alone.
const shownCode = 4 << 20

// executionPayload is what the gates judge: everything that decides what runs,
// files by size and hash.
func executionPayload(s sandbox.Spec) ([]byte, error) {
	type file struct {
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	files := map[string]file{}
	for name, b := range s.Files {
		files[name] = file{len(b), hash(b)}
	}
	code := ""
	if s.Language != sandbox.Static && len(s.Code) <= shownCode {
		code = string(s.Code)
	}
	return json.Marshal(map[string]any{
		"language": s.Language, "code": code, "code_bytes": len(s.Code), "code_sha256": hash(s.Code),
		"environment": s.Environment, "files": files, "narrow": s.Narrow,
		"timeout_ms": s.Timeout.Milliseconds(), "memory_limit_mb": s.MemoryMB,
		"cpu_period_us": s.CPUPeriod.Microseconds(), "cpu_quota_us": s.CPUQuota.Microseconds(),
		"tier": s.Tier.String(), "tier_why": s.Chosen,
	})
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// outputOf is a result as a crossing's output, with what was used (D9).
func outputOf(r *posture.Result) (holdfast.Output, error) {
	body, err := json.Marshal(r.Document())
	if err != nil {
		return holdfast.Output{}, err
	}
	return holdfast.Output{Body: body, ExitCode: r.ExitCode, Ran: ran(r.State, r.Posture, r.Chosen), Used: map[holdfast.Resource]int64{
		holdfast.CPUMillis:  (r.UserTime + r.SystemTime).Milliseconds(),
		holdfast.WallMillis: r.WallTime.Milliseconds(),
		holdfast.MemoryMB:   r.MemoryPeak >> 20,
		holdfast.FileWrites: int64(len(r.OutputFiles)),
	}}, nil
}
