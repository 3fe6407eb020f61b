package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/destination"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/hangup"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// exchange is one request on its way. It is judged, redacted and put together
// by the handler; what comes after is the crossing's act.
type exchange struct {
	p *Proxy
	s *seat
	// who asks, and what it holds: the seat's, or of a gateway the guest's.
	who Caller
	own *owner
	w   http.ResponseWriter
	r   *http.Request

	ask     domain.Ask
	domain  *domain.Domain // nil where no row is for it
	body    *body
	model   *model             // nil where none is asked
	sub     *holdfast.SubAgent // who asks a model within the agent; nil where nobody says
	header  http.Header        // as it goes out, without the credential
	masked  []redact.Finding   // what was masked in it
	mapped  listMapped         // of a WebSocket, for its messages
	denials []holdfast.Opinion
	shown   string // path and query for people, redacted: of what the door refuses, and of signed URLs

	// The act's, which the handler reads when acted is closed.
	begun  atomic.Bool
	acted  chan struct{}
	asked  time.Time // when the crossing was asked for
	took   parts
	answer relayed
	broken bool          // the answer ended before its end
	held   *heldResponse // nil: the answer goes out as it comes
	gate   bool          // rules judge what it calls while it comes
	stop   func() bool   // lets the client's going away no longer end the act
	cancel context.CancelCauseFunc
	client *wire.Lasting // nil where the handler stays until the answer has ended
	left   chan struct{} // closed when client is set
	sized  int64         // size, where client is set

	read bool // nothing of the request stands before the next
}

// parts are how long parts of one request's way took, as its record has them.
type parts struct{ redact, gates, answer time.Duration }

// handle answers one request. Where it says that the answer goes on without it,
// the end of the answer gives the request's place back.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request, ch *channel, h *wire.Head) (goesOn bool) {
	if r.Method == http.MethodConnect && h != nil && h.Mistake == nil && ch.via == proxied {
		p.connect(w, r, ch, h)
		return false
	}
	// Whatever becomes of the request, its body does not keep it open.
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.cfg.Limits.Body))
	if ch.via == proxied && h != nil && h.Mistake == nil && strings.HasPrefix(h.Target, below) {
		return p.toModels(w, r, ch, h)
	}
	start := time.Now()
	ask, err := destination.Read(r, ch.info(), h)
	p.counters.Observe(counters.Parse, time.Since(start))
	if err != nil {
		p.refuse(w, r, ch, ask, nil, err)
		return false
	}
	start = time.Now()
	d, err := p.table().Decide(ask)
	p.counters.Observe(counters.Decide, time.Since(start))
	if err != nil {
		d, _ = p.table().Find(ask.Origin)
		p.refuse(w, r, ch, ask, d, err)
		return false
	}
	return p.pass(w, r, ch, ask, d)
}

// pass sends on a request that the allowlist allows.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, ch *channel, ask domain.Ask, d *domain.Domain) (goesOn bool) {
	if r.Context().Value(speaksKey{}) == nil && d.Type == domain.LLM {
		path, _, _ := strings.Cut(ask.Target, "?")
		r = speaking(r, dialectOf(d, ask, path).Provider())
	}
	x := ch.exchange(w, r, ask, d)
	defer func() {
		if !goesOn {
			x.body.done()
		}
	}()
	if err := x.prepare(); err != nil {
		p.refuse(w, r, ch, ask, d, err)
		return false
	}
	return x.cross()
}

// prepare reads and redacts what goes out.
func (x *exchange) prepare() *holdfast.Error {
	start := time.Now()
	begun := start
	b, err := x.readBody()
	x.p.counters.Observe(counters.ReadBody, time.Since(start))
	if err != nil {
		return err
	}
	x.body = b
	start = time.Now()
	defer func() { x.p.counters.Observe(counters.Redact, time.Since(start)) }()
	if x.ask.Upgrade != "" && x.domain.Request == domain.Placeholder {
		return &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/websocket",
			Why:  "placeholders are not restored in the messages of a WebSocket",
			Hint: "ask over HTTPS, or write `redact: {request: mask}` in the row of " + x.domain.Name}
	}
	masked, err := x.redactTarget()
	if err != nil {
		return err
	}
	if err := x.readModel(); err != nil {
		return err
	}
	if x.body.masks != nil {
		if err := x.body.masks(); err != nil {
			return err
		}
	}
	header, found, err := x.p.outgoing(x.domain, x.r.Header)
	if err != nil {
		return err
	}
	x.masked = append(masked, found...)
	if x.header, err = x.cleanMapped(header); err != nil {
		return err
	}
	if x.ask.Upgrade != "" {
		x.mapped = x.openMapped(x.r.Context())
	}
	x.took.redact = time.Since(begun)
	x.p.counters.MaskedOut.Add(int64(len(x.masked) + len(b.findings)))
	if x.model == nil || x.model.mapped == nil {
		x.masked = append(x.masked, b.findings...)
	}
	return nil
}

