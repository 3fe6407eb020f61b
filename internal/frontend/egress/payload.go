package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// payload is what the kernel judges and records of a request. The same request
// has the same payload, so that a person's answer and a settled result find it
// again.
type payload struct {
	Method    string              `json:"method"`
	Scheme    string              `json:"scheme"`
	Host      string              `json:"host"`
	Port      uint16              `json:"port"`
	Path      string              `json:"path"`
	Query     string              `json:"query,omitempty"`
	Upgrade   string              `json:"upgrade,omitempty"`
	Inspected bool                `json:"inspected"`
	Headers   map[string][]string `json:"headers"`
	Body      payloadBody         `json:"body"`
	// Model is what is asked of a model, on rows of type llm.
	Model *modelAsked `json:"model,omitempty"`
}

type payloadBody struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Type   string `json:"type,omitempty"`
	// Text is what a person must see who is asked: the first 4 KB, redacted.
	Text string `json:"text,omitempty"`
}

const maxText = 4 << 10

// request is the crossing that x asks for.
func (x *exchange) request() holdfast.Request {
	r := holdfast.Request{Boundary: x.boundary(), Payload: x.payload(), Token: x.s.tokenOf(x.who), Correlation: x.who.Correlation,
		ReadsOnly: x.ask.ReadsOnly(), Carries: x.ask.Method == http.MethodConnect, Denials: x.denials, Unwaited: x.held == nil && len(x.denials) == 0}
	r.Noted, _ = json.Marshal(x.told())
	if x.r != nil {
		r.Traceparent, r.Tracestate = x.r.Header.Get("Traceparent"), x.r.Header.Get("Tracestate")
	}
	if x.domain != nil && len(x.denials) == 0 {
		r.Consumes, r.Model, r.Sub = x.consumes(), x.model.asks(x.body.size), x.sub
	}
	return r
}

// boundary is the row's, or one of the host's own where no row is for it.
func (x *exchange) boundary() string {
	switch {
	case x.domain != nil:
		return x.domain.Boundary()
	case x.ask.Origin.Host != (domain.Host{}):
		return "egress/" + x.ask.Origin.Host.String()
	}
	return "egress/unknown"
}

// consumes is what the domain is counted in beyond its contract's own amounts.
// Tokens are an upper bound (D24).
func (x *exchange) consumes() map[holdfast.Resource]int64 {
	n := x.size()
	if x.ask.Method == http.MethodConnect {
		n = x.domain.MaxRequest // of a tunnel nothing is known yet
	}
	switch x.domain.Unit {
	case domain.Bytes:
		return map[holdfast.Resource]int64{holdfast.BytesOut: n}
	case domain.Tokens:
		tokens, ok := x.model.tokens(x.body.size)
		if !ok {
			tokens = x.body.size // no byte is more than a token
		}
		if tokens > 0 {
			return map[holdfast.Resource]int64{holdfast.LLMTokens: tokens}
		}
	}
	return nil
}

func (x *exchange) payload() []byte {
	o := x.ask.Origin
	p := payload{Method: printable(x.ask.Method), Scheme: "http", Host: o.Host.String(), Port: o.Port, Upgrade: x.ask.Upgrade,
		Inspected: x.domain == nil || x.domain.Inspect != domain.Opaque, Headers: headerfield.SelectStable(x.header)}
	if o.TLS {
		p.Scheme = "https"
	}
	if len(x.denials) == 0 { // of what is refused nothing was redacted
		p.Path, p.Query, _ = strings.Cut(x.ask.Target, "?")
	}
	p.Body = payloadBody{SHA256: hex.EncodeToString(x.body.sum[:]), Bytes: x.body.size, Type: x.body.contentType}
	p.Model = x.model.asked(x.body.size)
	if x.high() {
		p.Body.Text = firstText(x.body.raw)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil // no payload: the kernel refuses it
	}
	return b
}

// high says whether a person will be asked.
func (x *exchange) high() bool {
	if x.domain == nil || len(x.denials) > 0 {
		return false
	}
	method := x.ask.Method
	if x.ask.Upgrade != "" {
		method = ""
	}
	return x.domain.RiskOf(method) == holdfast.High
}

