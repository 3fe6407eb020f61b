package egress

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// maxMessage bounds one message of a WebSocket, in bytes: it is held whole.
const maxMessage = 4 << 20

// maxReason is what a closing frame has room for behind its code, in bytes (RFC
// 6455, section 5.5).
const maxReason = 123

// webSocket makes the handshake up with the upstream, takes the client's
// connection over from w, and carries messages both ways until one end closes.
// r is the client's handshake; up is what goes out of it, with its credential.
// Both handshakes are our own, without extensions: no message is compressed.
// Messages are put together from their frames, redacted as d says (as a body
// is: a secret in two messages is not seen) and sent in one frame; binary ones
// pass where d allows binary bodies, or where they can be read. d's limits hold
// for what all messages of a way have together. An upstream that refuses the
// handshake is relayed as any answer is.
func (p *Proxy) webSocket(
	ctx context.Context, w http.ResponseWriter, r, up *http.Request, d *domain.Domain, o domain.Origin,
	masked []redact.Finding, mapped listMapped,
) (relayed, error) {
	s := &socket{p: p, d: d, sum: sha256.New(), mapped: mapped}
	var failed *holdfast.Error
	if s.c, failed = p.out.cleaners.OpenAnswer(d, sentCredential(d, up.Header)); failed != nil {
		return relayed{}, failed
	}
	offered, failed := s.protocols(r.Header)
	if failed != nil {
		return relayed{}, failed
	}
	there, resp, err := websocket.Dial(ctx, o.String()+up.URL.RequestURI(), &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     roundTrip(func(req *http.Request) (*http.Response, error) { return p.out.upstreams.Send(ctx, d, o, req) }),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader:   up.Header.Clone(),
		Subprotocols: offered,
	})
	if err != nil {
		return p.noSocket(ctx, w, d, resp, masked, err)
	}
	defer there.CloseNow()
	var chosen []string
	if name := there.Subprotocol(); name != "" {
		chosen = []string{name}
	}
	if told := cleaner.DescribeChanges(nil, cleaner.CountMasked(masked, nil)); told != "" {
		w.Header().Set(refusal.HeaderRedacted, told)
	}
	here, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: chosen})
	if err != nil {
		return relayed{status: http.StatusSwitchingProtocols, began: true}, &holdfast.Error{
			Kind: holdfast.KindForward, Rule: "egress/websocket", Err: err, Why: "the client's handshake failed", Hint: "WebSockets are spoken over HTTP/1.1",
		}
	}
	defer here.CloseNow()
	if err = s.carry(ctx, here, there); err == nil {
		err = context.Cause(ctx) // neither end closed it: it was cut
	}
	s.got.status, s.got.began = http.StatusSwitchingProtocols, true
	s.sum.Sum(s.got.sum[:0])
	return s.got, err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// noSocket is an upstream's refusal, or the error of no answer.
func (p *Proxy) noSocket(
	ctx context.Context, w http.ResponseWriter, d *domain.Domain, resp *http.Response, masked []redact.Finding,
	err error,
) (relayed, error) {
	if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.ContentLength = -1 // of a body of which the beginning is there
		resp.Header.Del("Content-Length")
		return p.relayAnswer(ctx, w, d, resp, nil, masked)
	}
	var known *holdfast.Error
	if errors.As(err, &known) {
		return relayed{}, known
	}
	return relayed{}, &holdfast.Error{
		Kind: holdfast.KindForward, Rule: "egress/websocket", Err: err,
		Why: "the upstream's handshake for a WebSocket is not right", Hint: "nothing but the handshake was sent",
	}
}

// socket is one WebSocket between two ends.
type socket struct {
	p      *Proxy
	d      *domain.Domain
	c      cleaner.Cleaner
	mapped listMapped // nil for none

	idle   *time.Timer // ends both ways
	silent atomic.Bool // it did

	mu  sync.Mutex
	got relayed   // guarded by mu
	sum hash.Hash // guarded by mu
}

// protocols are those that the client offers, without those that carry its own
// credential (D23), as there is no header for one in a browser. They are not
// rewritten: where something is found they are refused.
func (s *socket) protocols(h http.Header) ([]string, *holdfast.Error) {
	lines := h["Sec-Websocket-Protocol"]
	if len(lines) == 0 {
		return nil, nil
	}
	var list []string
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); s.d.AgentCredentials || !headerfield.IsCredential(name) {
				list = append(list, name)
			}
		}
	}
	if s.d.Request == domain.Off {
		return list, nil
	}
	read := http.Header{"Sec-Websocket-Protocol": {strings.Join(list, ", ")}}
	_, found, failed := s.p.out.cleaners.CleanHeader(s.c, cleaner.RequestRules(s.d), read)
	if failed == nil && len(found) > 0 {
		failed = cleaner.RequestRules(s.d).Refuse("the WebSocket's protocol", found)
	}
	return list, failed
}