// readBody reads the body under a deadline that its bytes move on.
func (x *exchange) readBody() (*body, *holdfast.Error) {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		http.NewResponseController(x.w).SetReadDeadline(time.Time{})
		x.read = true
		return x.p.readBody(x.r.Context(), x.domain, x.r)
	}
	limit := x.p.cfg.Limits.Body
	patient := &patientBody{ReadCloser: x.r.Body, c: http.NewResponseController(x.w), d: limit, whole: time.Now().Add(manyWaits * limit)}
	x.r.Body = patient
	b, err := x.p.readBody(x.r.Context(), x.domain, x.r)
	if cut, ok := errors.AsType[*holdfast.Error](patient.err); err != nil && ok {
		err = cut // wire's own word: it knows better why the body ended
	} else if err != nil && errors.Is(patient.err, errStalled) {
		err = &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: "the request's body did not arrive in time", Hint: "send it without a pause", Err: patient.err}
	}
	x.read = patient.ended
	if err == nil { // else net/http still looks for the rest before it answers
		patient.c.SetReadDeadline(time.Time{})
	}
	return b, err
}

// redactTarget redacts path and query as the row says, and returns what was masked. What was masked must still be
// allowed. A signed URL to which a host redirected this caller is sent as it is.
func (x *exchange) redactTarget() ([]redact.Finding, *holdfast.Error) {
	if x.domain.Request == domain.Off {
		return nil, nil
	}
	c, err := x.p.out.cleaners.Open(x.domain)
	if err != nil {
		return nil, err
	}
	granted := (x.ask.Method == http.MethodGet || x.ask.Method == http.MethodHead) &&
		x.own.redirects.Has(x.ask.Origin.String()+x.ask.Target, x.p.now())
	target, found, err := x.p.out.cleaners.CleanTarget(c, cleaner.RequestRules(x.domain), x.ask, granted)
	if granted {
		x.shown = x.p.shownTarget(x.domain, x.ask)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	was := x.ask.Target
	x.ask.Target = target
	if d, err := x.p.table().Decide(x.ask); err != nil || d != x.domain {
		x.ask.Target = was
		return nil, cleaner.NewTargetError()
	}
	return found, nil
}

// cross makes the crossing. It returns when the client has all that it gets, the
// entry follows; or when the answer goes on without it.
func (x *exchange) cross() (goesOn bool) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.r.Context()))
	x.cancel = cancel
	x.stop = context.AfterFunc(x.r.Context(), func() { cancel(errGone) })
	withholds := x.p.cfg.Kernel.Withholds(x.domain.Boundary())
	if x.gate = withholds && x.gated(); withholds && !x.gate {
		x.held = newHeld(min(x.domain.MaxResponse, maxHeld))
	}
	type crossed struct {
		o   *holdfast.Outcome
		err error
	}
	ended := make(chan crossed, 1)
	req := x.request()
	x.asked = time.Now()
	select {
	case x.p.pending <- struct{}{}: // also for who has left: it was asked, and is recorded
	default:
		select {
		case x.p.pending <- struct{}{}:
		case <-x.r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if !x.s.begin(func() {
		defer cancel(nil)
		defer func() { <-x.p.pending }()
		o, err := x.p.cfg.Kernel.Cross(ctx, req, x.act)
		x.p.counters.Ended(x.domain.Name, string(holdfast.KindOf(err)))
		ended <- crossed{o, err}
	}) {
		<-x.p.pending
		panic(http.ErrAbortHandler)
	}
	select {
	case <-x.acted:
		if x.held == nil && (x.answer.began || !x.broken) {
			x.finish()
			return false
		}
	case <-x.left:
		return true
	case c := <-ended:
		ended <- c
	}
	c := <-ended
	if x.begun.Load() {
		select {
		case <-x.acted: // nobody else may use w
		case <-x.left:
			return true
		}
	}
	switch {
	case x.held == nil && x.answer.began:
		x.finish()
	case c.err != nil && x.held != nil && x.held.whole && holdfast.KindOf(c.err) == holdfast.KindForward:
		x.held.give(x.w) // what the upstream did answer passes (D25)
	case c.err != nil || x.held == nil:
		x.p.answer(x.w, x.r, c.o, c.err)
	default:
		x.held.give(x.w)
	}
	return false
}

// errGone is why the act ends when its client has gone.
var errGone = &holdfast.Error{Kind: holdfast.KindCanceled, Why: "the client has gone away"}

// finish ends an answer that has begun.
func (x *exchange) finish() {
	if x.broken {
		if !x.r.ProtoAtLeast(1, 1) { // an end of the connection would say that it is
			if c, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
				hangup.CutOff(c)
			}
		}
		panic(http.ErrAbortHandler) // the client must see that it is not whole
	}
}

