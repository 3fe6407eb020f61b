package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// failed is a JSON-RPC error for what went wrong here. Only an error that was
// written for people is told; any other goes to the log.
func (s *session) failed(id []byte, err error) []byte {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return mcp.Failure(id, errorcode.Lookup(e.Kind).RPC, e.Error(), e.Hint)
	}
	if errors.Is(err, ErrServerEnded) || errors.Is(err, errCanceled) || errors.Is(err, ErrClientGone) {
		return mcp.Failure(id, errorcode.Refused, err.Error(), "")
	}
	s.Log.Error("the MCP gateway failed", "mcp_server", s.Server, "err", err)
	return mcp.Failure(id, errorcode.Refused, "internal error", "see holdfast's log")
}

// wrapError keeps a server's JSON-RPC error as the body of an output.
func wrapError(e []byte) []byte {
	return bytes.Join([][]byte{[]byte(`{"error":`), e, []byte("}")}, nil)
}

// content is one block of a tool result.
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// toolResult is a tool result that the gateway writes itself.
type toolResult struct {
	Type    string    `json:"resultType,omitempty"`
	Content []content `json:"content"`
	IsError bool      `json:"isError"`
	Meta    meta      `json:"_meta"`
}

// meta is what the gateway says to programs beside the text.
type meta struct {
	Crossing string     `json:"dev.holdfast/crossing,omitempty"`
	Verdict  string     `json:"dev.holdfast/verdict,omitempty"`
	Gate     string     `json:"dev.holdfast/gate,omitempty"`
	Kind     string     `json:"dev.holdfast/kind,omitempty"`
	Rule     string     `json:"dev.holdfast/rule,omitempty"`
	Review   string     `json:"dev.holdfast/review,omitempty"`
	Expires  *time.Time `json:"dev.holdfast/expires,omitempty"`
	Page     string     `json:"dev.holdfast/page,omitempty"`
	Replayed bool       `json:"dev.holdfast/replayed,omitempty"`
}

// letter is what the agent reads in place of a result: lines, of which empty
// ones are left out, a hint, and where it was written down.
type letter struct {
	lines []string
	hint  string
	meta  meta
}

