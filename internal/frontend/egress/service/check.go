package service

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
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Status returns how the proxy is, nil if the allowlist is empty and nothing listens.
func (s *Service) Status(ctx context.Context) *api.EgressStatus {
	out := &api.EgressStatus{Domains: len(s.opt.Table().Domains()),
		Runs: int(s.runs.Load()), Missing: listMissing(ctx, &s.values, s.opt.Table(), false)}
	for _, l := range s.Listeners() {
		out.Listeners = append(out.Listeners, api.EgressListener(l))
	}
	p := s.getOpenProxy()
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
func (s *Service) Authority() ([]byte, error) {
	ca, err := s.openAuthority()
	if err != nil {
		return nil, err
	}
	return ca.PEM(), nil
}

// Check implements api.Egress: it asks what a request would meet, in the same order, and sends
// nothing.
func (s *Service) Check(ctx context.Context, a api.EgressAsk) (*api.EgressAnswer, error) {
	out := &api.EgressAnswer{Method: a.Method}
	origin, target, err := domain.ParseURL(a.URL)
	if err != nil {
		why, hint := usage.Explain(err)
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: why, Hint: cmp.Or(hint, "write https://host/path")}
	}
	tok, who, err := s.opt.Mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session,
		Intent: a.Intent, Chain: a.Chain})
	if err != nil {
		return nil, err
	}
	ask := domain.Ask{Origin: origin, Method: a.Method, Target: target, Upgrade: a.Upgrade}
	if row, _ := s.opt.Table().Find(origin); row != nil && row.Inspect == domain.Opaque && a.Upgrade == "" {
		// Of a tunnel the proxy sees the CONNECT and no request.
		ask.Method, ask.Target, out.Method = http.MethodConnect, "", http.MethodConnect
	}
	d, blocked := s.opt.Table().Decide(ask)
	req := holdfast.Request{Boundary: "egress/" + origin.Host.String(), Payload: []byte("{}"), Token: tok, ReadsOnly: ask.ReadsOnly()}
	if blocked != nil {
		req.Denials = append(req.Denials, asDenial(blocked))
	} else {
		s.describe(ctx, out, d, ask, a.Resolve)
		req.Boundary = d.Boundary()
	}
	var found []redact.Finding
	out.URL, found = s.showURL(d, origin, target)
	if out.Redacted = len(found) > 0; out.Redacted && blocked == nil {
		if refused := cleaner.RequestRules(d).ListRefused(found); len(refused) > 0 {
			req.Denials = append(req.Denials, asDenial(cleaner.RequestRules(d).Refuse("the URL", refused)))
		}
	}
	req.Payload, err = json.Marshal(map[string]any{"method": ask.Method, "scheme": schemeOf(origin),
		"host": origin.Host.String(), "port": origin.Port,
		"path": string(s.opt.Engine.Text([]byte(pathOf(target))).Out)})
	if err != nil {
		return nil, err
	}
	if d != nil {
		if err := s.addRoom(ctx, out, d, who); err != nil {
			return nil, err
		}
	}
	o, err := s.opt.Kernel().Explain(ctx, req)
	if err != nil {
		return nil, err
	}
	out.Outcome = o
	return out, nil
}

func asDenial(e *holdfast.Error) holdfast.Opinion {
	return holdfast.Opinion{Gate: e.Gate, Verdict: holdfast.Deny, Kind: e.Kind, Rule: e.Rule, Why: e.Why, Hint: e.Hint}
}

