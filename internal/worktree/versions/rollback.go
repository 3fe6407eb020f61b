package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// goBack is one tree and the version that it goes back to.
type goBack struct {
	tree snapshot.Tree
	to   snapshot.Target
	mark *snapshot.Mark // after an act that failed, in whose place to may have come by then
}

// resolve finds the versions that a rollback goes back to. tree is the one
// that is meant; "" is every one of the snapshot's.
func (s *Service) resolve(ctx context.Context, subject Subject, tree string) ([]goBack, error) {
	find := s.version
	if subject.Before {
		find = s.before
	}
	out, err := find(ctx, subject.ID, tree)
	for i := range out {
		out[i].to.MidMerge = subject.MidMerge
	}
	return out, err
}

// version finds the versions in a snapshot.
func (s *Service) version(ctx context.Context, id, tree string) ([]goBack, error) {
	m, _, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []goBack
	for _, p := range m.Trees {
		if tree == "" || tree == p.Path {
			out = append(out, goBack{tree: s.tracked(p.Path, p.Kind), to: snapshot.Target{Commit: p.Commit, Content: p.Content, From: m.ID}})
		}
	}
	if len(out) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf(
			"the snapshot %s does not hold %q", m.ID, excerpt.Word(tree),
		), Hint: "`holdfast snapshot show " + m.ID + "` lists its trees"}
	}
	return out, nil
}

// tracked is a tree as the configuration has it now.
func (s *Service) tracked(path, kind string) snapshot.Tree {
	for _, t := range s.current().ListTrees() {
		if t.Path == path {
			return t
		}
	}
	return snapshot.Tree{Path: path, Kind: kind}
}

// before finds the newest versions that were kept before a crossing began.
func (s *Service) before(ctx context.Context, crossing, tree string) ([]goBack, error) {
	seq := int64(-1)
	err := s.Store().View(ctx, func(tx kernel.Tx) error {
		list, err := tx.Crossing(holdfast.Local, crossing)
		if errors.Is(err, kernel.ErrNotFound) || err == nil && len(list) == 0 {
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no crossing %q",
				excerpt.Word(crossing)), Hint: "`holdfast ledger tail` lists them"}
		}
		if err == nil {
			seq = list[0].Place.Seq
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	k, err := s.hand()
	if err != nil {
		return nil, err
	}
	var out []goBack
	for _, t := range s.current().ListTrees() {
		if tree != "" && tree != t.Path {
			continue
		}
		g, err := s.newest(ctx, k, t, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	if len(out) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "no such tree is tracked", Hint: "name one of those under `snapshots: trees:`"}
	}
	return out, nil
}

// newest is the newest version of a tree that was kept when the ledger was no longer
// than seq: a commit of an action, what a rollback made, or a snapshot. The newest is the
// one that was looked at last: a snapshot of several trees ends long after it looked at
// the first.
func (s *Service) newest(ctx context.Context, k *snapshot.Keeper, t snapshot.Tree, seq int64) (goBack, error) {
	best, at := goBack{tree: t}, int64(-1)
	list, err := k.List()
	if err != nil {
		return best, err
	}
	for i := range list {
		m := &list[i]
		for _, p := range m.Trees {
			looked := max(p.Ledger, m.Ledger.Size)
			if p.Path != t.Path || looked > seq || looked <= at {
				continue
			}
			until, err := s.until(ctx, m.ID, func(e *ledger.Event, data map[string]any) bool {
				return e.Name == eventTaken && data["manifest"] == m.Sum
			})
			if err != nil {
				return best, err
			}
			if until >= 0 && until <= seq {
				best.to, at = snapshot.Target{Commit: p.Commit, Content: p.Content, From: m.ID}, looked
			}
		}
	}
	commits, err := k.Commits(ctx, t, seq)
	if err != nil {
		return best, err
	}
	for _, c := range commits {
		if c.At <= at {
			break
		}
		to, until, err := s.kept(ctx, c)
		if err != nil {
			return best, err
		}
		if until >= 0 && until <= seq {
			best.to, at = to, c.At
			break
		}
	}
	if at < 0 {
		return best, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "no version of " + t.Path + " was kept before that crossing", Hint: "`holdfast snapshot ls` lists what there is"}
	}
	return best, nil
}

// kept is the version that a commit is, as the ledger has it, and until as for until; -1
// where the ledger has none.
func (s *Service) kept(ctx context.Context, c snapshot.Kept) (to snapshot.Target, until int64, err error) {
	to = snapshot.Target{Commit: c.Commit, From: c.Crossing}
	until, err = s.until(ctx, c.Crossing, func(e *ledger.Event, data map[string]any) bool {
		if e.Name != eventKept && e.Name != eventBack || data["commit"] != c.Commit {
			return false
		}
		to.Content, _ = data["content"].(string)
		if from, ok := data["from"].(string); ok {
			to.From = from
		}
		return to.Content != ""
	})
	return to, until, err
}

// until is how many leaves the ledger had once a version was whole, as the event
// says that is its; -1 where there is none. What began between the look at the tree
// and then may be in the version, so that it is no version from before that.
func (s *Service) until(
	ctx context.Context, about string, its func(*ledger.Event, map[string]any) bool,
) (int64, error) {
	at := int64(-1)
	err := s.events(ctx, about, func(e *ledger.Event, data map[string]any) {
		if size, ok := data["ledger"].(float64); ok && its(e, data) {
			at = int64(size)
		}
	})
	return at, err
}

// foundVersion is one tree and the version that it would go back to.
type foundVersion struct {
	Tree   string `json:"tree"`
	From   string `json:"from"` // the snapshot, or the commit's crossing
	Commit string `json:"commit"`
}

