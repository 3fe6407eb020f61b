package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func TestWithoutAFile(t *testing.T) {
	l, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Hash) != 64 || l.Policy.Version != l.Hash || len(l.Files) != 0 || l.Policy.Rules != nil || len(l.Policy.Weakened) != 0 {
		t.Fatalf("%+v", l)
	}
	want := map[string]int64{"discovery": 3, "support": 5, "ops": 10, "code": 3, "growth": 5, "meta": 2, "finance": 3, "loop": 5}
	for kind, n := range want {
		if l.Policy.Kinds[kind].Iterations != n {
			t.Errorf("kind %s has %d iterations, want %d", kind, l.Policy.Kinds[kind].Iterations, n)
		}
	}
	if len(l.Policy.Kinds) != len(want) {
		t.Errorf("%d kinds", len(l.Policy.Kinds))
	}
	// Every resource is counted, so that none is refused for want of a budget.
	covered := map[holdfast.Resource]bool{}
	for _, b := range l.Policy.Limits {
		if b.Scope == budget.Tenant && b.Window == 24*time.Hour && b.Match == "" && b.Amount > 0 && b.Source == "built in" {
			covered[b.Resource] = true
		}
	}
	for _, r := range []holdfast.Resource{holdfast.CPUMillis, holdfast.MemoryMB, holdfast.WallMillis, holdfast.DBQueries, holdfast.LLMTokens,
		holdfast.HTTPRequests, holdfast.Messages, holdfast.FileWrites, holdfast.BytesOut, holdfast.MoneyMicro, holdfast.Iterations, holdfast.EntropyMilli} {
		if !covered[r] {
			t.Errorf("no daily budget for %s", r)
		}
	}
	money := map[budget.Scope]int64{}
	for _, b := range l.Policy.Limits {
		if b.Resource == holdfast.MoneyMicro {
			money[b.Scope] = b.Amount
		}
	}
	if !reflect.DeepEqual(money, map[budget.Scope]int64{"chain": 5_000_000, "session": 10_000_000, "tenant": 50_000_000}) {
		t.Errorf("money %v", money)
	}
	step := l.Policy.Contracts[0]
	if step.Boundary != "agent/step" || step.Risk != holdfast.Low || step.Cooldown != time.Minute || step.Consumes[holdfast.Iterations] != 1 {
		t.Errorf("step %+v", step)
	}
}

func TestLoadMapsEverything(t *testing.T) {
	files := testfile.ExecutorFiles(t)
	l, err := load(t, full(t), append(files, "internal.crt", files[1], "rules.yaml", rulesFile, "move.schema.json", `{"type": "object"}`, "jwks.json", `{"keys": []}`,
		"tickets.token", "Bearer of-the-tickets\n", "webhook.secret", "0123456789abcdef0123456789abcdef\n", "oncall.address", "twilio://AC0:token-of-it@15550001111/15552223333\n", "secrets.txt", "hunter22\n", "deploy.key", "one\ntwo\n")...)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Policy
	if len(l.Files) != 4 || filepath.Base(l.Files[0]) != "holdfast.yaml" {
		t.Errorf("files %v", l.Files)
	}
	w := p.Contracts[0]
	if w.Boundary != "mcp/files/write_file" || w.Risk != holdfast.Medium || w.RatePerMinute != 30 || w.Cooldown != time.Second ||
		w.Timeout != 30*time.Second || w.Operation != "file:write" || w.Replay != "payload" || w.SchemaID != "write-file" ||
		w.Consumes[holdfast.FileWrites] != 1 || string(w.Schema) != `{"type":"object","required":["path","content"]}` ||
		!regexp.MustCompile(`^holdfast\.yaml:\d+$`).MatchString(w.Source) {
		t.Errorf("%+v", w)
	}
	if w.Redact == nil || *w.Redact != (holdfast.Redaction{Request: "refuse", Response: "mask", Personal: "mask"}) {
		t.Errorf("redact: %+v", w.Redact)
	}
	if w.Threshold == nil || *w.Threshold != 0.8 {
		t.Error("the operation's threshold is not used")
	}
	if m := p.Contracts[1]; !m.Irreversible || m.Risk != holdfast.High || string(m.Schema) != `{"type": "object"}` || string(m.OutputSchema) != `{"type": "object"}` {
		t.Errorf("%+v", m)
	}
	if m := p.Contracts[2]; m.Boundary != "exec/*" || m.Tier != "process" || len(m.Walls) != 9 {
		t.Errorf("%+v", m)
	}
	if m := p.Contracts[3]; m.Boundary != "run/*" || m.Timeout != 168*time.Hour {
		t.Errorf("%+v", m)
	}
	if m := p.Contracts[4]; m.Threshold == nil || *m.Threshold != 0.9 || m.Confidence != "declared" {
		t.Errorf("%+v", m)
	}
	if p.Rules == nil || len(p.Rates) != 6 || p.Rates[1].Cooldown != 10*time.Minute || p.Rates[0].PerMinute != 60 {
		t.Errorf("%+v", p.Rates)
	}
	var day []budget.Limit
	for _, b := range p.Limits {
		if b.Resource == holdfast.MoneyMicro && b.Scope == budget.Tenant {
			day = append(day, b)
		}
	}
	if len(day) != 1 || day[0].Amount != 20_000_000 {
		t.Errorf("the built-in budget is not replaced: %+v", day)
	}
	if is := l.Config.Identity.Issuers[1]; !filepath.IsAbs(is.JWKSFile) {
		t.Errorf("%+v", is)
	}
	if h := l.Config.Telemetry.Headers["Authorization"]; h.Reveal() != "Bearer of-your-collector" || strings.Contains(fmt.Sprintf("%+v", l.Config), "Bearer") {
		t.Error("the header is lost or printed")
	}
	if h := l.Config.MCP.Servers["tickets"].Headers; !filepath.IsAbs(h["Authorization"].File) || h["X-Team"].Env != "TICKETS_TEAM" || *l.Config.Review.Wait != Duration(50*time.Second) {
		t.Errorf("%+v", l.Config.MCP.Servers["tickets"])
	}
	if s := l.Config.MCP.Servers["files"]; !filepath.IsAbs(s.Cwd) || len(s.Command) != 4 {
		t.Errorf("%+v", s)
	}
}