// act sends the request and gives the answer back: it is what the kernel runs,
// and nothing else sends.
func (x *exchange) act(ctx context.Context) (out holdfast.Output, err error) {
	if !x.begun.CompareAndSwap(false, true) {
		return out, &holdfast.Error{Kind: holdfast.KindReentry, Why: "a request is sent once"}
	}
	x.took.gates = time.Since(x.asked)
	x.p.counters.Observe(counters.Cross, x.took.gates)
	x.broken = true
	defer func() { // the client need not wait for it
		if err := x.model.saveValues(ctx); err != nil {
			x.p.log.Error("values behind placeholders were not kept", "err", err)
		}
	}()
	defer func() {
		x.stop()
		if x.client != nil {
			x.part()
			x.body.done()
			return
		}
		close(x.acted)
	}()
	if err := x.model.saveValues(ctx); err != nil {
		err = errors.Join(err, holdfast.ErrNotStarted)
		if full, ok := errors.AsType[*holdfast.Error](err); ok && full.Kind == holdfast.KindBounds {
			refused := *full
			refused.Err = holdfast.ErrNotStarted
			return out, &refused
		}
		return out, cleaner.AsRedactionError(err)
	}
	up, err := x.upstream(ctx)
	if err != nil {
		return out, err
	}
	patient := &patientWriter{ResponseWriter: x.w, c: http.NewResponseController(x.w), d: x.p.cfg.Limits.Idle, x: x}
	defer patient.done()
	var w http.ResponseWriter = patient
	if x.held != nil {
		w = x.held
	}
	if id := kernel.CrossingID(ctx); id != "" {
		w.Header().Set(refusal.HeaderCrossing, id)
	}
	if x.gate {
		x.watch(ctx)
	}
	if err := x.forward(ctx, w, up); err != nil {
		if errors.Is(err, errJudged) {
			return x.output(), nil // the client has no more of it; K8 says why
		}
		if errors.Is(err, holdfast.ErrNotStarted) {
			return holdfast.Output{}, err
		}
		return x.output(), err
	}
	x.broken = false
	if x.client != nil {
		x.part() // the client need not wait for what is recorded
	}
	if x.held != nil {
		x.held.whole = true
	} else if x.client == nil && x.r.ProtoMajor == 1 && x.answer.began && x.ask.Upgrade == "" {
		// The client need not wait until the handler's turn comes. Over HTTP/2 an
		// answer's end is told by the handler's return alone.
		// Whoever leaves once he has it all has not given up.
		x.stop()
		_ = patient.c.Flush() // who has gone away misses nothing
	}
	x.p.counters.MaskedIn.Add(int64(len(x.answer.findings)))
	return x.output(), x.answered()
}

// part ends the answer to a client that was taken over, and gives the request's place
// back. Again it does nothing.
func (x *exchange) part() {
	if x.client.End(!x.broken) {
		<-x.own.places
	}
}

func (x *exchange) forward(ctx context.Context, w http.ResponseWriter, up *http.Request) error {
	start := time.Now()
	var err error
	ctx = upstream.WithPool(ctx, x.pool())
	if x.ask.Upgrade != "" {
		x.answer, err = x.p.webSocket(ctx, w, x.r, up, x.domain, x.ask.Origin, x.masked, x.mapped)
	} else {
		var resp *http.Response
		if resp, err = x.p.out.upstreams.Send(ctx, x.domain, x.ask.Origin, up); err != nil {
			return err
		}
		answered := time.Now()
		x.took.answer, start = answered.Sub(start), answered
		x.answer, err = x.p.relayAnswer(ctx, w, x.domain, resp, x.model, x.masked)
	}
	x.p.counters.Observe(counters.Stream, time.Since(start))
	return err
}

