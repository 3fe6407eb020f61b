package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Trial is a restored machine that took an order, and works on it for 20 s: to
// measure, and no sandbox for anybody's code.
type Trial struct {
	// Took is the time from nothing to the first reply.
	Took time.Duration
	r    *restored
}

// Try restores a machine and gives it an order; bare starts QEMU as it is, without
// the walls around it, as a peer to measure restores against. The caller closes it.
func (t *Tier) Try(ctx context.Context, bare bool) (*Trial, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.running.Done()
	made, err := t.template(ctx)
	if err != nil {
		return nil, err
	}
	by := way(behindWalls)
	if bare {
		by = alone
	}
	began := time.Now()
	r, err := made.restore(by)
	if err != nil {
		return nil, failed(restoring, err)
	}
	defer r.within(ctx, acceptWithin)()
	spec := sandbox.Spec{ID: "bench", Language: made.hello.Languages[0], Code: []byte("import time\ntime.sleep(20)"), Timeout: 25 * time.Second, MemoryMB: 64}
	what, err := r.begin(spec)
	if err != nil {
		r.close()
		return nil, failed(what, err)
	}
	return &Trial{time.Since(began), r}, nil
}

// Close ends the machine.
func (t *Trial) Close() { t.r.close() }

// Memory is what the machine has of the host's, in bytes: all of its pages, and its
// share of each (Rss and Pss of Linux).
func (t *Trial) Memory() (all, share int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", t.r.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "Pss":
			share = n << 10
		case "Rss":
			all = n << 10
		}
	}
	return all, share, nil
}

// alone starts QEMU as it is.
func alone(qemu string, args []string) (*exec.Cmd, error) {
	cmd := exec.Command(qemu, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