// Find says which versions a rollback would put back.
func (s *Service) Find(ctx context.Context, subject, tree string) (json.RawMessage, error) {
	list, err := s.resolve(ctx, ParseSubject(subject), tree)
	if err != nil {
		return nil, err
	}
	var out []foundVersion
	for _, g := range list {
		out = append(out, foundVersion{g.tree.Path, g.to.From, g.to.Commit})
	}
	return json.Marshal(out)
}

// Look says what a rollback would do.
func (s *Service) Look(ctx context.Context, subject, tree string) (json.RawMessage, error) {
	list, err := s.resolve(ctx, ParseSubject(subject), tree)
	if err != nil {
		return nil, err
	}
	var out []*snapshot.Rolled
	for _, g := range list {
		r, err := s.keeper.Look(ctx, g.tree, g.to)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return json.Marshal(out)
}

// Rollback puts trees back on a person's word (D11, D40): the statement's Subject is a Subject,
// its Value the tree, or empty for every one. The word is in the ledger before anything is
// touched. It works while everything is halted, and touches neither the latch, nor the ledger,
// nor a counter. Of several trees each goes back for itself: where one
// does not, the others do, and the answer says so of each. Of one alone it is the
// error.
func (s *Service) Rollback(ctx context.Context, tenant string, signed operator.Signed) (json.RawMessage, error) {
	var word operator.Statement
	err := s.host.CommitSigned(signed, operator.Rollback, func(tx kernel.FeatureTx, w *kernel.Word) error {
		word = w.Statement
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		data := w.Data()
		data["tree"] = w.Value
		if ParseSubject(w.Subject).MidMerge {
			data["mid_merge"] = true
		}
		return tx.Event(kernel.Event{Tenant: holdfast.Local, Name: eventAsked, Who: w.Reviewer, Subject: w.Subject,
			Data: data})
	})
	if err != nil {
		return nil, err
	}
	list, err := s.resolve(ctx, ParseSubject(word.Subject), word.Value)
	if err != nil {
		return nil, err
	}
	return s.allBack(ctx, list, word.Reviewer)
}

func (s *Service) allBack(ctx context.Context, list []goBack, who string) (json.RawMessage, error) {
	out := []*snapshot.Rolled{}
	for _, g := range list {
		r, err := s.back(ctx, g, who, "", nil)
		if err != nil && len(list) == 1 {
			return nil, err
		}
		if r == nil {
			r = &snapshot.Rolled{Tree: g.tree.Path}
		}
		if err != nil {
			r.Failed, r.Hint = usage.Explain(err)
			r.Failed = s.Mask(r.Failed)
		}
		out = append(out, r)
	}
	return json.Marshal(out)
}

// back puts one tree back, as a crossing of Holdfast's own. about is the crossing
// that it is for, if one is.
func (s *Service) back(
	ctx context.Context, g goBack, who, about string, more map[string]any,
) (rolled *snapshot.Rolled, err error) {
	data := map[string]any{"tree": g.tree.Path, "to": g.to.From, "commit": g.to.Commit}
	maps.Copy(data, more)
	if g.to.MidMerge {
		data["mid_merge"] = true
	}
	err = s.keep(ctx, ownAct{boundary: snapshotRollback, event: eventRolled, who: who, whole: true, payload: data,
		do: func(ctx context.Context) (string, map[string]any, error) {
			k, err := s.hand()
			if err != nil {
				return about, nil, err
			}
			if g.mark != nil {
				rolled, err = k.PutBack(ctx, g.mark, who)
			} else {
				rolled, err = k.Rollback(ctx, g.tree, g.to, who)
			}
			s.tidied(k)
			if rolled == nil {
				return about, nil, err
			}
			data["to"], data["commit"] = rolled.To.From, rolled.To.Commit
			return about, rolledData(rolled, data, err), err
		}})
	if err == nil && g.mark == nil { // to where a person says, and not to what was half way
		s.fail(ofRollbackIn(g.tree.Path), "")
	}
	return rolled, err
}

// recordBefore makes the snapshot of what was there one that the ledger knows.
func (s *Service) recordBefore(m *snapshot.Manifest) error {
	at, err := s.position(context.Background())
	if err != nil {
		return err
	}
	return s.recordEvent(kernel.Event{Tenant: holdfast.Local,
		Crossing: m.ID, Name: eventTaken, Who: m.Who, Subject: snapshotTake, Data: takenData(m, at)})
}

// recordAfter makes what a rollback made of a tree a version that the ledger knows, with
// where the ledger stood then: what was undone is in the snapshot from before it, and is
// not to be found as the newest version before what came after.
func (s *Service) recordAfter(r *snapshot.Rolled, who string) error {
	at, err := s.position(context.Background())
	if err == nil {
		err = s.recordEvent(kernel.Event{Tenant: holdfast.Local,
			Crossing: r.Before.ID, Name: eventBack, Who: who, Subject: excerpt.Word(r.Tree),
			Data: map[string]any{"tree": r.Tree, "commit": r.After.Commit, "content": r.After.Content, "from": r.After.From, "ledger": at.Size}})
	}
	if err != nil {
		return fmt.Errorf("%s went back, and that could not be recorded: %w", r.Tree, err)
	}
	return nil
}

func rolledData(r *snapshot.Rolled, data map[string]any, err error) map[string]any {
	if data["done"] = err == nil; err != nil {
		data["error"] = excerpt.Word(err.Error())
	}
	if r != nil {
		data["removed"], data["written"] = r.Removed, r.Written
		if r.Middle != "" {
			data["middle"] = r.Middle
		}
		if len(r.Aside) > 0 {
			data["aside"] = len(r.Aside)
		}
		if r.Before != nil {
			data["before"] = r.Before.ID
		}
	}
	return data
}
