package daemon

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/snapshot"
)

// word is what a person had put back of one tree last. An act that began before it
// and fails behind it undoes nothing of it: an agent chooses when its act fails.
type word struct {
	mu sync.Mutex // held while the tree is marked, or put back

	n  int    // guarded by mu; how often a person had it put back since the daemon began
	to goBack // guarded by mu; the last of them
}

// word is the one of a tree.
func (s *snapshots) word(tree string) *word {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.words == nil {
		s.words = map[string]*word{}
	}
	if s.words[tree] == nil {
		s.words[tree] = &word{}
	}
	return s.words[tree]
}

// mark keeps a tree as it is before an act, and notes how often a person had put it
// back by then.
func (s *snapshots) mark(ctx context.Context, k *snapshot.Keeper, t snapshot.Tree, m snapshot.Message) (goBack, error) {
	w := s.word(t.Path)
	w.mu.Lock()
	defer w.mu.Unlock()
	to, err := k.Mark(ctx, t, m)
	s.tidied(k)
	return goBack{tree: t, to: to, from: "before " + m.Crossing, words: w.n}, err
}

// rolled puts a tree back: on a person's word where about names no crossing, else
// after that act failed, and then to what a person had put back meanwhile, where one
// had. It returns the version that it was put back to.
func (s *snapshots) rolled(ctx context.Context, k *snapshot.Keeper, g goBack, who, about string) (goBack, *snapshot.Rolled, error) {
	w := s.word(g.tree.Path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if about != "" && w.n != g.words {
		g.to, g.from = w.to.to, w.to.from
	}
	out, err := k.Rollback(ctx, g.tree, g.to, who)
	s.tidied(k)
	if about == "" && err == nil {
		w.n, w.to = w.n+1, g
	}
	return g, out, err
}

// overruled says that a person had a tree put back since it was marked.
func (s *snapshots) overruled(g goBack) bool {
	w := s.word(g.tree.Path)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n != g.words
}
