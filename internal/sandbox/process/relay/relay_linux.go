package relay

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Relay carries bytes and signals between the caller's standard descriptors and
// a workspace's. No descriptor of the caller's goes inside: a file could be
// opened anew through it, a directory left upwards, a terminal typed into.
//
// Where the caller's standard output is a terminal, the workspace has one of its
// own, and the caller's is in raw mode meanwhile: keys go inside, Ctrl-C and
// Ctrl-Z among them. Whichever of the other two is no terminal is a pipe as it
// would be without Holdfast.
type Relay struct {
	std  sandbox.Streams
	user int    // who owns the pipes, where Holdfast is root
	fds  [3]int // their numbers, asked once; -1 is none
	tty  [3]bool
	keys int      // where keys come from; -1 without a terminal
	own  *os.File // keys, where it was opened here

	pipes  [3]*os.File // our ends
	inside []*os.File  // theirs, until they are given
	master *os.File

	raw     mode
	wake    [2]*os.File // closed when the run is over
	awake   int         // the number of the end that is read
	signals chan os.Signal
	done    chan struct{}
	copies  sync.WaitGroup
	feeds   sync.WaitGroup
	once    sync.Once
}

// New returns a relay between std and a workspace of that user of the host.
func New(std sandbox.Streams, user int) (_ *Relay, err error) {
	r := &Relay{std: std, user: user, keys: -1, signals: make(chan os.Signal, 16), done: make(chan struct{})}
	for i, f := range []*os.File{std.In, std.Out, std.Err} {
		if r.fds[i] = -1; f != nil {
			r.fds[i] = int(f.Fd())
		}
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if isTerminal(r.fds[1]) {
		r.tty = [3]bool{isTerminal(r.fds[0]), true, isTerminal(r.fds[2])}
		r.openKeys()
	}
	if r.wake[0], r.wake[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	r.awake = int(r.wake[0].Fd())
	for i := range 3 {
		if err := r.makeEnd(i); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Relay) openKeys() {
	if r.tty[0] {
		r.keys = r.fds[0]
		return
	}
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		r.keys, r.own = int(f.Fd()), f
	}
}

// makeEnd makes the pipe of one standard descriptor; what is the terminal's
// is held open by /dev/null until then.
func (r *Relay) makeEnd(i int) error {
	if r.tty[i] {
		null, err := os.Open(os.DevNull)
		r.inside = append(r.inside, null)
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	if i == 0 {
		r.pipes[i], r.inside = to, append(r.inside, from)
	} else {
		r.pipes[i], r.inside = from, append(r.inside, to)
	}
	if os.Geteuid() == 0 {
		// The workload's own, so that it can open /dev/stdin and the like.
		return from.Chown(r.user, r.user)
	}
	return nil
}

// InnerFiles returns the workspace's ends, in order, until they are given.
func (r *Relay) InnerFiles() []*os.File { return r.inside }

// CloseInner closes them here, once the workspace has them.
func (r *Relay) CloseInner() {
	for _, f := range r.inside {
		f.Close()
	}
	r.inside = nil
}

// Screen is how the sandbox's terminal begins, and which descriptors are it.
func (r *Relay) Screen() (*Screen, [3]bool) {
	if !r.tty[1] {
		return nil, r.tty
	}
	s := &Screen{}
	if size, err := unix.IoctlGetWinsize(r.fds[1], unix.TIOCGWINSZ); err == nil {
		s.Size = *size
	}
	if m, err := unix.IoctlGetTermios(r.fds[1], unix.TCGETS); err == nil {
		s.Modes = m
		if r.keys < 0 {
			m.Oflag &^= unix.OPOST // the caller's stays as it is, and ends lines itself
		}
	}
	return s, r.tty
}

// AttachTerminal takes the sandbox's terminal over.
func (r *Relay) AttachTerminal(fd int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	r.master = os.NewFile(uintptr(fd), "terminal")
	return nil
}

// passed are the signals that are passed on, and those that are the relay's own
// business.
var passed = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH}

// Start begins to carry. pass sends a signal to the program, or to its group.
func (r *Relay) Start(pass func(sig unix.Signal, group bool)) {
	// A reader that goes away ends the program that writes, not this one; and a
	// job in the background waits for its terminal instead of stopping.
	signal.Ignore(unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU)
	for _, s := range passed {
		if !signal.Ignored(s) { // as nohup has it: whom it starts, a hangup does not end
			signal.Notify(r.signals, s)
		}
	}
	go r.heed(pass)
	for i, out := range map[int]*os.File{1: r.std.Out, 2: r.std.Err} {
		if r.pipes[i] != nil {
			r.carry(r.pipes[i], out)
		}
	}
	if r.pipes[0] != nil {
		r.feeds.Go(func() { r.feed(r.fds[0], r.pipes[0]) })
	}
	if r.master != nil {
		// Before the program says a word, which both terminals would end lines of.
		if r.keys >= 0 && r.foreground(r.keys) {
			r.raw.set(r.keys)
		}
		r.carry(r.master, r.std.Out)
		if r.keys >= 0 {
			r.feeds.Go(func() { r.feed(r.keys, r.master) })
		}
	}
}

// carry copies output until its end. A reader that has gone closes the pipe, so
// that the program learns it as it would without a relay.
func (r *Relay) carry(from, to *os.File) {
	r.copies.Go(func() {
		defer r.mend()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 && (to == nil || !writeAll(to, buf[:n])) {
				if from == r.master {
					to = nil // the terminal has gone: what is still said is dropped
					r.hangUp()
					return
				}
				from.Close()
				return
			}
			if err != nil {
				return
			}
		}
	})
}

func writeAll(to *os.File, b []byte) bool {
	for len(b) > 0 {
		n, err := to.Write(b)
		b = b[n:]
		if errors.Is(err, unix.EAGAIN) { // somebody made it so
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return false
		}
	}
	return true
}

// feed copies input to the program until its end, or until the run is over.
func (r *Relay) feed(from int, to *os.File) {
	defer r.mend()
	if to != r.master {
		defer to.Close()
	}
	if from < 0 || r.elsewhere(from, to) {
		return
	}
	term := isTerminal(from)
	buf := make([]byte, 64<<10)
	for r.wait(from, term, to == r.master) {
		n, err := unix.Read(from, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EIO) && term && !r.foreground(from) {
			continue
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err == nil {
				continue
			}
			return
		}
		if to == r.master {
			r.hangUp()
		}
		return
	}
}

// elsewhere says that the keys are another program's: the caller's output is a
// pipe to one that may want them, such as a pager.
func (r *Relay) elsewhere(from int, to *os.File) bool {
	if to == r.master || !isTerminal(from) || r.std.Out == nil {
		return false
	}
	st, err := r.std.Out.Stat()
	return err == nil && st.Mode()&os.ModeNamedPipe != 0
}

// wait returns true when there is something to read, and false when the run is
// over. A terminal is read only in the foreground, and then in raw mode if it is
// the sandbox's.
func (r *Relay) wait(from int, term, raw bool) bool {
	for {
		timeout := -1
		events := int16(unix.POLLIN)
		if term && !r.foreground(from) {
			timeout, events = 100, 0
		} else if raw {
			r.raw.set(from)
		}
		p := []unix.PollFd{{Fd: int32(r.awake), Events: unix.POLLIN}, {Fd: int32(from), Events: events}}
		if timeout > 0 {
			p = p[:1]
		}
		_, err := unix.Poll(p, timeout)
		switch {
		case err == unix.EINTR:
		case err != nil || p[0].Revents != 0:
			return false
		case len(p) == 2 && p[1].Revents != 0:
			return true
		}
	}
}

func (r *Relay) foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // one that is not ours has no say
}

