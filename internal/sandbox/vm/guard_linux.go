package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
)

// guard holds QEMUs to their share of the host, and sees that they end where
// Holdfast is killed: the kernel ends them with the thread that started them, and
// an heir ends what the kernel forgot.
type guard struct {
	groups  Groups // nil has none
	line    heir.Line
	trouble func(string)
	told    sync.Once
}

// What a QEMU may have beside its guest's memory: the box, its own, and what it
// keeps of instructions that it translated, which is at most 1 GB.
const (
	ownMB     = 256
	codeMB    = 1024
	mostPids  = 128 // this program's threads and after them QEMU's
	guestName = "guest"
	doorsEnv  = "HOLDFAST_VM_DOORS" // descriptors of groups that a QEMU enters first
)

func shareOf(memoryMB int) sandbox.Share {
	return sandbox.Share{Memory: int64(memoryMB+ownMB+codeMB)<<20 + boxBytes, Period: sandbox.DefaultPeriod, Quota: 2 * sandbox.DefaultPeriod, Pids: mostPids}
}

// grouped are the walls that groups hold up here, and of the others why not.
func (g *guard) grouped() (up []string, down string) {
	if g == nil || g.groups == nil {
		return nil, "there is no process tier that makes one"
	}
	p := g.groups.Posture()
	for _, w := range []posture.Wall{posture.WallMemory, posture.WallCPU, posture.WallPids} {
		if slices.Contains(p.Up, w) {
			up = append(up, string(w))
		} else if down == "" {
			down = p.Down[w]
		}
	}
	return up, down
}

// says is the posture's note.
func (g *guard) says(memoryMB int) string {
	up, down := g.grouped()
	if len(up) == 0 {
		return "no control group of the host's holds QEMU: its memory is the guest's, of a fixed size, and its processor one thread of it (" + down + ")"
	}
	s := shareOf(memoryMB)
	held := map[string]string{"memory": fmt.Sprintf("%d MB", s.Memory>>20), "cpu": "2 processors", "pids": fmt.Sprintf("%d threads", s.Pids)}
	var list []string
	for _, w := range up {
		list = append(list, held[w])
	}
	text := "a control group of the host's (" + g.groups.Posture().Groups + ") holds QEMU to " + strings.Join(list, ", ")
	if down != "" {
		text += "; not to all: " + down
	}
	return text
}

// held is a QEMU under guard, from before it is started.
type held struct {
	guard *guard
	group sandbox.Group // nil is none
	doors []*os.File
	pidfd int
}

// hold puts a command that becomes a QEMU behind walls into a group, and under the
// heir's eyes. What starts as it is, as a peer to be measured, is left alone.
func (g *guard) hold(cmd *exec.Cmd, memoryMB int) (*held, error) {
	if g == nil || cmd.Args[0] != launcherName {
		return nil, nil
	}
	h := &held{guard: g, pidfd: -1}
	cmd.SysProcAttr.PidFD = &h.pidfd
	var homes []string
	if g.groups != nil {
		homes = g.groups.GroupHomes()
	}
	if err := g.line.Ensure(heirName, will{homes}, unix.CAP_KILL, unix.CAP_DAC_OVERRIDE); err != nil {
		g.complain(err)
	}
	if up, _ := g.grouped(); len(up) == 0 {
		return h, nil
	}
	var err error
	if h.group, err = g.groups.Group(guestName, shareOf(memoryMB)); err != nil {
		return nil, err
	}
	if fd, ok := h.group.Dir(); ok {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
	}
	var numbers []string
	for _, fd := range h.group.Entrances() {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			h.ended()
			return nil, os.NewSyscallError("fcntl", err)
		}
		h.doors = append(h.doors, os.NewFile(uintptr(dup), "tasks"))
		numbers = append(numbers, strconv.Itoa(3+len(cmd.ExtraFiles)))
		cmd.ExtraFiles = append(cmd.ExtraFiles, h.doors[len(h.doors)-1])
	}
	cmd.Env = append(cmd.Env, doorsEnv+"="+strings.Join(numbers, ","))
	return h, nil
}

// started tells the heir of a QEMU, when it was tried to start it.
func (h *held) started(err error) {
	if h == nil {
		return
	}
	h.shut()
	if err == nil && h.pidfd >= 0 {
		if err := h.guard.line.Hold(h.pidfd); err != nil {
			h.guard.complain(err)
		}
	}
	if h.pidfd >= 0 {
		unix.Close(h.pidfd)
	}
}

func (h *held) shut() {
	for _, f := range h.doors {
		f.Close()
	}
	h.doors = nil
}

// ended gives the group back.
func (h *held) ended() {
	if h == nil {
		return
	}
	h.shut()
	if h.group != nil {
		if err := h.group.Remove(); err != nil {
			h.guard.complain(err)
		}
	}
}

// complain tells of what goes wrong where no caller waits, the first time.
func (g *guard) complain(err error) {
	g.told.Do(func() { g.trouble("the VM tier's guard: " + err.Error()) })
}

// enter moves this thread, which alone becomes QEMU, into the groups whose doors
// are named by their descriptors, and closes them.
func enter(doors string) error {
	for _, word := range strings.FieldsFunc(doors, func(r rune) bool { return r == ',' }) {
		fd, err := strconv.Atoi(word)
		if err == nil {
			_, err = unix.Write(fd, []byte("0"))
			unix.Close(fd)
		}
		if err != nil {
			return fmt.Errorf("its control group: %w", err)
		}
	}
	return nil
}

// heirName is what the tier's heir is started as.
const heirName = "holdfast-vm-heir"

// will is what the heir takes away: groups of machines, when it has killed them.
type will struct{ Homes []string }

// settle says that nothing is left. Of a home only what this tier made is taken;
// the rest is empty by then, or is not its own.
func settle(text []byte) bool {
	var w will
	if json.Unmarshal(text, &w) != nil {
		return true
	}
	done := true
	for _, home := range w.Homes {
		groups, _ := filepath.Glob(filepath.Join(home, "r*-"+guestName))
		for _, dir := range groups {
			if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
				done = false
			}
		}
		unix.Rmdir(home)
	}
	return done
}
