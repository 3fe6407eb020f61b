package goalrule

import (
	"fmt"
	"slices"
	"strings"
)

// Config is what the built-in rules measure by (spec 004, SafetyConfig).
type Config struct {
	// MaxDescription is the longest description, in code points: SR-001.
	MaxDescription int
	// AutoEscalate is the most urgent priority that a goal may have without
	// allow_critical: SR-002.
	AutoEscalate Priority
	// BlockedCapabilities refuse a sub-task that needs one of them: SR-003.
	BlockedCapabilities []string
	// AllowedPrefixes are the schemes that a capability may have, with or without
	// the colon; any other is a warning: SR-004.
	AllowedPrefixes []string
	// MaxSubTasks is the most sub-tasks of one graph: SR-005.
	MaxSubTasks int
	// DeniedTypes are the types of goal that nobody may have: SR-007.
	DeniedTypes []string
	// PauseOnCritical pauses all goals at a critical violation.
	PauseOnCritical bool
}

// Defaults are the specification's.
func Defaults() Config {
	return Config{
		MaxDescription:      2048,
		AutoEscalate:        High,
		BlockedCapabilities: []string{"network:external", "exec:arbitrary"},
		AllowedPrefixes:     []string{"local:", "federation:"},
		MaxSubTasks:         128,
		DeniedTypes:         []string{"self_modify_runtime", "disable_safety_filter", "exfiltrate_data"},
		PauseOnCritical:     true,
	}
}

// limits is a Config made ready.
type limits struct {
	Config
	blocked []blocked
	schemes map[string]bool
	denied  map[string]bool // by their joined form
}

// blocked is a capability that nobody may need.
type blocked struct {
	name   string
	pieces []string
}

func (c Config) ready() (*limits, error) {
	out := &limits{Config: c, schemes: map[string]bool{}, denied: map[string]bool{}}
	switch {
	case c.MaxDescription <= 0:
		return nil, fmt.Errorf("max_goal_description_len is %d; it must be at least 1", c.MaxDescription)
	case c.MaxSubTasks <= 0 || c.MaxSubTasks > MaxSubTasks:
		return nil, fmt.Errorf("max_subtasks_per_graph is %d; it must be from 1 to %d", c.MaxSubTasks, MaxSubTasks)
	case c.AutoEscalate < Critical || c.AutoEscalate > Idle:
		return nil, fmt.Errorf("max_priority_auto_escalate is %d; it must be from 0 to 4", c.AutoEscalate)
	}
	for _, s := range c.BlockedCapabilities {
		p, err := ParseCapability(s)
		if err != nil {
			return nil, fmt.Errorf("blocked_capability_patterns: %q: %w", s, err)
		}
		pieces := p.pieces()
		if len(pieces) == 0 {
			return nil, fmt.Errorf("blocked_capability_patterns: %q names nothing", s)
		}
		out.blocked = append(out.blocked, blocked{p.String(), pieces})
	}
	for _, s := range c.AllowedPrefixes {
		p, err := ParseCapability(strings.TrimSuffix(s, ":") + ":x")
		if err != nil || len(p) != 2 {
			return nil, fmt.Errorf("allowed_capability_prefixes: %q is no scheme", s)
		}
		out.schemes[p.Scheme()] = true
	}
	for _, s := range c.DeniedTypes {
		if plainType(s) == "" {
			return nil, fmt.Errorf("denied_goal_types: %q is no type of goal", s)
		}
		out.denied[joined(plainType(s))] = true
	}
	return out, nil
}

// Weakened returns one sentence for each of the specification's own capabilities
// and types that the filter lets through, and for SR-002 where it can say
// nothing. What is counted, such as sub-tasks, has no such sentence.
func (f *Filter) Weakened() []string {
	if f.limits == nil {
		return nil // refuses everything
	}
	var out []string
	d := Defaults()
	if f.limits.AutoEscalate == Critical {
		out = append(out, "rules.goals: SR-002 lets every priority pass (max_priority_auto_escalate is critical)")
	}
	for _, s := range d.BlockedCapabilities {
		c, err := ParseCapability(s)
		if err != nil || !f.limits.blocks(c.pieces()) {
			out = append(out, "rules.goals: SR-003 lets "+s+" pass (blocked_capability_patterns leaves it out)")
		}
	}
	for _, s := range d.DeniedTypes {
		if !f.limits.denied[joined(plainType(s))] {
			out = append(out, "rules.goals: SR-007 admits goals of the type "+s+" (denied_goal_types leaves it out)")
		}
	}
	return out
}

func (l *limits) blocks(pieces []string) bool {
	return slices.ContainsFunc(l.blocked, func(b blocked) bool { return takesIn(pieces, b.pieces) })
}
