// Package api is the door for commands: HTTP with JSON over the owner's Unix
// socket (D48). It turns a request into a call on the kernel and nothing else.
package api

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/halthook"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Kernel is what the door needs of the kernel; *kernel.Kernel has it.
type Kernel interface {
	Cross(ctx context.Context, req holdfast.Request, act kernel.Act) (*holdfast.Outcome, error)
	Check(ctx context.Context, req holdfast.Request) (*holdfast.Outcome, error)
	Explain(ctx context.Context, req holdfast.Request) (*holdfast.Outcome, error)
	Contract(boundary string) (holdfast.Contract, bool)
	Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error)
	Review(ctx context.Context, id string) (review.Review, error)
	Life(ctx context.Context, id string) ([]review.Step, error)
	Decide(signed operator.Signed) (review.Review, error)
	Remembered(ctx context.Context, tenant string) ([]review.Remembered, error)
	Remember(signed operator.Signed) (review.Remembered, error)
	Forget(signed operator.Signed) (review.Remembered, error)
	Admit(signed operator.Signed) (operator.Public, error)
	Changed(ctx context.Context, boundary string) (review.Change, error)
	Accept(signed operator.Signed) (review.Change, error)
	Halt(who, why string) (int, error)
	Halted() (int, error)
	Resume(signed operator.Signed) error
	Goals(ctx context.Context, tenant string) (goal.Pause, error)
	ViolationsSince(ctx context.Context, tenant string, since time.Time, limit int) ([]goal.Recorded, error)
	AckGoal(tenant string, signed operator.Signed) (goal.Pause, error)
	ResumeGoals(tenant string, signed operator.Signed) error
	UnblockTenant(tenant string, signed operator.Signed) (exceed.Block, error)
	Agents(ctx context.Context, tenant string) ([]holdfast.Agent, error)
	Asker(ctx context.Context, token holdfast.Secret) (holdfast.Identity, holdfast.Level, error)
	Pause(tenant, agent, who, why string) (int, error)
	Unpause(tenant string, signed operator.Signed) (kernel.Unpaused, error)
	Trust(tenant string, signed operator.Signed) error
	Erase(tenant string, signed operator.Signed) (erasure.Erased, error)
	Revoke(tenant, jti, who, why string) error
}

