package sandboxtest

import (
	"testing"
	"time"
)

// VM runs the same attempts in guests, each in one of its own that is thrown away.
// Each has to come to what it comes to in the process tier, which is what stands
// in the guest, or to what the table of exceptions says by its name; and has its
// twin, unless part is brief. Where every instruction is emulated, an attempt takes half a second of a
// processor, and some take many.
func VM(t *testing.T, part Part, open func(t *testing.T) Runner) {
	s := &suite{part: part, again: part.brief, patience: 3 * time.Minute}
	s.others(t, vmExceptions(), nil, func(t *testing.T, _ string) Runner { return open(t) })
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d attempts were made; %d twins got through outside; %d could not be tried here", s.made, s.twins, len(s.other))
	for _, o := range s.other {
		t.Log("no twin here: " + o)
	}
	if !t.Failed() && 10*len(s.other) > 3*s.made {
		t.Errorf("%d of %d attempts have no twin on this machine", len(s.other), s.made)
	}
}
