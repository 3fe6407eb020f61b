// Package config reads holdfast.yaml: its form, what its values mean, the defaults, the JSON Schema for
// editors, and its reload.
package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Config is holdfast.yaml: data and nothing else. What is absent is safe. The
// doc tag of each field is its documentation, for readers of this file, for
// editors (EditorSchema) and for the example.
type Config struct {
	Version    int                    `yaml:"version" need:"yes" min:"1" max:"1" doc:"the format of this file: write version: 1"`
	Listen     ListenConfig           `yaml:"listen" doc:"where the daemon listens"`
	Store      StoreConfig            `yaml:"store" doc:"where the state is kept"`
	Identity   IdentityConfig         `yaml:"identity" doc:"whose tokens are believed, and what a role may do"`
	Agents     AgentsConfig           `yaml:"agents" doc:"kinds of agent"`
	Boundaries []BoundaryConfig       `yaml:"boundaries" doc:"contracts: the places where agents may cross; a boundary that is not listed is refused"`
	Budgets    []BudgetConfig         `yaml:"budgets" doc:"how much may be used of what; one for a scope, resource and window without match replaces the built-in one"`
	Prices     PricesConfig           `yaml:"prices" doc:"what things cost; budgets of money_micro count by it"`
	Limits     []LimitConfig          `yaml:"limits" doc:"how often agents may cross"`
	Rules      RulesConfig            `yaml:"rules" doc:"the constitution"`
	Risks      []RiskConfig           `yaml:"risks" doc:"patterns that give risks, in their order; the first that matches decides, and those for an agent or a kind before all others"`
	Judges     map[string]JudgeConfig `yaml:"judges" doc:"name: who scores actions before they are done"`
	MCP        MCPConfig              `yaml:"mcp" doc:"MCP servers behind the gates"`
	Sandbox    SandboxConfig          `yaml:"sandbox" doc:"how code is run"`
	Egress     EgressConfig           `yaml:"egress" doc:"where agents may send requests, and what of them"`
	Snapshots  SnapshotsConfig        `yaml:"snapshots" doc:"versions of agents' work trees, and going back to them"`
	Review     ReviewConfig           `yaml:"review" doc:"how people are asked"`
	Watch      WatchConfig            `yaml:"watch" doc:"what is out of the ordinary, and what is done about it"`
	Alerts     AlertsConfig           `yaml:"alerts" doc:"what happens when something is wrong"`
	Redact     RedactConfig           `yaml:"redact" doc:"what is masked beside what its own form tells"`
	Ledger     LedgerConfig           `yaml:"ledger" doc:"how the record is kept"`
	Intents    notYet                 `yaml:"intents" doc:"not available in this version"`
	Spawn      notYet                 `yaml:"spawn" doc:"not available in this version"`
	Telemetry  TelemetryConfig        `yaml:"telemetry" doc:"OpenTelemetry traces; off without an endpoint"`
	Unsafe     UnsafeConfig           `yaml:"unsafe" doc:"everything that weakens, each by its name; announced wherever Holdfast speaks"`
}

// ListenConfig says where the daemon listens, beside its socket.
type ListenConfig struct {
	Pages string `yaml:"pages" doc:"host:port of pages and API; 127.0.0.1:7411 if absent, none to serve only the socket"`
}

// StoreConfig says where the state is kept.
type StoreConfig struct {
	Kind string `yaml:"kind" enum:"sqlite" doc:"sqlite: one file in the state directory"`
}

// IdentityConfig is who may ask (D8).
type IdentityConfig struct {
	Issuers []IssuerConfig      `yaml:"issuers" doc:"whose tokens are believed, beside the daemon's own"`
	Roles   map[string][]string `yaml:"roles" doc:"role: list of permissions, scheme:name or scheme:*; a role named as a built-in one replaces it"`
}

// IssuerConfig is one authority whose tokens are accepted (D8).
type IssuerConfig struct {
	Name       string   `yaml:"name" need:"yes" doc:"must equal the token's iss exactly"`
	JWKSURL    string   `yaml:"jwks_url" doc:"https address of the key set; without this and jwks_file, name is asked for its discovery document"`
	JWKSFile   string   `yaml:"jwks_file" doc:"file of the key set, relative to this file"`
	Audience   string   `yaml:"audience" need:"yes" doc:"must be in the token's aud"`
	Algorithms []string `yaml:"algorithms" enum:"EdDSA,ES256,RS256" doc:"narrows the accepted algorithms; all three if absent"`
	TenantFrom string   `yaml:"tenant_from" doc:"the claim that names the tenant; tenant_id if absent"`
	Tenants    []string `yaml:"tenants" doc:"the tenants it may speak for; all but local if absent"`
	At         string   `yaml:"-"`
}

