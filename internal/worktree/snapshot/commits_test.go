package snapshot

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// TestCommitsOfLongAgo: hundreds of later actions, tens of thousands in full, do not bury
// the version from before a crossing.
func TestCommitsOfLongAgo(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := Message{Agent: "coder", Crossing: "the-first", At: time.Now(), Ledger: 5}
	first, err := s.k.Commit(t.Context(), s.tree, m)
	if err != nil || first == nil {
		t.Fatal(first, err)
	}
	r, err := s.k.repo(t.Context(), s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	more := testrepeat.Times(2*maxCommits+7, 200)
	var b strings.Builder
	for i := range more {
		m.Crossing, m.Ledger = fmt.Sprint("later-", i), int64(6+i)
		text := m.text("code")
		fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter x <x> %d +0000\ndata %d\n%s\n", refName("coder"), m.At.Unix()+int64(i%3-1), len(text), text)
		if i == 0 {
			fmt.Fprintf(&b, "from refs/heads/%s^0\n", refName("coder"))
		}
	}
	// Another acts last, by a clock that was set back.
	m.Agent, m.Crossing, m.Ledger = "other", "the-last", int64(6+more)
	text := m.text("code")
	fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter x <x> %d +0000\ndata %d\n%s\n", refName("other"), m.At.Unix()-86400, len(text), text)
	if _, err := r.git.run(t.Context(), []byte(b.String()), 1<<20, "fast-import", "--quiet", "--force"); err != nil {
		t.Fatal(err)
	}
	bounded := func(n int) int { return min(n, maxCommits) }
	middle := bounded(more / 2)
	for _, c := range []struct {
		most, n int
		first   string
	}{{5, 1, "the-first"}, {4, 0, ""}, {5 + more, bounded(1 + more), fmt.Sprint("later-", more-1)}, {6 + more, bounded(2 + more), "the-last"}, {5 + middle, bounded(1 + middle), fmt.Sprint("later-", middle-1)}} {
		list, err := s.k.Commits(t.Context(), s.tree, int64(c.most))
		if err != nil || len(list) != c.n || c.n > 0 && list[0].Crossing != c.first {
			t.Errorf("up to %d: %d, not %d, %+v, %v", c.most, len(list), c.n, list[:min(len(list), 2)], err)
		}
	}
}

// TestKeptListKeepsTheNewest: of more lines than it may keep those with the greatest
// numbers are kept, the greatest first, in whatever order they come.
func TestKeptListKeepsTheNewest(t *testing.T) {
	const all, most = 2*maxCommits + 7, 2*maxCommits + 4
	for name, number := range map[string]func(i int) int{
		"newest first": func(i int) int { return all - i },
		"oldest first": func(i int) int { return i + 1 },
	} {
		l := keptList{most: most}
		for i := range all {
			if _, err := fmt.Fprintf(&l, "%040x %d c-%d\n", i, number(i), number(i)); err != nil {
				t.Fatal(err)
			}
		}
		l.cut()
		if len(l.kept) != maxCommits || l.kept[0].At != most || l.kept[maxCommits-1].At != most-maxCommits+1 {
			t.Errorf("%s: %d are kept, from %+v to %+v", name, len(l.kept), l.kept[0], l.kept[len(l.kept)-1])
		}
	}
}

// TestKeptListInParts: however git's answer is cut, each line is read once.
func TestKeptListInParts(t *testing.T) {
	name := strings.Repeat("0123456789", 4)
	text := name + " 7 c-1\n" + name + "\nnonsense 1 x\n" + name + " 8 c-2\n" + name + " x c-3\n" + name + " 9 c-4\n" + name + " 1 cut"
	var l keptList
	l.most = 8
	in, p := iotest.OneByteReader(strings.NewReader(text)), make([]byte, 3)
	for {
		n, err := in.Read(p)
		if n == 0 || err != nil {
			break
		}
		if w, err := l.Write(p[:n]); w != n || err != nil {
			t.Fatal(w, err)
		}
	}
	if len(l.kept) != 2 || l.kept[0].Crossing != "c-1" || l.kept[1].Crossing != "c-2" {
		t.Errorf("%+v", l.kept)
	}
	if _, err := l.Write([]byte(strings.Repeat("x", maxKeptLine))); err == nil {
		t.Error("a line without an end is kept")
	}
}

// TestSmallVersionsAreNoPacks: of what little each action changes no pack is made, into
// which each action after it would look; what is large is written once.
func TestSmallVersionsAreNoPacks(t *testing.T) {
	s := newSite(t)
	packs := func() int {
		list, err := filepath.Glob(filepath.Join(s.dir, "trees/*/git/objects/pack/*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for i := range 20 {
		s.write("a", fmt.Sprint(i))
		if _, err := s.k.Commit(t.Context(), s.tree, Message{Agent: "coder", Crossing: fmt.Sprint("c-", i), At: time.Now(), Ledger: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	m := s.take()
	if n := packs(); n != 0 {
		t.Errorf("%d packs of 21 versions", n)
	}
	s.write("large", strings.Repeat("large\n", looseBytes/6+1))
	s.verified(s.take())
	if n := packs(); n != 1 {
		t.Errorf("%d packs, not the one of what is large", n)
	}
	if err := s.k.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.verified(m)
	s.back(m)
}