const rulesFile = `rules:
  - id: no-root
    on: request
    when: args.path == "/"
    severity: block
    message: not the root
`

// full is the example with every setting switched on.
func full(t testing.TB) string {
	t.Helper()
	on := regexp.MustCompile(`(?m)^#([^ #\n]|  )`).ReplaceAllString(string(Example()), "$1")
	if on == string(Example()) {
		t.Fatal("nothing is commented out")
	}
	return on
}

func TestExample(t *testing.T) {
	plain, err := load(t, string(Example()))
	if err != nil {
		t.Fatal(err)
	}
	none, _ := Load("")
	plain.Config.Version = none.Config.Version
	if !reflect.DeepEqual(plain.Config, none.Config) {
		t.Errorf("the example changes the defaults")
	}
	text := full(t)
	for _, f := range keys(reflect.TypeFor[Config]()) {
		if !regexp.MustCompile(`(?m)\b` + f + `\b`).MatchString(text) {
			t.Errorf("the example does not speak of %q", f)
		}
	}
}

// keys lists every key of a configuration type that has an effect.
func keys(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return keys(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if k := f.Tag.Get("yaml"); k != "" && k != "-" &&
			!strings.HasPrefix(f.Tag.Get("doc"), "deprecated") {
			out = append(append(out, k), keys(f.Type)...)
		}
	}
	return out
}

