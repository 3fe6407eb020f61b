package config

import (
	"strings"
	"testing"
)

// TestGoalsListsThatWeakenAreNamed: a list that leaves out what the
// specification refuses is in force and announced; one that is only half written
// is none.
func TestGoalsListsThatWeakenAreNamed(t *testing.T) {
	for text, says := range map[string][]string{
		"rules: {goals: {blocked_capability_patterns: [], denied_goal_types: [exfiltrate_data]}}": {"network:external", "exec:arbitrary", "self_modify_runtime", "disable_safety_filter"},
		"rules: {goals: {max_priority_auto_escalate: critical}}":                                  {"every priority"},
		"rules: {goals: {blocked_capability_patterns: ['network:*', 'exec:*', 'cloud:*']}}":       nil,
		"rules: {goals: {max_subtasks_per_graph: 8, max_goal_description_len: 9}}":                nil,
	} {
		l, err := load(t, "version: 1\n"+text+"\n")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(l.Policy.Weakened) != len(says) {
			t.Errorf("%s: %q", text, l.Policy.Weakened)
			continue
		}
		for i, s := range says {
			if got := l.Policy.Weakened[i]; !strings.HasPrefix(got, "rules.goals: ") || !strings.Contains(got, s) {
				t.Errorf("%s: %q, not of %s", text, got, s)
			}
		}
	}
	for _, text := range []string{
		"rules: {goals: {blocked_capability_patterns: [network]}}", "rules: {goals: {blocked_capability_patterns: ['-:.']}}",
		"rules: {goals: {blocked_capability_patterns: 'network:external'}}", "rules: {goals: {denied_goal_types: ['']}}",
		"rules: {goals: {denied_goal_types: [7]}}", "rules: {goals: {max_priority_auto_escalate: 0}}", "rules: {goals: {max_priority_auto_escalate: urgent}}",
		"rules: {goals: {max_subtasks_per_graph: -1}}", "rules: {goals: {max_subtasks_per_graph: 10001}}", "rules: {goals: {max_subtasks_per_graph: 1.5}}",
		"rules: {goals: {max_goal_description_len: 9223372036854775808}}", "rules: {goals: {pause_on_critical: false}}", "rules: {goals: {denied_goal_type: []}}",
	} {
		if l, err := load(t, "version: 1\n"+text+"\n"); err == nil {
			t.Errorf("%s: taken, weakened %q", text, l.Policy.Weakened)
		}
	}
}
