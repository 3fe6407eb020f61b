package goalrule

import (
	"encoding/json"
	"strconv"
)

// seen is a subject as rules see it: constitution.SubjectSchema, every member
// there, in its plain form.
type seen interface{ tree() any }

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func list(ss []string) []any {
	out := make([]any, 0, len(ss))
	for _, s := range ss {
		out = append(out, s)
	}
	return out
}

func (g *Goal) tree() any {
	return map[string]any{
		"goal_id": g.ID, "description": g.Description, "priority": number(int64(g.Priority)), "priority_name": g.Priority.String(),
		"goal_type": plainType(g.Type), "allow_critical": g.AllowCritical, "created_ms": number(g.Created), "deadline_ms": number(g.Deadline),
		"tags": list(g.Tags), "parent_id": g.Parent,
	}
}

func (t *SubTask) tree() any {
	caps := make([]any, 0, len(t.Capabilities))
	for _, s := range t.Capabilities {
		if c, err := ParseCapability(s); err == nil {
			s = c.String()
		}
		caps = append(caps, s)
	}
	return map[string]any{
		"id": t.ID, "goal_id": t.Goal, "name": t.Name, "required_caps": caps, "depends_on": list(t.DependsOn),
		"priority": number(t.Priority), "timeout_ms": number(t.Timeout), "payload": t.Payload,
	}
}

func (g *Graph) tree() any {
	tasks := make([]any, 0, len(g.SubTasks))
	for i := range g.SubTasks {
		tasks = append(tasks, g.SubTasks[i].tree())
	}
	return map[string]any{"goal_id": g.Goal, "created_at_ms": number(g.Created), "strategy_used": g.Strategy, "sub_tasks": tasks}
}