func TestEditorSchemaAgreesWithTheLoader(t *testing.T) {
	raw, err := EditorSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///s")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return err
		}
		return s.Validate(inst)
	}
	for name, text := range map[string]string{"example": string(Example()), "full": full(t)} {
		if err := valid(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{
		"version: 2", "version: x", "{}", "version: 1\nboundries: []", "version: 1\nspawn: {}", "version: 1\nbudgets: [{scope: planet, resource: x, amount: 1}]",
		"version: 1\nboundaries: [{boundary: a/b}]", "version: 1\nboundaries: [{boundary: a/b, risk: low}]", "version: 1\nlimits: [{scope: agent, cooldown: soon}]",
		"version: 1\nagents: {kinds: {x: {iterations: 1, trust: highest}}}", "version: 1\nboundaries: [{boundary: a/b, risk: LOW, threshold: 2}]",
	} {
		if valid(text) == nil {
			t.Errorf("the schema accepts %q", text)
		}
		if _, err := load(t, text); err == nil {
			t.Errorf("the loader accepts %q", text)
		}
	}
}

// Each mistake is named with its line, and what to do about it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const v = "version: 1\n"
	cases := map[string]struct{ text, want, hint string }{
		"empty":                  {"", "the file is empty", "version: 1"},
		"comments only":          {"# nothing\n", "the file is empty", ""},
		"null":                   {"~\n", "the file is empty", ""},
		"a marker only":          {"---\n", "the file is empty", ""},
		"no version":             {"budgets: []\n", `"version" is missing`, "the format"},
		"later version":          {"version: 2\n", "version must be at most 1", ""},
		"unknown key":            {v + "boundries: []\n", `holdfast.yaml:2: unknown key "boundries"`, `did you mean "boundaries"?`},
		"a contract's own word":  {v + "contracts: []\n", `unknown key "contracts"`, `contracts stand under "boundaries"`},
		"unknown deep key":       {v + "ledger:\n  retenton: 1d\n", `holdfast.yaml:3: unknown key "retenton"`, `did you mean "retention"?`},
		"far from any key":       {v + "zzzzzzzzzzzz: 1\n", `unknown key "zzzzzzzzzzzz"`, "the keys here are version, listen"},
		"duplicate key":          {v + "ledger: {}\nledger: {}\n", `holdfast.yaml:3: the key "ledger" is there twice, first in line 2`, "keep one"},
		"duplicate name":         {v + "identity:\n  roles:\n    a: []\n    a: []\n", `holdfast.yaml:5: the key "a" is there twice`, ""},
		"anchor":                 {v + "identity:\n  roles:\n    a: &x []\n", "holdfast.yaml:4: anchors such as &x", "write the value out"},
		"alias":                  {v + "identity:\n  roles:\n    a: &x []\n    b: *x\n", "holdfast.yaml:5: aliases such as *x", ""},
		"merge key":              {v + "ledger:\n  <<: {results: 1h}\n", "holdfast.yaml:3: merge keys", ""},
		"tag":                    {v + "rules:\n  files: [!!str 1]\n", "holdfast.yaml:3: type tags such as !!str", ""},
		"binary tag":             {v + "listen: !!binary aGk=\n", "type tags", ""},
		"a list as a key":        {v + "? [a]\n: b\n", "a key must be a plain text", ""},
		"a number as a name":     {v + "identity:\n  roles:\n    1: []\n", "holdfast.yaml:4: a name in identity.roles must be a text, not a number", "quotes"},
		"two documents":          {v + "---\nversion: 1\n", "holdfast.yaml:2: a second document", ""},
		"not YAML":               {v + "ledger: [1\n", "not YAML", ""},
		"tab":                    {v + "ledger:\n\tresults: 1h\n", "holdfast.yaml:3: not YAML", "never with tabs"},
		"NUL":                    {v + "a: \x00\n", "holdfast.yaml:2: a NUL character", ""},
		"invalid UTF-8":          {v + "\n\na: \xff\n", "holdfast.yaml:4: not valid UTF-8", ""},
		"escape":                 {v + "a: \x1b[31m\n", "holdfast.yaml:2: a control character (U+001B)", ""},
		"direction":              {v + "a: \u202e\n", "turns the direction of writing", ""},
		"enormous":               {v + strings.Repeat("# x\n", maxConfig/4), "more than 1048576 bytes", ""},
		"deeply nested":          {v + "a: " + strings.Repeat("[", 100_000), "not YAML", ""},
		"nested mappings":        {v + "a: " + strings.Repeat("{a: ", 60) + strings.Repeat("}", 60), "", ""},
		"not a mapping":          {"- version\n", "the file must be a mapping, not a list", ""},
		"a text":                 {"version\n", "the file must be a mapping, not a text", ""},
		"text for a mapping":     {v + "ledger: x\n", "holdfast.yaml:2: ledger must be a mapping, not a text", ""},
		"mapping for a list":     {v + "budgets: {}\n", "budgets must be a list, not a mapping", ""},
		"text for a list":        {v + "rules: {files: a.yaml}\n", "rules.files must be a list, not a text", "in brackets"},
		"null item":              {v + "budgets: [~]\n", "budgets[0] must be a mapping, not nothing", ""},
		"number for a text":      {v + "store: {kind: 1}\n", "store.kind must be a text, not a number", "quotes"},
		"bool for a text":        {v + "rules: {files: [true]}\n", "rules.files[0] must be a text, not true or false", "quotes"},
		"null for a text":        {v + "store: {kind: }\n", "store.kind must be a text, not nothing", ""},
		"text for a bool":        {v + "unsafe: {plain_http: 'true'}\n", "unsafe.plain_http must be true or false, not a text", ""},
		"yes for a bool":         {v + "unsafe: {plain_http: yes}\n", "unsafe.plain_http must be true or false, not a text", ""},
		"octal":                  {v + "agents: {kinds: {x: {iterations: 010}}}\n", "must be a whole number", "decimal"},
		"hex":                    {v + "agents: {kinds: {x: {iterations: 0x10}}}\n", "must be a whole number", "decimal"},
		"underscores":            {v + "agents: {kinds: {x: {iterations: 1_0}}}\n", "must be a whole number", "decimal"},
		"fraction":               {v + "agents: {kinds: {x: {iterations: 1.5}}}\n", "must be a whole number, not a number", ""},
		"too large":              {v + "agents: {kinds: {x: {iterations: 9223372036854775808}}}\n", "must be a whole number below 2^63", ""},
		"negative":               {v + "agents: {kinds: {x: {iterations: -1}}}\n", "agents.kinds.x.iterations must be at least 0", ""},
		"highest":                {v + "agents: {kinds: {x: {iterations: 1, trust: highest}}}\n", "cannot give the trust level highest", ""},
		"unknown trust":          {v + "agents: {kinds: {x: {iterations: 1, trust: full}}}\n", `unknown trust level "full"`, ""},
		"not a number":           {v + "boundaries: [{boundary: a/b, risk: LOW, threshold: .nan}]\n", "threshold must be a number", ""},
		"infinite":               {v + "boundaries: [{boundary: a/b, risk: LOW, threshold: -.inf}]\n", "threshold must be a number", ""},
		"threshold above one":    {v + "boundaries: [{boundary: a/b, risk: LOW, threshold: 1.1}]\n", "threshold must be at most 1", ""},
		"no risk":                {v + "boundaries:\n  - boundary: a/b\n", `holdfast.yaml:3: "risk" is missing`, "PROHIBITED"},
		"risk in lower case":     {v + "boundaries: [{boundary: a/b, risk: low}]\n", `unknown risk "low"`, ""},
		"everything":             {v + "boundaries: [{boundary: '*', risk: LOW}]\n", "would list every boundary", ""},
		"star inside":            {v + "boundaries: [{boundary: a/*/b, risk: LOW}]\n", "may have * only as its whole last part", ""},
		"half a star":            {v + "boundaries: [{boundary: a/b*, risk: LOW}]\n", "may have * only as its whole last part", ""},
		"empty boundary":         {v + "boundaries: [{boundary: '', risk: LOW}]\n", "must have 1 to 256 bytes", ""},
		"dotted boundary":        {v + "boundaries: [{boundary: a/../b, risk: LOW}]\n", "dotted part", ""},
		"boundary with a space":  {v + "boundaries: [{boundary: 'a/b c', risk: LOW}]\n", "space", ""},
		"boundary twice":         {v + "boundaries:\n - {boundary: a/b, risk: LOW}\n - {boundary: a/b, risk: HIGH}\n", `holdfast.yaml:4: the boundary "a/b" is listed twice, first at holdfast.yaml:3`, ""},
		"permission":             {v + "boundaries: [{boundary: a/b, risk: LOW, permissions: [x]}]\n", "is not of the form scheme:name", ""},
		"role's permission":      {v + "identity: {roles: {r: [x]}}\n", "holdfast.yaml:2: permission", ""},
		"resource name":          {v + "boundaries: [{boundary: a/b, risk: LOW, consumes: {GPU: 1}}]\n", `"GPU" is no name for a resource`, ""},
		"uncovered resource":     {v + "boundaries: [{boundary: a/b, risk: LOW, consumes: {gpu_ms: 1}}]\n", "no budget covers gpu_ms", "budgets"},
		"negative consumption":   {v + "boundaries: [{boundary: a/b, risk: LOW, consumes: {llm_tokens: -1}}]\n", "must be at least 0", ""},
		"schema":                 {v + "boundaries: [{boundary: a/b, risk: LOW, schema: {type: objekt}}]\n", "schema: ", ""},
		"schema not JSON":        {v + "boundaries: [{boundary: a/b, risk: LOW, schema: {maximum: .inf}}]\n", "is not a number in JSON", ""},
		"schema and file":        {v + "boundaries: [{boundary: a/b, risk: LOW, schema: {}, schema_file: s.json}]\n", "given here and in the file", ""},
		"missing schema file":    {v + "boundaries: [{boundary: a/b, risk: LOW, schema_file: none.json}]\n", "cannot read", ""},
		"confidence":             {v + "boundaries: [{boundary: a/b, risk: LOW, confidence: 'args.x +'}]\n", "confidence: ", ""},
		"replay":                 {v + "boundaries: [{boundary: a/b, risk: LOW, replay: always}]\n", "boundaries[0].replay must be one of payload", ""},
		"scope":                  {v + "budgets: [{scope: planet, resource: llm_tokens, amount: 1}]\n", "budgets[0].scope must be one of tenant, tier", ""},
		"budget twice":           {v + "budgets:\n - {scope: tenant, resource: llm_tokens, amount: 1}\n - {scope: tenant, match: '*', resource: llm_tokens, amount: 2}\n", "the same budget is there twice", ""},
		"window":                 {v + "budgets: [{scope: tenant, resource: llm_tokens, amount: 1, window: 1500ms}]\n", "whole seconds", ""},
		"negative window":        {v + "budgets: [{scope: tenant, resource: llm_tokens, amount: 1, window: -1h}]\n", "is negative", ""},
		"endless window":         {v + "budgets: [{scope: tenant, resource: llm_tokens, amount: 1, window: 40000d}]\n", "longer than 100 years", ""},
		"no duration":            {v + "ledger: {results: soon}\n", `"soon" is not a duration`, ""},
		"a number as a duration": {v + "ledger: {results: 5}\n", `"5" is not a duration`, ""},
		"limit without a bound":  {v + "limits: [{scope: agent}]\n", "needs per_minute or cooldown", ""},
		"results":                {v + "ledger: {results: 25h}\n", "24h at the latest", ""},
		"checkpoint":             {v + "ledger: {checkpoint_interval: 1ms}\n", "between 1s and 24h", ""},
		"address":                {v + "listen: {pages: '7411'}\n", "is not an address", "127.0.0.1:7411"},
		"port":                   {v + "listen: {pages: '127.0.0.1:70000'}\n", "is not an address", ""},
		"every interface":        {v + "listen: {pages: ':7411'}\n", "can be reached from other machines", "unsafe.listen_beyond_loopback"},
		"any address":            {v + "listen: {pages: '0.0.0.0:7411'}\n", "can be reached from other machines", ""},
		"mapped address":         {v + "listen: {pages: '[::ffff:10.0.0.1]:7411'}\n", "can be reached from other machines", ""},
		"host name":              {v + "listen: {pages: 'localhost.evil.example:7411'}\n", "can be reached from other machines", ""},
		"two key sets":           {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'https://a/', jwks_file: c}]}\n", "one of jwks_url and jwks_file", ""},
		"no key set":             {v + "identity: {issuers: [{name: a, audience: b}]}\n", "one of jwks_url and jwks_file", ""},
		"plain key set":          {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'http://a.example/'}]}\n", "unencrypted", "unsafe.plain_http"},
		"key set scheme":         {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'file:///etc/x'}]}\n", "is not an address", ""},
		"password in a URL":      {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'https://u:p@a.example/'}]}\n", "holds a user or a password", ""},
		"algorithm none":         {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'https://a/', algorithms: [none]}]}\n", "must be one of EdDSA, ES256, RS256", ""},
		"tenant unverified":      {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'https://a/', tenants: [Unverified]}]}\n", "cannot speak for the tenant", ""},
		"tenant of its own":      {v + "identity: {issuers: [{name: a, audience: b, jwks_url: 'https://a/', tenants: [_checkpoints]}]}\n", "cannot speak for the tenant", ""},
		"issuer twice":           {v + "identity:\n  issuers:\n   - {name: a, audience: b, jwks_url: 'https://a/'}\n   - {name: a, audience: b, jwks_url: 'https://a/'}\n", "is there twice", ""},
		"server name":            {v + "mcp: {servers: {a/b: {command: [x]}}}\n", "is no name for a server", ""},
		"server without command": {v + "mcp: {servers: {a: {}}}\n", "has neither a command nor a url", "command: [PROGRAM, ARGS]"},
		"empty command":          {v + "mcp: {servers: {a: {command: []}}}\n", "a command without a program", ""},
		"environment value":      {v + "mcp: {servers: {a: {command: [x], env: ['TOKEN=hunter2']}}}\n", `"TOKEN" is no name`, "never values"},
		"notify":                 {v + "review: {notify: []}\n", "a command without a program", ""},
		"threshold of nothing":   {v + "review: {thresholds: {a:b: 0.5}}\n", "no boundary has the operation", ""},
		"hook of an hour":        {v + "alerts: {halt_hooks: [{name: a, command: [x], timeout: 1h}]}\n", "between 0 and 10m0s", ""},
		"hook with a value":      {v + "alerts: {halt_hooks: [{name: a, command: [x], env: [TOKEN=x]}]}\n", "no name of an environment variable", "no values stand here"},
		"hook twice":             {v + "alerts: {halt_hooks: [{name: a, command: [x]}, {name: a, command: [x]}]}\n", "a name of its own", ""},
		"no walls":               {v + "boundaries:\n  - {boundary: run/x, risk: LOW}\n  - boundary: 'exec/*'\n    risk: LOW\n    walls: []\n", "holdfast.yaml:4: exec/*: the list of walls is empty", "leave walls out for every wall"},
		"redact, a key":          {v + "boundaries:\n  - boundary: mcp/a/b\n    risk: LOW\n    redact:\n      reqest: mask\n", "holdfast.yaml:6: ", "did you mean \"request\"?"},
		"redact, a word":         {v + "boundaries:\n  - boundary: mcp/a/b\n    risk: LOW\n    redact:\n      personal: hide\n", "holdfast.yaml:6: boundaries[0].redact.personal must be one of mask, refuse, pass", ""},
		"redact, elsewhere":      {v + "boundaries:\n  - boundary: exec/x\n    risk: LOW\n    redact:\n      request: mask\n", "holdfast.yaml:6: redact: the boundary \"exec/x\"", "mcp/github/*"},
		"wall":                   {v + "boundaries: [{boundary: 'exec/*', risk: LOW, walls: [pid, moat]}]\n", "there is no wall \"moat\"", "the walls are"},
		"executor address":       {v + "sandbox: {executor: {listen: somewhere}}\n", "sandbox.executor.listen: \"somewhere\" is not an address", "host:port"},
		"executor for all":       {v + "sandbox: {executor: {listen: '0.0.0.0:7413'}}\n", "can be reached from other machines", "cert, key and clients"},
		"loose language":         {v + "boundaries: [{boundary: exec/python3, risk: MEDIUM, tier: vm}]\n", "no run is of the boundary \"exec/python3\"", "such as exec/python3.11"},
		"prohibited loosely":     {v + "boundaries: [{boundary: exec/node, risk: PROHIBITED}]\n", "no run is of the boundary \"exec/node\"", "exec/*"},
		"misspelt language":      {v + "boundaries: [{boundary: exec/Python3.11, risk: MEDIUM, tier: container}]\n", "no run is of the boundary", ""},
		"executor half walled":   {v + "sandbox: {executor: {listen: '127.0.0.1:7413', cert: a.pem, key: b.pem}}\n", "needs all three of cert, key and clients", ""},
		"executor without cert":  {v + "sandbox: {executor: {listen: '127.0.0.1:7413', cert: a.pem, key: b.pem, clients: c.pem}}\n", "cannot read", ""},
		"executor files alone":   {v + "sandbox: {executor: {cert: a.pem, key: b.pem, clients: c.pem}}\n", "no listen", ""},
		"own server, and more":   {v + "mcp: {servers: {code: {sandbox: true, command: [x]}}}\n", "is holdfast's own", "leave everything else out"},
		"none run":               {v + "sandbox: {running: 0}\n", "must be at least 1", ""},
		"wait for ever":          {v + "sandbox: {wait: 1h}\n", "sandbox.wait", "10m"},
		"container runtime":      {v + "sandbox:\n  container:\n    runtime: podman\n", "holdfast.yaml:4: sandbox.container.runtime: there is no runtime \"podman\"", "an absolute path"},
		"relative runtime":       {v + "sandbox: {container: {runtime: ./runc}}\n", "there is no runtime \"./runc\"", "an absolute path"},
		"image of a runtime":     {v + "sandbox:\n  container:\n    image: tools\n", "holdfast.yaml:4: sandbox.container.image: there is no image \"tools\" under images, and none is fetched", "images: {tools: /PATH}"},
		"image of another name":  {v + "sandbox: {container: {image: 'tool:1', images: {tools: /srv/tools}}}\n", "there is no image \"tool:1\" under images", "images: {"},
		"image without a tag":    {v + "sandbox: {container: {image: 'tools:', images: {tools: /srv/tools}}}\n", "there is no image \"tools:\" under images", ""},
		"relative image":         {v + "sandbox: {container: {images: {tools: srv/tools}}}\n", "sandbox.container.images: tools: \"srv/tools\" is no path", "absolute path"},
		"image of no name":       {v + "sandbox: {container: {images: {'a b': /srv/tools}}}\n", "\"a b\" is no image's name", ""},
		"images of an engine":    {v + "sandbox: {container: {runtime: docker, image: tools, images: {tools: /srv/tools}}}\n", "has images of its own", "leave images out"},
		"the host as image":      {v + "sandbox: {container: {image: /}}\n", "there is no image \"/\"", ""},
		"engine without image":   {v + "sandbox: {container: {runtime: docker}}\n", "the Docker engine needs an image", "docker import"},
		"folder as image":        {v + "sandbox: {container: {runtime: docker, image: /srv}}\n", "\"/srv\" is no image's name", "a local image"},
		"relative kernel":        {v + "sandbox:\n  vm:\n    kernel: vmlinuz\n", "holdfast.yaml:4: sandbox.vm.kernel: \"vmlinuz\" is no file's path", "absolute path"},
		"relative emulator":      {v + "sandbox: {vm: {qemu: qemu}}\n", "sandbox.vm.qemu: \"qemu\" is no file's path", ""},
		"small machine":          {v + "sandbox: {vm: {memory: 10}}\n", "must be at least 384", ""},
		"telemetry":              {v + "telemetry: {endpoint: collector}\n", "telemetry.endpoint is not an address", ""},
		"plain telemetry":        {v + "telemetry: {endpoint: 'http://collector.example/'}\n", "unencrypted", ""},
		"header":                 {v + "telemetry: {endpoint: 'https://c/', headers: {'a b': x}}\n", "is not a header", ""},
		"header of two lines":    {v + "telemetry: {endpoint: 'https://c/', headers: {a: \"hunter2\\r\\nb: c\"}}\n", "is not a header", ""},
		"missing rules":          {v + "rules: {files: [none.yaml]}\n", "holdfast.yaml:2: cannot read", ""},
		"rules in one line":      {v + "rules: {inline: [{id: a}]}\n", "cannot be written on one line", ""},
		"inline rule":            {v + "rules:\n  inline:\n    - id: a\n      on: request\n      when: nonsense +\n      message: m\n", "holdfast.yaml:", ""},
	}
	for _, section := range []string{"intents", "spawn"} {
		for _, value := range []string{"{}", "", "x", "[1]"} {
			cases[section+" "+value] = struct{ text, want, hint string }{v + section + ": " + value + "\n",
				`holdfast.yaml:2: "` + section + `" is not available in this version`, ""}
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			l, err := load(t, c.text)
			if err == nil || l != nil {
				t.Fatal("accepted")
			}
			var ps Problems
			if holdfast.KindOf(err) != holdfast.KindUsage || !errors.As(err, &ps) && !strings.Contains(err.Error(), "holdfast.yaml: more than") {
				t.Fatalf("%T %v", err, err)
			}
			if len(ps) == 0 {
				return
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(ps[0].Hint, c.hint) {
				t.Errorf("got %v (hint %q)", err, ps[0].Hint)
			}
			if !strings.HasPrefix(ps[0].Where, "holdfast.yaml") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the place is missing or a secret is shown: %v", err)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// All mistakes are told at once, each in its line.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := load(t, "version: 1\nboundries: []\nledger:\n  results: soon\nbudgets:\n  - scope: planet\n")
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != 5 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{2, 4, 6, 6, 6} {
		if ps[i].Where != fmt.Sprint("holdfast.yaml:", line) {
			t.Errorf("problem %d: %+v", i, ps[i])
		}
	}
	_, err = load(t, "version: 1\n"+strings.Repeat("x: 1\n", 1000))
	if !errors.As(err, &ps) || len(ps) != maxProblems {
		t.Errorf("%d problems", len(ps))
	}
}

// A rule that stands in the configuration is reported in the line where it is
// written there.
func TestInlineRulesKeepTheirLines(t *testing.T) {
	text := "version: 1\n\nrules:\n  inline:\n    # a comment\n    - id: a\n      on: request\n      when: args.x == 1\n      severity: block\n      message: m\n\n" +
		"    - id: b\n      on: request\n      when: args.x + == 1\n      severity: block\n      message: m\n  files: []\nledger: {results: 1h}\n"
	_, err := load(t, text)
	if err == nil || !strings.Contains(err.Error(), "holdfast.yaml:14") {
		t.Fatalf("got %v", err)
	}
	l, err := load(t, strings.Replace(text, "x + ==", "x ==", 1))
	if err != nil || l.Policy.Rules == nil || time.Duration(l.Config.Ledger.Results) != time.Hour {
		t.Fatalf("%v", err)
	}
}

func TestHashFollowsEveryFile(t *testing.T) {
	base := map[string]string{"holdfast.yaml": "version: 1\nrules: {files: [rules.yaml]}\nboundaries: [{boundary: a/b, risk: LOW, schema_file: s.json}]\n",
		"rules.yaml": rulesFile, "s.json": "{}"}
	hash := func(files map[string]string) string {
		l, err := Load(filepath.Join(testfile.Write(t, files), "holdfast.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return l.Hash
	}
	first := hash(base)
	if hash(base) != first {
		t.Error("the same files elsewhere have another hash")
	}
	for name := range base {
		changed := map[string]string{}
		for n, text := range base {
			changed[n] = text
			if n == name {
				changed[n] += "\n"
			}
		}
		if hash(changed) == first {
			t.Errorf("%s does not count", name)
		}
	}
	none, _ := Load("")
	if none.Hash == first {
		t.Error("no file has the hash of a file")
	}
}

func TestUnsafeIsNamed(t *testing.T) {
	l, err := load(t, "version: 1\nlisten: {pages: '0.0.0.0:7411'}\nunsafe: {listen_beyond_loopback: true, goals_go_on: true, watch_looser: true, plain_http: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	u := reflect.TypeFor[UnsafeConfig]()
	if len(l.Policy.Weakened) != u.NumField() {
		t.Fatalf("%d sentences for %d keys", len(l.Policy.Weakened), u.NumField())
	}
	for i := range u.NumField() {
		if !strings.HasPrefix(l.Policy.Weakened[i], "unsafe."+u.Field(i).Tag.Get("yaml")+": ") {
			t.Errorf("%q", l.Policy.Weakened[i])
		}
	}
}

// Every field is documented, and whatever is named like a secret is one, or
// names the file or the variable that holds it. What counts tokens of a model is
// none.
func TestConfigFields(t *testing.T) {
	secret := regexp.MustCompile(`(?i)(secret|password|passphrase|token|credential|api_?key|private|authorization|header)`)
	var walk func(t reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem(), path)
			return
		case reflect.Struct:
		default:
			if typ.Kind() == reflect.String && !strings.HasSuffix(path, "_file") && !strings.HasSuffix(path, "_env") && !strings.HasSuffix(path, "_tokens") && secret.MatchString(path[strings.LastIndex(path, ".")+1:]) {
				t.Errorf("%s is named like a secret and is plain text", path)
			}
			return
		}
		if typ == reflect.TypeFor[holdfast.Secret]() || typ == reflect.TypeFor[notYet]() {
			return
		}
		for _, f := range reflect.VisibleFields(typ) {
			key := f.Tag.Get("yaml")
			if key == "-" {
				continue
			}
			if key == "" || f.Tag.Get("doc") == "" {
				t.Errorf("%s.%s has no key or no documentation", path, f.Name)
			}
			// One of a list of words is no secret, nor is the name of a header.
			if f.Tag.Get("enum") != "" || typ == reflect.TypeFor[SourceConfig]() && key == "header" {
				continue
			}
			walk(f.Type, path+"."+key)
		}
	}
	walk(reflect.TypeFor[Config](), "")
}

func TestFindConfig(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"x/holdfast/holdfast.yaml": "", "h/.config/holdfast/holdfast.yaml": ""})
	x, h := filepath.Join(dir, "x"), filepath.Join(dir, "h")
	wd, _ := os.Getwd()
	cases := []struct {
		name, flag string
		env        []string
		want       string
		fails      bool
	}{
		{"the flag", "/f.yaml", []string{"HOLDFAST_CONFIG", "/e.yaml"}, "/f.yaml", false},
		{"a relative flag", "f.yaml", nil, filepath.Join(wd, "f.yaml"), false},
		{"the environment", "", []string{"HOLDFAST_CONFIG", "/e.yaml", "XDG_CONFIG_HOME", x}, "/e.yaml", false},
		{"an empty one", "", []string{"HOLDFAST_CONFIG", ""}, "", true},
		{"XDG", "", []string{"XDG_CONFIG_HOME", x, "HOME", h}, x + "/holdfast/holdfast.yaml", false},
		{"home", "", []string{"HOME", h}, h + "/.config/holdfast/holdfast.yaml", false},
		{"a relative XDG is ignored", "", []string{"XDG_CONFIG_HOME", "x", "HOME", h}, h + "/.config/holdfast/holdfast.yaml", false},
	}
	for _, c := range cases {
		got, err := FindPath(c.flag, lookupIn(c.env...))
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if got, err := FindPath("",
		lookupIn("XDG_CONFIG_HOME", dir)); err != nil || (got != "" && got != "/etc/holdfast/holdfast.yaml") {
		t.Errorf("none: %q, %v", got, err)
	}
	if _, err := Load(filepath.Join(dir, "missing.yaml")); err == nil || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("a named file that is missing: %v", err)
	}
	if _, err := Load("holdfast.yaml"); err == nil {
		t.Error("a relative path")
	}
}

// Whatever stands in a file, loading it ends, and a policy comes of it or
// mistakes with their place, never both.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(full(f)))
	f.Add(Example())
	f.Add([]byte("version: 1\nrules:\n  inline:\n    - id: a\n"))
	f.Add([]byte("version: 1\na: &x [*x]\n"))
	f.Add([]byte("? {}\n: \n<<: 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Config
		d := &decoder{file: "f", text: text}
		d.into(&c)
		if len(d.problems) > 0 {
			for _, p := range d.problems {
				if !strings.HasPrefix(p.Where, "f") || p.Why == "" {
					t.Errorf("%+v", p)
				}
			}
			return
		}
		if c.Version != 1 {
			t.Errorf("version %d was accepted", c.Version)
		}
		c.withDefaults()
		k := checker{file: "f", lines: d.lines}
		k.all(&c)
	})
}