// Ask is a request as a command makes it: the daemon mints the token for the
// agent it names, because whoever may write to the socket is this machine's
// own user.
type Ask struct {
	Boundary string `json:"boundary"`
	// Payload is the document's bytes, base64 in JSON, so that what is
	// malformed reaches K1 as it is.
	Payload []byte `json:"payload"`
	Agent   string `json:"agent"`
	Kind    string `json:"kind,omitempty"`
	Session string `json:"session,omitempty"`
	Intent  string `json:"intent,omitempty"`
	// Chain names what this request is a step of, over agents and sessions:
	// budgets of the scope chain count by it.
	Chain string `json:"chain,omitempty"`
	// Token replaces the minted one.
	Token          string `json:"token,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Correlation    string `json:"correlation_id,omitempty"`
}

// Answer is what a crossing, a check or an explanation came to.
type Answer struct {
	Outcome *holdfast.Outcome `json:"outcome,omitempty"`
	Output  string            `json:"output,omitempty"`
	Failure *Failure          `json:"error,omitempty"`
}

// Failure is an error as it travels: never an inner cause.
type Failure struct {
	Kind     holdfast.Kind `json:"kind"`
	Gate     string        `json:"gate,omitempty"`
	Rule     string        `json:"rule,omitempty"`
	Why      string        `json:"why"`
	Hint     string        `json:"hint,omitempty"`
	Crossing string        `json:"crossing,omitempty"`
	// State is that of the sandbox's executor, where a request to run code was
	// refused before it could cross.
	State posture.State `json:"state,omitempty"`
	// PutBack reports that Why has the text of Outcome.PutBack. The JSON of a failure leaves it out;
	// executedReply carries it.
	PutBack bool `json:"-"`
}

// Err turns a failure back into the error it was.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	e := &holdfast.Error{Kind: f.Kind, Rule: f.Rule, Why: f.Why, Hint: f.Hint, Crossing: f.Crossing}
	if f.Gate != "" {
		_ = e.Gate.UnmarshalText([]byte(f.Gate))
	}
	return e
}

// Word is something that anybody may say: halt, pause, revoke.
type Word struct {
	Tenant  string `json:"tenant_id,omitempty"`
	Subject string `json:"subject,omitempty"`
	Who     string `json:"who"`
	Why     string `json:"why"`
}

// PersonsWord is something that only a person may say.
type PersonsWord struct {
	Tenant string          `json:"tenant_id,omitempty"`
	Signed operator.Signed `json:"signed"`
}

// Cutting says how many crossings were cut, and how long it took until the
// last of them was durable.
type Cutting struct {
	Cut     int   `json:"cut"`
	Micros  int64 `json:"micros"`
	Waiting int   `json:"still_running,omitempty"`
}

// Status is how Holdfast is.
type Status struct {
	Version string    `json:"version"`
	State   string    `json:"state"`
	Runtime string    `json:"runtime"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Halt
	// HaltHooks are those that have run since, in their order.
	HaltHooks []HookRun `json:"halt_hooks,omitempty"`
	Policy    string    `json:"policy"`
	Files     []string  `json:"files,omitempty"`
	Weakened  []string  `json:"weakened,omitempty"`
	Operator  []string  `json:"operators,omitempty"`
	Waiting   int       `json:"reviews_waiting"`
	// Agents are those with tokens of their own, Within those within them that are
	// remembered.
	Agents int      `json:"agents"`
	Within int      `json:"subagents,omitempty"`
	Paused []string `json:"agents_paused,omitempty"`
	// PausedWhy is why, by the agent's name, where a reason is known.
	PausedWhy map[string]string `json:"agents_paused_because,omitempty"`
	// Goals are the tenants whose goals are paused.
	Goals []goal.Paused `json:"goals_paused,omitempty"`
	// Blocked are the tenants that a spent budget blocks, ChainsEnded how many
	// chains one has ended (D41).
	Blocked []exceed.Block `json:"tenants_blocked,omitempty"`
	// Watch is what is out of the ordinary; nil where nobody watches.
	Watch       *Watched          `json:"watch,omitempty"`
	ChainsEnded int               `json:"chains_ended,omitempty"`
	Flights     []flight.Summary  `json:"flights,omitempty"`
	Ledger      []TenantLedger    `json:"ledger"`
	Servers     map[string]string `json:"mcp_servers,omitempty"`
	Problems    []string          `json:"problems,omitempty"`
	Clients     int               `json:"clients"`
	Lingers     bool              `json:"lingers,omitempty"` // it ends with its clients
	Ending      bool              `json:"ending,omitempty"`  // it takes nothing more
	Pages       string            `json:"pages,omitempty"`
	Executor    string            `json:"executor,omitempty"` // host:port of the code executor
	Egress      *EgressStatus     `json:"egress,omitempty"`
	// Alerts are the channels by which people are told of what is wrong.
	Alerts []AlertChannel `json:"alerts,omitempty"`
	// Sandboxes are the tiers that are open, the weakest first: each is opened
	// when something first needs it.
	Sandboxes []posture.Posture `json:"sandboxes,omitempty"`
	DiskUsed  int64             `json:"disk_bytes"`
	DiskFree  int64             `json:"disk_free_bytes"`

	// Spend is what was spent on models today and this month (UTC), the dearest first;
	// nil where nothing was.
	Spend *Spend `json:"spend,omitempty"`

	// Tightest is the budget that refuses next, as far as is known; nil where none was
	// drawn on. Who asks for the status alone is not told.
	Tightest *survey.Standing `json:"tightest_budget,omitempty"`

	// Past is how it stands with what rules ask the past; nil where none does.
	Past *past.Status `json:"past,omitempty"`

	Conditions Conditions `json:"-"`
}

// Conditions are what programs may branch on of a status, which has them for people in words. The JSON of a status
// leaves them out; statusReply carries them.
type Conditions struct {
	// Disabled reports that HOLDFAST_ENABLED of the owner halts everything, which HaltWhy then says.
	Disabled bool `json:"disabled,omitempty"`
	// Unapplied reports that the configuration on disk is valid and not active yet.
	Unapplied bool `json:"unapplied,omitempty"`
	// NeedRestart are those of Problems that a restart of the daemon solves.
	NeedRestart []string `json:"need_restart,omitempty"`
}

// statusReply is a status as it travels.
type statusReply struct {
	*Status
	Conditions Conditions `json:"conditions,omitzero"`
}

