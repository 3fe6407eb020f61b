package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/mcp"
)

// JSON-RPC error codes of the gateway's own answers.
const (
	codeRefused   = -32000
	codeNoMethod  = -32601
	codeBadParams = -32602
)

// encode writes v as JSON. What it is given are strings, booleans and raw JSON
// that has been parsed before, so that it cannot fail; were it to, the client
// would get a null and no result.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func quote(s string) []byte { return encode(s) }

// text reads a JSON string.
func text(v []byte) (string, bool) {
	if jsontext.Value(v).Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// failure is a JSON-RPC error. A nil id is written as null.
func failure(id []byte, code int, why, hint string) []byte {
	if id == nil {
		id = []byte("null")
	}
	data := ""
	if hint != "" {
		data = `,"data":{"hint":` + string(quote(hint)) + `}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, code, quote(why), data)
}

// failed is a JSON-RPC error for what went wrong here. Only an error that was
// written for people is told; any other goes to the log.
func (s *session) failed(id []byte, err error) []byte {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return failure(id, codeRefused, e.Error(), e.Hint)
	}
	if errors.Is(err, ErrServerEnded) || errors.Is(err, errCanceled) || errors.Is(err, errGone) {
		return failure(id, codeRefused, err.Error(), "")
	}
	s.Log.Error("the MCP gateway failed", "mcp_server", s.Server, "err", err)
	return failure(id, codeRefused, "internal error", "see holdfast's log")
}

// respond is a JSON-RPC result.
func respond(id, result []byte) []byte {
	return mcp.Message{ID: id, Result: result}.Line()
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
	Replayed bool       `json:"dev.holdfast/replayed,omitempty"`
}

// result finishes a tool result for the protocol that the call came in.
func (c call) result(r toolResult) []byte {
	if c.stateless {
		r.Type = "complete"
	}
	return respond(c.ID, encode(r))
}

func said(lines ...string) []content {
	kept := lines[:0]
	for _, l := range lines {
		if l != "" {
			kept = append(kept, l)
		}
	}
	return []content{{"text", strings.Join(kept, "\n")}}
}

// present turns the outcome of a crossing into the line for the client.
func (s *session) present(a *act, o *holdfast.Outcome, err error) []byte {
	switch {
	case o == nil:
		return s.refusal(a.c, nil, err, a.stage())
	case o.Verdict == holdfast.Hold:
		return s.pending(a.c, o)
	case o.Verdict != holdfast.Allow || o.Output == nil || err != nil:
		return s.refusal(a.c, o, err, a.stage())
	case o.Replayed:
		return a.replayed(o)
	}
	got := a.got.Load()
	if got == nil {
		return s.refusal(a.c, o, errors.New("the crossing was allowed and nothing was done"), a.stage())
	}
	if got.unfit != "" {
		return a.c.result(toolResult{IsError: true, Meta: about(o, holdfast.Opinion{Kind: holdfast.KindOperation}),
			Content: said("failed: "+got.unfit, "hint: what the call did before stands", "crossing: "+o.Crossing)})
	}
	if got.Error != nil {
		return mcp.Message{ID: a.c.ID, Error: got.Error}.Line()
	}
	return respond(a.c.ID, genuine(got.fields))
}

// genuine takes out of a server's result what only the gateway may say of a
// crossing. Where there is nothing to take out, as it should be, it is the
// result's own bytes.
func genuine(result mcp.Object) []byte {
	was := result.Get("_meta")
	kept, err := mcp.Keep(was, func(name string) bool {
		return len(name) < len(ownPrefix) || !strings.EqualFold(name[:len(ownPrefix)], ownPrefix)
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
	done           // answered
)

func (a *act) stage() stage {
	switch {
	case a.got.Load() != nil:
		return done
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
	if op.Gate != holdfast.GateHalt || op.Kind == holdfast.KindHalted || op.Kind == holdfast.KindPaused {
		m.Gate = op.Gate.String()
	}
	return m
}

// refusal is the tool result of everything that was not allowed or did not
// come to its end. The agent reads why, what to do, and under which number.
func (s *session) refusal(c call, o *holdfast.Outcome, err error, st stage) []byte {
	op := s.ground(o, err)
	m := about(o, op)
	var e *holdfast.Error
	if m.Crossing == "" && errors.As(err, &e) {
		m.Crossing = e.Crossing
	}
	word, hint := "refused: ", op.Hint
	switch st {
	case begun:
		word = "failed: "
		if hint == "" {
			hint = "the call was sent; whether it took effect is not known"
		}
	case done:
		word = "withheld: "
		if hint == "" {
			hint = "the call was made and what it did stands; only its result is not given"
		}
	}
	if hint != "" {
		hint = "hint: " + hint
	}
	return c.result(toolResult{Content: said(word+op.Why, hint, place(m)), IsError: true, Meta: m})
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

// pending is the tool result of a hold (D11). It is an error to the agent, so
// that nobody takes it for the deed.
func (s *session) pending(c call, o *holdfast.Outcome) []byte {
	op := o.Deciding()
	m := about(o, op)
	m.Review = o.Review
	open := "review: " + o.Review
	if !o.Expires.IsZero() {
		t := o.Expires.UTC().Truncate(time.Second)
		m.Expires = &t
		open += ", open until " + t.Format(time.RFC3339)
	}
	why := op.Why
	if why == "" {
		why = "a person must decide"
	}
	return c.result(toolResult{IsError: true, Meta: m, Content: said(
		"held for review, nothing has been done: "+why,
		open,
		"a person decides with: "+s.ReviewHint(o.Review),
		"hint: call again with the same arguments after the decision",
		place(m))})
}

// replayed gives back the settled result of an earlier crossing, marked.
func (a *act) replayed(o *holdfast.Outcome) []byte {
	m := about(o, holdfast.Opinion{})
	m.Replayed = true
	body := o.Output.Body
	if e := mcp.Get(body, "error"); o.Output.ExitCode != 0 && jsontext.Value(e).Kind() == '{' && mcp.Get(body, "content") == nil {
		return mcp.Message{ID: a.c.ID, Error: e}.Line()
	}
	r := readResult(mcp.Message{Result: body})
	why := r.unfit
	if why == "" {
		marked, err := mark(genuine(r.fields), m)
		if err == nil {
			return respond(a.c.ID, marked)
		}
		why = "the settled result cannot be marked as a replay: " + err.Error()
	}
	return a.c.result(toolResult{Content: said("failed: "+why, "crossing: "+o.Crossing), IsError: true, Meta: m})
}

// mark adds m to a result's own _meta.
func mark(result []byte, m meta) ([]byte, error) {
	add := encode(m)
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
