package process

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// How long a zygote has children: its forks share what its interpreter drew at
// its own start, the seed of hashes and the places in memory.
const (
	zygoteForks = 64
	zygoteAge   = 10 * time.Minute
	// zygoteWithin is how long one that stands may take for a fork, for which a
	// request may wait: behind it there is the cold path.
	zygoteWithin = time.Second
	// zygoteTries is how many times in a row one may fail before workloads are
	// parked without, for zygoteRest: what ended them, such as a machine short of
	// memory, ends itself.
	zygoteTries = 3
	zygoteRest  = time.Minute
)

// nursery is a language's zygotes: interpreters that have started, made ready
// what every program uses, and hold nothing of any request. Its workloads are
// their forks. One zygote is in use, and the next is started in time; those
// before it live as long as a child of theirs does.
type nursery struct {
	start func() (*launcherConn, error) // returns one that answers

	mu        sync.Mutex
	now, next *brood
	old       map[*brood]bool
	raising   chan struct{} // closed when the one that is being started stands, or does not
	failed    int           // in a row
	failedAt  time.Time     // the last of them
	closed    bool
	running   sync.WaitGroup // starts and ends of zygotes
}

// brood is a zygote and how many of its children there are.
type brood struct {
	*launcherConn
	began  time.Time
	forks  int
	held   int  // seats that live
	proven bool // a child of its has come to wait
}

func (b *brood) spent() bool {
	return !b.alive() || b.late.Load() || b.forks >= zygoteForks || time.Since(b.began) > zygoteAge
}

// errNoZygote: none stands now, and one is being started.
var errNoZygote = errors.New("no zygote stands yet")

// newNursery is nil for a language or a machine without zygotes.
func (t *Tier) newNursery(l language.Language, root string) *nursery {
	if !parkingOf(l).zygote || playerCode() == nil {
		return nil
	}
	return &nursery{old: map[*brood]bool{}, start: func() (*launcherConn, error) {
		z, err := startZygote(root, l.Argv(), l.Environment(nil))
		if err != nil {
			return nil, err
		}
		if err = t.groups.Admit(z.cmd.Process.Pid); err == nil {
			err = z.ping()
		}
		if err != nil {
			z.close()
			t.unready(failed(holdfast.KindNamespace, "start its zygote", err))
			return nil, err
		}
		z.within = zygoteWithin
		return z, nil
	}}
}

// ping waits until a zygote answers: it is asked for what Linux refuses, a
// thread that is no thread.
func (z *launcherConn) ping() error {
	fd, err := unix.MemfdCreate("ping", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, tapeSize); err != nil {
		return err
	}
	pidfd, err := z.clone(unix.CLONE_THREAD, 0, []int{fd})
	switch {
	case errors.Is(err, unix.EINVAL):
		return nil
	case err != nil:
		return err
	}
	kill(pidfd)
	unix.Close(pidfd)
	return fmt.Errorf("it did what cannot be done")
}

// usable says whether there are zygotes; of a language without there are none.
func (n *nursery) usable() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.closed && !n.rests()
}

// rests says that too many failed to try another now. n.mu is held.
func (n *nursery) rests() bool {
	return n.failed >= zygoteTries && time.Since(n.failedAt) < zygoteRest
}

// fails counts one that failed. n.mu is held.
func (n *nursery) fails() {
	n.failed++
	n.failedAt = time.Now()
}

// ready says that a fork can be had at once.
func (n *nursery) ready() bool {
	if !n.usable() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now == nil && n.next == nil {
		return false // who parks starts one
	}
	n.promote()
	return n.now != nil
}

// take returns the zygote that the next fork is of, and holds it; errNoZygote
// where none stands yet.
func (n *nursery) take() (*brood, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.promote()
	if n.now == nil {
		return nil, errNoZygote
	}
	b := n.now
	b.forks++
	b.held++
	n.promote() // the next one is started before this one is spent
	return b, nil
}

// wait waits until the zygote that is being started stands, or does not.
func (n *nursery) wait() {
	n.mu.Lock()
	made := n.raising
	n.mu.Unlock()
	if made != nil {
		<-made
	}
}

// settled says that none is being started; nil is.
func (n *nursery) settled() bool {
	if n == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.raising == nil
}

// promote puts the next zygote in the place of one that is spent, and has one
// started where it will be needed. n.mu is held.
func (n *nursery) promote() {
	if n.next != nil && n.next.spent() {
		n.retire(&n.next)
	}
	if n.now != nil && n.now.spent() {
		n.retire(&n.now)
	}
	if n.now == nil {
		n.now, n.next = n.next, nil
	}
	soon := n.now == nil || n.now.forks >= zygoteForks/2 || time.Since(n.now.began) > zygoteAge*3/4
	if !soon || n.next != nil || n.raising != nil || n.closed || n.rests() {
		return
	}
	n.raising = make(chan struct{})
	n.running.Go(n.raise)
}

// raise starts one more zygote.
func (n *nursery) raise() {
	z, err := n.start()
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { close(n.raising); n.raising = nil }()
	if err != nil {
		n.fails()
		return
	}
	b := &brood{launcherConn: z, began: time.Now()}
	switch {
	case n.closed:
		n.running.Go(b.close)
	case n.now == nil:
		n.now = b
	default:
		n.next = b
	}
}

// retire: the zygote at place gets no more children. n.mu is held.
func (n *nursery) retire(place **brood) {
	b := *place
	*place = nil
	if b.held > 0 {
		n.old[b] = true
		return
	}
	n.running.Go(b.close)
}

// made says of a fork of b whether it came to wait.
func (n *nursery) made(b *brood, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		b.proven, n.failed = true, 0
		return
	}
	if b.proven || n.closed {
		return // the machine may be short of something: the next one may be made
	}
	n.fails()
	if n.now == b {
		n.retire(&n.now)
	}
}

// leave ends the hold of a seat.
func (n *nursery) leave(b *brood) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b.held--; b.held == 0 && n.old[b] {
		delete(n.old, b)
		n.running.Go(b.close)
	}
}

// close ends every zygote, and with it its children.
func (n *nursery) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.closed = true
	for _, b := range []*brood{n.now, n.next} {
		if b != nil {
			n.old[b] = true
		}
	}
	n.now, n.next = nil, nil
	for b := range n.old {
		n.running.Go(b.close)
	}
	clear(n.old)
	n.mu.Unlock()
	n.running.Wait()
}
