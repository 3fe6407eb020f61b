package goalrule

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Read reads a submission from a JSON tree (numbers as json.Number): an object
// with "goal", "sub_tasks" and "graph", of which one at least must be there.
// A member that is not known is an error, as is one of another type: what is
// misspelt would otherwise be judged as absent. Errors are a ValueError or
// TypeError that names the member.
func Read(tree any) (*Submission, error) {
	r := &reader{}
	m := r.object(tree, "the submission", "goal", "sub_tasks", "graph")
	s := &Submission{}
	if v, ok := m["goal"]; ok {
		s.Goal = r.goal(v, "goal")
	}
	if v, ok := m["sub_tasks"]; ok {
		s.SubTasks = r.tasks(v, "sub_tasks")
	}
	if v, ok := m["graph"]; ok {
		s.Graph = r.graph(v)
	}
	if r.err == nil && s.Goal == nil && s.Graph == nil && len(s.SubTasks) == 0 {
		r.fail(holdfast.KindValue, "the submission is empty", "send a goal, its sub_tasks, or a graph of them")
	}
	r.together(s)
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// reader keeps the first error; after it, what it reads is not used.
type reader struct{ err error }

func (r *reader) fail(kind holdfast.Kind, why, hint string) {
	if r.err == nil {
		r.err = &holdfast.Error{Kind: kind, Gate: holdfast.K1, Rule: Boundary, Why: why, Hint: hint}
	}
}

// object reads an object all of whose members are known.
func (r *reader) object(v any, at string, known ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		r.fail(holdfast.KindType, at+" is not an object", "")
		return nil
	}
	var odd []string
	for key := range m {
		if !slices.Contains(known, key) {
			odd = append(odd, key)
		}
	}
	if len(odd) > 0 {
		sort.Strings(odd)
		r.fail(holdfast.KindValue, fmt.Sprintf("%s has an unknown member %q", at, excerpt.Of(odd[0], 64)), "its members are "+strings.Join(known, ", "))
	}
	return m
}

func (r *reader) goal(v any, at string) *Goal {
	m := r.object(v, at, "goal_id", "description", "priority", "goal_type", "allow_critical", "created_ms", "deadline_ms", "tags", "parent_id")
	r.need(m, at, "goal_id", "description", "priority", "goal_type")
	return &Goal{
		ID:            r.name(m, at, "goal_id"),
		Description:   r.text(m, at, "description", maxText),
		Priority:      r.priority(m, at),
		Type:          r.name(m, at, "goal_type"),
		AllowCritical: r.truth(m, at, "allow_critical"),
		Created:       r.number(m, at, "created_ms", 0, 1<<53),
		Deadline:      r.number(m, at, "deadline_ms", 0, 1<<53),
		Tags:          r.names(m, at, "tags"),
		Parent:        r.name(m, at, "parent_id"),
	}
}

func (r *reader) tasks(v any, at string) []SubTask {
	list, ok := v.([]any)
	switch {
	case !ok:
		r.fail(holdfast.KindType, at+" is not a list", "")
		return nil
	case len(list) > MaxSubTasks:
		r.fail(holdfast.KindValue, fmt.Sprintf("%s holds %d sub-tasks, more than %d", at, len(list), MaxSubTasks), "")
		return nil
	}
	out := make([]SubTask, 0, len(list))
	for i, e := range list {
		out = append(out, r.task(e, fmt.Sprintf("%s[%d]", at, i)))
		if r.err != nil {
			break
		}
	}
	return out
}

func (r *reader) task(v any, at string) SubTask {
	m := r.object(v, at, "id", "goal_id", "name", "required_caps", "capability_required", "payload", "depends_on", "priority", "timeout_ms")
	r.need(m, at, "id")
	_, list := m["required_caps"]
	_, one := m["capability_required"]
	if m != nil && !list && !one {
		r.fail(holdfast.KindValue, at+" does not say which capabilities it needs", `say "required_caps": [] where it needs none`)
	}
	t := SubTask{
		ID:           r.name(m, at, "id"),
		Goal:         r.name(m, at, "goal_id"),
		Name:         r.name(m, at, "name"),
		Capabilities: r.names(m, at, "required_caps"),
		DependsOn:    r.names(m, at, "depends_on"),
		Priority:     r.number(m, at, "priority", 0, 100),
		Timeout:      r.number(m, at, "timeout_ms", 0, 1<<53),
		Payload:      m["payload"],
	}
	if one {
		t.Capabilities = append(t.Capabilities, r.text(m, at, "capability_required", MaxName))
	}
	return t
}

func (r *reader) graph(v any) *Graph {
	const at = "graph"
	m := r.object(v, at, "goal_id", "sub_tasks", "created_at_ms", "strategy_used")
	r.need(m, at, "goal_id", "sub_tasks")
	g := &Graph{
		Goal:     r.name(m, at, "goal_id"),
		Created:  r.number(m, at, "created_at_ms", 0, 1<<53),
		Strategy: r.name(m, at, "strategy_used"),
	}
	if r.err == nil {
		g.SubTasks = r.tasks(m["sub_tasks"], "graph.sub_tasks")
	}
	return g
}

func (r *reader) need(m map[string]any, at string, keys ...string) {
	for _, key := range keys {
		if v, ok := m[key]; m != nil && (!ok || v == nil || v == "") {
			r.fail(holdfast.KindValue, fmt.Sprintf("%s has no %q", at, key), "what is not said cannot be judged")
		}
	}
}

// text reads a text of at most n bytes; an absent one is empty.
func (r *reader) text(m map[string]any, at, key string, n int) string {
	v, ok := m[key]
	if !ok {
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		r.fail(holdfast.KindType, at+"."+key+" is not a text", "")
	case len(s) > n:
		r.fail(holdfast.KindValue, fmt.Sprintf("%s.%s has %d bytes, more than %d", at, key, len(s), n), "")
	}
	return s
}

