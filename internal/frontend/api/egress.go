package api

import (
	"context"

	"github.com/holdfast-dev/holdfast"
)

// Egress is what this door needs of the proxy.
type Egress interface {
	// Authority is the certificate that clients of the proxy must trust, PEM. It
	// is made where there is none yet.
	Authority() ([]byte, error)
	// Check says what would become of a request, sending nothing.
	Check(ctx context.Context, a EgressAsk) (*EgressAnswer, error)
}

// EgressAsk is a request that an agent could send.
type EgressAsk struct {
	URL     string `json:"url"`
	Method  string `json:"method"`
	Upgrade string `json:"upgrade,omitempty"`
	Agent   string `json:"agent"`
	Kind    string `json:"kind,omitempty"`
	Session string `json:"session,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Chain   string `json:"chain,omitempty"`
	// Resolve asks for the host's addresses as well: a question to DNS leaves.
	Resolve bool `json:"resolve,omitempty"`
}

// EgressAnswer is what would become of a request. URL and Path are redacted as
// the record would have them.
type EgressAnswer struct {
	Method   string `json:"method"`
	URL      string `json:"url"`
	Redacted bool   `json:"redacted,omitempty"` // something in the URL would be redacted
	// Row is the name in the allowlist that decides, Source where it stands;
	// empty where none does.
	Row    string `json:"row,omitempty"`
	Source string `json:"source,omitempty"`
	Type   string `json:"type,omitempty"`
	// Risk, and what would be looked at: terminate or opaque, and mask, refuse
	// or off for secrets in each direction; mask, refuse or pass for personal data.
	Risk     holdfast.Risk `json:"risk"`
	Inspect  string        `json:"inspect,omitempty"`
	Request  string        `json:"redact_request,omitempty"`
	Response string        `json:"redact_response,omitempty"`
	Personal string        `json:"redact_personal,omitempty"`
	// Credential is of a row that has one.
	Credential *EgressCredential `json:"credential,omitempty"`
	Rates      []EgressRoom      `json:"rates,omitempty"`
	Budgets    []EgressRoom      `json:"budgets,omitempty"`
	Addresses  []EgressAddress   `json:"addresses,omitempty"`
	// Answer is what the gates say; without an outcome, why nobody could be
	// asked.
	Answer
}

// EgressCredential says which header is added, and whether there is a value.
type EgressCredential struct {
	Header  string `json:"header"`
	From    string `json:"from"`
	Present bool   `json:"present"`
	Why     string `json:"why,omitempty"`
}

// EgressRoom is what is left of a rate or a budget, before the request.
type EgressRoom struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
	Left  int64  `json:"left"`
	// Asked is what the request draws, where that is known before there is a
	// body.
	Asked int64 `json:"asked,omitempty"`
}

// EgressAddress is one address of the host, and why it would not be dialled.
type EgressAddress struct {
	Address string `json:"address"`
	Why     string `json:"why,omitempty"`
}

// EgressStatus is how the proxy is.
type EgressStatus struct {
	// Domains is how many rows the allowlist has.
	Domains   int              `json:"domains"`
	Listeners []EgressListener `json:"listeners,omitempty"`
	// Runs is how many workspaces are served.
	Runs int `json:"runs,omitempty"`
	// Missing are the rows whose credential cannot be had, by row: nothing is sent
	// to them.
	Missing []EgressMissing `json:"credentials_missing,omitempty"`
	// Requests are counted since the start, by row and by the kind of error.
	Requests []EgressCount `json:"requests,omitempty"`
	Stages   []EgressStage `json:"stages,omitempty"`
	// Open is how many connections there are, Crowded how many were turned away.
	Open        int64 `json:"open"`
	Crowded     int64 `json:"crowded,omitempty"`
	RedactedOut int64 `json:"redacted_out,omitempty"`
	RedactedIn  int64 `json:"redacted_in,omitempty"`
	// Names is how many questions for names were answered, Malformed how many
	// were dropped.
	Names     int64 `json:"names,omitempty"`
	Malformed int64 `json:"names_malformed,omitempty"`
}

// EgressMissing is a credential that cannot be had. Nothing in it is its value.
type EgressMissing struct {
	Row    string `json:"row"`
	Header string `json:"header"`
	Why    string `json:"why"`
	Hint   string `json:"hint"`
}

// String says it in one sentence.
func (m EgressMissing) String() string {
	return "the credential of " + m.Row + " (" + m.Header + ") cannot be had, and nothing is sent there: " + m.Why
}

// EgressListener is one listener and the agent it speaks for.
type EgressListener struct {
	Address string `json:"address"`
	Agent   string `json:"agent"`
	Kind    string `json:"kind,omitempty"`
}

// EgressCount is how many requests ended so.
type EgressCount struct {
	Domain string `json:"domain,omitempty"` // empty where no row was found
	Kind   string `json:"error_kind,omitempty"`
	Count  int64  `json:"count"`
}

// EgressStage is how long one part of the way took: a histogram, whose Under[i]
// counts what took at most Bounds[i] microseconds and longer than the one before;
// the last counts the rest.
type EgressStage struct {
	Name   string  `json:"name"`
	Count  int64   `json:"count"`
	SumUS  int64   `json:"sum_us"`
	Bounds []int64 `json:"bounds_us"`
	Under  []int64 `json:"under"`
}

// egressCA is the answer of the certificate.
type egressCA struct {
	PEM string `json:"pem"`
}

func (s *Server) egressCA(context.Context, none) (*egressCA, error) {
	b, err := s.Egress.Authority()
	return &egressCA{PEM: string(b)}, err
}

func (s *Server) egressCheck(ctx context.Context, a EgressAsk) (*EgressAnswer, error) {
	if err := named(a.Agent, a.Kind, a.Session, a.Intent, a.Chain); err != nil {
		return nil, err
	}
	out, err := s.Egress.Check(ctx, a)
	if err != nil {
		return nil, err
	}
	out.Outcome = s.masked(out.Outcome)
	return out, nil
}

// EgressAuthority is the certificate that clients of the proxy must trust, PEM.
func (c *Client) EgressAuthority(ctx context.Context) (string, error) {
	out, err := ask[egressCA](ctx, c, "POST", "/v1/egress/ca", none{})
	return out.PEM, err
}

// EgressCheck says what would become of a request, sending nothing.
func (c *Client) EgressCheck(ctx context.Context, a EgressAsk) (*EgressAnswer, error) {
	return ask[EgressAnswer](ctx, c, "POST", "/v1/egress/check", a)
}