func schemeOf(o domain.Origin) string {
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

// showURL returns the URL as the record would have it, and what is found in it.
func (s *Service) showURL(d *domain.Domain, o domain.Origin, target string) (string, []redact.Finding) {
	engine := s.opt.Engine
	if d != nil {
		if engine = s.engine(d); engine == nil {
			return schemeOf(o) + "://" + o.Host.String(), []redact.Finding{{Rule: "fault"}}
		}
	}
	host := o.Host.String()
	if usual := map[bool]uint16{true: 443, false: 80}[o.TLS]; o.Port != usual || strings.Contains(host, ":") {
		host = net.JoinHostPort(host, strconv.Itoa(int(o.Port)))
	}
	text := schemeOf(o) + "://" + host + target
	return engine.URL(text)
}

// describe adds to out what the row d is.
func (s *Service) describe(ctx context.Context, out *api.EgressAnswer, d *domain.Domain, ask domain.Ask, resolve bool) {
	method := ask.Method
	if ask.Upgrade != "" {
		method = ""
	}
	out.Row, out.Source, out.Type, out.Risk = d.Name, d.Source, d.Type, d.RiskOf(method)
	out.Inspect, out.Request = string(d.Inspect), string(d.Request)
	out.Response, out.Personal = string(d.Response), string(d.Personal)
	if c := d.Credential; c != nil {
		out.Credential = &api.EgressCredential{Header: c.Header, From: credential.DescribeSource(c.Source)}
		if _, err := s.values.Read(ctx, d); err != nil {
			out.Credential.Why, _ = usage.Explain(err)
		} else {
			out.Credential.Present = true
		}
	}
	if resolve {
		out.Addresses = s.listAddresses(ctx, d, ask.Origin.Host)
	}
}

// resolveTime bounds a question for a name.
const resolveTime = 5 * time.Second

// listAddresses returns the addresses that would be dialled, and those that would not.
func (s *Service) listAddresses(ctx context.Context, d *domain.Domain, h domain.Host) []api.EgressAddress {
	var out []api.EgressAddress
	for _, a := range d.Addresses {
		out = append(out, api.EgressAddress{Address: a.String()})
	}
	if len(out) > 0 {
		return out
	}
	if h.IsAddr() {
		return []api.EgressAddress{{Address: h.String(), Why: explainClass(domain.Class(h.Addr()))}}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	found, err := (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", h.String()+".")
	if err != nil {
		return []api.EgressAddress{{Why: "the name cannot be resolved: " + excerpt.Word(err.Error())}}
	}
	for _, a := range found {
		out = append(out, api.EgressAddress{Address: a.Unmap().String(), Why: explainClass(domain.Class(a))})
	}
	return out
}

// explainClass returns why an address of a class is not dialled, "" if it is.
func explainClass(err error) string {
	if err == nil {
		return ""
	}
	why, _ := usage.Explain(err)
	return why
}

// addRoom adds to out what is left of each rate and budget that a request of who to d draws
// on. What a body would draw is not known.
func (s *Service) addRoom(ctx context.Context, out *api.EgressAnswer, d *domain.Domain, who holdfast.Identity) error {
	own := d.Contract()
	asks := map[holdfast.Resource]int64{}
	for r, n := range own.Consumes {
		asks[r] = n
	}
	for _, r := range []holdfast.Resource{holdfast.BytesOut, holdfast.LLMTokens} {
		if drawsOnBody(d, r) && asks[r] == 0 {
			asks[r] = 1 // drawn on, by an amount that only a body has
		}
	}
	pol, now := s.opt.Kernel().Policy(), time.Now()
	draws, rates, refused := budget.Plan(pol.Limits, pol.Rates, budget.Ask{Who: who, Boundary: own.Boundary, Consumes: asks, Now: now})
	if refused != nil {
		return nil // the gates say so themselves
	}
	return s.opt.Store.View(ctx, func(tx kernel.Tx) error {
		for _, w := range draws {
			c, err := tx.Counter(w)
			if err != nil {
				return err
			}
			room := api.EgressRoom{Name: w.Name, Limit: w.Limit, Left: max(0, w.Limit-c.Used), Asked: own.Consumes[w.Resource]}
			out.Budgets = append(out.Budgets, room)
		}
		for _, r := range rates {
			used, err := countTaken(tx, r, now)
			if err != nil {
				return err
			}
			out.Rates = append(out.Rates, api.EgressRoom{Name: r.Name, Limit: int64(r.Limit), Left: int64(r.Limit - used), Asked: 1})
		}
		return nil
	})
}

// drawsOnBody reports whether a body to d draws on r.
func drawsOnBody(d *domain.Domain, r holdfast.Resource) bool {
	return r == holdfast.BytesOut && d.Unit == domain.Bytes || r == holdfast.LLMTokens && d.Unit == domain.Tokens
}

// countTaken returns how often a rate was taken in its window: the most for which the store
// says that so many were.
func countTaken(tx kernel.Tx, r budget.Rate, now time.Time) (int, error) {
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
