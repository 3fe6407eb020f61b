package egress

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// awayTold is how often a listener tells the kernel how many it turned away,
// at most: a flood costs one look at a token in that time, not one for each.
const awayTold = time.Second

// awayTime bounds that look.
const awayTime = 5 * time.Second

// turnedAway counts a request or a connection for which its caller has no place
// left. Such ones get no record of their own; the kernel sums them up.
func (s *seat) turnedAway() {
	s.p.counters.Crowded.Add(1)
	if s.away.Add(1) > 1 {
		return // whoever counted the first tells
	}
	s.begin(func() {
		select {
		case <-time.After(awayTold):
		case <-s.ending:
		}
		s.tellAway()
	})
}

// guestTurnedAway is turnedAway of a gateway's guest.
func (s *seat) guestTurnedAway(who Caller, own *owner) {
	s.p.counters.Crowded.Add(1)
	if own.away.Add(1) > 1 {
		return
	}
	s.begin(func() {
		select {
		case <-time.After(awayTold):
		case <-s.ending:
		}
		s.tell(who, own.away.Swap(0))
	})
}

// tellAway tells the kernel of those who were turned away since it was told.
func (s *seat) tellAway() { s.tell(s.who, s.away.Swap(0)) }

func (s *seat) tell(who Caller, n int64) {
	if n == 0 {
		return
	}
	token, err := who.Token()
	if err != nil {
		token = holdfast.Secret{} // then it was nobody
		s.p.log.Error("a listener has no token", "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), awayTime)
	defer cancel()
	s.p.cfg.Kernel.TurnedAway(ctx, token, int(n))
}
