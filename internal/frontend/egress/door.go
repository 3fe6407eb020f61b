package egress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/destination"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// Guest is who asks a model through the gateway.
type Guest struct {
	Caller
	// Group is equal for all that one agent asks: the requests under way of a group
	// have one bound.
	Group string
}

// Models is the other way to what rows of models allow: a server that clients take
// for the provider, under /llm/PROVIDER. What is asked there goes the way of every
// request through the proxy, to the row that speaks for the provider; nothing but
// the paths that models are asked at is served. enter says who asks, from the
// request's header, and is asked before anything else of it is read; its error is
// answered with 401. Close ends it with the proxy.
func (p *Proxy) Models(enter func(*http.Request) (Guest, error)) (http.Handler, error) {
	m := &models{p: p, enter: enter, s: &seat{p: p, via: gateway, conns: map[*entry]struct{}{}, ending: make(chan struct{})}}
	m.over, m.end = context.WithCancel(context.Background())
	var once sync.Once
	var leave func()
	leave, err := p.opened(func() {
		once.Do(func() {
			m.end()
			go func() { // whoever ends the proxy holds its lock
				m.s.endModels()
				leave()
			}()
		})
	})
	return m, err
}

// models is the gateway.
type models struct {
	p     *Proxy
	enter func(*http.Request) (Guest, error)
	s     *seat
	over  context.Context // ends with the proxy
	end   func()
}

// endModels lets nothing begin any more, and waits for what has.
func (s *seat) endModels() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	close(s.ending)
	s.busy.Wait()
}

type speaksKey struct{}

// speaking is r with the provider in whose form refusals are written.
func speaking(r *http.Request, p dialect.Provider) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), speaksKey{}, p))
}

// below is where the gateway's paths begin.
const below = "/llm/"

// Spoken are the names of the providers that a row of the table speaks for.
func Spoken(t *domain.Table) []string {
	var out []string
	for _, p := range [...]dialect.Provider{dialect.Anthropic, dialect.OpenAI} {
		if d, _ := speaker(t, p); d != nil {
			out = append(out, p.String())
		}
	}
	return out
}

func speaker(t *domain.Table, p dialect.Provider) (*domain.Domain, domain.Origin) {
	return t.Speaking(p.String(), func(host string) string { return dialect.ProviderAt(host).String() })
}

// ServeHTTP answers one request.
func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	provider, target, err := meant(r.URL.EscapedPath(), r.URL.RawQuery)
	r = speaking(r, provider)
	// A model may think for longer than a server gives its answers; each piece of one
	// has a deadline of its own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // one that has none writes all the same
	if err != nil {
		m.p.answer(w, r, nil, err)
		return
	}
	m.enterBy(w, r, provider, target)
}

// meant is the provider that a path below /llm/ is for, and the target there.
func meant(path, query string) (dialect.Provider, string, *holdfast.Error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, below), "/")
	provider := dialect.ProviderNamed(name)
	if provider == dialect.NoProvider {
		return provider, "", &holdfast.Error{Kind: holdfast.KindNotFound, Gate: holdfast.K2, Why: "no provider of that name is spoken for", Hint: "ask under /llm/anthropic or /llm/openai"}
	}
	if rest = "/" + rest; query != "" {
		rest += "?" + query
	}
	return provider, rest, nil
}

