package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestBadMachinesAreRefused: whatever a machine does instead of getting ready,
// the error says so, in time, and no process and no file stays.
func TestBadMachinesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ does, why string }{
		"ends at once":    {"echo cannot >&2; exit 3", "cannot"},
		"talks nonsense":  {"i=0; while [ $i -lt 2000 ]; do echo nonsense; i=$((i+1)); done >&4; sleep 60", "begins no frame"},
		"says half":       {"printf HfV >&4", "the machine ended (exit status 0)"},
		"greets wrongly":  {`printf 'HfV1R\002\000\000\000\103\277\246\243{}' >&4; sleep 60`, "no language"},
		"a frame of 2 GB": {`printf 'HfV1R\377\377\377\177\000\000\000\000' >&4; sleep 60`, "begins no frame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := machineThat(t, tc.does)
			res, err := b.Run(t.Context(), sandbox.Spec{ID: "r", Language: "python3", Code: []byte("0")})
			e := (*holdfast.Error)(nil)
			if res != nil || !errors.As(err, &e) || e.Kind != holdfast.KindSpawn || !strings.Contains(e.Why, tc.why) {
				t.Errorf("%v %v", res, err)
			}
			if list, _ := os.ReadDir(b.cfg.Dir); len(list) > 0 {
				t.Errorf("left %v", list)
			}
		})
	}
}

// TestSilentMachineIsGivenUp when who asked has gone.
func TestSilentMachineIsGivenUp(t *testing.T) {
	b := machineThat(t, "exec sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Run(ctx, sandbox.Spec{ID: "r", Language: "python3", Code: []byte("0")}); err == nil || !strings.Contains(err.Error(), "it said nothing in time") {
		t.Errorf("a machine that says nothing: %v", err)
	}
	for pid := range children(t) {
		t.Errorf("process %d stays", pid)
	}
}

// children are this process's own, with what they are.
func children(t *testing.T) map[int]string {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, f := range list {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if strings.HasPrefix(string(name), "qemu") || strings.HasPrefix(string(name), "sleep") {
				found[pid] = strings.TrimSpace(string(name))
			}
		}
	}
	return found
}

// TestRestoredGuestsDiffer in their random numbers and names, and have the
// host's time.
func TestRestoredGuestsDiffer(t *testing.T) {
	b := tier(t)
	id, modules := "os.getrandom(16).hex()", "os, random, time"
	if testrepeat.Enduring { // in a guest it takes a second to import
		id, modules = "uuid.uuid4()", modules+", uuid"
	}
	code := "import " + modules + "\nprint(os.urandom(16).hex(), random.random(), " + id +
		", random.SystemRandom().random(), time.time(), sep='\\n')"
	one, two := strings.Split(string(python(t, b, code).Stdout), "\n"), strings.Split(string(python(t, b, code).Stdout), "\n")
	if len(one) != 6 || len(two) != 6 {
		t.Fatalf("%q %q", one, two)
	}
	for i, what := range []string{"urandom", "random", "uuid", "system random"} {
		if one[i] == two[i] {
			t.Errorf("%s: both guests have %s", what, one[i])
		}
	}
	at, err := strconv.ParseFloat(two[4], 64)
	if off := time.Since(time.UnixMilli(int64(1000 * at))); err != nil || off < -time.Second || off > 20*time.Second {
		t.Errorf("the guest's clock is %v off (%v)", off, err)
	}
}

// TestMachineIsKilledInTheMiddle: there is a result, which says so.
func TestMachineIsKilledInTheMiddle(t *testing.T) {
	b := tier(t)
	go func() {
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			for pid, name := range children(t) {
				if strings.HasPrefix(name, "qemu") {
					time.Sleep(2 * time.Second)
					if p, err := os.FindProcess(pid); err == nil {
						p.Kill()
					}
					return
				}
			}
		}
	}()
	res := python(t, b, "import time\ntime.sleep(15)\nprint('slept')")
	if res.Reason != posture.ReasonHalt || res.ExitCode != posture.ExitLimit || len(res.States) == 0 || !strings.Contains(res.Err, "virtual machine ended") {
		t.Errorf("%s %q %d %q", res.State, res.Reason, res.ExitCode, res.Err)
	}
}

// TestQEMUHasNoRights: while it runs, it is nobody, in namespaces of its own,
// without a right and behind a filter.
func TestQEMUHasNoRights(t *testing.T) {
	b := tier(t)
	made, err := b.template(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := made.restore(behindWalls)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	defer r.within(t.Context(), acceptWithin)()
	if err := r.resume(); err != nil {
		t.Fatal(err)
	}
	proc := fmt.Sprintf("/proc/%d/", r.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Name:\tqemu-system-x86", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("its status lacks %q:\n%s", line, status)
		}
	}
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		theirs, err := os.Readlink(proc + "ns/" + ns)
		ours, _ := os.Readlink("/proc/self/ns/" + ns)
		if err != nil || theirs == ours {
			t.Errorf("its %s is %s, and ours %s (%v)", ns, theirs, ours, err)
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(string(status), fmt.Sprintf("Uid:\t%d\t%d", nobodyID, nobodyID)) {
		t.Errorf("it is somebody:\n%s", status)
	}
	for _, p := range []string{"etc/passwd", "root", "home", "var", "work"} {
		if _, err := os.Lstat(proc + "root/" + p); err == nil {
			t.Errorf("it sees /%s", p)
		}
	}
	if err := os.WriteFile(proc+"root/usr/x", nil, 0o600); err == nil {
		os.Remove("/usr/x")
		t.Error("its /usr can be written")
	}
}

// BenchmarkTogether is what ten that work at once have of memory in MB, each page
// counted once, and what each has, added up.
func BenchmarkTogether(b *testing.B) {
	t := tier(b)
	var rss, pss int64
	for b.Loop() {
		rss, pss = 0, 0
		var all []*Trial
		for range 10 {
			r, err := t.Try(b.Context(), false)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, r)
		}
		for _, r := range all {
			each, share, err := r.Memory()
			if err != nil {
				b.Error(err)
			}
			rss, pss = rss+each, pss+share
		}
		for _, r := range all {
			r.Close()
		}
	}
	b.ReportMetric(float64(pss)/(1<<20), "pss-MB")
	b.ReportMetric(float64(rss)/(1<<20), "rss-MB")
}

// BenchmarkRestore is the time from nothing to the first reply of a restored
// guest, behind the walls and by QEMU alone in turns: their medians in
// milliseconds, and what the walls cost as a factor.
func BenchmarkRestore(b *testing.B) {
	t := tier(b)
	var times [2][]time.Duration
	for b.Loop() {
		for i, bare := range []bool{false, true} {
			r, err := t.Try(b.Context(), bare)
			if err != nil {
				b.Fatal(err)
			}
			r.Close()
			times[i] = append(times[i], r.Took)
		}
	}
	percentile := func(list []time.Duration, percent int) float64 {
		slices.Sort(list)
		return float64(list[min(len(list)-1, len(list)*percent/100)].Microseconds()) / 1000
	}
	walls, alone := percentile(times[0], 50), percentile(times[1], 50)
	b.ReportMetric(percentile(times[0], 95), "walls-p95-ms")
	b.ReportMetric(percentile(times[1], 95), "bare-p95-ms")
	b.ReportMetric(walls, "walls-ms")
	b.ReportMetric(alone, "bare-ms")
	b.ReportMetric(walls/alone, "walls/bare")
}
