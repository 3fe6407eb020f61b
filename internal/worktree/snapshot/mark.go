package snapshot

import (
	"context"
	"sync"
)

// BeforeIt begins Target.From of a version from before an act, with its crossing
// behind it.
const BeforeIt = "before "

// Mark is the version that a tree goes back to where the act fails that it was kept
// for. Where the tree is put back meanwhile, on a person's word or because an act
// failed that began before this one, that version takes its place: what was undone is
// not done again by an act that fails later, whose agent chooses when.
type Mark struct {
	tree Tree
	of   *marks
	n    uint64 // later marks of a tree have larger ones

	to Target // guarded by of.mu
}

// Tree is the tree that was marked.
func (m *Mark) Tree() Tree { return m.tree }

// Target is the version that the tree would go back to now.
func (m *Mark) Target() Target {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return m.to
}

// Forget says that the act has ended, and nothing goes back for it.
func (m *Mark) Forget() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	delete(m.of.all, m)
}

// marks are those of the acts on one tree that are under way.
type marks struct {
	mu  sync.Mutex
	n   uint64             // guarded by mu
	all map[*Mark]struct{} // guarded by mu
}

func (l *marks) add(m *Mark) *Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*Mark]struct{}{}
	}
	l.n++
	m.of, m.n, l.all[m] = l, l.n, struct{}{}
	return m
}

// wentBack notes the version that the tree was put back to: for the act of a mark, or
// on a person's word, which is for all of them.
func (l *marks) wentBack(to Target, act *Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.MidMerge = false // which was said once
	for m := range l.all {
		if act == nil || m.n > act.n {
			m.to = to
		}
	}
}

// Mark keeps a tree as it is, for a rollback within the day. Whoever asked puts the
// tree back to it, or forgets it.
func (k *Keeper) Mark(ctx context.Context, t Tree, m Message) (*Mark, error) {
	ctx, r, done, err := k.use(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := r.keep(ctx, t, k.limits, k.opt.Own(), k.opt.Now(), ask{ref: "refs/holdfast/before/" + refName(m.Agent), message: m.text(t.Kind), always: true, room: true})
	if err != nil {
		return nil, err
	}
	return r.marks.add(&Mark{tree: t, to: Target{Commit: v.commit, Content: v.content, From: BeforeIt + m.Crossing}}), nil
}

// PutBack is Rollback to a mark, which is forgotten with it.
func (k *Keeper) PutBack(ctx context.Context, m *Mark, who string) (*Rolled, error) {
	defer m.Forget()
	return k.back(ctx, m.tree, Target{}, m, who)
}
