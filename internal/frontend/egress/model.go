package egress

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// model is what an exchange asks of a model: read before it is judged, and measured
// as the answer comes.
type model struct {
	req   *dialect.Request // nil of what no dialect is known of
	bound dialect.Bound
	did   dialect.Amended
	meter *dialect.Meter // nil until an answer has begun
	// mapped is what was replaced in the request; nil if the row has no placeholders.
	mapped *mapped
	// uncounted says that the row lets it pass although nobody can say what it costs.
	uncounted bool
	// judge asks the rules on outputs of what has come so far, where the answer goes
	// on while they judge; nil elsewhere. refused is why it ended by them.
	judge   func(status int) error
	refused *holdfast.Error
}

// Unmetered is the model's name of a request to a row of models of which no dialect
// is known: nobody can say what it costs but who prices this name.
const Unmetered = "unmetered"

// readModel reads what the request asks of a model, if its row is for models: what
// it may cost at most, and what is appended so that this is true. The error is a
// ValidationError, a PayloadTooLargeError or a BudgetExceededError.
func (x *exchange) readModel() *holdfast.Error {
	d := x.domain
	if d.Type != domain.LLM {
		return nil
	}
	x.sub = headerfield.SubAgent(x.r.Header)
	path, _, _ := strings.Cut(x.ask.Target, "?")
	format := dialectOf(d, x.ask, path)
	if format == dialect.Unknown {
		return x.unmetered(path)
	}
	mapped, failed := x.replaceTexts(format)
	if failed != nil {
		return failed
	}
	req, err := dialect.Parse(format, x.body.raw)
	if err != nil {
		return toModelError(err)
	}
	limits := limitsOf(d, req, x.r.Header)
	if mapped != nil {
		limits.Documents = mapped.documents
	}
	bound, err := req.Bound(limits)
	if err != nil {
		return toModelError(err)
	}
	x.model = &model{req: req, bound: bound, mapped: mapped}
	raw, did := req.Amend(x.body.raw, limits)
	x.model.did = did
	if int64(len(raw)) > maxRequest(d) {
		return coding.NewSizeError("request", maxRequest(d))
	}
	x.body.raw, x.body.size, x.body.sum = raw, int64(len(raw)), sha256.Sum256(raw)
	return nil
}

// dialectOf is the format that a request to a row of models is in.
func dialectOf(d *domain.Domain, ask domain.Ask, path string) dialect.Dialect {
	if ask.Upgrade != "" {
		return dialect.Unknown
	}
	p := dialect.ProviderNamed(d.Models.Provider)
	if p == dialect.NoProvider {
		p = dialect.ProviderAt(ask.Origin.Host.String())
	}
	if p != dialect.NoProvider {
		return dialect.Of(p, ask.Method, path)
	}
	if a := dialect.Of(dialect.Anthropic, ask.Method, path); a != dialect.Unknown {
		return a
	}
	return dialect.Of(dialect.OpenAI, ask.Method, path)
}

// limitsOf are the row's limits for a request with that header.
func limitsOf(d *domain.Domain, r *dialect.Request, h http.Header) dialect.Limits {
	m := d.Models
	l := dialect.Limits{MaxOutput: m.MaxOutput, Window: m.Window, ServerCalls: m.ServerCalls, Dearer: m.Dearer}
	if asked := dialect.WindowAsked(h.Values("Anthropic-Beta")); l.Window > 0 && asked > l.Window {
		l.Window = asked
	}
	if l.MaxOutput == 0 && !r.Capped {
		l.MaxOutput = domain.DefaultOutput
	}
	return l
}

// unmetered is a request of which no dialect is known. What only reads or removes
// costs no tokens, but where it has a body: servers that read one take it for what it
// asks. All else is asked of a model that nobody knows, and passes uncounted where the
// row says so. A path at which a server may
// find a model although it is spelt otherwise is refused: what is asked there would
// cost more than its input.
func (x *exchange) unmetered(path string) *holdfast.Error {
	switch x.ask.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		if x.ask.Upgrade == "" && x.body.size == 0 {
			return nil
		}
	}
	if plain := dialect.Resembles(path); plain != "" {
		return &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/models",
			Why: "the path is one at which models are asked, spelt otherwise", Hint: "write it as " + plain}
	}
	x.model = &model{uncounted: x.domain.Models.Unmetered}
	return nil
}

// toModelError returns an error of the dialects as one of K1, or of K3 if the request has no bound.
func toModelError(err error) *holdfast.Error {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok {
		return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Rule: "egress/model", Why: "the request to a model cannot be read", Err: err}
	}
	own := *e
	own.Gate, own.Rule = holdfast.K1, "egress/model"
	if own.Kind == holdfast.KindBounds {
		own.Gate, own.Kind = holdfast.K3, holdfast.KindBudgetExceeded
	}
	return &own
}

// tokens returns the most that the exchange takes of llm_tokens; ok is false without a request to a model.
func (m *model) tokens(bytes int64) (int64, bool) {
	switch {
	case m == nil:
		return 0, false
	case m.req == nil:
		return bytes, true // no byte is more than a token
	}
	return m.bound.Tokens().All(), true
}

