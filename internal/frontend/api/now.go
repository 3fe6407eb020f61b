package api

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// MaxNow bounds the agents and the alarms of a Now, each.
const MaxNow = 200

// Now is what goes on at this moment, for `holdfast top`.
type Now struct {
	At time.Time `json:"at"`
	// Tenant is the one that it is of alone; empty where it is of everything.
	Tenant string `json:"tenant_id,omitempty"`
	// PID is the daemon's; 0 where none runs, and the ledger alone was asked.
	PID int `json:"pid,omitempty"`
	// Health is today's so far (D41b), with why it is not GREEN, the gravest first.
	Health  health.Level `json:"health"`
	Because []string     `json:"because,omitempty"`
	Halt
	// Waiting, Active and Paused count the questions to people, the agents that did
	// something within the hour, and those that are paused; nil where nobody knows.
	Waiting *int `json:"reviews_waiting"`
	Active  *int `json:"agents_active"`
	Paused  *int `json:"agents_paused"`
	// Agents are those that did something within the hour or are paused, the most
	// active first and at most MaxNow; MoreAgents is how many others there are.
	Agents     []AgentNow `json:"agents"`
	MoreAgents int        `json:"agents_more,omitempty"`
	// Alarms are the conditions that hold, the worst first and at most MaxNow; null
	// where no daemon watches, so that nobody knows.
	Alarms     []Alarm `json:"alarms"`
	MoreAlarms int     `json:"alarms_more,omitempty"`
}

// AgentNow is one agent within the last hour. What those within it do is counted
// for it, too.
type AgentNow struct {
	Tenant string `json:"tenant_id"`
	Agent  string `json:"agent"`
	Paused bool   `json:"paused"`
	// Actions is about how many crossings it made; Steps how many of them were
	// agent/step.
	Actions int   `json:"actions_per_hour"`
	Steps   int   `json:"steps_per_hour"`
	Cost    int64 `json:"cost_micro_per_hour"`
	// ErrorRate is of its last 100 actions at most, 0 to 1; nil with fewer than 20.
	ErrorRate *float64 `json:"error_rate"`
	// Alarms are the names of the conditions that hold.
	Alarms []string  `json:"alarms,omitempty"`
	Last   time.Time `json:"last,omitzero"`
}

// Alarm is a condition that holds: of an agent, of a tenant (Agent is empty), or of
// everything (both are).
type Alarm struct {
	Tenant    string    `json:"tenant_id,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Condition string    `json:"condition"`
	Severity  string    `json:"severity"`
	Since     time.Time `json:"since"`
	// Consequence says that another condition that holds explains it.
	Consequence bool `json:"consequence,omitempty"`
}

// Now asks what goes on at this moment: with one tenant alone, or, where that is
// empty, with everything. A tenant of which nothing is recorded is a NotFoundError.
func (c *Client) Now(ctx context.Context, tenant string) (*Now, error) {
	return ask[Now](ctx, c, "GET", "/v1/now?"+url.Values{"tenant": {tenant}}.Encode(), nil)
}
