package process

import "github.com/holdfast-dev/holdfast/internal/sandbox"

// Group makes a control group for a process of another tier. The error is a
// CgroupError; where Posture has none of memory, cpu and pids there is always one.
func (t *Tier) Group(id string, s sandbox.Share) (sandbox.Group, error) {
	g, err := t.groups.create(id, share{memory: s.Memory, period: s.Period, quota: s.Quota, pids: s.Pids})
	if err != nil {
		return nil, err
	}
	return lent{g}, nil
}

// GroupHomes are the directories in which those groups lie.
func (t *Tier) GroupHomes() (list []string) {
	for _, b := range t.groups.branches {
		list = append(list, b.base+"/"+b.name)
	}
	return list
}

// lent is a group that another tier has.
type lent struct{ g *group }

func (l lent) Dir() (int, bool) { return l.g.dirFD() }
func (l lent) Entrances() []int { return l.g.entrances() }
func (l lent) Remove() error    { return l.g.remove() }
