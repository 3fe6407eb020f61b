package flood

import (
	"testing"
	"time"
)

func TestCounterDropsPastTheLimit(t *testing.T) {
	var c Counter
	now := time.Unix(1_000, 0)
	for i := range perAgent {
		if c.IsFull("t", "a", now) {
			t.Fatalf("full after %d", i)
		}
		c.CountDenied("t", "a", now)
	}
	if !c.IsFull("t", "a", now) || c.IsFull("t", "b", now) || c.IsFull("u", "a", now) {
		t.Fatal("an agent's denials fill another's")
	}
	if got := c.Ended(now); len(got) != 0 {
		t.Fatalf("ended in its window: %+v", got)
	}
	later := now.Add(Window)
	want := Summary{Tenant: "t", Agent: "a", Denied: perAgent, Dropped: 1, Since: now}
	if got := c.Ended(later); len(got) != 1 || got[0] != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	// What is dropped after the summary was read waits for the next one.
	c.CountDropped("t", "a", now, 2)
	c.Forget(want)
	if got := c.Ended(later); len(got) != 1 || got[0].Dropped != 2 || got[0].Denied != 0 {
		t.Fatalf("%+v", got)
	}
	c.Forget(c.Ended(later)[0])
	if got := c.Ended(later); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
}

func TestCounterAllowsAnonymousRequestsLess(t *testing.T) {
	var c Counter
	now := time.Unix(1_000, 0)
	for range anonymous {
		c.CountDenied("t", "", now)
	}
	if !c.IsFull("t", "", now) || c.IsFull("t", "", now.Add(-time.Second)) || c.IsFull("t", "", now.Add(Window)) {
		t.Fatal("the window is wrong")
	}
}
