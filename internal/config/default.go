package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

// BuiltIn is the place of what no file says.
const BuiltIn = "built in"

const day = Duration(24 * time.Hour)

// Defaults is what governs without a file: safe, and enough to work with. The
// value is the caller's.
//
// Money, iterations and the cooldown are those of spec 001, layer 1; the other
// budgets are generous ends that a day of honest work does not reach, so that
// every resource is counted from the first crossing on (D3).
func Defaults() *Config {
	return &Config{
		Version: 1,
		Listen:  ListenConfig{Pages: "127.0.0.1:7411"},
		Store:   StoreConfig{Kind: "sqlite"},
		Identity: IdentityConfig{Roles: map[string][]string{
			"agent":    {"agent:step", egressPermission, "exec:run", "goal:submit", "ledger:read", "mcp:call"},
			"operator": {"ledger:read"},
		}},
		Agents:     AgentsConfig{Kinds: defaultKinds()},
		Boundaries: defaultBoundaries(),
		Budgets:    defaultBudgets(),
		Sandbox:    SandboxConfig{Running: api.DefaultRoom().Running, Waiting: api.DefaultRoom().Waiting, Wait: Duration(api.DefaultRoom().Wait)},
		Review:     ReviewConfig{Wait: new(defaultWait)},
		Ledger:     LedgerConfig{CheckpointInterval: Duration(time.Minute), Results: day},
	}
}

// defaultKinds is the table of spec 001, "Iteration limits". An unknown kind
// has two (D41).
func defaultKinds() map[string]KindConfig {
	return map[string]KindConfig{
		"discovery": {Iterations: 3, At: BuiltIn},
		"support":   {Iterations: 5, At: BuiltIn},
		"ops":       {Iterations: 10, At: BuiltIn},
		"code":      {Iterations: 3, At: BuiltIn},
		"growth":    {Iterations: 5, At: BuiltIn},
		"meta":      {Iterations: 2, At: BuiltIn},
		"finance":   {Iterations: 3, At: BuiltIn},
		"loop":      {Iterations: 5, At: BuiltIn},
	}
}

func defaultBoundaries() []BoundaryConfig {
	return []BoundaryConfig{{
		Boundary:    "agent/step",
		Risk:        holdfast.Low,
		Permissions: []string{"agent:step"},
		Consumes:    map[string]int64{string(holdfast.Iterations): 1},
		Cooldown:    Duration(time.Minute),
		Operation:   "agent:step",
		At:          BuiltIn,
	}, {
		// To admit a goal does nothing; the SafetyFilter judges it.
		Boundary:    goalrule.Boundary,
		Risk:        holdfast.Low,
		Permissions: []string{"goal:submit"},
		Operation:   "goal:admit",
		At:          BuiltIn,
	}, {
		// Code in the sandbox reaches nothing, so it acts and is recorded. Its tier
		// bounds its time, an hour at most; this is behind that.
		Boundary:    "exec/*",
		Risk:        holdfast.Medium,
		Permissions: []string{"exec:run"},
		Consumes:    map[string]int64{string(holdfast.CPUMillis): 60_000, string(holdfast.WallMillis): 30_000, string(holdfast.MemoryMB): 512},
		Operation:   "exec:run",
		Timeout:     Duration(61 * time.Minute),
		At:          BuiltIn,
	}, {
		// A program on a work tree reaches nothing else. An agent works for hours.
		Boundary:    "run/*",
		Risk:        holdfast.Medium,
		Permissions: []string{"exec:run"},
		Consumes:    map[string]int64{string(holdfast.CPUMillis): 3_600_000, string(holdfast.WallMillis): 3_600_000, string(holdfast.MemoryMB): 4096},
		Operation:   "exec:run",
		Timeout:     Duration(7 * day),
		At:          BuiltIn,
	}}
}

func defaultBudgets() []BudgetConfig {
	daily := []struct {
		resource holdfast.Resource
		amount   int64
	}{
		{holdfast.CPUMillis, 345_600_000}, // four processors all day
		{holdfast.MemoryMB, 100_000_000},
		{holdfast.WallMillis, 5_529_600_000}, // 64 at work all day
		{holdfast.DBQueries, 10_000_000},
		{holdfast.LLMTokens, 100_000_000},
		{holdfast.HTTPRequests, 1_000_000},
		{holdfast.Messages, 10_000},
		{holdfast.FileWrites, 1_000_000},
		{holdfast.BytesOut, 100_000_000_000},
		{holdfast.MoneyMicro, 50_000_000}, // $50
		{holdfast.Iterations, 10_000},
		{holdfast.EntropyMilli, 10_000_000},
		{holdfast.Judgements, 10_000},
	}
	money := string(holdfast.MoneyMicro)
	out := []BudgetConfig{
		{Scope: "chain", Resource: money, Amount: 5_000_000, Exceed: string(budget.EndChain), At: BuiltIn},
		{Scope: "session", Resource: money, Amount: 10_000_000, Exceed: string(budget.PauseAgent), At: BuiltIn},
	}
	for _, d := range daily {
		b := BudgetConfig{Scope: "tenant", Resource: string(d.resource), Amount: d.amount, Window: day, At: BuiltIn}
		if d.resource == holdfast.MoneyMicro {
			b.Exceed = string(budget.BlockTenant)
		}
		out = append(out, b)
	}
	return out
}

// withDefaults puts what a file says in place of the defaults: by name for
// roles, kinds and boundaries, by scope, resource and window for budgets.
func (c *Config) withDefaults() {
	d := Defaults()
	if c.Listen.Pages == "" {
		c.Listen.Pages = d.Listen.Pages
	}
	if c.Store.Kind == "" {
		c.Store.Kind = d.Store.Kind
	}
	if c.Ledger.CheckpointInterval == 0 {
		c.Ledger.CheckpointInterval = d.Ledger.CheckpointInterval
	}
	if c.Ledger.Results == 0 {
		c.Ledger.Results = d.Ledger.Results
	}
	c.Sandbox.Running = cmp.Or(c.Sandbox.Running, d.Sandbox.Running)
	c.Sandbox.Waiting = cmp.Or(c.Sandbox.Waiting, d.Sandbox.Waiting)
	c.Sandbox.Wait = cmp.Or(c.Sandbox.Wait, d.Sandbox.Wait)
	if c.Review.Wait == nil {
		c.Review.Wait = d.Review.Wait
	}
	c.Snapshots.withDefaults()
	c.Identity.Roles = overlay(d.Identity.Roles, c.Identity.Roles)
	c.Agents.Kinds = overlay(d.Agents.Kinds, c.Agents.Kinds)
	for _, b := range d.Boundaries {
		if !slices.ContainsFunc(c.Boundaries, func(o BoundaryConfig) bool { return o.Boundary == b.Boundary }) {
			c.Boundaries = append(c.Boundaries, b)
		}
	}
	for _, b := range d.Budgets {
		i := slices.IndexFunc(c.Budgets, b.replacedBy)
		switch {
		case i < 0:
			c.Budgets = append(c.Budgets, b)
		case c.Budgets[i].Exceed == "":
			c.Budgets[i].Exceed = b.Exceed // another amount is no other consequence
		}
	}
}

// replacedBy says whether a budget stands in the place of the built-in b.
func (b BudgetConfig) replacedBy(o BudgetConfig) bool {
	return o.Scope == b.Scope && o.Resource == b.Resource && o.Window == b.Window && (o.Match == "" || o.Match == "*") && (o.Boundary == "" || o.Boundary == "*")
}

func overlay[V any](under, over map[string]V) map[string]V {
	for k, v := range over {
		under[k] = v
	}
	return under
}
