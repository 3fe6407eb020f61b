package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// TestQEMUIsHeldToItsShare: while it runs, it is in a group whose limits are the
// guard's, and the posture says so; after it the group is gone.
func TestQEMUIsHeldToItsShare(t *testing.T) {
	b := tier(t)
	made, err := b.template(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	up, down := b.guard.grouped()
	if notes := strings.Join(b.Posture().Notes, "; "); strings.Contains(notes, "(v") != (len(up) > 0) || strings.Contains(notes, "no control group") == (len(up) > 0) {
		t.Errorf("groups hold %v (%s), and the posture says %s", up, down, notes)
	}
	if len(up) == 0 {
		if os.Geteuid() == 0 {
			t.Fatal("root has no control groups here: ", down)
		}
		t.Skip("no control group is to be had here, and the posture says so: ", down)
	}
	r, err := b.Try(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	share := shareOf(made.memoryMB)
	want := map[string][2]string{
		"memory": {"memory.limit_in_bytes", fmt.Sprint(share.Memory)}, "pids": {"pids.max", fmt.Sprint(share.Pids)}, "cpu": {"cpu.cfs_quota_us", fmt.Sprint(share.Quota.Microseconds())},
	}
	if b.guard.groups.Posture().Groups == "v2" {
		want["memory"], want["cpu"] = [2]string{"memory.max", fmt.Sprint(share.Memory)}, [2]string{"cpu.max", fmt.Sprintf("%d %d", share.Quota.Microseconds(), share.Period.Microseconds())}
	}
	var dirs []string
	for _, home := range b.guard.groups.GroupHomes() {
		found, _ := filepath.Glob(home + "/r*-" + guestName)
		dirs = append(dirs, found...)
	}
	for _, w := range up {
		shown := false
		for _, dir := range dirs {
			procs, _ := os.ReadFile(dir + "/cgroup.procs")
			limit, _ := os.ReadFile(dir + "/" + want[w][0])
			shown = shown || strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", r.r.cmd.Process.Pid)) && strings.TrimSpace(string(limit)) == want[w][1]
		}
		if !shown {
			t.Errorf("QEMU is in no group of %v with %v", dirs, want[w])
		}
	}
	r.Close()
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// victimEnv makes the test's program a Holdfast in whose guest a program runs that
// does not end.
const victimEnv = "HOLDFAST_TEST_VM_VICTIM"

// victimParts is a Config as far as another process can be told of it.
type victimParts struct {
	Dir, Kernel, Program string
	MemoryMB             int
	Roots                []string
}

// TestKilledHoldfastTakesItsGuestsAlong: QEMU ends by the kernel's hand alone,
// while the heir stands still; and then the heir takes the group away, and ends.
func TestKilledHoldfastTakesItsGuestsAlong(t *testing.T) {
	if text := os.Getenv(victimEnv); text != "" {
		beVictim(t, text)
		return
	}
	tier(t) // keeps the template
	cfg := parts(t)
	roots, err := cfg.Roots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(victimParts{cfg.Dir, cfg.Kernel, cfg.Program, cfg.MemoryMB, roots})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), victimEnv+"="+string(text), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	var homes []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "HOMES "); ok {
			if err := json.Unmarshal([]byte(text), &homes); err != nil {
				t.Fatal(err)
			}
			break
		}
		t.Log(lines.Text())
	}
	eventually(t, "its program runs", func() bool { return spent(pid, "qemu") > 0 })
	qemus, heirs := offspring(pid, "qemu"), offspring(pid, "holdfast-vm-heir")
	if len(qemus) != 1 || len(heirs) != 1 {
		t.Fatalf("QEMUs %v, heirs %v", qemus, heirs)
	}
	if err := unix.Kill(heirs[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "QEMU has ended with the thread that started it", func() bool { return !lives(qemus[0]) })
	if err := unix.Kill(heirs[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its heir has ended", func() bool { return !lives(heirs[0]) })
	for _, home := range homes {
		if left, _ := filepath.Glob(home + "/r*-" + guestName); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func beVictim(t *testing.T, text string) {
	var p victimParts
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	host, err := process.Open(context.Background(), process.Config{Dir: filepath.Join(t.TempDir(), "roots"), Secret: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{Dir: p.Dir, Kernel: p.Kernel, Program: p.Program, MemoryMB: p.MemoryMB, NoKVM: true, Groups: host, Secret: func(string) bool { return false },
		Roots: func(context.Context) ([]string, error) { return p.Roots, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Prepare(t.Context(), sandbox.Spec{ID: "ever", Language: "python3", Code: []byte("0")}); err != nil {
		t.Fatal(err)
	}
	homes, err := json.Marshal(host.GroupHomes())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nHOMES %s\n", homes)
	b.Run(t.Context(), sandbox.Spec{ID: "ever", Language: "python3", Code: []byte("while True: pass"), Timeout: 5 * time.Minute})
}

// offspring are the children of a process that were started by a name, or have it.
func offspring(parent int, name string) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		b, _ := os.ReadFile(f)
		line, _ := os.ReadFile(filepath.Dir(f) + "/cmdline")
		_, rest, _ := strings.Cut(string(b), ") ")
		words := strings.Fields(rest)
		if len(words) > 1 && words[0] != "Z" && words[1] == strconv.Itoa(parent) && strings.HasPrefix(filepath.Base(strings.Split(string(line), "\x00")[0]), name) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			list = append(list, pid)
		}
	}
	return list
}

// spent is how many ticks of processor time those have used.
func spent(parent int, name string) (ticks int) {
	for _, pid := range offspring(parent, name) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(b), ") ")
		if words := strings.Fields(rest); len(words) > 11 {
			n, _ := strconv.Atoi(words[11])
			ticks += n
		}
	}
	return ticks
}

func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// eventually waits until f is true, as long as anything may take on a busy machine.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	const patience = 2 * time.Minute
	for until := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after %v it is not so that %s", patience, what)
		}
	}
}
