//go:build linux

package container_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestProcTellsNothingOfTheHost: of all that a /proc has beside processes only what
// is the same for every run can be read, so that none reads there what the host or
// another run does: how full memory is, how often processors were waited for, how
// many files are open.
func TestProcTellsNothingOfTheHost(t *testing.T) {
	c, _ := open(t, nil)
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "proc", Language: "python3", Need: need(c), Code: []byte(`
import os
same = {'cpuinfo', 'crypto', 'execdomains', 'filesystems'}
told, looked = [], 0
def read(path):
    global looked
    looked += 1
    try: fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError: return
    try:
        if os.read(fd, 16): told.append(path)
    except OSError: pass
    os.close(fd)
for name in os.listdir('/proc'):
    path = '/proc/' + name
    if name.isdigit() or os.path.islink(path) or name in same or name == 'sys': continue
    if os.path.isdir(path):
        for d, _, files in os.walk(path):
            for f in files: read(d + '/' + f)
    else: read(path)
for d in 'fs', 'kernel/random', 'kernel/pty':
    told += ['sys/' + d + '/' + n for n in os.listdir('/proc/sys/' + d)]
print(looked > 30, sorted(told))
`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "True []\n" {
		t.Errorf("%s %q", res.Stdout, res.Stderr)
	}
}

// TestAProgramGoesBeforeHoldfast where the machine's memory is short, whatever mark
// Holdfast itself has.
func TestAProgramGoesBeforeHoldfast(t *testing.T) {
	c, _ := open(t, nil)
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "mark", Language: "python3", Need: need(c), Code: []byte("print(open('/proc/self/oom_score_adj').read())")})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "1000\n\n" {
		t.Errorf("its mark is %q (%q)", res.Stdout, res.Stderr)
	}
}