// Halt says whether everything is halted, by whom, why and since when.
type Halt struct {
	Halted   bool      `json:"halted"`
	HaltWho  string    `json:"halted_by,omitempty"`
	HaltWhy  string    `json:"halted_because,omitempty"`
	HaltWhen time.Time `json:"halted_at,omitzero"`
}

// HookRun is one command that ran after a halt (D34).
type HookRun = halthook.Run

// Spend is what agents spent on models, by agent, intent and model.
type Spend struct {
	Day   string      `json:"day"`
	Month string      `json:"month"`
	Today []spend.Sum `json:"today"`
	// ThisMonth has today's as well.
	ThisMonth []spend.Sum `json:"this_month"`
}

// TenantLedger is one tenant's tree.
type TenantLedger struct {
	Tenant string    `json:"tenant_id"`
	Leaves int64     `json:"leaves"`
	Root   string    `json:"root"`
	Signed int64     `json:"signed_leaves"`
	At     time.Time `json:"signed_at,omitzero"`
}

// Hello opens an MCP connection: the server or servers to start or to reach, for
// whom, and where their client comes from. One of Command, URL, Names and All
// says which servers; a Name alone is that of a configured one.
type Hello struct {
	// Name is the server's name in boundaries, mcp/NAME/TOOL.
	Name    string   `json:"name,omitempty"`
	Command []string `json:"command,omitempty"`
	// URL is the address of a server that speaks streamable HTTP.
	URL string `json:"url,omitempty"`
	// Names are configured servers behind one endpoint; All is all of them.
	Names []string `json:"names,omitempty"`
	All   bool     `json:"all,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	// Env is the server's whole environment, NAME=value each, clean already.
	Env     []string `json:"env,omitempty"`
	Agent   string   `json:"agent"`
	Kind    string   `json:"kind,omitempty"`
	Session string   `json:"session,omitempty"`
	Intent  string   `json:"intent,omitempty"`
	// Chain names what the client's calls are steps of, as Ask.Chain does.
	Chain string `json:"chain,omitempty"`
	// Listen is the host:port at which clients are waited for over HTTP, for
	// as long as the connection lasts. Where it is empty, the connection
	// itself is the client.
	Listen string `json:"listen,omitempty"`
	// Bearer demands a token of every HTTP request, whose identity then
	// replaces the one above. Beyond loopback it must be set.
	Bearer bool `json:"bearer,omitempty"`
	// Wait replaces review.wait, 0 to 55 s; nil keeps it.
	Wait *time.Duration `json:"wait,omitempty"`
}

// Listening is what an MCP connection with Hello.Listen begins with, as one
// line of JSON.
type Listening struct {
	URL string `json:"listening"`
}

// TokenAsk asks for a token of an agent of this machine.
type TokenAsk struct {
	// Tenant is holdfast.Local, or empty for it: this machine's own issuer
	// speaks for no other, and asking it to is a PermissionError.
	Tenant  string `json:"tenant_id,omitempty"`
	Agent   string `json:"agent"`
	Kind    string `json:"kind,omitempty"`
	Session string `json:"session,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Chain   string `json:"chain,omitempty"`
	// TTL is how long it lives: 1 s to 24 h.
	TTL time.Duration `json:"ttl"`
}

// Token is a token as it is given out. It is a secret: whoever has it acts as
// the agent.
type Token struct {
	Token   string    `json:"token"`
	ID      string    `json:"jti"`
	Tenant  string    `json:"tenant_id"`
	Agent   string    `json:"agent"`
	Session string    `json:"session"`
	Expires time.Time `json:"expires"`
}

// Backup names the file that a copy of the store goes to.
type Backup struct {
	File string `json:"file"`
}

// Opened is a one-time link to the pages: to one review, or to the queue.
type Opened struct {
	Review string `json:"review,omitempty"`
	URL    string `json:"url"`
}

// failure makes the travelling form of an error; an error without a kind is
// "internal error" and its text stays in the log.
func failure(err error) *Failure {
	e, ok := asError(err)
	if !ok {
		return &Failure{Kind: holdfast.KindInternal, Why: "internal error", Hint: "the log has the cause"}
	}
	f := &Failure{Kind: e.Kind, Rule: e.Rule, Why: e.Why, Hint: e.Hint, Crossing: e.Crossing, PutBack: e.PutBack}
	if e.Gate != holdfast.GateHalt || e.Kind == holdfast.KindHalted {
		f.Gate = e.Gate.String()
	}
	return f
}
