package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// How large the environment of a request may be that comes to a workload that
// waits: names, with the language's own, and bytes.
const (
	roomNames = 256 + 8
	roomBytes = 32 << 10
)

// envRoom is where the environment of a workload comes to that waits, of a language
// whose interpreter keeps nothing of it: the C library looks where Linux put the
// environment as the interpreter started, each time that somebody asks. So it is
// started with more names and bytes than it needs. Before it counts as waiting
// those end behind the language's own, and a request's are written there: the
// program finds its environment where one that was started with it would, by
// every way there is, and nothing of the interpreter takes part.
type envRoom struct {
	argv, env []string // as it is started
	own       int      // how many of env stay
	mem       *os.File
	vector    uint64 // where its list of addresses is, of len(env) and a 0
	text      uint64 // and roomBytes for what they lead to
}

var errNoRoom = errors.New("the environment of a process that waits cannot be reached")

// spare gives what o starts a room.
func (o *order) spare() *envRoom {
	r := &envRoom{argv: o.argv, own: len(o.env)}
	o.env = slices.Concat(o.env, make([]string, roomNames-len(o.env)), []string{strings.Repeat("-", roomBytes-1)})
	r.env = o.env
	return r
}

// fits says whether an environment, beside the language's own, has room.
func fits(env map[string]string) bool {
	size := 1 << 10 // for the language's own
	for name, value := range env {
		size += len(name) + len(value) + len("=\x00")
	}
	return size <= roomBytes && len(env) <= roomNames-8
}

// find finds the room of the process of a pidfd, which waits, and ends its
// environment where it is to end. Errors are errNoRoom: everything has to be where
// Linux puts it.
func (r *envRoom) find(pidfd int) error {
	pid := numberOf(pidfd)
	if pid == 0 {
		return fmt.Errorf("%w: it has no number here", errNoRoom)
	}
	start, err := stackOf(pid)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	if r.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	if numberOf(pidfd) != pid { // the number was its own until now, and so is the memory
		return fmt.Errorf("%w: it has ended", errNoRoom)
	}
	if !r.stands(start) {
		return fmt.Errorf("%w: it is not where it should be", errNoRoom)
	}
	if store(r.mem, r.vector+8*uint64(r.own), make([]byte, 8)) != 0 {
		return fmt.Errorf("%w: it cannot be written", errNoRoom)
	}
	return nil
}

// stands reads what Linux wrote for the C library: the number of arguments, their
// addresses, a 0, those of the environment, a 0. All of the text has to be what the
// interpreter was started with.
func (r *envRoom) stands(start uint64) bool {
	args := uint64(len(r.argv))
	b, ok := load(r.mem, start, 8*(1+len(r.argv)+1+len(r.env)+1))
	if !ok {
		return false
	}
	word := func(i uint64) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	first := 1 + args + 1
	last := first + uint64(len(r.env)) - 1
	if word(0) != args || word(first-1) != 0 || word(last+1) != 0 {
		return false
	}
	all := []byte(strings.Join(r.env, "\x00") + "\x00")
	text, ok := load(r.mem, word(first), len(all))
	if !ok || !bytes.Equal(text, all) || word(last) != word(first)+uint64(len(all)-roomBytes) {
		return false
	}
	r.vector, r.text = start+8*first, word(last)
	return true
}

// stackOf is where the stack of a process began when it was executed: at the
// number of its arguments (proc_pid_stat(5), startstack).
func stackOf(pid int) (uint64, error) {
	f, err := procstat.ReadFields("/proc", strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	if len(f) < 26 {
		return 0, errors.New("its stack is not known")
	}
	return strconv.ParseUint(f[25], 10, 64)
}

// furnish gives the process that waits the environment env, where it has not its
// own already.
func (r *envRoom) furnish(env []string) error {
	if r == nil {
		return nil
	}
	defer r.close()
	if slices.Equal(env, r.env[:r.own]) {
		return nil
	}
	text := []byte(strings.Join(env, "\x00") + "\x00")
	if len(env) > roomNames || len(text) > roomBytes {
		return fmt.Errorf("%w: it is too large", errNoRoom)
	}
	list, at := make([]byte, 0, 8*(len(env)+1)), r.text
	for _, v := range env {
		list = binary.NativeEndian.AppendUint64(list, at)
		at += uint64(len(v)) + 1
	}
	list = binary.NativeEndian.AppendUint64(list, 0)
	for _, part := range []struct {
		at uint64
		b  []byte
	}{{r.text, text}, {r.vector, list}} {
		if errno := store(r.mem, part.at, part.b); errno != 0 {
			return fmt.Errorf("%w: %w", errNoRoom, errno)
		}
	}
	return nil
}

// close leaves the memory of the process to it.
func (r *envRoom) close() {
	if r == nil || r.mem == nil {
		return
	}
	r.mem.Close()
	r.mem = nil
}

// findRoom finds the room of the workload, which waits, where it has one.
func (r *run) findRoom() error {
	if r.vacant == nil {
		return nil
	}
	r.mu.Lock()
	fd := r.workload
	r.mu.Unlock()
	err := r.vacant.find(fd)
	if err != nil && r.deserted() {
		return errParkedGone
	}
	return err
}

// parkAlone makes a workload that waits of a process started for it, where its
// environment can still come, if that can be here.
func (t *Tier) parkAlone(z *launcherConn, l language.Language) (*run, error) {
	as := parkingOf(l)
	if as.room && !z.pool.roomless.Load() {
		r, err := t.parkRoomy(z, l, as)
		if !errors.Is(err, errNoRoom) {
			return r, err
		}
		z.pool.roomless.Store(true)
	}
	return t.parkIn(z, l, as.roomless())
}

// parkRoomy makes one with a room, once such a room has been tried in this pool.
func (t *Tier) parkRoomy(z *launcherConn, l language.Language, as parking) (*run, error) {
	if !z.pool.roomy.Load() {
		if err := t.tryRoom(z, l, as); err != nil {
			return nil, err
		}
		z.pool.roomy.Store(true)
	}
	return t.parkIn(z, l, as)
}

// tryRoom lets a program say what it finds of an environment that came while it
// waited. Another interpreter, or C library, may keep its own list by then: that is
// errNoRoom.
func (t *Tier) tryRoom(z *launcherConn, l language.Language, as parking) error {
	r, err := t.parkIn(z, l, as)
	if err != nil {
		return err
	}
	defer r.free()
	spec := parkedSpec(l)
	spec.Code, spec.Timeout, spec.Environment = as.shows, parkWithin, map[string]string{"A": "1", "TMPDIR": "", "z": "2"}
	o, err := t.order(l, spec)
	if err != nil {
		return err
	}
	if err = t.release(r, o, spec, posture.Instants{}); err != nil {
		return err
	}
	res, err := r.outcome(context.Background(), spec.Timeout)
	if err != nil {
		return err
	}
	if string(res.Stdout) != strings.Join(o.env, "\x00") {
		return fmt.Errorf("%w: a program does not find it", errNoRoom)
	}
	return nil
}