// AgentsConfig is what is known of agents.
type AgentsConfig struct {
	Kinds map[string]KindConfig `yaml:"kinds" doc:"kind: how its agents start"`
}

// KindConfig is one kind of agent (D41).
type KindConfig struct {
	Iterations int64          `yaml:"iterations" need:"yes" min:"0" doc:"steps a session may take"`
	Trust      holdfast.Level `yaml:"trust" doc:"trust at first sight: baseline, medium or high; baseline if absent"`
	At         string         `yaml:"-"`
}

// BoundaryConfig is a contract (holdfast.Contract).
type BoundaryConfig struct {
	Boundary         string           `yaml:"boundary" need:"yes" doc:"exact name, or a pattern whose last segment is *"`
	Risk             holdfast.Risk    `yaml:"risk" need:"yes" doc:"LOW acts, MEDIUM acts and is recorded, HIGH is put to a person, PROHIBITED is refused"`
	RiskFrom         string           `yaml:"risk_from" enum:"patterns" doc:"patterns: one under risks may give a lesser risk too, instead of a worse one only"`
	SchemaID         string           `yaml:"schema_id" doc:"the input schema's name; the boundary's own if absent"`
	Schema           JSON             `yaml:"schema" doc:"JSON Schema of the input"`
	SchemaFile       string           `yaml:"schema_file" doc:"the same from a file, relative to this file"`
	OutputSchema     JSON             `yaml:"output_schema" doc:"JSON Schema of the output; what does not conform is withheld"`
	OutputSchemaFile string           `yaml:"output_schema_file" doc:"the same from a file, relative to this file"`
	Permissions      []string         `yaml:"permissions" doc:"what the caller must hold, all of them"`
	Consumes         map[string]int64 `yaml:"consumes" min:"0" doc:"resource: what one crossing reserves"`
	PricedBy         *PricedConfig    `yaml:"priced_by" doc:"how a crossing's money follows from its request, by prices: models:"`
	RatePerMinute    int              `yaml:"rate_per_minute" min:"0" max:"100000" doc:"crossings per agent in any 60 s; 0 is no rate of its own"`
	Cooldown         Duration         `yaml:"cooldown" doc:"least time between two crossings of one agent"`
	Operation        string           `yaml:"operation" doc:"the operation type, for example goal:modify"`
	Threshold        *float64         `yaml:"threshold" min:"0" max:"1" doc:"confidence below which a person is asked; by risk if absent"`
	Confidence       string           `yaml:"confidence" doc:"none, declared, or a CEL expression that yields 0 to 1; none if absent"`
	Judge            string           `yaml:"judge" doc:"the name, under judges, of who scores each request; an unsafe score is put to a person, none refuses"`
	Predicates       []string         `yaml:"predicates" doc:"what must hold of the output, in order: built-in names or rules with on: output"`
	Replay           string           `yaml:"replay" enum:"payload" doc:"payload: an identical payload within 24 h gets the settled result"`
	Timeout          Duration         `yaml:"timeout" doc:"bounds the act; 5m if absent"`
	Irreversible     bool             `yaml:"irreversible" doc:"the act cannot be undone"`
	OnError          string           `yaml:"on_error" enum:"rollback" doc:"rollback: where the act fails, the agent's work trees under snapshots go back to what they were before it"`
	Tier             string           `yaml:"tier" enum:"process,container,vm" doc:"where the boundary runs code: the least tier of the sandbox; process if absent"`
	Walls            []string         `yaml:"walls" doc:"where the boundary runs code: the walls that must stand; every wall if absent, never an empty list, and fewer is a weakening"`
	Redact           *ToolRedaction   `yaml:"redact" doc:"secrets and personal data are searched for in what an MCP tool gets, and in its result; (default neither)"`
	At               string           `yaml:"-"`
}