// asks is what K3 prices and the ledger keeps; nil of what costs nothing.
func (m *model) asks(bytes int64) *holdfast.ModelUse {
	switch {
	case m == nil, m.uncounted, m.req != nil && m.req.Dialect.Free():
		return nil
	case m.req == nil:
		n, _ := m.tokens(bytes)
		return &holdfast.ModelUse{Model: Unmetered, Unbounded: true, Tokens: holdfast.Tokens{Input: n}}
	}
	return &holdfast.ModelUse{Model: m.req.Model, Others: m.req.Others, Terms: m.req.Terms(), Uses: m.bound.Uses(), Tokens: m.bound.Tokens()}
}

// modelAsked is what rules and people see of what is asked of a model.
type modelAsked struct {
	Dialect string   `json:"dialect"`
	Name    string   `json:"name,omitempty"`
	Others  []string `json:"others,omitempty"`
	Stream  bool     `json:"stream"`
	// MaxOutput is the most tokens of each of Choices answers, 0 where the
	// provider's own limit holds.
	MaxOutput int64    `json:"max_output,omitempty"`
	Choices   int64    `json:"choices,omitempty"`
	Tools     []string `json:"tools"`
	// Results are what is new in this request, Earlier what stands before words of
	// the model that something follows: by its place alone, which is the agent's word.
	Results []toolResult `json:"tool_results"`
	Earlier []toolResult `json:"earlier_results"`
	Media   int          `json:"media,omitempty"`
	// MaxTokens is what is reserved of llm_tokens.
	MaxTokens int64 `json:"max_tokens"`
}

// toolResult is what a tool gave, as the request tells the model.
type toolResult struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Error bool   `json:"error"`
	Bytes int64  `json:"bytes"`
}

// asked is the payload's member; nil where no model is asked.
func (m *model) asked(bytes int64) *modelAsked {
	if m == nil {
		return nil
	}
	n, _ := m.tokens(bytes)
	a := &modelAsked{
		Dialect: dialect.Unknown.String(), MaxTokens: n,
		Tools: []string{}, Results: []toolResult{}, Earlier: []toolResult{},
	}
	if m.req == nil {
		return a
	}
	r := m.req
	a.Dialect, a.Name, a.Others, a.Stream, a.MaxOutput, a.Choices = r.Dialect.String(), r.Model, r.Others, r.Stream, max(r.MaxOutput, m.did.Cap), r.Choices
	a.Media = r.Images + r.Documents + r.Audio
	a.Tools = append(a.Tools, r.Tools...)
	for _, t := range r.ToolResults {
		list := &a.Results
		if t.Seen {
			list = &a.Earlier
		}
		*list = append(*list, toolResult{t.ID, t.Name, t.Error, t.Bytes})
	}
	return a
}

// begin makes the meter of an answer that has come.
func (m *model) begin(status int, contentType string) {
	if m != nil && m.req != nil {
		m.meter = dialect.NewMeter(m.req, m.bound, status, contentType)
	}
}

// read meters an answer as it is read, where its events are not told apart.
func (m *model) read(r io.Reader) io.Reader {
	if m == nil || m.meter == nil {
		return r
	}
	return io.TeeReader(r, m.meter)
}

// took is what the exchange took of its model: nil where nobody can say, so that it
// is charged at what was reserved.
func (m *model) took() *holdfast.ModelUse {
	if m == nil || m.meter == nil {
		return nil
	}
	m.meter.Close()
	tokens, how := m.meter.Charge()
	terms, uses := m.meter.Beside(how)
	return &holdfast.ModelUse{Model: m.req.Model, Answered: m.meter.Answer().Model, How: how, Terms: terms, Uses: uses, Tokens: tokens}
}

// modelAnswered is what rules and people see of a model's answer.
type modelAnswered struct {
	Name  string `json:"name,omitempty"`
	State string `json:"usage"`
	How   string `json:"charged"`
	// The tokens are those that are charged.
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens"`
	// Stop is why the model ended, Failure what the provider says went wrong.
	Stop    string     `json:"stop,omitempty"`
	Failure string     `json:"failure,omitempty"`
	Calls   []toolCall `json:"tool_calls"`
	// Unread says that there may be calls of tools that are not listed, or not whole.
	Unread bool `json:"unread"`
}

// toolCall is a tool that the model calls; Arguments are redacted.
type toolCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Complete  bool   `json:"complete"`
	Server    bool   `json:"server,omitempty"`
}

// modelAnswer is the output's member: nil where no model has answered, and of what no
// dialect is known of one that says that calls may be in it. mask redacts.
func (x *exchange) modelAnswer(mask func(string) string) *modelAnswered {
	m := x.model
	if unknown := m == nil || m.req == nil; unknown && (x.domain == nil || x.domain.Type != domain.LLM ||
		x.domain.Inspect == domain.Opaque) {
		return nil
	} else if unknown {
		return &modelAnswered{
			State: dialect.Missing.String(), How: dialect.HowReserved, Calls: []toolCall{}, Unread: true,
		}
	}
	took := m.took()
	if took == nil {
		return nil
	}
	a := m.meter.Answer()
	out := &modelAnswered{Name: a.Model, State: a.State.String(), How: took.How, Input: took.Input, CacheRead: took.CacheRead,
		CacheWrite: took.CacheWrite + took.CacheWriteLong, Output: took.Output, Stop: a.Stop, Unread: a.Unread, Calls: []toolCall{}}
	if a.Failure != nil {
		out.Failure = a.Failure.Type
	}
	for _, c := range a.Calls {
		out.Calls = append(out.Calls, toolCall{ID: c.ID, Name: c.Name, Arguments: mask(c.Arguments), Complete: c.Complete, Server: c.Server})
	}
	return out
}