// firstText is the beginning of a text, whole characters of it; "" of what is
// none.
func firstText(b []byte) string {
	cut := b[:min(len(b), maxText)]
	for i := 0; i < utf8.UTFMax && len(cut) < len(b) && len(cut) > 0 && !utf8.Valid(cut); i++ {
		cut = cut[:len(cut)-1]
	}
	if !utf8.Valid(cut) {
		return ""
	}
	return string(cut)
}

// printable is a method as it may stand in a record.
func printable(s string) string {
	if len(s) > 32 {
		s = s[:32]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func noBody() *body { return &body{sum: sha256.Sum256(nil), done: func() {}} }

// maxPath bounds the path in what people are shown, in bytes.
const maxPath = 512

// maxShown bounds the path of a refused request that is redacted for people, in
// bytes: who is refused a thousand times a second must not cost much.
const maxShown = 4 << 10

// shownTarget is path and query of a request that the door refuses, redacted as a
// request that is sent; "" where there is none, or it cannot be redacted. It is
// redacted whole: cut before, half a secret would be none.
func (p *Proxy) shownTarget(d *domain.Domain, ask domain.Ask) string {
	if ask.Target == "" || ask.Target == "*" || len(ask.Target) > maxShown || ask.Origin.Host == (domain.Host{}) {
		return ""
	}
	if d != nil && d.Request == domain.Off {
		return ask.Target
	}
	engine := p.cfg.Engine(d)
	if engine == nil {
		return ""
	}
	out, _ := engine.URL(ask.Origin.String() + ask.Target)
	origin, target, err := domain.ParseURL(out)
	if err != nil || origin != ask.Origin {
		return "" // what was found in the host cannot be shown
	}
	return target
}

// told is what people are shown of the exchange.
func (x *exchange) told() holdfast.Exchange {
	o := x.ask.Origin
	e := holdfast.Exchange{Method: printable(x.ask.Method), Scheme: "http", Host: o.Host.String(), Port: o.Port,
		Opaque: x.domain != nil && x.domain.Inspect == domain.Opaque}
	if o.TLS {
		e.Scheme = "https"
	}
	target := x.ask.Target
	if len(x.denials) > 0 || x.shown != "" {
		target = x.shown
	}
	e.Path = target[:min(len(target), maxPath)]
	return e
}

// result is what came back, as predicates and rules see it and people are shown
// it.
type result struct {
	holdfast.Exchange
	SHA256 string `json:"sha256"`
	Type   string `json:"type,omitempty"`
	Text   string `json:"text,omitempty"`
	// Model is what a model answered, on rows of type llm.
	Model *modelAnswered `json:"model,omitempty"`
}

// output is what the act gives to the kernel, also beside an error.
func (x *exchange) output() holdfast.Output {
	a := x.answer
	r := result{Exchange: x.told(), SHA256: hex.EncodeToString(a.sum[:]), Type: a.contentType, Text: a.text}
	r.RedactUS, r.GatesUS, r.AnswerUS = x.took.redact.Microseconds(), x.took.gates.Microseconds(), x.took.answer.Microseconds()
	r.Status, r.Received, r.Sent = a.status, a.bytes, x.body.size+a.sent
	if x.held != nil && !a.restored && utf8.Valid(x.held.body.Bytes()) { // of a restored one text is all of it
		r.Text = x.held.body.String()
	}
	r.Model = x.modelAnswer(x.maskText)
	r.Placeholders, r.Masked = x.model.countPlaceholders(), cleaner.CountMasked(x.masked, a.findings)
	out := holdfast.Output{Used: x.used(), Model: x.model.took()}
	out.Body, _ = json.Marshal(r) // of strings and numbers: it cannot fail
	if a.status >= 400 {
		out.ExitCode = 1
	}
	return out
}

// maskText returns a text as the client may see it, "" if there is no engine.
func (x *exchange) maskText(text string) string {
	engine := x.p.cfg.Engine(x.domain)
	if engine == nil {
		return ""
	}
	return string(engine.Text([]byte(text)).Out)
}

// answered is the error of an answer that came: of 5xx, which was given to the
// client all the same, it is a ForwardError (D25).
func (x *exchange) answered() error {
	if x.answer.status < 500 {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindForward, Rule: "egress/answer", Why: fmt.Sprintf("the server answered with status %d", x.answer.status), Hint: "its answer was passed on"}
}