// BudgetConfig is one cap on use (budget.Limit, D9).
type BudgetConfig struct {
	Scope    string   `yaml:"scope" need:"yes" enum:"tenant,tier,intent,kind,agent,session,chain" doc:"whose counter: tenant, tier, intent, kind, agent, session or chain"`
	Match    string   `yaml:"match" doc:"the one it is for; each has a counter of its own if absent"`
	Resource string   `yaml:"resource" need:"yes" doc:"what is counted, such as llm_tokens or money_micro (millionths of a dollar)"`
	Boundary string   `yaml:"boundary" doc:"boundary or pattern whose use alone is counted; all if absent"`
	Amount   int64    `yaml:"amount" need:"yes" min:"0" doc:"the most that may be used"`
	Window   Duration `yaml:"window" doc:"when the counter starts again; 24h starts at UTC midnight; never if absent"`
	Exceed   string   `yaml:"exceed" enum:"refuse,end_chain,block_tenant,pause_agent" doc:"what follows beside the refusal: refuse, nothing; end_chain ends the chain (scope chain); block_tenant refuses every agent until the window ends (scope tenant, with a window); pause_agent pauses the agent and asks a person for as much again (scope session or agent); refuse if absent, or as the built-in one that it replaces"`
	At       string   `yaml:"-"`
}

// LimitConfig is one cap on frequency (budget.RateLimit).
type LimitConfig struct {
	Scope     string   `yaml:"scope" need:"yes" enum:"tenant,tier,intent,kind,agent,session,chain" doc:"whose crossings are counted"`
	Match     string   `yaml:"match" doc:"the one it is for; each is counted alone if absent"`
	Boundary  string   `yaml:"boundary" doc:"boundary or pattern; all if absent"`
	PerMinute int      `yaml:"per_minute" min:"0" max:"100000" doc:"at most so many in any 60 s"`
	Cooldown  Duration `yaml:"cooldown" doc:"least time between two"`
	At        string   `yaml:"-"`
}

// RulesConfig is where the constitution is written.
type RulesConfig struct {
	Files  []string              `yaml:"files" doc:"rules files, relative to this file"`
	Inline ruleText              `yaml:"inline" doc:"rules written here, as a rules file has them"`
	Goals  GoalsConfig           `yaml:"goals" doc:"what the built-in rules on goals measure by"`
	Facts  map[string]FactConfig `yaml:"facts" doc:"NAME: what is fetched for the rules that name facts.NAME, before they are judged"`
}

// MCPConfig lists MCP servers.
type MCPConfig struct {
	Servers map[string]ServerConfig `yaml:"servers" doc:"name: how it is started; its tools are the boundaries mcp/NAME/TOOL"`
}

// ServerConfig is one MCP server: a program over stdio, or an address that
// speaks streamable HTTP.
type ServerConfig struct {
	Command      []string                `yaml:"command" doc:"program and arguments; one of command and url"`
	URL          string                  `yaml:"url" doc:"address of a server that speaks streamable HTTP; one of command and url"`
	Headers      map[string]HeaderConfig `yaml:"headers" doc:"headers of each request to url, such as Authorization; no value stands here"`
	Env          []string                `yaml:"env" doc:"names of environment variables that command is given; no values stand here"`
	Sandbox      bool                    `yaml:"sandbox" doc:"true: Holdfast's own server, whose tool run_code runs code behind walls; in place of command and url"`
	Cwd          string                  `yaml:"cwd" doc:"the directory that command runs in, relative to this file"`
	TrustedHints bool                    `yaml:"trusted_hints" doc:"its own hints may make a tool LOW"`
	At           string                  `yaml:"-"`
}

// HeaderConfig says where a header's value comes from. It is read again for
// each connection, so that it can be rotated.
type HeaderConfig struct {
	File string `yaml:"file" doc:"a file of yours (0600) whose first line is the value, relative to this file"`
	Env  string `yaml:"env" doc:"the environment variable of the daemon that holds the value"`
	At   string `yaml:"-"`
}

// SandboxConfig is how code is run (003 2.1). It is read at the start.
type SandboxConfig struct {
	Running   int             `yaml:"running" min:"1" max:"1000" doc:"programs that run at once; 10 if absent"`
	Waiting   int             `yaml:"waiting" min:"1" max:"100000" doc:"requests that wait for one of them to end; 100 if absent"`
	Wait      Duration        `yaml:"wait" doc:"how long each of them waits; 30s if absent, at most 10m"`
	Executor  ExecutorConfig  `yaml:"executor" doc:"the code executor over gRPC; off without listen"`
	Container ContainerConfig `yaml:"container" doc:"the container tier: whose containers"`
	VM        VMConfig        `yaml:"vm" doc:"the VM tier: which machine"`
}

