package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// status is how the proxy is; nil where nothing is listed and nothing listens.
func (s *egressSite) status(ctx context.Context) *api.EgressStatus {
	out := &api.EgressStatus{Domains: len(s.table().Domains()),
		Runs: int(s.runs.Load()), Missing: listMissing(ctx, &s.values, s.table(), false)}
	for _, l := range s.doors() {
		out.Listeners = append(out.Listeners, api.EgressListener{Address: l.address, Agent: l.of.Agent, Kind: l.of.Kind})
	}
	p := s.running()
	if p == nil {
		if out.Domains == 0 {
			return nil
		}
		return out
	}
	n := p.Snapshot()
	out.Open, out.Crowded, out.RedactedOut, out.RedactedIn, out.Names, out.Malformed = n.Open, n.Crowded, n.RedactedOut, n.RedactedIn, n.Names, n.Malformed
	for of, count := range n.Requests {
		out.Requests = append(out.Requests, api.EgressCount{Domain: of.Domain, Kind: of.Kind, Count: count})
	}
	slices.SortFunc(out.Requests, func(a, b api.EgressCount) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Kind, b.Kind))
	})
	var bounds []int64
	for _, b := range counters.Bounds() {
		bounds = append(bounds, b.Microseconds())
	}
	for i, h := range n.Stages {
		if h.Count > 0 {
			out.Stages = append(out.Stages, api.EgressStage{Name: counters.Stage(i).String(), Count: h.Count, SumUS: h.Sum.Microseconds(), Bounds: bounds, Under: h.Under[:]})
		}
	}
	return out
}

// Authority implements api.Egress.
func (s *egressSite) Authority() ([]byte, error) {
	ca, err := s.ca()
	if err != nil {
		return nil, err
	}
	return ca.PEM(), nil
}

// Check implements api.Egress: the judges that a request would meet are asked,
// in the same order, and nothing is sent.
func (s *egressSite) Check(ctx context.Context, a api.EgressAsk) (*api.EgressAnswer, error) {
	out := &api.EgressAnswer{Method: a.Method}
	origin, target, err := domain.ParseURL(a.URL)
	if err != nil {
		why, hint := usage.Explain(err)
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: why, Hint: cmp.Or(hint, "write https://host/path")}
	}
	tok, err := s.d.Mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent, Chain: a.Chain})
	if err != nil {
		return nil, err
	}
	ask := domain.Ask{Origin: origin, Method: a.Method, Target: target, Upgrade: a.Upgrade}
	if row, _ := s.table().Find(origin); row != nil && row.Inspect == domain.Opaque && a.Upgrade == "" {
		// Of a tunnel the proxy sees the CONNECT and no request.
		ask.Method, ask.Target, out.Method = http.MethodConnect, "", http.MethodConnect
	}
	d, blocked := s.table().Decide(ask)
	req := holdfast.Request{Boundary: "egress/" + origin.Host.String(), Payload: []byte("{}"), Token: tok, ReadsOnly: ask.ReadsOnly()}
	if blocked != nil {
		req.Denials = []holdfast.Opinion{{Gate: blocked.Gate, Verdict: holdfast.Deny, Kind: blocked.Kind, Rule: blocked.Rule, Why: blocked.Why, Hint: blocked.Hint}}
	} else {
		s.describe(ctx, out, d, ask, a.Resolve)
		req.Boundary = d.Boundary()
	}
	out.URL, out.Redacted = s.shown(d, origin, target)
	req.Payload, err = json.Marshal(map[string]any{"method": ask.Method, "scheme": scheme(origin), "host": origin.Host.String(), "port": origin.Port, "path": s.d.maskText(pathOf(target))})
	if err != nil {
		return nil, err
	}
	if d != nil {
		if err := s.room(ctx, out, d, a); err != nil {
			return nil, err
		}
	}
	o, err := s.d.Kernel.Explain(ctx, req)
	if err != nil {
		return nil, err
	}
	out.Outcome = o
	return out, nil
}

func scheme(o domain.Origin) string {
	if o.TLS {
		return "https"
	}
	return "http"
}

// pathOf is a target without its query.
func pathOf(target string) string {
	p, _, _ := strings.Cut(target, "?")
	return p
}

// shown is the URL as the record would have it.
func (s *egressSite) shown(d *domain.Domain, o domain.Origin, target string) (string, bool) {
	engine := s.d.engine
	if d != nil {
		if engine = s.engine(d); engine == nil {
			return scheme(o) + "://" + o.Host.String(), true
		}
	}
	host := o.Host.String()
	if usual := map[bool]uint16{true: 443, false: 80}[o.TLS]; o.Port != usual || strings.Contains(host, ":") {
		host = net.JoinHostPort(host, strconv.Itoa(int(o.Port)))
	}
	text := scheme(o) + "://" + host + target
	r := engine.Text([]byte(text))
	return string(r.Out), r.Found()
}

