package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// machine is one QEMU, from its start to its end. Its descriptors are handed
// to it: no socket or file has a name that could stay behind.
type machine struct {
	cmd   *exec.Cmd
	port  *os.File // the guest's serial port for frames
	ctl   *os.File // QEMU's own protocol (QMP)
	heard *bufio.Reader
	log   tail // what QEMU says on its standard error, and a booting guest on its console
	done  chan struct{}
	end   sync.Once
	// parting is how long one that hung up may take to end.
	parting time.Duration
}

// partingWithin is a machine's parting: to be taken from the system, with its
// control group, takes a moment, and longer on a busy host.
const partingWithin = 5 * time.Second

// The descriptors that a QEMU is started with.
const (
	fdControl = 3 + iota
	fdPort
	fdState
	fdMemory
	fdBox
	fdKernel // of a template
	fdImage
)

// hardware is what a machine consists of, the same when its memory is kept and
// when it is restored.
type hardware struct {
	qemu     string
	kvm      bool
	memoryMB int
	guard    *guard // of its QEMUs
}

// arguments are the machine's: the plainest there is with two serial ports and
// the shared memory, without disk, network, display, sound and USB. private says
// that its memory is mapped so that what it writes is its own.
//
// It is "pc" and not "microvm", which would be restored some 20 ms sooner: a
// microvm has one clock to find its others' pace by, and where the host was busy
// at that moment Linux hung in it for ever.
func (h hardware) arguments(private bool) []string {
	accel, cpu, share := "tcg", "max", "on"
	if h.kvm {
		accel, cpu = "kvm", "host"
	}
	if private {
		share = "off"
	}
	size := strconv.Itoa(h.memoryMB) + "M"
	return []string{"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-machine", "pc,memory-backend=ram,usb=off,smbus=off,vmport=off,nvdimm=on,accel=" + accel, "-cpu", cpu, "-smp", "1",
		"-m", fmt.Sprintf("%s,slots=1,maxmem=%dM", size, 16<<10),
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%s,mem-path=/proc/self/fd/%d,share=%s", size, fdMemory, share),
		"-object", fmt.Sprintf("memory-backend-file,id=box,size=%d,mem-path=/proc/self/fd/%d,share=on", boxBytes, fdBox),
		"-device", fmt.Sprintf("nvdimm,memdev=box,addr=%#x", uint64(boxAddress)),
		"-chardev", fmt.Sprintf("socket,id=control,fd=%d", fdControl), "-mon", "chardev=control,mode=control",
		"-chardev", fmt.Sprintf("socket,id=port,fd=%d", fdPort),
		"-serial", "chardev:console", "-device", "isa-serial,chardev=port,index=1"}
}

// bootArguments are what a template has beside: a kernel, a file system, and a
// console that is heard.
func bootArguments() []string {
	return []string{"-chardev", "stdio,id=console,signal=off", "-kernel", fmt.Sprintf("/proc/self/fd/%d", fdKernel), "-initrd", fmt.Sprintf("/proc/self/fd/%d", fdImage),
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on rdinit=" + guestProgram + " " + guestEnv + "=1"}
}

// restoreArguments are what a restored machine has beside.
func restoreArguments() []string {
	return []string{"-chardev", "null,id=console", "-incoming", "defer"}
}

// way is how a QEMU is started: behindWalls.
type way func(qemu string, args []string) (*exec.Cmd, error)

// behindWalls starts this program, which becomes QEMU when the walls stand.
func behindWalls(qemu string, args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Args = append([]string{launcherName, identity(), qemu}, args...)
	cmd.Env = []string{"GOMAXPROCS=1"}
	group := 0
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, "accel=kvm") }) {
		group = kvmGroup()
	}
	cmd.SysProcAttr = wallsAttr(group)
	return cmd, nil
}