// ContainerConfig is what runs containers, and what they hold.
type ContainerConfig struct {
	Runtime string            `yaml:"runtime" doc:"auto, runc, crun, runsc (gVisor), docker, or the absolute path of an OCI runtime; auto, the first of runc, crun and runsc that works, if absent"`
	Image   string            `yaml:"image" doc:"the image in which code runs: a name of images (NAME:TAG for a tag of an image layout), or an absolute path as there; with docker the engine's own, by its local name; without it code finds the private copy of its language's runtime"`
	Images  map[string]string `yaml:"images" doc:"names for images: each is the absolute path of a root's folder, of the folder of an OCI image layout, or of an archive of a root (tar, also packed by gzip or zstd)"`
}

// VMConfig is what a VM is made of. What is absent is looked for in the system's
// places.
type VMConfig struct {
	Kernel string `yaml:"kernel" doc:"the guest's kernel, by its absolute path"`
	QEMU   string `yaml:"qemu" doc:"the emulator, by its absolute path"`
	Memory int    `yaml:"memory" min:"384" max:"8192" doc:"the guest's memory in MB; 1024 if absent"`
}

// ExecutorConfig is where programs run code over gRPC.
type ExecutorConfig struct {
	Listen  string `yaml:"listen" doc:"host:port of the service, such as 127.0.0.1:7413, read when the daemon starts; beyond loopback it needs the three files"`
	Cert    string `yaml:"cert" doc:"file of the service's certificate chain, PEM, relative to this file"`
	Key     string `yaml:"key" doc:"file (0600) of its key, PEM, relative to this file"`
	Clients string `yaml:"clients" doc:"file of the certificates that sign clients' ones, PEM, relative to this file"`
}

// ReviewConfig is how people are asked (K7, D11).
type ReviewConfig struct {
	Wait       *Duration          `yaml:"wait" doc:"how long an MCP client that calls is kept waiting for a person; 0 to 55s, 50s if absent"`
	Notify     []string           `yaml:"notify" doc:"command run for each new review, program and arguments"`
	Webhook    WebhookConfig      `yaml:"webhook" doc:"address that is told of each question, decision and halt"`
	Thresholds map[string]float64 `yaml:"thresholds" min:"0" max:"1" doc:"operation type: confidence below which a person is asked, where the contract names none"`
}

// WebhookConfig is where questions, decisions and halts are POSTed as JSON,
// signed with a shared secret.
type WebhookConfig struct {
	URL        string `yaml:"url" doc:"https address, or http on this machine; no redirect is followed"`
	SecretFile string `yaml:"secret_file" doc:"file (0600) whose first line is the shared secret, 32 bytes at least, relative to this file"`
	SecretEnv  string `yaml:"secret_env" doc:"name of the environment variable that holds it; one of the two"`
}

// AlertsConfig is what happens when something is wrong.
type AlertsConfig struct {
	Channels   map[string]ChannelConfig `yaml:"channels" doc:"name: a way to people"`
	Severities SeveritiesConfig         `yaml:"severities" doc:"which channels are told of what; by their kinds where nothing stands here"`
	Report     ReportConfig             `yaml:"report" doc:"who is sent each day's report once the day is over; nobody if absent"`
	HaltHooks  []HookConfig             `yaml:"halt_hooks" doc:"commands run once after each halt, when the latch is set, in order; each is recorded, a failing one is an alarm"`
}

// HookConfig is one named command (D34).
type HookConfig struct {
	Name    string   `yaml:"name" need:"yes" doc:"names it in the record"`
	Command []string `yaml:"command" need:"yes" doc:"program and arguments"`
	Env     []string `yaml:"env" doc:"names of environment variables that it is given beside the plain ones; no values stand here"`
	Timeout Duration `yaml:"timeout" doc:"bounds it; 30s if absent, at most 10m"`
	At      string   `yaml:"-"`
}

