package process

import "github.com/holdfast-dev/holdfast/internal/sandbox"

// Group makes a control group for a process of another tier. The error is a
// CgroupError; where Posture has none of memory, cpu and pids there is always one.
func (t *Tier) Group(id string, s sandbox.Share) (sandbox.Group, error) {
	g, err := t.groups.Create(id, s)
	if err != nil {
		return nil, err // not g: a nil *cgroup.Group is no nil interface
	}
	return g, nil
}

// GroupHomes are the directories in which those groups lie.
func (t *Tier) GroupHomes() []string { return t.groups.Homes() }