// upstream is the request as it goes out: made anew, from what was judged.
func (x *exchange) upstream(ctx context.Context) (*http.Request, error) {
	var b io.Reader
	if x.body.size > 0 {
		b = bytes.NewReader(x.body.raw)
	}
	up, err := http.NewRequestWithContext(ctx, x.ask.Method, x.ask.Origin.String()+x.ask.Target, b)
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindValidation, Why: "the request could not be written", Err: errors.Join(err, holdfast.ErrNotStarted)}
	}
	if up.URL.RequestURI() != x.ask.Target {
		return nil, &holdfast.Error{Kind: holdfast.KindValidation, Why: "the request's target would not leave as it was judged", Err: holdfast.ErrNotStarted}
	}
	up.Header = x.header.Clone()
	if err := x.p.credential(ctx, x.domain, up.Header); err != nil {
		return nil, err
	}
	return up, nil
}

// used is what was measured of the resources that a domain may be counted in.
func (x *exchange) used() map[holdfast.Resource]int64 {
	if took := x.model.took(); took != nil && x.domain.Unit == domain.Tokens {
		return map[holdfast.Resource]int64{holdfast.LLMTokens: took.All()}
	}
	if x.domain == nil || x.domain.Unit != domain.Bytes {
		return nil
	}
	return map[holdfast.Resource]int64{holdfast.BytesOut: x.size() + x.answer.sent}
}

// size is what leaves of the request itself, in bytes.
func (x *exchange) size() int64 {
	if x.client != nil {
		return x.sized
	}
	n := x.body.size + int64(len(x.ask.Target))
	for name, values := range x.header {
		for _, v := range values {
			n += int64(len(name) + len(v))
		}
	}
	return n
}

// exchange is one request of the channel.
func (ch *channel) exchange(w http.ResponseWriter, r *http.Request, ask domain.Ask, d *domain.Domain) *exchange {
	x := &exchange{p: ch.s.p, s: ch.s, who: ch.s.who, own: ch.s.own, w: w, r: r, ask: ask, domain: d, body: noBody(), acted: make(chan struct{}), left: make(chan struct{})}
	if ch.who != nil {
		x.who, x.own = *ch.who, ch.own
	}
	return x
}

// pool is whose connections to upstreams the exchange may share.
func (x *exchange) pool() any {
	if x.s.via == gateway {
		return x.own.name
	}
	return x.s
}

// never is the act of a crossing that is refused: it must not be run.
func (x *exchange) never(context.Context) (holdfast.Output, error) {
	return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "a request that the door refuses was let through", Err: holdfast.ErrNotStarted}
}

// refuse records a request that goes nowhere, and says why. d is its row, nil
// where none is for it.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, ch *channel, ask domain.Ask, d *domain.Domain, no *holdfast.Error) {
	x := ch.exchange(nil, nil, ask, d)
	x.denials, x.shown = deny(no), p.shownTarget(d, ask)
	o, err := p.cfg.Kernel.Cross(context.WithoutCancel(r.Context()), x.request(), x.never)
	name := ""
	if d != nil {
		name = d.Name
	}
	if k := holdfast.KindOf(err); err == nil || k == holdfast.KindNoBoundary {
		// No contract is for what no row lists; the door's own word says more.
		own := *no
		if o != nil {
			own.Crossing = o.Crossing
		}
		err = &own
	}
	p.counters.Ended(name, string(holdfast.KindOf(err)))
	if ch.wire != nil && (r.Method == http.MethodConnect || strings.EqualFold(r.Header.Get("Upgrade"), "websocket")) {
		w.Header().Set("Connection", "close") // what follows is no HTTP any more
	}
	p.answer(w, r, o, err)
}

// deny is a door's denial, as the kernel takes it.
func deny(e *holdfast.Error) []holdfast.Opinion {
	gate := e.Gate
	if gate < holdfast.K1 || gate > holdfast.K8 {
		gate = holdfast.K1
	}
	return []holdfast.Opinion{{Gate: gate, Verdict: holdfast.Deny, Kind: e.Kind, Rule: e.Rule, Why: e.Why, Hint: e.Hint}}
}