// start starts a machine. state, memory and box stay the caller's.
func start(by way, h hardware, args []string, state, memory, box *os.File, more ...*os.File) (_ *machine, err error) {
	m := &machine{done: make(chan struct{}), parting: partingWithin}
	var ends [2]*os.File
	defer func() {
		for _, f := range ends {
			f.Close()
		}
		if err != nil {
			m.port.Close()
			m.ctl.Close()
		}
	}()
	if m.ctl, ends[0], err = socketPair(); err != nil {
		return nil, err
	}
	if m.port, ends[1], err = socketPair(); err != nil {
		return nil, err
	}
	m.heard = bufio.NewReaderSize(m.ctl, 64<<10)
	if m.cmd, err = by(h.qemu, args); err != nil {
		return nil, err
	}
	m.cmd.Dir = "/"
	m.cmd.ExtraFiles = append([]*os.File{ends[0], ends[1], state, memory, box}, more...)
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	m.cmd.WaitDelay = time.Second
	held, err := h.guard.hold(m.cmd, h.memoryMB)
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's end would be the machine's
		err := m.cmd.Start()
		held.started(err)
		started <- err
		if m.cmd.Process != nil {
			m.cmd.Wait()
		}
		held.ended()
		close(m.done)
	}()
	return m, <-started
}

func socketPair() (ours, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(p[0]), "ours"), os.NewFile(uintptr(p[1]), "theirs"), nil
}

// close ends the machine at once, and returns when it is gone.
func (m *machine) close() {
	m.end.Do(func() {
		m.cmd.Process.Kill()
		<-m.done
		m.port.Close()
		m.ctl.Close()
	})
}

// within lets both conversations end at a time, or with ctx. The function that
// it returns takes that back.
func (m *machine) within(ctx context.Context, d time.Duration) func() {
	by := time.Now().Add(d)
	m.port.SetDeadline(by)
	m.ctl.SetDeadline(by)
	stop := context.AfterFunc(ctx, func() {
		m.port.SetDeadline(time.Unix(1, 0))
		m.ctl.SetDeadline(time.Unix(1, 0))
	})
	return func() { stop() }
}

// expect reads the next frame, which has to be of a kind.
func (m *machine) expect(kind byte) (frame, error) {
	f, err := readFrame(m.port)
	switch {
	case err == nil && f.kind == kind:
		return f, nil
	case err == nil && f.kind == frameFailed:
		return frame{}, fmt.Errorf("the guest cannot go on: %s", words(string(f.body)))
	case err == nil:
		return frame{}, fmt.Errorf("the guest said %q where %q was its turn", f.kind, kind)
	}
	return frame{}, m.why(err)
}

// hungUp says whether an error is that the other end of a conversation is closed,
// whichever side noticed: by writing, by reading, or by reading where something that
// was written had not been read.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// sent is the error of something written. That the machine had hung up is none yet:
// what it said before, or how it ended, is what is read next.
func (m *machine) sent(err error) error {
	if err == nil || hungUp(err) {
		return nil
	}
	return m.why(err)
}

// why makes of an error of a conversation how the machine ended, where it did, and
// adds what QEMU said last.
func (m *machine) why(err error) error {
	hung, wait := hungUp(err), 100*time.Millisecond
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.New("it said nothing in time")
	case hung:
		err, wait = errors.New("the machine hung up"), m.parting
	}
	select {
	case <-m.done:
		if hung {
			err = errors.New("the machine ended")
		}
		err = fmt.Errorf("%w (%v)", err, m.cmd.ProcessState)
	case <-time.After(wait):
	}
	if last := m.log.last(); last != "" {
		return fmt.Errorf("%w; it said last: %s", err, last)
	}
	return err
}

// command is one of QEMU's own protocol.
type command struct {
	Execute   string `json:"execute"`
	Arguments any    `json:"arguments,omitempty"`
}

// ignoreShared lets a machine's state be kept without its memory, which is a
// file already.
func ignoreShared() command {
	return command{"migrate-set-capabilities", map[string]any{"capabilities": []any{map[string]any{"capability": "x-ignore-shared", "state": true}}}}
}