// carry carries both ways and returns the first error; nil where an end closed,
// and a TimeoutError where neither said anything for long.
func (s *socket) carry(ctx context.Context, here, there *websocket.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := upstream.IdleOf(s.d, upstream.EventsIdle)
	s.idle = time.AfterFunc(limit, func() {
		s.silent.Store(true)
		cancel()
	})
	defer s.idle.Stop()
	var out, back error
	var both sync.WaitGroup
	way := func(err *error, to, from *websocket.Conn, rules cleaner.Rules, most int64, out bool) func() {
		return func() {
			// An end that takes nothing more may have said its last before: the other
			// is still to get that.
			if *err = s.carryMessages(ctx, to, from, rules, most, out); *err == errUntaken {
				*err = nil
				return
			}
			cancel()
		}
	}
	both.Go(way(&out, there, here, cleaner.RequestRules(s.d), maxRequest(s.d), true))
	both.Go(way(&back, here, there, cleaner.AnswerRules(s.d, s.d.Response), maxResponse(s.d), false))
	both.Wait()
	switch {
	case out != nil:
		return out
	case back == nil && s.silent.Load():
		return upstream.FellSilent(s.d, limit, nil)
	}
	return back
}

// errUntaken is of a message that its end did not take: what that end itself says,
// if anything, says why.
var errUntaken = errors.New("the message was not taken")

// carryMessages carries messages one way until its end closes, and closes the other with
// the same word, or until a message is not taken.
func (s *socket) carryMessages(
	ctx context.Context, to, from *websocket.Conn, rules cleaner.Rules, most int64, out bool,
) error {
	from.SetReadLimit(min(maxMessage, most))
	for total := int64(0); ; {
		kind, data, err := from.Read(ctx)
		if err != nil {
			return s.passClose(ctx, to, err, rules, out)
		}
		s.idle.Reset(upstream.IdleOf(s.d, upstream.EventsIdle))
		if total += int64(len(data)); total > most {
			return s.refuse(to, from, coding.NewSizeError("WebSocket", most))
		}
		share := s.p.out.memory.NewShare(heldBy(ctx))
		clean, found, failed := s.clean(rules, kind, data, share)
		if failed == nil && out {
			clean, found, failed = s.cleanMapped(ctx, clean, found, share)
		}
		if failed == nil {
			s.measure(clean, found, out)
			err = to.Write(ctx, kind, clean)
		}
		share.Done()
		if failed != nil {
			return s.refuse(to, from, failed)
		}
		if err != nil {
			return errUntaken
		}
	}
}

// clean redacts a message.
func (s *socket) clean(
	rules cleaner.Rules, kind websocket.MessageType, data []byte, share *memory.Share,
) ([]byte, []redact.Finding, *holdfast.Error) {
	if rules.Secrets == domain.Off || len(data) == 0 {
		return data, nil, nil
	}
	if !share.Grow(int64(len(data))) {
		return nil, nil, memory.Busy()
	}
	if kind == websocket.MessageText && !utf8.Valid(data) {
		return nil, nil, coding.NewDecodingError(errors.New("a text message that is not UTF-8"))
	}
	return s.p.out.cleaners.CleanBody(s.c, rules, "", data, share)
}

// cleanMapped masks or refuses the values of the agent's session in a message that goes out. found are the findings
// of data so far.
func (s *socket) cleanMapped(
	ctx context.Context, data []byte, found []redact.Finding, share *memory.Share,
) ([]byte, []redact.Finding, *holdfast.Error) {
	if s.mapped == nil || len(data) == 0 {
		return data, found, nil
	}
	list, failed := s.mapped(ctx)
	for _, m := range list {
		clean, more, failed := s.p.out.cleaners.CleanBody(cleaner.New(m.Engine), m.Rules, "", data, share)
		if failed != nil {
			return nil, nil, failed
		}
		data, found = clean, append(found, more...)
	}
	return data, found, failed
}

func (s *socket) measure(data []byte, found []redact.Finding, out bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out {
		s.got.sent += int64(len(data))
	} else {
		s.got.bytes += int64(len(data))
		s.sum.Write(data)
	}
	s.got.findings = append(s.got.findings, found[:min(len(found), max(0, maxFindings-len(s.got.findings)))]...)
}

// passClose passes on how an end closed.
func (s *socket) passClose(ctx context.Context, to *websocket.Conn, err error, rules cleaner.Rules, out bool) error {
	var said websocket.CloseError
	switch {
	case errors.As(err, &said):
		_ = to.Close(said.Code, s.cleanReason(ctx, rules, said.Reason, out))
		return nil
	case errors.Is(err, websocket.ErrMessageTooBig):
		_ = to.Close(websocket.StatusMessageTooBig, "")
		return coding.NewSizeError("WebSocket's message", maxMessage)
	case ctx.Err() != nil:
		return nil // the other way ended, or the run
	}
	_ = to.CloseNow()
	return nil
}

// cleanReason is why an end closed, redacted as a message is; "" where it may not go on.
func (s *socket) cleanReason(ctx context.Context, rules cleaner.Rules, text string, out bool) string {
	share := s.p.out.memory.NewShare(heldBy(ctx))
	defer share.Done()
	clean, _, failed := s.clean(rules, websocket.MessageText, []byte(text), share)
	if failed == nil && out {
		clean, _, failed = s.cleanMapped(ctx, clean, nil, share)
	}
	if failed != nil || len(clean) > maxReason {
		return ""
	}
	return string(clean)
}

// refuse ends both ends.
func (s *socket) refuse(to, from *websocket.Conn, e *holdfast.Error) error {
	_ = from.Close(websocket.StatusPolicyViolation, "holdfast: "+string(e.Kind))
	_ = to.Close(websocket.StatusGoingAway, "")
	return e
}
