package watch

const (
	// maxPeriod is the longest cycle that is seen.
	maxPeriod = 16
	// short is the longest that twice round makes a loop; of a longer one it is
	// three times, for several things are looked after in turns in earnest.
	short = 3
)

// turns finds what comes again in turns among the actions of one agent.
type turns struct {
	ring  [maxPeriod]uint64    // the last actions
	n     uint8                // how many there are, at most maxPeriod
	next  uint8                // where the next goes
	equal [maxPeriod + 1]uint8 // of the last, how many in a row were what came that many before them
}

func (t *turns) add(what uint64) {
	for p := uint8(1); p <= t.n; p++ {
		if t.ring[(t.next+maxPeriod-p)%maxPeriod] != what {
			t.equal[p] = 0
		} else if t.equal[p] < 1<<8-1 {
			t.equal[p]++
		}
	}
	t.ring[t.next] = what
	t.next = (t.next + 1) % maxPeriod
	t.n = min(t.n+1, maxPeriod)
}

// loop is how many of the last actions repeat, and after how many each comes
// again; 0 where they do not. A cycle has gone round and begun again, so that
// three that each come twice are no loop yet (D39).
func (t *turns) loop() (n, period int) {
	for p := 1; p <= int(t.n); p++ {
		rounds := 2
		if p > short {
			rounds = 3
		}
		if n := int(t.equal[p]) + p; n >= max(enough, rounds*p+1) {
			return n, p
		}
	}
	return 0, 0
}

// most finds what is nearly all that is done, whatever comes between: each of it
// counts one, each of anything else takes off away.
type most struct {
	what  uint64
	count uint8
	is    bool
}

// The two that are looked for. The same action is a loop though something else,
// or something new, comes between, if that is less than a quarter (D39 has one dip
// for the other patterns). The same kind of action is told of where it is ten of
// eleven and fifty more than that: what differs in each payload is no loop, and
// many of a kind are ordinary work, so that it is recorded and no more.
const (
	actionAway, actionMost = 3, 10
	kindAway, kindMost     = 10, 50
)

// add counts one; it is most from the count enough on, until less than half of it
// is left.
func (m *most) add(what uint64, away, enough uint8) {
	switch {
	case m.count == 0:
		m.what, m.count = what, 1
	case m.what == what:
		m.count = min(m.count+1, enough+away)
	default:
		m.count -= min(m.count, away)
	}
	m.is = m.count >= enough || m.is && 2*m.count >= enough
}