// describe says what the row is.
func (s *egressSite) describe(ctx context.Context, out *api.EgressAnswer, d *domain.Domain, ask domain.Ask, resolve bool) {
	method := ask.Method
	if ask.Upgrade != "" {
		method = ""
	}
	out.Row, out.Source, out.Type, out.Risk = d.Name, d.Source, d.Type, d.RiskOf(method)
	out.Inspect, out.Request, out.Response = string(d.Inspect), string(d.Request), string(d.Response)
	if c := d.Credential; c != nil {
		out.Credential = &api.EgressCredential{Header: c.Header, From: credential.DescribeSource(c.Source)}
		if _, err := s.values.Read(ctx, d); err != nil {
			out.Credential.Why, _ = usage.Explain(err)
		} else {
			out.Credential.Present = true
		}
	}
	if resolve {
		out.Addresses = s.addresses(ctx, d, ask.Origin.Host)
	}
}

// resolveTime bounds a question for a name.
const resolveTime = 5 * time.Second

// addresses are those that would be dialled, and those that would not.
func (s *egressSite) addresses(ctx context.Context, d *domain.Domain, h domain.Host) []api.EgressAddress {
	var out []api.EgressAddress
	for _, a := range d.Addresses {
		out = append(out, api.EgressAddress{Address: a.String()})
	}
	if len(out) > 0 {
		return out
	}
	if h.IsAddr() {
		return []api.EgressAddress{{Address: h.String(), Why: classWhy(domain.Class(h.Addr()))}}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	found, err := (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", h.String()+".")
	if err != nil {
		return []api.EgressAddress{{Why: "the name cannot be resolved: " + excerpt.Word(err.Error())}}
	}
	for _, a := range found {
		out = append(out, api.EgressAddress{Address: a.Unmap().String(), Why: classWhy(domain.Class(a))})
	}
	return out
}

func classWhy(err error) string {
	if err == nil {
		return ""
	}
	why, _ := usage.Explain(err)
	return why
}

// room is what is left of each rate and budget that a request to the row draws
// on. What a body would draw is not known.
func (s *egressSite) room(ctx context.Context, out *api.EgressAnswer, d *domain.Domain, a api.EgressAsk) error {
	own := d.Contract()
	asks := map[holdfast.Resource]int64{}
	for r, n := range own.Consumes {
		asks[r] = n
	}
	for _, r := range []holdfast.Resource{holdfast.BytesOut, holdfast.LLMTokens} {
		if counted(d, r) && asks[r] == 0 {
			asks[r] = 1 // drawn on, by an amount that only a body has
		}
	}
	pol, now := s.d.Kernel.Policy(), time.Now()
	who := holdfast.Identity{Tenant: holdfast.Local, Agent: a.Agent, Kind: a.Kind, Intent: a.Intent, Chain: a.Chain, Session: cmp.Or(a.Session, sessionOf(a.Agent, now))}
	draws, rates, refused := budget.Plan(pol.Limits, pol.Rates, budget.Ask{Who: who, Boundary: own.Boundary, Consumes: asks, Now: now})
	if refused != nil {
		return nil // the gates say so themselves
	}
	return s.d.store.View(ctx, func(tx kernel.Tx) error {
		for _, w := range draws {
			c, err := tx.Counter(w)
			if err != nil {
				return err
			}
			room := api.EgressRoom{Name: w.Name, Limit: w.Limit, Left: max(0, w.Limit-c.Used), Asked: own.Consumes[w.Resource]}
			out.Budgets = append(out.Budgets, room)
		}
		for _, r := range rates {
			used, err := taken(tx, r, now)
			if err != nil {
				return err
			}
			out.Rates = append(out.Rates, api.EgressRoom{Name: r.Name, Limit: int64(r.Limit), Left: int64(r.Limit - used), Asked: 1})
		}
		return nil
	})
}

// counted says whether a body to d draws on r.
func counted(d *domain.Domain, r holdfast.Resource) bool {
	return r == holdfast.BytesOut && d.Unit == domain.Bytes || r == holdfast.LLMTokens && d.Unit == domain.Tokens
}

// taken is how often a rate was taken in its window: the most for which the store
// says that so many were.
func taken(tx kernel.Tx, r budget.Rate, now time.Time) (int, error) {
	low, high := 0, r.Limit
	for low < high {
		middle := (low + high + 1) / 2
		ask := r
		ask.Limit = middle
		full, err := tx.PeekRate([]budget.Rate{ask}, now)
		switch {
		case err != nil:
			return 0, err
		case full == nil:
			high = middle - 1
		case full.Rate == nil:
			return 0, errors.New("the rate cannot be read")
		default:
			low = middle
		}
	}
	return low, nil
}
