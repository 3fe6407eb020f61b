package process

import (
	"fmt"
	"sync"
	"time"
)

// saidEvery is how often the same trouble is said again.
const saidEvery = time.Minute

// troubles are what goes wrong where no caller waits for an answer: it is said,
// each kind once a minute at most, and counted. The zero value says nothing and
// counts.
type troubles struct {
	say func(string) // may be nil
	now func() time.Time

	mu    sync.Mutex
	left  trouble // control groups that could not be removed
	seats trouble // seats that could not be made ahead, since the last that was
}

type trouble struct {
	count  int
	last   error
	said   time.Time
	unsaid int
}

// groupLeft is a control group that stays behind.
func (t *troubles) groupLeft(err error) { t.add(&t.left, "left behind", err) }

// seatFailed is a seat that could not be made in the background; seatMade ends
// that trouble.
func (t *troubles) seatFailed(err error) { t.add(&t.seats, "made nothing ready for the next run", err) }

func (t *troubles) seatMade() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seats.count, t.seats.last = 0, nil
}

func (t *troubles) add(one *trouble, what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.count++
	one.last = err
	now := time.Now
	if t.now != nil {
		now = t.now
	}
	if t.say == nil || now().Sub(one.said) < saidEvery {
		one.unsaid++
		return
	}
	more := ""
	if one.unsaid > 0 {
		more = fmt.Sprintf(" (%d more like it since)", one.unsaid)
	}
	one.said, one.unsaid = now(), 0
	t.say(fmt.Sprintf("%s: %v%s", what, err, more))
}

// list is what is wrong now, a line each.
func (t *troubles) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	if t.left.count > 0 {
		lines = append(lines, fmt.Sprintf("the sandbox left %d control groups behind: %v", t.left.count, t.left.last))
	}
	if t.seats.count > 0 {
		lines = append(lines, fmt.Sprintf("the sandbox cannot make ready for runs: %v", t.seats.last))
	}
	return lines
}

// Troubles are what is wrong with the tier that no run was told of, a line
// each: control groups that stay, and that nothing can be made ready.
func (t *Tier) Troubles() []string { return t.troubles.list() }
