package notify

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestQueueIsSynced: an alert is on disk when the first channel gets it, a question also when
// it was delivered, and a file
// that is written again is on disk before it gets its name.
func TestQueueIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	path := filepath.Join(t.TempDir(), "w")
	p := newPeople()
	p.fails["sms"] = &Failure{"no"}
	q := open(t, path, p)
	w.TakeSynced()
	running(t, q)
	q.Put(alert("a", "mail", "sms"), time.Now())
	until(t, "mail", func() bool { return len(p.of("mail")) == 1 })
	w.Want(t, "an alert", regexp.QuoteMeta(path))
	q.PutNotice(newQuestion("rv_1", "hook"), time.Now())
	until(t, "the question", func() bool { return len(p.of("hook")) == 1 && len(p.listResults("hook")) == 1 })
	w.Want(t, "a question and that it was delivered", regexp.QuoteMeta(path), regexp.QuoteMeta(path))
	j := queueFile{path: filepath.Join(t.TempDir(), "other")}
	if err := j.replace(nil); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	w.Want(t, "a file that is written again", regexp.QuoteMeta(filepath.Dir(j.path))+`/\.alerts-.*\.tmp`)
}
