package config

import (
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// EgressConfig is the one way out (spec 003 section 3.1).
type EgressConfig struct {
	Listen  []EgressListenConfig    `yaml:"listen" doc:"where the proxy listens for agents outside of holdfast run, read when the daemon starts; none if absent"`
	Domains map[string]DomainConfig `yaml:"domains" doc:"the allowlist, by host: name, *.name, address, each with :port for that port alone; what is not listed is refused"`
}

// EgressListenConfig is one listener. Who speaks through it is said here and
// never by a request.
type EgressListenConfig struct {
	Address string `yaml:"address" need:"yes" doc:"host:port, such as 127.0.0.1:7412; beyond loopback it needs unsafe.listen_beyond_loopback"`
	Agent   string `yaml:"agent" need:"yes" doc:"the agent that everything through this listener is of"`
	Kind    string `yaml:"kind" doc:"its kind, as agents.kinds lists them"`
	At      string `yaml:"-"`
}

// DomainConfig is one row of the allowlist (domain.Domain).
type DomainConfig struct {
	Type             string          `yaml:"type" enum:"llm,email,messaging,api,package,git" doc:"llm, email, messaging, api, package or git: sets the risk and the unit of the budget; api if absent"`
	Ports            []int           `yaml:"ports" min:"1" max:"65535" doc:"443 if absent, and 80 with plain_http"`
	PlainHTTP        bool            `yaml:"plain_http" doc:"http without TLS as well, which others on the way can read and change"`
	Methods          []string        `yaml:"methods" doc:"GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS if absent"`
	Paths            []string        `yaml:"paths" doc:"/v1/* has one part more, /v1/** any number; all if absent"`
	RateLimit        int             `yaml:"rate_limit" min:"0" max:"100000" doc:"requests of a tenant in any 60 s; 0 is no rate of its own"`
	Budget           string          `yaml:"budget" enum:"calls,messages,bytes,token_count" doc:"what a request draws on: calls is http_requests, messages is messages, bytes is bytes_out, token_count is llm_tokens under budgets; by type if absent"`
	MaxRequest       Size            `yaml:"max_request" doc:"a request's body at most, decoded, such as 512KB; 10MB if absent, 32MB of type llm"`
	MaxResponse      Size            `yaml:"max_response" doc:"an answer's body at most, decoded; 100MB if absent"`
	Inspect          string          `yaml:"inspect" enum:"terminate,opaque" doc:"terminate: what goes through is read, redacted and judged; opaque: nothing of it is seen; terminate if absent"`
	Binary           string          `yaml:"binary" enum:"refuse,allow,unsearched" doc:"allow: bodies that cannot be looked into pass, hashed and capped, and in requests to models pictures, sound and documents, of which PDFs are searched for secrets; unsearched: these are not searched; refuse if absent, except such parts at the hosts of known providers"`
	WebSocket        bool            `yaml:"websocket" doc:"the upgrade to WebSocket is allowed"`
	Redact           RedactionConfig `yaml:"redact" doc:"what happens to secrets and personal data"`
	Addresses        []string        `yaml:"addresses" doc:"dialled instead of what DNS says: the only way to a private address"`
	Roots            string          `yaml:"roots" doc:"file of the certificates that sign this host's, PEM, relative to this file; those of the system if absent"`
	Credential       *SourceConfig   `yaml:"credential" doc:"the header that Holdfast adds once a request has passed; no value stands here"`
	AgentCredentials string          `yaml:"agent_credentials" enum:"strip,pass" doc:"pass: the agent's own credentials reach the host; strip if absent"`
	FirstByte        Duration        `yaml:"first_byte" doc:"how long the host may take to the first byte of its answer; 30s if absent, 10m of type llm, which is the most"`
	Idle             Duration        `yaml:"idle" doc:"how long the host may send nothing in the middle of an answer; 5m if absent, 1h for events and WebSockets, 10m for tunnels; at most 24h"`
	Risk             *holdfast.Risk  `yaml:"risk" doc:"of every request; by type and method if absent: GET and HEAD LOW, others MEDIUM, all of email and messaging HIGH"`
	Models           *ModelsConfig   `yaml:"models" doc:"of a row of type llm: what requests to its models may ask"`
	At               string          `yaml:"-"`
}

// ModelsConfig is what requests to a host's models may ask (domain.Models).
type ModelsConfig struct {
	Provider    string `yaml:"provider" enum:"anthropic,openai" doc:"whose formats the host speaks: anthropic or openai; by the host's name if absent, else by the path"`
	MaxOutput   int64  `yaml:"max_output" min:"1" doc:"tokens of output at most, asked for where a request says nothing; what the request says if absent, and 32000 where it says nothing"`
	Window      int64  `yaml:"window" min:"1" doc:"tokens that any of the models reads at most: no conversation reserves more for one reading; those whose input stands elsewhere, such as in an earlier answer, reserve as much, and are refused if absent"`
	ServerCalls int64  `yaml:"server_calls" min:"1" doc:"how often one request may have the provider run tools of its own, such as web search; refused if absent, and it needs window"`
	OtherPrices string `yaml:"other_prices" enum:"refuse,allow" doc:"allow: service tiers and whatever else has another price than the ordinary, which prices: models: must then be; refuse if absent"`
	Unmetered   string `yaml:"unmetered" enum:"refuse,allow" doc:"allow: models may be asked where nobody can count what they take, in an opaque tunnel, a row of another type, a WebSocket, or a format that is not known, although prices or budgets count tokens or money; refuse if absent"`
	Answers     string `yaml:"answers" enum:"whole,calls" doc:"where rules are on outputs. whole: nothing of an answer is given before it was judged; calls: text is given as it comes, calls of tools when they were judged; whole if absent"`
	At          string `yaml:"-"`
}

// RedactionConfig is what happens to secrets and personal data in each
// direction.
type RedactionConfig struct {
	Request  string          `yaml:"request" enum:"placeholder,mask,refuse,off" doc:"a secret in a request. placeholder: replace it and personal data in the texts of a request to a model, and restore them in the answer; mask: replace it with a mask; refuse the request; off: look for nothing (default placeholder in a row of type llm, else refuse)"`
	Response string          `yaml:"response" enum:"restore,mask,refuse,off" doc:"a secret in an answer. restore: restore placeholders, and change nothing else; mask: replace it with a mask; refuse the answer; off: look for nothing (default restore where requests have placeholders, else mask)"`
	Personal string          `yaml:"personal" enum:"mask,refuse,pass" doc:"personal data in both directions, where they mask or refuse secrets. mask: replace it with a mask; refuse the message; pass: let it through (default mask)"`
	Detector *DetectorConfig `yaml:"detector" doc:"a program that finds names and addresses in bodies and queries, which personal speaks of, and in the texts of models; without its answer the message is refused (default none)"`
	Guesses  []string        `yaml:"guesses" enum:"secrets,phones,names,addresses" doc:"deprecated, and without effect"`
	At       string          `yaml:"-"`
}

// SourceConfig says which header Holdfast adds, and where its value comes from.
// It is read again when it is used, so that it can be rotated.
type SourceConfig struct {
	Header  string   `yaml:"header" need:"yes" doc:"the header's name, such as Authorization or x-api-key"`
	Prefix  string   `yaml:"prefix" doc:"what stands before the value, such as \"Bearer \""`
	File    string   `yaml:"file" doc:"a file of yours (0600) whose first line is the value, relative to this file; one of file, env and command"`
	Env     string   `yaml:"env" doc:"the environment variable of the daemon that holds the value"`
	Command []string `yaml:"command" doc:"program and arguments that prints the value within 5s; asked again after a minute"`
	At      string   `yaml:"-"`
}

// Text returns the source as a row of the allowlist carries it.
func (s *SourceConfig) Text() string {
	return credential.Source{File: s.File, Env: s.Env, Command: s.Command}.Text()
}

// egress judges the listeners and the allowlist.
func (k *checker) egress(c *Config) {
	seen := map[string]string{}
	for _, l := range c.Egress.Listen {
		host, port, err := net.SplitHostPort(l.Address)
		n, bad := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || bad != nil || strconv.FormatUint(n, 10) != port:
			k.fail(l.At, "write host:port, such as 127.0.0.1:7412", "egress.listen: %q is not an address",
				excerpt.Word(l.Address))
		case !netaddr.IsLoopbackHost(host) && !c.Unsafe.ListenBeyondLoopback:
			k.fail(l.At, "listen on 127.0.0.1, or set unsafe.listen_beyond_loopback", "egress.listen: %q can be reached from other machines", excerpt.Word(l.Address))
		case seen[l.Address] != "" && n != 0:
			k.fail(l.At, "a listener speaks for one agent", "egress.listen: %s is there twice, first at %s", l.Address, seen[l.Address])
		}
		seen[l.Address] = l.At
		if err := (&api.Ask{Agent: l.Agent, Kind: l.Kind}).Named(); err != nil || l.Agent == "" {
			why := "the agent has no name"
			if err != nil {
				why, _ = usage.Explain(err)
			}
			k.fail(l.At, "", "egress.listen: %s", why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Egress.Domains)) {
		k.domain(name, c.Egress.Domains[name])
	}
	switch t, err := c.Egress.table(); {
	case err == nil:
		k.unmetered(c, t)
	case len(k.problems) == 0:
		k.row(k.at("egress.domains"), err)
	}
	for _, b := range c.Boundaries {
		if strings.HasPrefix(b.Boundary, "egress/") {
			k.fail(b.At, "list the host under egress: domains", "the boundary %q is not listed here: what leaves is",
				excerpt.Word(b.Boundary))
		}
	}
}

// unmetered refuses rows through which models are asked past what counts them, but
// for those that say that it is meant.
func (k *checker) unmetered(c *Config, t *domain.Table) {
	for _, d := range t.Domains() {
		why := d.Unmetered()
		if why == "" || d.Models.Unmetered {
			continue
		}
		if by := c.counts(d.Boundary()); by != "" {
			k.fail(d.Source, "let it be looked into as type: llm, without websocket; or say that it is meant: models: {unmetered: allow}",
				"egress.domains: %s %s: nobody could count there what %s", d.Name, why, by)
		}
	}
}

// counts says what of all that somebody wrote down counts tokens or money of models
// at a boundary; "" where nothing does.
func (c *Config) counts(boundary string) string {
	for _, b := range c.Budgets {
		switch holdfast.Resource(b.Resource) {
		case holdfast.MoneyMicro, holdfast.LLMTokens:
			if b.At != BuiltIn && budget.MatchBoundary(b.Boundary, boundary) {
				return "the budget at " + b.At + " counts"
			}
		}
	}
	if len(c.Prices.Models) > 0 {
		return "prices: models have a price for"
	}
	return ""
}

// domain judges one row.
func (k *checker) domain(name string, c DomainConfig) {
	d, err := c.row(name)
	if err != nil {
		why, hint := usage.Explain(err)
		k.fail(c.At, hint, "egress.domains: %s: %s", excerpt.Word(name), why)
		return
	}
	if _, err := domain.NewTable([]domain.Domain{d}); err != nil {
		k.row(c.At, err)
	}
	if s := c.Credential; s != nil {
		k.credential(name, s)
	}
	k.checkDetector(c.Redact.Detector)
	if c.Redact.Guesses != nil {
		k.noteDeprecated(c.Redact.At, "redact: guesses of "+excerpt.Word(name),
			"name a program under redact: detector")
	}
}

// row says what the allowlist has against a row, in the row's own place.
func (k *checker) row(at string, err error) {
	why, hint := usage.Explain(err)
	var e *holdfast.Error
	if errors.As(err, &e) && e.Rule != "" {
		at, why = e.Rule, strings.TrimPrefix(why, e.Rule+": ")
	}
	k.fail(at, hint, "egress.domains: %s", why)
}

func (k *checker) credential(name string, s *SourceConfig) {
	given := 0
	for _, is := range []bool{s.File != "", s.Env != "", s.Command != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		k.fail(s.At, "write one of file: NAME, env: NAME and command: [PROGRAM, ARGS]; no value stands here", "egress.domains: the credential of %s comes from one of file, env and command", excerpt.Word(name))
	case s.Env != "" && !register.IsEnvName(s.Env):
		k.fail(s.At, "env names a variable and holds no value", "egress.domains: the credential of %s: that is no name of an environment variable", excerpt.Word(name))
	case s.Command != nil:
		k.command(s.At, s.Command)
	}
}

// egressFiles makes the names of files absolute, and looks at them.
func (r *reading) egressFiles(c *EgressConfig) {
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		d := c.Domains[name]
		if d.Roots != "" {
			if text, ok := r.file(d.At, d.Roots); ok && !x509.NewCertPool().AppendCertsFromPEM(text) {
				r.fail(d.At, "it is PEM, of whoever signs this host's certificate",
					excerpt.Word(d.Roots)+" holds no certificate")
			}
			d.Roots = r.abs(d.Roots)
		}
		if s := d.Credential; s != nil && s.File != "" {
			s.File = r.abs(s.File)
			if f, err := guard.OpenRegular(s.File, guard.CheckPrivate(s.File)); err != nil {
				r.unreadable(s.At, s.File, err)
			} else {
				_ = f.Close() // nothing was written
			}
		}
		c.Domains[name] = d
	}
}