// LedgerConfig is how the record is kept.
type LedgerConfig struct {
	CheckpointInterval Duration `yaml:"checkpoint_interval" doc:"how often the tree's head is signed; 1m if absent"`
	Retention          Duration `yaml:"retention" doc:"after how long the erasable parts of records are erased; never if absent"`
	Results            Duration `yaml:"results" doc:"how long sealed results can be given back; 24h if absent, at most 24h"`
	Requests           string   `yaml:"requests" enum:"keep,none" doc:"keep: the redacted payload of what acted, erasable, of at most 16 KiB; none: hashes alone; keep if absent"`
}

// TelemetryConfig is where traces go. Nothing leaves without an endpoint.
type TelemetryConfig struct {
	Endpoint string                     `yaml:"endpoint" doc:"OTLP over HTTP, for example https://collector.example.com/v1/traces"`
	Headers  map[string]holdfast.Secret `yaml:"headers" doc:"headers of each request, such as Authorization"`
}

// UnsafeConfig weakens. Each field is one sentence in Weakened.
type UnsafeConfig struct {
	ListenBeyondLoopback bool `yaml:"listen_beyond_loopback" doc:"listen where other machines can connect"`
	GoalsGoOn            bool `yaml:"goals_go_on" doc:"admit goals on after a critical violation: pause_on_critical is false"`
	WatchLooser          bool `yaml:"watch_looser" doc:"let limits of watch exceed the built-in ones, and responses be milder than their condition's severity asks for"`
	PlainHTTP            bool `yaml:"plain_http" doc:"fetch key sets, send traces, call webhooks and reach MCP servers over http beyond this machine"`
}

// Weakened returns one sentence for everything that is weakened, by name.
func (u UnsafeConfig) Weakened() []string {
	var out []string
	if u.ListenBeyondLoopback {
		out = append(out, "unsafe.listen_beyond_loopback: pages, API and the egress proxy may listen beyond this machine, without TLS of their own")
	}
	if u.GoalsGoOn {
		out = append(out, "unsafe.goals_go_on: a critical violation of a goal does not pause goals (pause_on_critical is false)")
	}
	if u.WatchLooser {
		out = append(out, "unsafe.watch_looser: limits of watch may exceed the built-in ones, and what is out of the ordinary may be answered more mildly than its severity asks for")
	}
	if u.PlainHTTP {
		out = append(out, "unsafe.plain_http: key sets, traces, webhooks and calls of MCP servers may cross the network unencrypted, so that others may forge or read them")
	}
	return out
}

// Duration is a time span in Go's form, with d for days of 24 hours: "90s",
// "1h30m", "30d". It is never negative.
type Duration time.Duration

// maxDuration keeps sums of spans and times far from overflow.
const maxDuration = 100 * 365 * 24 * time.Hour

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	v, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, bad := strconv.ParseUint(days, 10, 32)
		v, err = time.Duration(n)*24*time.Hour, bad
		if n > 36_500 {
			v = maxDuration + 1
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration such as 90s, 1h30m or 30d", excerpt.Word(s))
	case v < 0:
		return fmt.Errorf("the duration %q is negative", excerpt.Word(s))
	case v > maxDuration:
		return fmt.Errorf("the duration %q is longer than 100 years", excerpt.Word(s))
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes Go's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// JSON is a JSON document written as YAML.
type JSON json.RawMessage

// MarshalJSON returns the document.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// ruleText is the text of a rules file that is written inside another file.
type ruleText []byte

// notYet is a section that no code serves: to accept it would be to promise
// what is not done.
type notYet struct{}

// Problem is one mistake in a configuration.
type Problem struct {
	Where string // file:line
	Why   string
	Hint  string
}

// Problems is every mistake of a configuration, in the file's order.
type Problems []Problem

// Error lists the mistakes, one a line, with their hints.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Where + ": " + p.Why)
		if p.Hint != "" {
			b.WriteString(" (" + p.Hint + ")")
		}
	}
	return b.String()
}

// asError makes the letter: one mistake with its hint, or the whole list. It
// is nil without mistakes.
func (ps Problems) asError() error {
	switch len(ps) {
	case 0:
		return nil
	case 1:
		return &holdfast.Error{Kind: holdfast.KindUsage, Rule: ps[0].Where, Why: ps[0].Where + ": " + ps[0].Why, Hint: ps[0].Hint, Err: ps}
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Rule: ps[0].Where, Why: fmt.Sprintf("%d mistakes in the configuration\n%s", len(ps), ps.Error()), Err: ps}
}
