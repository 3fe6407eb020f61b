package watch

import (
	"strings"
	"testing"
	"time"
)

// Test001_Layer5_FilesPerCommit: a commit is judged by the configured limit, which
// none above the document's is; what is found names the crossing whose work the commit
// keeps, and is told once within the hour.
func Test001_Layer5_FilesPerCommit(t *testing.T) {
	for _, c := range []struct {
		limit, files int
		found        bool
	}{{0, 10, false}, {0, 11, true}, {3, 3, false}, {3, 4, true}, {1000, 11, true}, {0, 0, false}, {0, -1, false}} {
		w := New(Limits{FilesPerCommit: c.limit})
		got := w.Committed("t", "a", "the crossing", c.files, start)
		if len(got) > 0 != c.found {
			t.Errorf("%d files where %d is the limit: %+v", c.files, c.limit, got)
		}
		if !c.found {
			continue
		}
		if f := got[0]; f.Condition != FilesPerCommit || f.Severity != Medium || f.Response != Alert || f.Tenant != "t" || f.Agent != "a" || f.Crossing != "the crossing" ||
			!f.At.Equal(start) || !strings.Contains(f.Why, "4") && !strings.Contains(f.Why, "11") {
			t.Errorf("%+v", f)
		}
		if again := w.Committed("t", "a", "another", c.files, start.Add(time.Minute)); len(again) != 1 || again[0].Response != Record || again[0].Crossing != "another" {
			t.Errorf("the same again: %+v", again)
		}
	}
	w := New(Limits{FilesPerCommit: 1000, Looser: true, Responses: map[Name]Response{FilesPerCommit: Pause}})
	if got := w.Committed("t", "a", "c", 1000, start); len(got) != 0 {
		t.Errorf("at a looser limit: %+v", got)
	}
	if got := w.Committed("t", "a", "c", 1001, start); len(got) != 1 || got[0].Response != Pause {
		t.Errorf("beyond it: %+v", got)
	}
}

// TestEscapedLate: an attempt that comes to light after its crossing is found as any
// other, names that crossing, and is only recorded, for the kernel has answered it.
func TestEscapedLate(t *testing.T) {
	f := fed(Limits{})
	f.act(time.Minute, func(s *Seen) { s.Failed = true })
	got := f.Escaped("t", "a", "the crossing", f.at)
	if len(got) != 1 || got[0].Condition != Escape || got[0].Severity != High || got[0].Response != Record || got[0].Agent != "a" || got[0].Crossing != "the crossing" || got[0].Why == "" {
		t.Errorf("%+v", got)
	}
	if hold := f.Hold(); len(hold) != 1 || hold[0].Condition != Escape {
		t.Errorf("hold: %+v", hold)
	}
}