// name reads a text that names something. It holds no control characters.
func (r *reader) name(m map[string]any, at, key string) string {
	s := r.text(m, at, key, MaxName)
	r.plain(s, at+"."+key)
	return s
}

func (r *reader) plain(s, at string) {
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }) {
		r.fail(holdfast.KindValue, at+" holds a control character", "")
	}
}

func (r *reader) names(m map[string]any, at, key string) []string {
	v, ok := m[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		r.fail(holdfast.KindType, at+"."+key+" is not a list", "")
		return nil
	case len(list) > maxList:
		r.fail(holdfast.KindValue, fmt.Sprintf("%s.%s has %d members, more than %d", at, key, len(list), maxList), "")
		return nil
	}
	out := make([]string, 0, len(list))
	for i, e := range list {
		s, ok := e.(string)
		place := fmt.Sprintf("%s.%s[%d]", at, key, i)
		switch {
		case !ok:
			r.fail(holdfast.KindType, place+" is not a text", "")
		case len(s) > MaxName:
			r.fail(holdfast.KindValue, fmt.Sprintf("%s has %d bytes, more than %d", place, len(s), MaxName), "")
		}
		out = append(out, s)
	}
	return out
}

func (r *reader) truth(m map[string]any, at, key string) bool {
	v, ok := m[key]
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		r.fail(holdfast.KindType, at+"."+key+" is neither true nor false", "")
	}
	return b
}

func (r *reader) number(m map[string]any, at, key string, least, most int64) int64 {
	v, ok := m[key]
	if !ok {
		return 0
	}
	n, ok := v.(json.Number)
	if !ok {
		r.fail(holdfast.KindType, at+"."+key+" is not a number", "")
		return 0
	}
	i, ok := whole(n)
	if !ok || i < least || i > most {
		r.fail(holdfast.KindValue, fmt.Sprintf("%s.%s is not a whole number from %d to %d", at, key, least, most), "")
	}
	return i
}

func (r *reader) priority(m map[string]any, at string) (p Priority) {
	const hint = "critical, high, normal, low or idle, or 0 (critical) to 4 (idle)"
	switch v := m["priority"].(type) {
	case nil:
	case string:
		if p.UnmarshalText([]byte(v)) != nil {
			r.fail(holdfast.KindValue, fmt.Sprintf("%s.priority is no priority: %q", at, excerpt.Of(v, 32)), hint)
		}
	case json.Number:
		i, ok := whole(v)
		if !ok || i < int64(Critical) || i > int64(Idle) {
			r.fail(holdfast.KindValue, at+".priority is no priority", hint)
			return Critical
		}
		p = Priority(i)
	default:
		r.fail(holdfast.KindType, at+".priority is neither a word nor a number", hint)
	}
	return p
}

// together checks what the parts say of each other: one goal, ids that are
// there once, and dependencies that lead to them and in no circle.
func (r *reader) together(s *Submission) {
	if r.err != nil {
		return
	}
	id := ""
	if s.Goal != nil {
		id = s.Goal.ID
	}
	if s.Graph != nil {
		if id != "" && s.Graph.Goal != id {
			r.fail(holdfast.KindValue, fmt.Sprintf("the graph is of goal %q, the goal is %q", excerpt.Of(s.Graph.Goal, 64), excerpt.Of(id, 64)), "")
		}
		id = s.Graph.Goal
		r.order(s.Graph.SubTasks, true)
	}
	r.order(s.SubTasks, false)
	seen := map[string]bool{}
	for _, t := range slices.Concat(s.SubTasks, s.tasksOfGraph()) {
		if t.Goal != "" && id != "" && t.Goal != id {
			r.fail(holdfast.KindValue, fmt.Sprintf("the sub-task %q is of goal %q, not of %q", excerpt.Of(t.ID, 64), excerpt.Of(t.Goal, 64), excerpt.Of(id, 64)), "")
		}
		if seen[t.ID] {
			r.fail(holdfast.KindValue, fmt.Sprintf("the sub-task %q is there twice", excerpt.Of(t.ID, 64)), "")
		}
		seen[t.ID] = true
	}
}

func (s *Submission) tasksOfGraph() []SubTask {
	if s.Graph == nil {
		return nil
	}
	return s.Graph.SubTasks
}

// order checks that the dependencies can be met: it takes away what depends on
// nothing that is left, until nothing is left. Sub-tasks that are not closed may
// depend on others than these.
func (r *reader) order(tasks []SubTask, closed bool) {
	waits, frees := map[string]int{}, map[string][]string{}
	for _, t := range tasks {
		waits[t.ID] = 0
	}
	for _, t := range tasks {
		for _, on := range t.DependsOn {
			if _, ok := waits[on]; !ok && !closed {
				continue
			} else if !ok {
				r.fail(holdfast.KindValue, fmt.Sprintf("the sub-task %q depends on %q, which is not there", excerpt.Of(t.ID, 64), excerpt.Of(on, 64)), "")
				return
			}
			waits[t.ID]++
			frees[on] = append(frees[on], t.ID)
		}
	}
	var free []string
	for _, t := range tasks {
		if waits[t.ID] == 0 {
			free = append(free, t.ID)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		next := free[len(free)-1]
		free = free[:len(free)-1]
		for _, id := range frees[next] {
			if waits[id]--; waits[id] == 0 {
				free = append(free, id)
			}
		}
	}
	if done < len(waits) {
		r.fail(holdfast.KindValue, "the dependencies of sub-tasks go in a circle", "no sub-task of the circle could ever begin")
	}
}
