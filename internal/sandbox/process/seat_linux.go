package process

import (
	"encoding/binary"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
)

// seatsReady is how many seats of a launcher wait for requests.
const seatsReady = 4

// seat is an init that waits behind its walls for the one request that it will
// serve. Nothing of a request is in it, and it serves no second one.
type seat struct {
	tape   []byte // shared with the init
	tapeFD int
	ctl    *net.UnixConn
	init   int // pidfd
	group  *cgroup.Group
	out    *os.File // read ends
	errs   *os.File
	first  plan
	made   time.Time     // when its walls were begun
	held   sandbox.Share // what the group holds it to

	troubles *troubles // of the tier
	freed    func()    // what its end brings with it; it may be nil
}

// take returns a seat, one that waits if there is one.
func (t *Tier) take(z *launcherConn) (*seat, error) {
	for {
		select {
		case s := <-z.seats:
			if s.waits() {
				return s, nil
			}
			s.free()
		default:
			return t.newSeat(z)
		}
	}
}

// refill makes seats in the background until enough wait.
func (t *Tier) refill(z *launcherConn) {
	if len(z.seats) == cap(z.seats) || t.last.Load() || !z.filling.CompareAndSwap(false, true) {
		return
	}
	t.making.Add(1)
	go func() {
		defer t.making.Done()
		defer z.filling.Store(false)
		for z.alive() && !t.ending() {
			s, err := t.newSeat(z)
			if err != nil {
				if z.alive() {
					t.unready(err)
				}
				return // the next request tries again
			}
			t.troubles.seatMade()
			select {
			case z.seats <- s:
			default:
				s.free()
				return
			}
		}
	}()
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP

// newSeat makes a seat: memory for its tape, its descriptors, its share, and the
// init itself.
func (t *Tier) newSeat(z *launcherConn) (_ *seat, err error) {
	s := &seat{tapeFD: -1, init: -1, troubles: &t.troubles, made: time.Now()}
	defer func() {
		if err != nil {
			s.free()
		}
	}()
	var doors []int
	if t.groups.Mode() != "none" {
		share := sandbox.Share{Memory: sandbox.MaxMemoryMB << 20, Period: sandbox.DefaultPeriod,
			Quota: sandbox.DefaultPeriod, Pids: maxPids}
		if s.group, err = t.groups.Create("seat", share); err != nil {
			return nil, err
		}
		doors = s.group.Entrances()
	}
	if err := s.record(len(doors)); err != nil {
		return nil, err
	}
	theirs, err := s.connect()
	defer closeFiles(theirs)
	if err != nil {
		return nil, err
	}
	fds, into := append([]int{s.tapeFD}, numbers(theirs)...), 0
	fds = append(fds, doors...)
	if dir, ok := s.birthplace(); ok {
		into, fds = len(fds), append(fds, dir)
	}
	if s.init, err = z.clone(namespaces, into, fds); err != nil {
		return nil, failed(holdfast.KindNamespace, "make its namespaces", err)
	}
	return s, nil
}

// maxPids is how many processes and threads a run may have, its init among them:
// the specification's one process, and threads where a language needs them
// (D17); its filter lets it have no second process.
const maxPids = 66

// birthplace is the control group to be born in, where there is one.
func (s *seat) birthplace() (int, bool) {
	if s.group == nil {
		return -1, false
	}
	return s.group.Dir()
}

func numbers(files []*os.File) []int {
	list := make([]int, len(files))
	for i, f := range files {
		list[i] = int(f.Fd())
	}
	return list
}

// record maps the tape and writes its first part.
func (s *seat) record(doors int) (err error) {
	if s.first, err = seatPlan(sandbox.ScratchBytes, sandbox.ScratchInodes, doors); err != nil {
		return failed(holdfast.KindSpawn, "write down what to do", err)
	}
	if s.tapeFD, err = unix.MemfdCreate("tape", unix.MFD_CLOEXEC); err != nil {
		return failed(holdfast.KindSpawn, "get memory for the run", err)
	}
	if err := unix.Ftruncate(s.tapeFD, tapeSize); err != nil {
		return failed(holdfast.KindSpawn, "get memory for the run", err)
	}
	if s.tape, err = unix.Mmap(s.tapeFD, 0, tapeSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return failed(holdfast.KindSpawn, "get memory for the run", err)
	}
	copy(s.tape[opsOffset:], s.first.bytes)
	return nil
}

// connect makes the control socket and the three standard descriptors, and
// returns the ends that the init gets.
func (s *seat) connect() (theirs []*os.File, err error) {
	ctl, end, err := socketPair()
	if err != nil {
		return nil, failed(holdfast.KindSpawn, "make a socket", err)
	}
	s.ctl, theirs = ctl, append(theirs, end)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return theirs, failed(holdfast.KindSpawn, "open its input", err)
	}
	theirs = append(theirs, null)
	for _, ours := range []**os.File{&s.out, &s.errs} {
		from, to, err := os.Pipe()
		if err != nil {
			return theirs, failed(holdfast.KindSpawn, "make its output", err)
		}
		*ours, theirs = from, append(theirs, to)
	}
	return theirs, nil
}

// waits says whether the init still lives.
func (s *seat) waits() bool {
	p := []unix.PollFd{{Fd: int32(s.init), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(p, 0); err != unix.EINTR {
			return err == nil && n == 0
		}
	}
}

// next is the operation at which a request's part of the tape begins.
func (s *seat) next() int { return nextOp(len(s.first.bytes)) }

// go on with the request whose part stands in p.
func (s *seat) proceed(p plan) error {
	copy(s.tape[opAt(p.base):], p.bytes)
	binary.LittleEndian.PutUint64(s.tape[8*slotNext:], uint64(p.base))
	_, err := s.ctl.Write(make([]byte, 8))
	return err
}

// free gives everything back, the init and all below it first.
func (s *seat) free() {
	if s.init >= 0 {
		kill(s.init)
		await(s.init)
		unix.Close(s.init)
	}
	if s.tape != nil {
		unix.Munmap(s.tape)
	}
	if s.tapeFD >= 0 {
		unix.Close(s.tapeFD)
	}
	if s.ctl != nil {
		s.ctl.Close()
	}
	for _, f := range []*os.File{s.out, s.errs} {
		if f != nil {
			f.Close()
		}
	}
	if s.group != nil {
		s.leave()
	}
	if s.freed != nil {
		s.freed()
	}
}

// leave takes the seat's group away. Whoever is still in it is killed then: all
// that had a right to be there is gone.
func (s *seat) leave() {
	err := s.group.Remove()
	if err != nil && s.group.Kill() == nil {
		err = s.group.Remove()
	}
	if err != nil {
		s.troubles.groupLeft(err)
	}
}

func kill(pidfd int) { unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) }

// await waits until a process, and with an init every process of its namespace,
// is gone.
func await(pidfd int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 10_000)
		if err != unix.EINTR {
			return
		}
	}
}
