//go:build linux && endure

package vm

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestEndsAreToldFromInside: what becomes of code in a guest is named as in the
// process tier.
func TestEndsAreToldFromInside(t *testing.T) {
	b := tier(t)
	res := python(t, b, "import os; os.execv('/usr/bin/python3.11', ['x'])")
	if res.State != posture.SyscallBlocked || res.Reason != posture.ReasonEscape || res.Call == nil || res.Call.Name != "execve" || res.ExitCode != posture.ExitSyscall {
		t.Errorf("a second execve: %s %q %d %+v %q", res.State, res.Reason, res.ExitCode, res.Call, res.Stderr)
	}
	res = python(t, b, "while True: pass", func(s *sandbox.Spec) { s.Timeout = time.Second })
	if res.State != posture.Timeout || res.ExitCode != posture.ExitLimit {
		t.Errorf("no end: %s %d", res.State, res.ExitCode)
	}
	res = python(t, b, "x = bytearray(200 << 20)", func(s *sandbox.Spec) { s.MemoryMB = 64 })
	if res.State != posture.OOM {
		t.Errorf("too much memory: %s %q", res.State, res.Stderr)
	}
	big := strings.Repeat("x", 8<<20)
	res = python(t, b, "import sys\nd=open('big').read(); open('back','w').write(d); print(len(d)); sys.exit(7)", func(s *sandbox.Spec) { s.Files = map[string][]byte{"big": []byte(big)} })
	if res.ExitCode != 7 || string(res.OutputFiles["back"]) != big {
		t.Errorf("8 MB there and back: %d %q, %d bytes", res.ExitCode, res.Stderr, len(res.OutputFiles["back"]))
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("machines stay: %v", left)
	}
}

// TestKVMIsProvenOrNotTaken: the accelerator that the posture names has run a
// guest; where the device is there and no guest runs on it, software does, and
// the posture says why. What was kept is taken.
func TestKVMIsProvenOrNotTaken(t *testing.T) {
	python(t, tier(t), "0") // keeps its template
	cfg := parts(t)
	cfg.NoKVM, cfg.Note = false, func(line string) { t.Log(line) }
	b, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if res := python(t, b, "print(6*7)"); string(res.Stdout) != "42\n" || res.Posture.Runtime == "" {
		t.Errorf("%s %q %q", res.State, res.Stdout, res.Stderr)
	} else if said := strings.Join(res.Posture.Notes, "; "); !strings.Contains(said, "accelerator kvm: ") && !strings.Contains(said, "which is slow; /dev/kvm is there and no guest runs on it: ") && !strings.Contains(said, "hardware virtualisation is not to be had: ") {
		t.Errorf("the posture says %s", said)
	} else {
		t.Log(said)
	}
	if said := b.Troubles(); len(said) > 0 {
		t.Errorf("troubles: %v", said)
	}
}

// TestRestoredMachinesShareMemory: ten that took their order have less together
// than if each had its own, by what is the template's.
func TestRestoredMachinesShareMemory(t *testing.T) {
	b := tier(t)
	var rss, pss int64
	var all []*Trial
	for range 10 {
		r, err := b.Try(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		all = append(all, r)
	}
	for _, r := range all {
		each, share, err := r.Memory()
		if err != nil {
			t.Fatal(err)
		}
		rss, pss = rss+each, pss+share
	}
	t.Logf("ten restored machines: %d MB resident each added up, %d MB where what is shared is counted once", rss>>20, pss>>20)
	if 2*pss > rss+rss/2 {
		t.Errorf("they share little: %d bytes of %d", pss, rss)
	}
}