// sources are where the rows' credentials come from, in the order of the names.
func (c *EgressConfig) sources() []*SourceConfig {
	var out []*SourceConfig
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		if s := c.Domains[name].Credential; s != nil {
			out = append(out, s)
		}
	}
	return out
}

// table is the allowlist.
func (c *EgressConfig) table() (*domain.Table, error) {
	var rows []domain.Domain
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		of := c.Domains[name]
		d, err := of.row(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, d)
	}
	return domain.NewTable(rows)
}

// ListDefaultRequests returns the rows, not of models, that do not say what happens to a secret in a request.
func (c *EgressConfig) ListDefaultRequests() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Domains)) {
		d := c.Domains[name]
		if d.Redact.Request == "" && d.Type != domain.LLM && domain.Inspect(d.Inspect) != domain.Opaque {
			out = append(out, name)
		}
	}
	return out
}

// row is the row as the proxy knows it.
func (c *DomainConfig) row(name string) (domain.Domain, error) {
	d := domain.Domain{Name: name, Type: c.Type, Plain: c.PlainHTTP, Methods: c.Methods, Rate: c.RateLimit, Unit: domain.Unit(c.Budget),
		MaxRequest: int64(c.MaxRequest), MaxResponse: int64(c.MaxResponse), Inspect: domain.Inspect(c.Inspect), Binary: c.Binary == "allow" || c.Binary == "unsearched", Parts: domain.Parts(c.Binary),
		WebSocket: c.WebSocket, Request: domain.Redaction(c.Redact.Request), Response: domain.Redaction(c.Redact.Response),
		Personal: domain.Redaction(c.Redact.Personal), Detector: c.Redact.Detector.specText(), Roots: c.Roots,
		AgentCredentials: c.AgentCredentials == "pass", FirstByte: time.Duration(c.FirstByte), Idle: time.Duration(c.Idle), Risk: c.Risk, Source: c.At}
	if m := c.Models; m != nil {
		d.Models = domain.Models{Provider: m.Provider, MaxOutput: m.MaxOutput, Window: m.Window, ServerCalls: m.ServerCalls,
			Dearer: m.OtherPrices == "allow", Unmetered: m.Unmetered == "allow", Answers: domain.Answers(m.Answers)}
	}
	for _, p := range c.Ports {
		d.Ports = append(d.Ports, uint16(p))
	}
	for _, text := range c.Paths {
		p, err := domain.ParsePath(text)
		if err != nil {
			return d, err
		}
		d.Paths = append(d.Paths, p)
	}
	for _, text := range c.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return d, usage.HintErrorf("write it out, such as 10.0.0.7", "%q is not an address", excerpt.Word(text))
		}
		d.Addresses = append(d.Addresses, a)
	}
	if s := c.Credential; s != nil {
		d.Credential = &domain.Credential{Header: s.Header, Prefix: s.Prefix, Source: s.Text()}
	}
	return d, nil
}

// policy adds the allowlist to the kernel's policy: a contract for each row, its
// rate, and a sentence for what it weakens.
func (c *EgressConfig) policy(p *kernel.Policy, table *domain.Table) {
	for _, d := range table.Domains() {
		own := d.Contract()
		own.Permissions = []string{egressPermission}
		if own.Weakened != "" {
			p.Weakened = append(p.Weakened, own.Weakened)
		}
		p.Contracts = append(p.Contracts, own)
		if d.Rate > 0 {
			p.Rates = append(p.Rates, budget.RateLimit{Scope: budget.Tenant, Boundary: own.Boundary, PerMinute: d.Rate, Source: d.Source})
		}
	}
}

// egressPermission is what a role needs to send anything.
const egressPermission = "egress:send"
