package mapping

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// TestBatchesOfADayAreFew: a session that sends new values all day has few batches, keeps each value for its time and
// no longer, and still knows which placeholders ended.
func TestBatchesOfADayAreFew(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return now }
	k, begin := keptSessions(clock)
	s := begin()
	const count = 700
	ended := ""
	for i := range count {
		now = now.Add(time.Minute)
		r := s.Begin(nil, nil)
		p := r.Replace("email", fmt.Appendf(nil, "user%d@corp.com", i))
		if i == 7 {
			ended = string(p)
		}
		if i == 500 {
			s.Begin([][]byte{[]byte("is " + ended + " real?")}, nil)
		}
		saveSession(t, s)
		if n := len(k.batches[testOwner]); n > maxBatches+1 {
			t.Fatalf("%d batches after %d requests", n, i)
		}
	}
	for _, b := range k.batches[testOwner] {
		for _, v := range b.Values {
			var i int
			if _, err := fmt.Sscanf(string(v.Value), "user%d@", &i); len(v.Value) > 0 && err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1_700_000_000, 0).Add(time.Duration(i+1) * time.Minute)
			if late := b.Saved.Sub(at); len(v.Value) > 0 && (late > 0 || late < -time.Hour) {
				t.Fatalf("value %d is kept %v longer than its time", i, late)
			}
		}
	}
	again := begin()
	if n := len(again.order); n != count-1 {
		t.Fatalf("%d values after a restart", n)
	}
	if again.byPlaceholder[ended] != nil || !again.real[ended] {
		t.Fatal("a placeholder that ended means a value again")
	}
}

// TestSignedBatchesOfADayAreFew: the signed parts of all answers are known after a restart.
func TestSignedBatchesOfADayAreFew(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	k, begin := keptSessions(func() time.Time { return now })
	s := begin()
	sumOf := func(i int) [32]byte { return [32]byte{1, byte(i), byte(i >> 8)} }
	const count = 2000
	for i := range count {
		now = now.Add(20 * time.Second)
		s.noteSigned(sumOf(i))
		saveSession(t, s)
	}
	owner := testOwner
	owner.Session = ""
	if n := len(k.batches[owner]); n > maxBatches+1 {
		t.Errorf("%d batches", n)
	}
	again := begin()
	for i := range count {
		if !again.IsSigned(sumOf(i)) {
			t.Fatalf("part %d is unknown after a restart", i)
		}
	}
}

// TestRequestWithTooManyValuesSaysSo: a placeholder of a request that could not be restored in its answer is reported.
func TestRequestWithTooManyValuesSaysSo(t *testing.T) {
	s := newTestSession()
	old := s.Begin(nil, nil)
	old.Replace("email", []byte("old@corp.com"))
	r := s.Begin(nil, nil)
	value := bytes.Repeat([]byte("x"), maxValue-8)
	for i := range maxBytes / len(value) {
		if r.HasLost() {
			t.Fatalf("after %d values", i)
		}
		r.Replace("secret.field", fmt.Appendf(value, "%08d", i))
	}
	if r.Replace("secret.field", fmt.Appendf(value, "last")); !r.HasLost() {
		t.Fatal("a value of the request was forgotten without a word")
	}
	if old.HasLost() {
		t.Fatal("of another request")
	}
}
