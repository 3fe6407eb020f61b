//go:build linux

package process

import (
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// ignoring has this process ignore signals, and one of the two that the C library
// keeps for its own.
func ignoring(t *testing.T, list ...os.Signal) {
	t.Helper()
	const own = 32
	kept := map[unix.Signal]*[4]uint64{}
	action := func(s unix.Signal, now, before *[4]uint64) {
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(before)), 8, 0, 0); e != 0 {
			t.Fatal(s, e)
		}
	}
	was := map[os.Signal]bool{}
	for _, s := range append(list, unix.Signal(own)) {
		kept[s.(unix.Signal)] = &[4]uint64{}
		action(s.(unix.Signal), nil, kept[s.(unix.Signal)])
		was[s] = signal.Ignored(s)
	}
	action(own, &[4]uint64{1}, nil)
	signal.Ignore(list...)
	t.Cleanup(func() {
		for _, s := range list {
			if !was[s] { // by Reset alone it would still count as ignored
				heard := make(chan os.Signal, 1)
				signal.Notify(heard, s)
				signal.Stop(heard)
			}
		}
		// Go leaves ignored what was ignored when it began to listen.
		for s, before := range kept {
			action(s, before, nil)
		}
	})
	text, _ := os.ReadFile("/proc/self/status")
	_, mask, _ := strings.Cut(string(text), "SigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	set, err := strconv.ParseUint(mask, 16, 64)
	for _, s := range append(list, unix.Signal(own)) {
		if err != nil || set>>(s.(unix.Signal)-1)&1 == 0 {
			t.Fatalf("it does not ignore %v: %s %v", s, mask, err)
		}
	}
}

// TestSignals_startedByNohup: what whoever started Holdfast ignores, programs do
// not, whichever way they came. Python itself ignores SIGPIPE and SIGXFSZ.
func TestSignals_startedByNohup(t *testing.T) {
	// What nohup, a shell's job in the background and others ignore.
	ignoring(t, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTERM, unix.SIGTSTP, unix.SIGUSR1, unix.SIGXFSZ)
	spec := sandbox.Spec{Language: "python3", ID: "ignores", Need: anyWalls, Code: []byte(`import ctypes, struct
c, b, ignored = ctypes.CDLL(None), ctypes.create_string_buffer(64), []
import signal
for s in range(1, 65):
    if c.syscall(13, s, None, b, 8) == 0 and struct.unpack_from('<Q', b)[0] == 1: ignored.append(s)
print(ignored, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
`)}
	if playerCode() == nil {
		t.Skip("its numbers of calls are amd64's")
	}
	said := func(t *testing.T, res *posture.Result) {
		t.Helper()
		if string(res.Stdout) != "[13, 25] True\n" {
			t.Errorf("%s: %q %q", res.Path, res.Stdout, res.Stderr)
		}
	}
	cold, err := tier(t).Run(t.Context(), spec)
	if err != nil || cold.Path != posture.PathCold {
		t.Fatal(cold, err)
	}
	said(t, cold)
	bothWays(t, warmed(t, "python3", 2), spec, said)
}

// TestWorkspaceSignals_startedByNohup: nor do whole programs, to which a hangup
// that whoever started Holdfast ignores is not passed on either.
func TestWorkspaceSignals_startedByNohup(t *testing.T) {
	ignoring(t, unix.SIGHUP)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	end := begin(t, t.Context(), "trap 'echo hup' HUP; trap 'echo term; exit 5' TERM; (exec grep SigIgn /proc/self/status); echo ready; while :; do sleep 0.05; done", sandbox.Streams{Out: to})
	read := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(from, b); err != nil || string(b) != want {
			t.Errorf("%q %v, want %q", b, err, want)
		}
	}
	read("SigIgn:\t0000000000000000\nready\n")
	unix.Kill(os.Getpid(), unix.SIGHUP) // which would be passed on first
	unix.Kill(os.Getpid(), unix.SIGTERM)
	read("term\n")
	if res := <-end; res.ExitCode != 5 {
		t.Errorf("%+v", res)
	}
}
