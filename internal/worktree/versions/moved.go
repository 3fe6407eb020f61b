package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// heldFile has, of each work tree by its path in the configuration, the folder that the
// path led to when it was first tracked.
func (s *Service) heldFile() string { return filepath.Join(s.Dir, "held.json") }

// Hold keeps each tree of a configuration at the folder that its path first led to. Who
// may write to a folder above a tree can put a link in its place: what it leads to would
// be read into versions, and what is there would go unkept. Where a path leads elsewhere
// the first folder stays the tree, which is told by TellMoved.
func (s *Service) Hold(c *Settings) error {
	if len(c.Trees) == 0 {
		s.setMoved(nil)
		return nil
	}
	held, err := s.held()
	if err != nil {
		return err
	}
	moved, more := map[trouble]string{}, false
	for i := range c.Trees {
		t := &c.Trees[i]
		first, known := held[t.Named]
		switch {
		case !known && t.Found:
			held[t.Named], more = t.Path, true
		case known && first != t.Path:
			now, do := "nothing that is there", "write its own path into the configuration"
			if t.Found {
				now = folderName(t.Path)
			}
			if t.Path == t.Named { // which is its own path already, or would be
				do = "take the line of " + folderName(t.Named) + " out of " + s.heldFile()
			}
			moved[trouble{troubleMoved, t.Named}] = fmt.Sprintf("it led to %s when it was first tracked, and leads to %s now; versions are kept of the first alone; where the other is meant, %s", folderName(first), now, do)
			t.Path = first
		}
	}
	if err := s.apart(c.Trees); err != nil {
		return err
	}
	s.setMoved(moved)
	if !more {
		return nil
	}
	b, err := json.MarshalIndent(held, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return durable.ReplaceFile(s.heldFile(), append(b, '\n'), 0o600)
}

// apart refuses trees of which one lies within another. Configurations are checked for
// that by where their paths lead now.
func (s *Service) apart(trees []Tree) error {
	for i := range trees {
		for j := range i {
			a, b := &trees[j], &trees[i]
			if a.Path != "" && b.Path != "" && snapshot.PathsOverlap(a.Path, b.Path) {
				return usage.HintErrorf("track the outer one alone, or take the line of the one that leads elsewhere now out of "+s.heldFile(),
					"the work trees %s and %s lie within each other, where their paths led when they were first tracked", folderName(a.Named), folderName(b.Named))
			}
		}
	}
	return nil
}

// folderName is a path in what people are told: whole, where it is no monster.
func folderName(path string) string { return excerpt.Of(path, 256) }

func (s *Service) setMoved(moved map[trouble]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = moved
}

func (s *Service) held() (map[string]string, error) {
	held := map[string]string{}
	b, err := os.ReadFile(s.heldFile())
	if errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &held)
	}
	if err != nil || held == nil {
		return nil, usage.HintErrorf("look where the path of each work tree leads; then take that file away", "%s, which says where work trees are, cannot be read: %v", s.heldFile(), err)
	}
	return held, nil
}

// TellMoved tells of the trees whose paths lead elsewhere, and of no others any more.
func (s *Service) TellMoved() {
	s.mu.Lock()
	moved := s.moved
	var gone []trouble
	for what := range s.trouble {
		if what.kind == troubleMoved && moved[what] == "" {
			gone = append(gone, what)
		}
	}
	s.mu.Unlock()
	for _, what := range gone {
		s.fail(what, "")
	}
	for what, why := range moved {
		s.fail(what, why)
	}
}