func capabilities() command { return command{Execute: "qmp_capabilities"} }

// tell writes commands without waiting for what comes of them.
func (m *machine) tell(list ...command) error {
	var b []byte
	for _, c := range list {
		one, err := json.Marshal(c)
		if err != nil {
			return err
		}
		b = append(append(b, one...), '\n')
	}
	_, err := m.ctl.Write(b)
	return m.sent(err)
}

// ask performs one command and returns what it returned.
func (m *machine) ask(c command) (json.RawMessage, error) {
	if err := m.tell(c); err != nil {
		return nil, err
	}
	return m.answer(c.Execute)
}

// said is one thing that QEMU says: what a command returned, or an event.
type said struct {
	Return json.RawMessage `json:"return"`
	Error  *struct{ Desc string }
	Event  string
}

// maxSaid is how much QEMU may say before what is waited for.
const maxSaid = 1000

// until reads until QEMU says what is waited for.
func (m *machine) until(what string, found func(said) bool) (said, error) {
	for range maxSaid {
		line, err := m.heard.ReadSlice('\n')
		if err != nil {
			return said{}, m.why(err)
		}
		var s said
		if err := json.Unmarshal(line, &s); err != nil {
			return said{}, fmt.Errorf("QEMU said what is no JSON: %.80q", line)
		}
		if s.Error != nil {
			return said{}, fmt.Errorf("QEMU refused %s: %s", what, words(s.Error.Desc))
		}
		if found(s) {
			return s, nil
		}
	}
	return said{}, fmt.Errorf("QEMU did not answer %s", what)
}

// answer reads what comes of a command that was told.
func (m *machine) answer(to string) (json.RawMessage, error) {
	s, err := m.until(to, func(s said) bool { return s.Return != nil })
	return s.Return, err
}

// hand gives QEMU the descriptor of a file under a name, with the command that
// takes it.
func (m *machine) hand(f *os.File, name string) error {
	b, err := json.Marshal(command{"getfd", map[string]any{"fdname": name}})
	if err != nil {
		return err
	}
	conn, err := m.ctl.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(f.Fd()))
	if e := conn.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), b, rights, nil, 0)
		return err != unix.EAGAIN
	}); e != nil {
		return m.why(e)
	}
	if err := m.sent(err); err != nil {
		return err
	}
	_, err = m.answer("getfd")
	return err
}

// keep writes the machine's state, without its memory, to a file. The machine
// stands still from then on.
func (m *machine) keep(state *os.File) error {
	for _, c := range []command{capabilities(), ignoreShared()} {
		if _, err := m.ask(c); err != nil {
			return err
		}
	}
	if err := m.hand(state, "state"); err != nil {
		return err
	}
	if _, err := m.ask(command{"migrate", map[string]any{"uri": "fd:state"}}); err != nil {
		return err
	}
	for {
		b, err := m.ask(command{Execute: "query-migrate"})
		if err != nil {
			return err
		}
		var now struct {
			Status string `json:"status"`
			Desc   string `json:"error-desc"`
		}
		if err := json.Unmarshal(b, &now); err != nil {
			return err
		}
		switch now.Status {
		case "completed":
			return nil
		case "failed", "cancelled":
			return fmt.Errorf("its state could not be kept: %s", words(now.Desc))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// resume lets a machine that was started to be restored take its state, and
// returns when it goes on: what came to its port before would be lost.
func (m *machine) resume() error {
	if err := m.tell(capabilities(), ignoreShared(), command{"migrate-incoming", map[string]any{"uri": "fd:" + strconv.Itoa(fdState)}}); err != nil {
		return err
	}
	_, err := m.until("to be restored", func(s said) bool { return s.Event == "RESUME" })
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	t.b = t.b[max(0, len(t.b)-maxTail):]
	return len(p), nil
}

// last is the end of it as one line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(words(strings.ReplaceAll(string(t.b[max(0, len(t.b)-400):]), "\r\n", " | ")))
	return s
}