// tell writes a letter as the answer to a call: a tool's result that is an
// error, or a JSON-RPC error where no tool was called, none that there is, or
// its answer was lost.
func (c *call) tell(l letter) []byte {
	lines := slices.DeleteFunc(append(l.lines, c.buildNotice()), func(s string) bool { return s == "" })
	if c.tool == "" || c.unknown || c.unheard.Load() {
		code := errorcode.Refused
		if c.unknown {
			code = mcp.CodeBadParams
		}
		data := mcp.Encode(struct {
			Hint string `json:"hint,omitempty"`
			meta
		}{l.hint, l.meta})
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s,"data":%s}}`,
			c.ID, code, mcp.Quote(strings.Join(lines, "\n")), data)
	}
	if l.hint != "" {
		lines = append(lines, "hint: "+l.hint)
	}
	if p := place(l.meta); p != "" {
		lines = append(lines, p)
	}
	r := toolResult{IsError: true, Meta: l.meta, Content: []content{{"text", strings.Join(lines, "\n")}}}
	if c.stateless {
		r.Type = "complete"
	}
	return mcp.Respond(c.ID, mcp.Encode(r))
}

// present turns the outcome of a crossing into the line for the client.
func (s *session) present(ctx context.Context, a *act, o *holdfast.Outcome, err error) []byte {
	if a.stage() == answered && err != nil {
		s.mute()
	}
	switch {
	case o == nil:
		return s.refusal(a.c, nil, err, a.stage())
	case o.Verdict == holdfast.Hold:
		return s.onHold(a.c, o)
	case o.Verdict != holdfast.Allow || o.Output == nil || err != nil:
		return s.refusal(a.c, o, err, a.stage())
	case o.Replayed:
		return s.replayed(ctx, a, o)
	}
	got := a.got.Load()
	if got == nil {
		return s.refusal(a.c, o, errors.New("the crossing was allowed and nothing was done"), a.stage())
	}
	switch {
	case got.unfit != "":
		return s.unfit(a, o, got.unfit, "")
	case got.questions != nil:
		return s.questioned(ctx, a, o, *got)
	case got.Error != nil:
		return mcp.Message{ID: a.c.ID, Error: got.Error}.Line()
	}
	s.done(a.c)
	return mcp.Respond(a.c.ID, uncached(a.c, noted(genuine(got.fields), o.PutBack)))
}

// noted adds a text to those of a tool's result, in Holdfast's own words.
func noted(result []byte, said string) []byte {
	if said == "" {
		return result
	}
	var list []json.RawMessage
	if err := json.Unmarshal(mcp.Fields(result)["content"], &list); err != nil {
		return result
	}
	with, err := mcp.Set(result, mcp.Encode(append(list, mcp.Encode(content{"text", "holdfast: it failed, and " +
		said}))), "content")
	if err != nil {
		return result
	}
	return with
}

// unfit is the answer to a call that was made and whose result the client does
// not get; more is a second hint, or "".
func (s *session) unfit(a *act, o *holdfast.Outcome, why, more string) []byte {
	m := about(o, holdfast.Opinion{Kind: holdfast.KindOperation})
	hint := "what the call did before stands"
	if more != "" {
		hint += "; " + more
	}
	return a.c.tell(letter{lines: []string{"failed: " + why}, hint: hint, meta: m})
}

// done keeps what a crossing that was made changes here.
func (s *session) done(c *call) {
	uri, _ := mcp.Text(c.Get("uri"))
	switch c.Method {
	case mcp.MethodSubscribe:
		s.subs.add(uri)
	case mcp.MethodUnsubscribe:
		s.subs.remove(uri)
	}
}

// genuine takes out of a server's result what only the gateway may say of a
// crossing. Where there is nothing to take out, as it should be, it is the
// result's own bytes.
func genuine(result mcp.Object) []byte {
	was := result.Get("_meta")
	kept, err := mcp.Keep(was, func(name string) bool {
		return !own(name)
	})
	if err != nil || len(kept) == len(was) {
		return result.Raw
	}
	clean, err := result.With("_meta", kept)
	if err != nil {
		return result.Raw
	}
	return clean
}

// stage is how far an act came.
type stage int

const (
	notBegun stage = iota
	begun          // sent, and no answer came
	answered       // and the answer may not be given
)

func (a *act) stage() stage {
	switch {
	case a.got.Load() != nil:
		return answered
	case a.begun.Load() && !a.unsent.Load():
		return begun
	}
	return notBegun
}

// about is the meta of an outcome and the opinion that decided it.
func about(o *holdfast.Outcome, op holdfast.Opinion) meta {
	m := meta{Kind: string(op.Kind), Rule: op.Rule, Verdict: holdfast.Deny.String()}
	if o != nil {
		m.Crossing, m.Verdict = o.Crossing, o.Verdict.String()
	}
	// The latch is the zero gate, so that it must be meant to be named.
	if op.Gate != holdfast.GateHalt || slices.Contains([]holdfast.Kind{holdfast.KindHalted, holdfast.KindPaused, holdfast.KindChainEnded, holdfast.KindTenantBlocked}, op.Kind) {
		m.Gate = op.Gate.String()
	}
	return m
}

// refusal is the tool result of everything that was not allowed or did not
// come to its end. The agent reads why, what to do, and under which number.
func (s *session) refusal(c *call, o *holdfast.Outcome, err error, st stage) []byte {
	op := s.ground(o, err)
	m := about(o, op)
	var e *holdfast.Error
	if m.Crossing == "" && errors.As(err, &e) {
		m.Crossing = e.Crossing
	}
	word, hint, came := "refused: ", op.Hint, ""
	switch st {
	case begun:
		word = "failed: "
		if _, contained := s.server.(Contained); contained {
			came = "what ran was ended, and nothing of it is kept"
			break
		}
		hint = "the call was sent; whether it took effect is not known"
		if op.Hint != "" {
			hint += "; " + op.Hint
		}
	case answered:
		word = "withheld: "
		if hint == "" {
			hint = "the call was made and what it did stands; only its result is not given"
		}
	}
	return c.tell(letter{lines: []string{word + op.Why, came}, hint: hint, meta: m})
}

// place is the line that names the crossing and what decided it.
func place(m meta) string {
	var by []string
	if m.Gate != "" {
		by = append(by, "gate "+m.Gate)
	}
	if m.Rule != "" {
		by = append(by, "rule "+m.Rule)
	}
	if m.Kind != "" {
		by = append(by, m.Kind)
	}
	if m.Crossing == "" && len(by) == 0 {
		return ""
	}
	line := "crossing: " + m.Crossing
	if m.Crossing == "" {
		line = "crossing: none"
	}
	if len(by) > 0 {
		line += " (" + strings.Join(by, ", ") + ")"
	}
	return line
}

// ground finds what decided: a gate's opinion, else the error. What was not
// written for people is told as an internal error and goes to the log.
func (s *session) ground(o *holdfast.Outcome, err error) holdfast.Opinion {
	var op holdfast.Opinion
	if o != nil {
		op = o.Deciding()
	}
	if op.Why != "" && op.Verdict == holdfast.Deny {
		return op
	}
	var e *holdfast.Error
	if errors.As(err, &e) && e.Why != "" {
		return holdfast.Opinion{Gate: e.Gate, Kind: e.Kind, Rule: e.Rule, Why: e.Why, Hint: e.Hint}
	}
	if err == nil {
		err = errors.New("a denial without grounds")
	}
	s.Log.Error("an MCP call failed inside holdfast", "mcp_server", s.Server, "err", err)
	return holdfast.Opinion{Kind: holdfast.KindInternal, Why: "internal error", Hint: "see holdfast's log"}
}

// pending is the letter of a hold (D11). It is an error to the agent, so that
// nobody takes it for the deed.
func (s *session) pending(c *call, o *holdfast.Outcome) []byte {
	op, m := o.Deciding(), s.aboutHold(o)
	open := "review: " + o.Review
	if m.Expires != nil {
		open += ", open until " + m.Expires.Format(time.RFC3339)
	}
	why := op.Why
	if why == "" {
		why = "a person must decide"
	}
	at := ""
	if m.Page != "" {
		at = "a person decides at: " + m.Page
	}
	return c.tell(letter{
		lines: []string{"held for review, nothing has been done: " + why, open, at, "a person decides with: " + s.ReviewHint(o.Review)},
		hint:  "call again with the same arguments after the decision", meta: m})
}

// replayed gives back the settled result of an earlier crossing, marked.
func (s *session) replayed(ctx context.Context, a *act, o *holdfast.Outcome) []byte {
	m := about(o, holdfast.Opinion{})
	m.Replayed = true
	body := o.Output.Body
	was := mcp.Message{Result: body}
	if e := mcp.Get(body, "error"); o.Output.ExitCode != 0 && jsontext.Value(e).Kind() == '{' && mcp.Get(body, "content") == nil {
		was = mcp.Message{Error: e}
	}
	// The contract may not have been searching when the result was settled.
	was, err := a.c.searchAnswer(was, true)
	if err != nil {
		return s.refusal(a.c, o, err, answered)
	}
	if e := was.Error; e != nil {
		if r := readResult(was, a.c); r.questions != nil || r.unfit != "" {
			return s.unfit(a, o, "the settled result is a question to the client, which is not asked again", "use another idempotency key")
		}
		return mcp.Message{ID: a.c.ID, Error: genuineError(e)}.Line()
	}
	r := readResult(was, a.c)
	why := r.unfit
	if r.questions != nil {
		return s.questioned(ctx, a, o, r)
	}
	if why == "" {
		marked, err := mark(genuine(r.fields), m)
		if err == nil {
			return mcp.Respond(a.c.ID, marked)
		}
		why = "the settled result cannot be marked as a replay: " + err.Error()
	}
	return a.c.tell(letter{lines: []string{"failed: " + why}, meta: m})
}

// mark adds m to a result's own _meta.
func mark(result []byte, m meta) ([]byte, error) {
	add := mcp.Encode(m)
	ms, err := mcp.Members(add)
	if err != nil {
		return nil, err
	}
	for _, member := range ms {
		if result, err = mcp.Set(result, member.Value(add), "_meta", member.Name); err != nil {
			return nil, err
		}
	}
	return result, nil
}
