package listener

import (
	"testing"
	"time"
)

// TestBoundedKeepsWhoWasServed: connections that never send a request make room for each other and
// leave a client alone that was served before; where few are silent, the one that has been idle
// longest makes room; no one who is being served is closed.
func TestBoundedKeepsWhoWasServed(t *testing.T) {
	start := time.Now()
	admitAt := func(c *Bounded, second int) (v, out *comer, in bool) {
		v = &comer{owner: c, since: start.Add(time.Duration(second) * time.Second)}
		out, in = c.admit(v)
		return v, out, in
	}
	c := New(nil, 4)
	client, _, _ := admitAt(c, 0)
	client.served = true
	var silent []*comer
	for second := 1; second <= 3; second++ {
		v, _, _ := admitAt(c, second)
		silent = append(silent, v)
	}
	for second := 4; second <= 20; second++ {
		v, out, in := admitAt(c, second)
		if out != silent[0] || !in {
			t.Fatalf("second %d: %+v made room, the newcomer came in: %v", second, out, in)
		}
		silent = append(silent[1:], v)
	}
	silent[0].served, silent[1].served = true, true
	last, out, in := admitAt(c, 21)
	if out != client || !in {
		t.Fatalf("one of four is silent: %+v made room, not the client that was idle longest (%v)", out, in)
	}
	for _, v := range append(silent, last) {
		v.serving = 1
	}
	if _, out, in := admitAt(c, 22); in || out != nil {
		t.Fatalf("all are being served, and %+v made room (%v)", out, in)
	}
}