// heed passes signals on.
func (r *Relay) heed(pass func(unix.Signal, bool)) {
	defer r.mend()
	for {
		select {
		case <-r.done:
			return
		case s := <-r.signals:
			r.heedOne(s.(unix.Signal), pass)
		}
	}
}

func (r *Relay) heedOne(sig unix.Signal, pass func(unix.Signal, bool)) {
	switch sig {
	case unix.SIGWINCH:
		r.resize()
	case unix.SIGHUP:
		if r.master != nil {
			r.hangUp()
			return
		}
		pass(sig, true)
	case unix.SIGTSTP:
		if r.master == nil {
			// Of a group without a shell of its own the kernel would drop it.
			pass(unix.SIGSTOP, true)
		}
		r.raw.restore()
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
	case unix.SIGCONT:
		if r.master == nil {
			pass(sig, true)
			return
		}
		if r.keys >= 0 && r.foreground(r.keys) {
			r.raw.set(r.keys)
		}
		r.resize()
	case unix.SIGINT, unix.SIGQUIT:
		pass(sig, true)
	default:
		pass(sig, false)
	}
}

func (r *Relay) resize() {
	if r.master == nil {
		return
	}
	if size, err := unix.IoctlGetWinsize(r.fds[1], unix.TIOCGWINSZ); err == nil {
		r.control(func(fd int) { unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	}
}

func (r *Relay) control(do func(fd int)) {
	if c, err := r.master.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// hangUp closes the sandbox's terminal, as the caller's has been closed: its
// programs are told by the kernel.
func (r *Relay) hangUp() { r.master.Close() }

// End waits until everything that was written has been carried out. Nothing
// runs inside any more.
func (r *Relay) End() {
	r.copies.Wait()
	r.stop()
}

// Abandon stops at once, whatever is still to be carried.
func (r *Relay) Abandon() {
	for _, p := range append(r.pipes[:], r.master) {
		if p != nil {
			p.Close()
		}
	}
	r.stop()
}

// stop gives the terminal back as it was. It may be called more than once.
func (r *Relay) stop() {
	r.once.Do(func() {
		close(r.done)
		signal.Stop(r.signals)
		signal.Reset(unix.SIGTTIN, unix.SIGTTOU)
		if r.wake[1] != nil {
			r.wake[1].Close()
			r.fed()
		}
	})
	r.raw.end()
}

// fed waits until nothing more is read from the caller's descriptors. One that
// another reader has emptied in the meantime may keep a goroutine, which nobody
// waits for.
func (r *Relay) fed() {
	for _, p := range []*os.File{r.pipes[0], r.master} {
		if p != nil {
			p.Close()
		}
	}
	over := make(chan struct{})
	go func() {
		r.feeds.Wait()
		r.wake[0].Close()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(100 * time.Millisecond):
	}
}

// mend gives the terminal back where a goroutine of the relay panics.
func (r *Relay) mend() {
	if p := recover(); p != nil {
		r.raw.end()
		panic(p)
	}
}

func (r *Relay) Close() {
	r.CloseInner()
	for _, p := range append(r.pipes[:], r.master) {
		if p != nil {
			p.Close()
		}
	}
	r.stop()
	if r.own != nil {
		r.own.Close()
	}
}

// Screen is how a terminal begins.
type Screen struct {
	Size  unix.Winsize
	Modes *unix.Termios
}

// mode is how a terminal was before it was made raw.
type mode struct {
	mu   sync.Mutex
	fd   int
	was  *unix.Termios
	over bool
}

// set makes the terminal raw, once.
func (m *mode) set(fd int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.was != nil || m.over {
		return
	}
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return
	}
	raw := *was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, unix.TCSETSW, &raw) == nil {
		m.fd, m.was = fd, was
	}
}

// restore makes it what it was. What has been typed by then, or what the terminal
// itself has answered to the program, is no input for the caller's shell.
func (m *mode) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.was != nil {
		unix.IoctlSetTermios(m.fd, unix.TCSETSF, m.was)
		m.was = nil
	}
}

// end restores it for good.
func (m *mode) end() {
	m.restore()
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
}

func isTerminal(fd int) bool {
	if fd < 0 {
		return false
	}
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
