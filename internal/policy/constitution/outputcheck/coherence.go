package outputcheck

import (
	"context"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// maxGoals bounds one goal tree.
const maxGoals = 10_000

// goal is one member of a goal tree.
type goal struct {
	path               string
	id, parent         string
	conditions, covers []string
	boundary           string
	children           []*goal
}

// CheckCoherence is goal_coherence_check. The output is
//
//	{"goals": [{"id":         text, unique,
//	            "parent":     text, the id of another goal; absent or null for a root,
//	            "conditions": [text], what must hold for the goal to be reached,
//	            "covers":     [text], which of the parent's conditions this goal sees to,
//	            "boundary":   text, the crossing that carries the goal out}, ...]}
//
// and coherent if there is a root, no goal is its own ancestor, every leaf
// names a boundary that there is, every child covers at least one of its
// parent's conditions and none that the parent does not have, and the children
// of a goal together cover all of its conditions. Other members are not read,
// so no member can say that the check has passed.
func CheckCoherence(ctx context.Context, output any, pc Context) (bool, string, error) {
	if err := CheckTree(ctx, output); err != nil {
		return false, "", err
	}
	listed := pc.Listed
	if listed == nil {
		listed = pc.May
	}
	if listed == nil {
		return false, "", &failure.Failure{Kind: failure.ErrEval, Text: "it is not known which boundaries there are"}
	}
	goals, why := readGoals(output)
	if why == "" {
		why = joinGoals(goals)
	}
	for i := 0; i < len(goals) && why == ""; i++ {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return false, "", &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: ctx.Err()}
		}
		why = goals[i].incoherent(listed)
	}
	return why == "", why, nil
}

func readGoals(output any) ([]*goal, string) {
	root, ok := output.(map[string]any)
	if !ok {
		return nil, "the output is not an object with goals"
	}
	list, ok := root["goals"].([]any)
	if !ok || len(list) == 0 {
		return nil, "the output has no list of goals"
	}
	if len(list) > maxGoals {
		return nil, fmt.Sprintf("there are more than %d goals", maxGoals)
	}
	goals := make([]*goal, 0, len(list))
	for i, v := range list {
		g, why := readGoal("/goals/"+strconv.Itoa(i), v)
		if why != "" {
			return nil, why
		}
		goals = append(goals, g)
	}
	return goals, ""
}

func readGoal(path string, v any) (*goal, string) {
	o, ok := v.(map[string]any)
	if !ok {
		return nil, path + " is not an object"
	}
	g := &goal{path: path}
	for _, m := range []struct {
		name string
		into *string
	}{{"id", &g.id}, {"parent", &g.parent}, {"boundary", &g.boundary}} {
		v, there := o[m.name]
		if !there || v == nil {
			continue
		}
		text, ok := v.(string)
		if !ok || text == "" {
			return nil, fmt.Sprintf("%s/%s is not a text", path, m.name)
		}
		*m.into = text
	}
	for _, m := range []struct {
		name string
		into *[]string
	}{{"conditions", &g.conditions}, {"covers", &g.covers}} {
		texts, ok := readTexts(o[m.name])
		if !ok {
			return nil, fmt.Sprintf("%s/%s is not a list of different texts", path, m.name)
		}
		*m.into = texts
	}
	if g.id == "" {
		return nil, path + " has no id"
	}
	return g, ""
}

func readTexts(v any) ([]string, bool) {
	if v == nil {
		return nil, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	seen := map[string]bool{}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok || s == "" || seen[s] {
			return nil, false
		}
		seen[s] = true
		out = append(out, s)
	}
	return out, true
}

// joinGoals links parents and children and finds cycles. A goal has one
// parent, so that a tree without cycles is what is reached from its roots.
func joinGoals(goals []*goal) string {
	byID := make(map[string]*goal, len(goals))
	for _, g := range goals {
		if byID[g.id] != nil {
			return fmt.Sprintf("%s and %s have one id", byID[g.id].path, g.path)
		}
		byID[g.id] = g
	}
	var reached []*goal
	for _, g := range goals {
		if g.parent == "" {
			reached = append(reached, g)
			continue
		}
		p := byID[g.parent]
		if p == nil {
			return g.path + " has a parent that is not there"
		}
		p.children = append(p.children, g)
	}
	for i := 0; i < len(reached); i++ {
		reached = append(reached, reached[i].children...)
	}
	if len(reached) == len(goals) {
		return ""
	}
	in := make(map[*goal]bool, len(reached))
	for _, g := range reached {
		in[g] = true
	}
	for _, g := range goals {
		if !in[g] {
			return g.path + " is on or below a cycle of parents"
		}
	}
	return ""
}

// incoherent says what is wrong with a goal and its children.
func (g *goal) incoherent(listed func(string) bool) string {
	if len(g.children) == 0 {
		if g.boundary == "" || !plainName(g.boundary) || !listed(g.boundary) {
			return g.path + " has no children and names no boundary that carries it out"
		}
		return ""
	}
	if len(g.conditions) == 0 {
		return g.path + " has children but no conditions that they could cover"
	}
	open := make(map[string]bool, len(g.conditions))
	for _, c := range g.conditions {
		open[c] = true
	}
	for _, child := range g.children {
		if len(child.covers) == 0 {
			return child.path + " covers none of its parent's conditions"
		}
		for _, c := range child.covers {
			if _, there := open[c]; !there {
				return child.path + " covers a condition that its parent does not have"
			}
			open[c] = false
		}
	}
	for _, left := range g.conditions {
		if open[left] {
			return g.path + " has a condition that none of its children covers"
		}
	}
	return ""
}