// toModels answers a request to a proxy port that is meant for the gateway: it is of
// the listener's agent, whatever stands in the place of a key. A page in a browser is
// not.
func (p *Proxy) toModels(w http.ResponseWriter, r *http.Request, ch *channel, h *wire.Head) bool {
	path, query, _ := strings.Cut(h.Target, "?")
	provider, target, err := meant(path, query)
	r = speaking(r, provider)
	host, _, _, unread := domain.ParseAuthority(h.Host)
	switch {
	case err == nil && (h.Hosts != 1 || unread != nil || host.String() != "localhost" && !(host.IsAddr() &&
		host.Addr().IsLoopback())):
		err = destination.Misdirected("the gateway to models is asked by another name than this machine's own")
	case err == nil && (r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Mode") != ""):
		err = &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/models", Why: "pages in a browser ask no models here"}
	}
	if err != nil {
		p.refuse(w, r, ch, domain.Ask{Method: r.Method}, nil, err)
		return false
	}
	return p.askModel(w, r, ch, provider, target)
}

// enterBy lets a guest in who brings a token.
func (m *models) enterBy(w http.ResponseWriter, r *http.Request, provider dialect.Provider, target string) {
	who, err := m.enter(r)
	if err != nil {
		m.p.answer(w, r, nil, unknownGuest(err))
		return
	}
	if err := unsaid(r.Header, who.Token); err != nil {
		m.p.answer(w, r, nil, unknownGuest(err))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(m.over, cancel)()
	own, leave := m.p.ownedBy("models\x00" + who.Group)
	defer leave()
	ch := &channel{s: m.s, via: gateway, tls: true, who: &who.Caller, own: own}
	ch.admitted(w, r.WithContext(ctx), func(r *http.Request) bool { return m.p.askModel(w, r, ch, provider, target) })
}

// unsaid takes a guest's token out of the header wherever it stands: it is Holdfast's,
// and no provider's, also where a row passes the agent's own credentials.
func unsaid(h http.Header, token func() (holdfast.Secret, error)) error {
	tok, err := token()
	text := tok.Reveal()
	if err != nil || text == "" {
		return err
	}
	for name, values := range h {
		if strings.Contains(strings.Join(values, "\n"), text) {
			delete(h, name)
		}
	}
	return nil
}

// unknownGuest is why nobody is let in.
func unknownGuest(err error) *holdfast.Error {
	e, ok := errors.AsType[*holdfast.Error](err)
	if !ok {
		e = &holdfast.Error{Why: "the request's token could not be looked at", Err: err}
	}
	own := *e
	own.Rule = refusal.RuleGuest
	if own.Hint == "" {
		own.Hint = "set the client's key to a token of Holdfast's: `holdfast agent token AGENT` makes one"
	}
	return &own
}

// askModel sends a request to a provider on its way.
func (p *Proxy) askModel(
	w http.ResponseWriter, r *http.Request, ch *channel, provider dialect.Provider, path string,
) bool {
	start := time.Now()
	ask, d, err := p.askedModel(r, provider, path)
	p.counters.Observe(counters.Parse, time.Since(start))
	if err != nil {
		p.refuse(w, r, ch, ask, d, err)
		return false
	}
	start = time.Now()
	got, err := p.table().Decide(ask)
	p.counters.Observe(counters.Decide, time.Since(start))
	if err == nil && got != d {
		err = wire.Malformed("another row is for it")
	}
	if err != nil {
		p.refuse(w, r, ch, ask, d, err)
		return false
	}
	return p.pass(w, r, ch, ask, d)
}

// askedModel is what is asked of which row; the row is nil where none speaks for the
// provider.
func (p *Proxy) askedModel(
	r *http.Request, provider dialect.Provider, path string,
) (domain.Ask, *domain.Domain, *holdfast.Error) {
	ask := domain.Ask{Method: r.Method, Target: path}
	d, to := speaker(p.table(), provider)
	if d == nil {
		return ask, nil, &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/models",
			Why:  "no row of type llm is listed that speaks as " + provider.String(),
			Hint: "list it under egress: domains:, such as " + exampleHost(provider) + ": {type: llm, credential: ...}; a row of another host says whose formats it speaks, with `models: {provider: " + provider.String() + "}`"}
	}
	ask.Origin = to
	origin, target, err := domain.ParseURL(to.String() + path)
	switch {
	case err != nil:
		return ask, d, destination.Letter(err)
	case origin != to:
		return ask, d, wire.Malformed("its path leads elsewhere")
	}
	ask.Target = target
	plain, _, _ := strings.Cut(target, "?")
	if dialect.Of(provider, ask.Method, plain) == dialect.Unknown || r.Header.Get("Upgrade") != "" {
		return ask, d, &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/models",
			Why:  "the gateway knows no such path of " + provider.String() + ", and so not what it costs",
			Hint: askedAt(provider)}
	}
	return ask, d, nil
}

// askedAt says where a provider's models are asked, and how clients are told.
func askedAt(p dialect.Provider) string {
	if p == dialect.Anthropic {
		return "it knows POST /v1/messages and /v1/messages/count_tokens, and GET /v1/models; ANTHROPIC_BASE_URL ends in /llm/anthropic"
	}
	return "it knows POST /v1/responses, /v1/chat/completions, /v1/completions and /v1/embeddings, and GET /v1/models; OPENAI_BASE_URL ends in /llm/openai/v1"
}

func exampleHost(p dialect.Provider) string {
	if p == dialect.Anthropic {
		return "api.anthropic.com"
	}
	return "api.openai.com"
}

// answer says why a request was refused. Nothing has been written to w.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request, o *holdfast.Outcome, err error) {
	provider, _ := r.Context().Value(speaksKey{}).(dialect.Provider)
	refusal.Answer(w, r, provider, o, err)
}
