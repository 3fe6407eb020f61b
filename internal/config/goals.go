package config

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

// GoalsConfig is what the SafetyFilter measures by (spec 004, SafetyConfig; D47).
// What is absent is the specification's default.
type GoalsConfig struct {
	MaxDescription int       `yaml:"max_goal_description_len" min:"1" max:"1048576" doc:"the longest description in characters, SR-001; 2048 if absent"`
	AutoEscalate   string    `yaml:"max_priority_auto_escalate" enum:"critical,high,normal,low,idle" doc:"the most urgent priority without allow_critical and the permission goal:critical, SR-002; high if absent"`
	Blocked        *[]string `yaml:"blocked_capability_patterns" doc:"capabilities that no sub-task may need, SR-003; network:external and exec:arbitrary if absent"`
	Prefixes       *[]string `yaml:"allowed_capability_prefixes" doc:"schemes of capabilities that are no warning, SR-004; local: and federation: if absent"`
	MaxSubTasks    int       `yaml:"max_subtasks_per_graph" min:"1" max:"10000" doc:"the most sub-tasks of one graph, SR-005; 128 if absent"`
	DeniedTypes    *[]string `yaml:"denied_goal_types" doc:"types of goal that nobody may have, SR-007; self_modify_runtime, disable_safety_filter and exfiltrate_data if absent"`
}

// filter makes the SafetyFilter of the configuration.
func (g *GoalsConfig) filter(pausesOnCritical bool) (*goalrule.Filter, error) {
	c := goalrule.Defaults()
	c.PauseOnCritical = pausesOnCritical
	if g.MaxDescription != 0 {
		c.MaxDescription = g.MaxDescription
	}
	if g.MaxSubTasks != 0 {
		c.MaxSubTasks = g.MaxSubTasks
	}
	if g.AutoEscalate != "" {
		if err := c.AutoEscalate.UnmarshalText([]byte(g.AutoEscalate)); err != nil {
			return nil, err
		}
	}
	for _, l := range []struct {
		from *[]string
		to   *[]string
	}{{g.Blocked, &c.BlockedCapabilities}, {g.Prefixes, &c.AllowedPrefixes}, {g.DeniedTypes, &c.DeniedTypes}} {
		if l.from != nil {
			*l.to = append([]string{}, *l.from...)
		}
	}
	f, err := goalrule.New(c)
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindValue, Why: "rules.goals: " + err.Error()}
	}
	return f, nil
}

// known are the boundaries that the configuration lists, by which rules are
// checked.
func (c *Config) known() []constitution.Boundary {
	out := make([]constitution.Boundary, 0, len(c.Boundaries))
	for i := range c.Boundaries {
		out = append(out, constitution.Boundary{Name: c.Boundaries[i].Boundary, Schema: json.RawMessage(c.Boundaries[i].Schema)})
	}
	return out
}
