package mapping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// memoryKeeper is a Keeper in memory.
type memoryKeeper struct {
	now     func() time.Time
	batches map[Owner][]Batch
	saved   int
	err     error
}

func (k *memoryKeeper) LoadBatches(_ context.Context, tenant, agent, session string) (list []Batch, err error) {
	for o, batches := range k.batches {
		if o.Tenant == tenant && o.Agent == agent && o.Session == session {
			list = append(list, batches...)
		}
	}
	return list, k.err
}

func (k *memoryKeeper) SaveBatch(_ context.Context, o Owner, b Batch, drop []string) ([]string, error) {
	if k.err != nil {
		return nil, k.err
	}
	k.saved++
	if b.ID, b.Row = fmt.Sprint(k.saved), o.Row; b.Saved.IsZero() {
		b.Saved = k.now()
	}
	k.batches[o] = append(slices.DeleteFunc(k.batches[o], func(have Batch) bool {
		return slices.Contains(drop, have.ID)
	}), b)
	return []string{b.ID}, nil
}

// keptSessions returns a function that makes the sessions of a daemon that begins, all with one keeper.
func keptSessions(now func() time.Time) (*memoryKeeper, func() *Session) {
	k := &memoryKeeper{now: now, batches: map[Owner][]Batch{}}
	return k, func() *Session {
		all := NewSessions([]byte("key"), now)
		all.UseKeeper(k)
		s := all.Find(testOwner)
		if err := s.Load(context.Background()); err != nil {
			panic(err)
		}
		return s
	}
}

func saveSession(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSaveWritesOnlyWhatIsNew(t *testing.T) {
	now := time.Unix(0, 0)
	k, begin := keptSessions(func() time.Time { return now })
	s := begin()
	for i, want := range []int{1, 1, 2, 2} {
		replaceAll(t, s, "to alice@corp.com", []string{"", "", "and bob@corp.com", "and bob@corp.com"}[i])
		if saveSession(t, s); k.saved != want {
			t.Fatalf("step %d: %d were saved", i, k.saved)
		}
	}
	// What is sent again half a day later is kept for another day.
	now = now.Add(renewAfter + time.Second)
	replaceAll(t, s, "to alice@corp.com")
	if saveSession(t, s); k.saved != 3 {
		t.Fatalf("%d were saved", k.saved)
	}
	if got := begin(); len(got.order) != 2 {
		t.Fatalf("%d values after a restart", len(got.order))
	}
}

func TestSaveFailureIsRepeated(t *testing.T) {
	k, begin := keptSessions(time.Now)
	s := begin()
	replaceAll(t, s, "to alice@corp.com")
	k.err = errors.New("disk full")
	for range 2 {
		if err := s.Save(t.Context()); err == nil {
			t.Fatal("no error")
		}
	}
	k.err = nil
	if saveSession(t, s); len(begin().order) != 1 {
		t.Fatal("the value is lost")
	}
}

// What ended before a restart means nothing after it: real text, and a secret that was registered since.
func TestEndedPlaceholdersStayEndedAfterARestart(t *testing.T) {
	_, begin := keptSessions(time.Now)
	s := begin()
	sent, _ := replaceAll(t, s, "to alice@corp.com", "password: Maple417!xq", "to bob@corp.com")
	saveSession(t, s)
	replaceAll(t, s, "my address is "+strings.TrimPrefix(sent[0], "to "))
	saveSession(t, s)
	after := begin()
	after.Begin(nil, func(v []byte) bool { return strings.Contains(string(v), "Maple") })
	for i, want := range []string{sent[0], sent[1], "to bob@corp.com"} {
		if got := restoreText(after, sent[i]); got != want {
			t.Errorf("%q became %q", sent[i], got)
		}
	}
	if again, _ := replaceAll(t, after, "to alice@corp.com"); again[0] == sent[0] {
		t.Error("real text means a value again")
	}
}

// Of one session the newest values are kept, within the bounds.
func TestKeptValuesAreBounded(t *testing.T) {
	k, begin := keptSessions(time.Now)
	s := begin()
	value := strings.Repeat("x", maxValue-10)
	for i := range maxBytes/maxValue + 20 {
		r := s.Begin(nil, nil)
		r.Replace("secret.field", fmt.Appendf(nil, "%s%09d", value, i))
		saveSession(t, s)
	}
	total := 0
	for _, b := range k.batches[testOwner] {
		for _, v := range b.Values {
			total += len(v.Value)
		}
	}
	if total > maxBytes || total < maxBytes/2 {
		t.Fatalf("%d bytes are kept", total)
	}
	if n := len(begin().order); n < maxBytes/maxValue-1 {
		t.Fatalf("%d values after a restart", n)
	}
}

// Signed parts are known for as long as they are used, whatever else the agent gets.
func TestSignedPartsThatAreUsedStayKnown(t *testing.T) {
	s := newTestSession()
	first := [32]byte{1}
	s.noteSigned(first)
	for i := range 3 * maxSigned {
		s.noteSigned([32]byte{2, byte(i), byte(i >> 8), byte(i >> 16)})
		if i%1000 == 0 && !s.IsSigned(first) {
			t.Fatalf("a part that is used was forgotten after %d others", i)
		}
	}
	if n := len(s.group.signed.newer) + len(s.group.signed.last); n > 2*maxSigned {
		t.Fatalf("%d parts are known", n)
	}
}

// What is on its way when a session is erased is not kept again.
func TestForgottenSessionSavesNothing(t *testing.T) {
	k, begin := keptSessions(time.Now)
	s := begin()
	replaceAll(t, s, "to alice@corp.com")
	s.group.all.Forget(testOwner.Tenant, testOwner.Agent, testOwner.Session)
	if saveSession(t, s); k.saved != 0 || s.group.all.Find(testOwner) == s {
		t.Fatal("an erased session continues")
	}
}

// TestSweepBoundsAllValues: sessions that were not used for longest go where all have too many bytes.
func TestSweepBoundsAllValues(t *testing.T) {
	now := time.Unix(0, 0)
	all := NewSessions([]byte("key"), func() time.Time { return now })
	var last *Session
	for i := range maxTotal/maxBytes + 3 {
		now = now.Add(time.Second)
		o := testOwner
		o.Session = fmt.Sprint(i)
		last = all.Find(o)
		last.bytes = maxBytes // as large values would have it
	}
	now = now.Add(2 * sweepEvery)
	if all.Sweep(); len(all.groups) > maxTotal/maxBytes || all.groups[last.group.key] != last.group {
		t.Fatalf("%d sessions", len(all.groups))
	}
}
