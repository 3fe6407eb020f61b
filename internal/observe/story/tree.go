package story

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Branch is an agent where it stands among others: Depth is how many are above it.
type Branch struct {
	holdfast.Agent
	Depth int
}

// Short is its name beneath what is above it: of one within another agent its id.
func (b Branch) Short() string {
	if b.Owner == "" {
		return b.Name
	}
	return strings.TrimPrefix(b.Name, b.Owner+"/")
}

// Host is what an agent's host said of who asks within the agent, in words; "" where
// it said nothing.
func Host(s *holdfast.SubAgent) string {
	if s == nil {
		return ""
	}
	var out []string
	for _, w := range [][2]string{{"asks for ", s.ID}, {"started by ", s.Parent}, {"in its session ", s.Session}} {
		if w[1] != "" {
			out = append(out, w[0]+w[1])
		}
	}
	return "says: " + strings.Join(out, ", ")
}

// Tree puts each agent beneath whoever started it, in the order that they have; those
// with tokens of their own stand at its root, whatever they say of a parent, and
// whose parent is not there stands beneath its owner. None is left out.
func Tree(as []holdfast.Agent) []Branch {
	type name struct{ tenant, agent string }
	there, beneath := map[name]bool{}, map[name][]int{}
	for i := range as {
		there[name{as[i].Tenant, as[i].Name}] = true
	}
	for i := range as {
		if a := &as[i]; a.Owner != "" {
			under := name{a.Tenant, a.Parent}
			if !there[under] || a.Parent == a.Name {
				under.agent = a.Owner
			}
			beneath[under] = append(beneath[under], i)
		}
	}
	out, placed := make([]Branch, 0, len(as)), make([]bool, len(as))
	var place func(i, depth int)
	place = func(i, depth int) {
		if placed[i] {
			return
		}
		placed[i] = true
		out = append(out, Branch{as[i], depth})
		for _, b := range beneath[name{as[i].Tenant, as[i].Name}] {
			place(b, depth+1)
		}
	}
	for i := range as {
		if as[i].Owner == "" {
			place(i, 0)
		}
	}
	for i := range as {
		place(i, 1) // whose owner is not there
	}
	return out
}
