package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// The document's allowlist (003 3.1) means what it says there.
func TestEgress_Config_documentsFourDomains(t *testing.T) {
	l, err := load(t, `version: 1
egress:
  domains:
    api.openai.com: {type: llm, rate_limit: 100, budget: token_count}
    api.anthropic.com: {type: llm, rate_limit: 100, budget: token_count}
    api.gmail.com: {type: email, rate_limit: 10, budget: messages}
    api.slack.com: {type: messaging, rate_limit: 50, budget: messages}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		rate     int
		unit     domain.Unit
		risk     holdfast.Risk
		messages int64
	}{
		"api.openai.com":    {100, domain.Tokens, holdfast.Medium, 0},
		"api.anthropic.com": {100, domain.Tokens, holdfast.Medium, 0},
		"api.gmail.com":     {10, domain.Messages, holdfast.High, 1},
		"api.slack.com":     {50, domain.Messages, holdfast.High, 1},
	}
	rows := l.Domains.Domains()
	if len(rows) != len(want) || len(l.Policy.Weakened) != 0 {
		t.Fatal(len(rows), l.Policy.Weakened)
	}
	for _, d := range rows {
		w := want[d.Name]
		if d.Rate != w.rate || d.Unit != w.unit || !strings.HasPrefix(d.Source, "holdfast.yaml:") {
			t.Errorf("%+v", d)
		}
		found := false
		for _, c := range l.Policy.Contracts {
			if c.Boundary != "egress/"+d.Name {
				continue
			}
			found = true
			if c.Risk != w.risk || c.Consumes[holdfast.HTTPRequests] != 1 || c.Consumes[holdfast.Messages] != w.messages || len(c.Permissions) != 1 || c.Source != d.Source || c.Timeout < time.Hour {
				t.Errorf("%+v", c)
			}
		}
		limited := false
		for _, r := range l.Policy.Rates {
			limited = limited || r.Boundary == "egress/"+d.Name && r.Scope == budget.Tenant && r.PerMinute == w.rate
		}
		if !found || !limited {
			t.Errorf("%s: contract %v, rate %v", d.Name, found, limited)
		}
	}
}

// An absent section, an empty one and an empty list allow nothing.
func TestEgress_Config_emptyAllowlistAllowsNothing(t *testing.T) {
	for _, text := range []string{"version: 1\n", "version: 1\negress: {}\n", "version: 1\negress: {domains: {}}\n"} {
		l, err := load(t, text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		o, target, err := domain.ParseURL("https://api.openai.com/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		if d, no := l.Domains.Decide(domain.Ask{Origin: o, Method: "GET", Target: target}); d != nil || no == nil || no.Kind != holdfast.KindDomainBlocked {
			t.Errorf("%q: %v %v", text, d, no)
		}
		for _, c := range l.Policy.Contracts {
			if strings.HasPrefix(c.Boundary, "egress/") {
				t.Errorf("%q lists %s", text, c.Boundary)
			}
		}
	}
}

func TestEgress_Config_everySettingReachesTheRow(t *testing.T) {
	ca := string(testfile.NewAuthority(t).PEM)
	l, err := load(t, `version: 1
egress:
  domains:
    "*.Example.com":
      type: package
      ports: [443, 8443]
      methods: [GET]
      paths: ["/v1/*", "/repos/**"]
      rate_limit: 7
      budget: bytes
      max_request: 512KB
      max_response: 3B
      binary: allow
      websocket: true
      redact: {request: refuse, response: refuse, personal: pass, guesses: [phones, names]}
      addresses: [10.0.0.7, "fd00::7"]
      roots: ca.pem
      credential: {header: x-api-key, prefix: "Key ", file: key}
      first_byte: 90s
      idle: 20m
      risk: HIGH
    mail.example.com: {agent_credentials: pass, plain_http: true, redact: {response: off}}
    opaque.example.com: {inspect: opaque}
    unsearched.example.com: {type: llm, binary: unsearched}
`, "ca.pem", ca, "key", "of-the-service\n")
	if err != nil {
		t.Fatal(err)
	}
	rows := l.Domains.Domains()
	d := rows[0]
	if d.Name != "*.example.com" || d.Type != "package" || len(d.Ports) != 2 || len(d.Methods) != 1 || len(d.Paths) != 2 || d.Rate != 7 || d.Unit != domain.Bytes ||
		d.MaxRequest != 512<<10 || d.MaxResponse != 3 || !d.Binary || !d.WebSocket || d.Request != domain.Refuse || d.Response != domain.Refuse || d.Personal != domain.Pass || len(d.Addresses) != 2 ||
		!filepath.IsAbs(d.Roots) || d.FirstByte != 90*time.Second || d.Idle != 20*time.Minute || d.Risk == nil || *d.Risk != holdfast.High {
		t.Errorf("%+v", d)
	}
	if c := d.Credential; c == nil || c.Header != "x-api-key" || c.Prefix != "Key " || !strings.HasPrefix(c.Source, "file:/") {
		t.Errorf("%+v", d.Credential)
	}
	if r := rows[1]; r.Request != domain.Refuse || r.Personal != domain.Mask {
		t.Errorf("what a row leaves out: %+v", r)
	}
	if got := strings.Join(l.Config.Egress.ListDefaultRequests(), " "); !strings.Contains(got, "mail.example.com") {
		t.Errorf("rows that name no request: %s", got)
	}
	if !rows[1].AgentCredentials || !rows[1].Plain || rows[2].Inspect != domain.Opaque || rows[3].Parts != domain.UnsearchedParts {
		t.Errorf("%+v %+v %+v", rows[1], rows[2], rows[3])
	}
	// Whoever signs a host's certificate governs: it is part of the policy.
	if len(l.Files) != 2 || filepath.Base(l.Files[1]) != "ca.pem" {
		t.Error(l.Files)
	}
	said := strings.Join(l.Policy.Weakened, "\n")
	for _, want := range []string{"*.example.com takes bodies", "*.example.com passes personal data",
		"mail.example.com answers without its responses being redacted", "mail.example.com may be reached without TLS",
		"mail.example.com is sent the agent's own credentials", "opaque.example.com is an opaque tunnel",
		"unsearched.example.com is sent documents that are not searched for secrets"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
	for _, c := range l.Policy.Contracts {
		if strings.HasPrefix(c.Boundary, "egress/") != (c.Weakened != "" && strings.HasPrefix(c.Weakened, "egress")) {
			t.Errorf("%s: %q", c.Boundary, c.Weakened)
		}
	}
}

// What a row says is part of the policy's version, which approvals are bound to.
func TestEgress_Config_rowIsPartOfThePolicysVersion(t *testing.T) {
	hash := func(rate string) string {
		l, err := load(t, "version: 1\negress: {domains: {a.example.com: {rate_limit: "+rate+"}}}\n")
		if err != nil {
			t.Fatal(err)
		}
		return l.Policy.Version
	}
	if one, again := hash("1"), hash("1"); one == hash("2") || one != again {
		t.Error("the version does not follow the allowlist")
	}
}

func TestEgress_Config_mistakes(t *testing.T) {
	const v, d = "version: 1\negress:\n  domains:\n", "version: 1\negress:\n  listen:\n"
	for name, c := range map[string]struct{ text, want, hint string }{
		"unknown key":           {v + "    a.example.com: {rate_limt: 1}\n", `holdfast.yaml:4: unknown key "rate_limt"`, `did you mean "rate_limit"?`},
		"unknown section":       {"version: 1\negress: {domain: {}}\n", `unknown key "domain"`, `did you mean "domains"?`},
		"a list":                {"version: 1\negress: {domains: [a.example.com]}\n", "egress.domains must be a mapping, not a list", ""},
		"type":                  {v + "    a.example.com: {type: web}\n", "must be one of llm, email", ""},
		"no host":               {v + "    https://a.example.com: {}\n", "holds a slash", "the host alone"},
		"every host":            {v + "    '*': {}\n", "has a star where none may be", ""},
		"star inside":           {v + "    a.*.example.com: {}\n", "has a star where none may be", ""},
		"star without quotes":   {v + "    *.example.com: {}\n", "holdfast.yaml:4: not YAML", `"*.example.com"`},
		"star of everybody":     {v + "    '*.com': {}\n", "covers names of everybody", ""},
		"numeric address":       {v + "    '127.1': {}\n", "cannot be read", ""},
		"twice in two writings": {v + "    a.example.com: {}\n    A.example.com.: {}\n", "is listed twice", "keep one"},
		"private address":       {v + "    10.0.0.7: {}\n", "the domain \"10.0.0.7\" is", "under addresses"},
		"metadata":              {v + "    a.example.com: {addresses: [169.254.169.254]}\n", "has the address 169.254.169.254", ""},
		"no address":            {v + "    a.example.com: {addresses: [localhost]}\n", `"localhost" is not an address`, ""},
		"port":                  {v + "    a.example.com: {ports: [0]}\n", "must be at least 1", ""},
		"two places of ports":   {v + "    a.example.com:8443: {ports: [443]}\n", "names a port, and has a list", ""},
		"method":                {v + "    a.example.com: {methods: [get]}\n", `has the method "get"`, "upper case"},
		"CONNECT":               {v + "    a.example.com: {methods: [CONNECT]}\n", "never allowed", ""},
		"path":                  {v + "    a.example.com: {paths: [v1]}\n", `a.example.com: the path "v1" does not start with a slash`, "from the root on"},
		"path upwards":          {v + "    a.example.com: {paths: [/a/../b]}\n", "a component of dots", ""},
		"rate":                  {v + "    a.example.com: {rate_limit: -1}\n", "must be at least 0", ""},
		"rate without bounds":   {v + "    a.example.com: {rate_limit: 100001}\n", "must be at most 100000", ""},
		"rate as a text":        {v + "    a.example.com: {rate_limit: 100_per_min}\n", "must be a whole number", ""},
		"budget":                {v + "    a.example.com: {budget: tokens}\n", "must be one of calls, messages, bytes, token_count", ""},
		"size":                  {v + "    a.example.com: {max_request: much}\n", `"much" is not a size`, ""},
		"size without a unit":   {v + "    a.example.com: {max_request: 10}\n", "egress.domains.a.example.com.max_request: 10 has no unit, and would be 10 bytes", "10KB, 10MB, or 10B"},
		"size of nothing":       {v + "    a.example.com: {max_request: 0}\n", `"0" is not a size`, ""},
		"enormous size":         {v + "    a.example.com: {max_response: 99999999999GB}\n", "is not a size", ""},
		"too large":             {v + "    a.example.com: {max_request: 100GB}\n", "bounds requests at", "at most 256MB"},
		"opaque and judged":     {v + "    a.example.com: {inspect: opaque, paths: [/v1]}\n", "is opaque and names paths", ""},
		"opaque and redacted":   {v + "    a.example.com: {inspect: opaque, redact: {request: mask}}\n", "is opaque and names redaction", ""},
		"personal data":         {v + "    a.example.com: {redact: {personal: off}}\n", "must be one of mask, refuse, pass", ""},
		"personal data, and off": {v + "    a.example.com: {redact: {request: off, response: off, personal: mask}}\n",
			"searches in neither direction", "leave `personal` out"},
		"personal data of models": {v + "    a.example.com: {type: llm, redact: {personal: mask}}\n",
			"next to placeholders", "leave `personal` out"},
		"redaction": {v + "    a.example.com: {redact: {request: none}}\n",
			"must be one of placeholder, mask, refuse, off", ""},
		"guess":                {v + "    a.example.com: {redact: {guesses: [dates]}}\n", "must be one of secrets, phones, names, addresses", ""},
		"no source":            {v + "    a.example.com:\n      credential: {header: Authorization}\n", "holdfast.yaml:5: egress.domains: the credential of a.example.com comes from one of", "no value stands here"},
		"two sources":          {v + "    a.example.com: {credential: {header: Authorization, env: A, command: [b]}}\n", "comes from one of", ""},
		"value for a variable": {v + "    a.example.com: {credential: {header: Authorization, env: sk-hunter2}}\n", "is no name of an environment variable", "holds no value"},
		"empty command":        {v + "    a.example.com: {credential: {header: Authorization, command: []}}\n", "a command without a program", ""},
		"no such file":         {v + "    a.example.com: {credential: {header: Authorization, file: none}}\n", "cannot read", ""},
		"no header":            {v + "    a.example.com: {credential: {env: A}}\n", `"header" is missing`, ""},
		"header of the line":   {v + "    a.example.com: {credential: {header: Host, env: A}}\n", "belongs to the connection", ""},
		"unencrypted":          {v + "    a.example.com: {plain_http: true, credential: {header: Authorization, env: A}}\n", "permits plain http", ""},
		"unmasked echo":        {v + "    a.example.com: {redact: {response: off}, credential: {header: Authorization, env: A}}\n", "does not look into answers", ""},
		"both credentials":     {v + "    a.example.com: {agent_credentials: pass, credential: {header: Authorization, env: A}}\n", "lets the agent's own pass", ""},
		"no roots":             {v + "    a.example.com: {roots: none.pem}\n", "cannot read", ""},
		"roots of nobody":      {v + "    a.example.com: {roots: holdfast.yaml}\n", "holds no certificate", "PEM"},
		"first byte":           {v + "    a.example.com: {first_byte: 1h}\n", "waits 1h0m0s", ""},
		"idle":                 {v + "    a.example.com: {idle: 25h}\n", "waits 25h0m0s", ""},
		"risk":                 {v + "    a.example.com: {risk: low}\n", `unknown risk "low"`, ""},
		"as a boundary":        {"version: 1\nboundaries: [{boundary: egress/a.example.com, risk: LOW}]\n", "is not listed here", "egress: domains"},
		"all as a boundary":    {"version: 1\nboundaries: [{boundary: 'egress/*', risk: LOW}]\n", "is not listed here", ""},
		"listener":             {d + "    - {address: '7412', agent: a}\n", "is not an address", "127.0.0.1:7412"},
		"listener for all":     {d + "    - {address: '0.0.0.0:7412', agent: a}\n", "can be reached from other machines", "unsafe.listen_beyond_loopback"},
		"listener of nobody":   {d + "    - {address: '127.0.0.1:7412'}\n", `"agent" is missing`, ""},
		"listener's agent":     {d + "    - {address: '127.0.0.1:7412', agent: ''}\n", "holdfast.yaml:4: egress.listen: ", ""},
		"listener twice":       {d + "    - {address: '127.0.0.1:7412', agent: a}\n    - {address: '127.0.0.1:7412', agent: b}\n", "holdfast.yaml:5: egress.listen: 127.0.0.1:7412 is there twice", "one agent"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := load(t, c.text)
			var ps Problems
			if err == nil || l != nil || !errors.As(err, &ps) {
				t.Fatalf("%v %v", l, err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(ps[0].Hint, c.hint) || !strings.HasPrefix(ps[0].Where, "holdfast.yaml") {
				t.Errorf("got %v (hint %q)", err, ps[0].Hint)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("what may be a secret is shown: %v", err)
			}
		})
	}
}

// A size has a unit, or is so large that bytes are meant; what is written is read
// again as the same.
func TestEgress_Config_sizes(t *testing.T) {
	for text, want := range map[string]Size{"10KiB": 10 << 10, "10 KiB": 10 << 10, "1 MB": 1 << 20, "1MiB": 1 << 20, "2GB": 2 << 30, "2 GiB": 2 << 30, "3B": 3, "3 B": 3, "1024": 1 << 10, "5000": 5000} {
		var s, again Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
		if b, err := s.MarshalText(); err != nil || again.UnmarshalText(b) != nil || again != s {
			t.Errorf("%q is written as %s, and read as %d: %v", text, b, again, err)
		}
	}
	for _, text := range []string{"1", "10", "1023", "0", "-5MB", "1.5MB", "1  MB", "1 mb", "010KB", "MB", " MB", "1 ", "1e6", "1KBB", "9223372036854775807GB"} {
		if s := Size(7); s.UnmarshalText([]byte(text)) == nil || s != 7 {
			t.Errorf("%q is read as %d", text, s)
		}
	}
}

// A file with a credential that others can read is refused.
func TestEgress_Config_credentialFileIsPrivate(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"holdfast.yaml": "version: 1\negress: {domains: {a.example.com: {credential: {header: Authorization, file: key}}}}\n", "key": "of-the-service\n"})
	at := filepath.Join(dir, "holdfast.yaml")
	if _, err := Load(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(at); err == nil || !strings.Contains(err.Error(), "key") {
		t.Fatal(err)
	}
}

// A budget may count what goes to one host alone.
func TestEgress_Config_budgetOfOneHost(t *testing.T) {
	l, err := load(t, "version: 1\nbudgets: [{scope: tenant, resource: bytes_out, boundary: 'egress/*.example.com', amount: 10}]\negress: {domains: {'*.example.com': {budget: bytes}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	ask := budget.Ask{Who: holdfast.Identity{Tenant: "local", Agent: "a"}, Boundary: "egress/*.example.com", Consumes: map[holdfast.Resource]int64{holdfast.BytesOut: 1}, Now: time.Now()}
	ds, _, no := budget.Plan(l.Policy.Limits, l.Policy.Rates, ask)
	if no != nil || len(ds) != 2 {
		t.Fatal(ds, no) // the host's, and the built-in one of the day
	}
}
