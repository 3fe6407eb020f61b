package vm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
)

// small is a template that no machine made: what is kept is bytes.
func small(t *testing.T) (*template, plan) {
	t.Helper()
	p := plan{hardware: hardware{qemu: "/q", memoryMB: 16}, version: "QEMU 7.2", digests: []string{"a", "b"}}
	m, err := memory("ram", 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for _, at := range []int64{0, 5 << 20, 16<<20 - 4096} {
		if _, err := m.WriteAt([]byte("memory"), at); err != nil {
			t.Fatal(err)
		}
	}
	return &template{hardware: p.hardware, memory: m, state: []byte("state"), hello: greeting{Languages: []string{"python3.11"}}}, p
}

// TestTemplateIsKept: what is loaded is what was saved, nobody can write it, and
// what is not whole, or of another machine, is not taken.
func TestTemplateIsKept(t *testing.T) {
	made, p := small(t)
	dir := filepath.Join(t.TempDir(), "vm")
	if _, err := load(t.Context(), dir, p); !absent(err) {
		t.Errorf("of nothing: %v", err)
	}
	if err := made.save(t.Context(), dir, p); err != nil {
		t.Fatal(err)
	}
	again, err := load(t.Context(), dir, p)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	want, got := make([]byte, 16<<20), make([]byte, 16<<20)
	made.memory.ReadAt(want, 0)
	again.memory.ReadAt(got, 0)
	if string(want) != string(got) || string(again.state) != "state" || again.hello.Languages[0] != "python3.11" {
		t.Error("what was loaded is not what was saved")
	}
	if _, err := again.memory.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("the memory was written: %v", err)
	}
	home := filepath.Join(dir, p.key())
	for _, change := range []func(*plan){
		func(p *plan) { p.version = "QEMU 7.3" }, func(p *plan) { p.digests = []string{"a", "c"} },
		func(p *plan) { p.kvm = true }, func(p *plan) { p.memoryMB++ },
	} {
		other := p
		change(&other)
		if _, err := load(t.Context(), dir, other); !absent(err) {
			t.Errorf("%+v takes the template of %+v: %v", other, p, err)
		}
	}
	other := p
	other.version = "QEMU 9.0"
	if err := os.Rename(home, filepath.Join(dir, other.key())); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), dir, other); err == nil || !strings.Contains(err.Error(), "QEMU 7.2") {
		t.Errorf("a template of another QEMU under this one's name: %v", err)
	}
	if err := made.save(t.Context(), dir, p); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 || list[0].Name() != p.key() {
		t.Errorf("beside the template stays %v", list)
	}
	for name, spoil := range map[string]func(b []byte) []byte{
		keptMemory: func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		keptState:  func(b []byte) []byte { return append(b, 'x') },
		keptMark:   func(b []byte) []byte { return b[:len(b)/2] },
	} {
		for _, f := range []func(b []byte) []byte{spoil, func(b []byte) []byte { return b[:len(b)-1] }} {
			if err := made.save(t.Context(), dir, p); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home, name)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, f(b), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := load(t.Context(), dir, p); err == nil || absent(err) {
				t.Errorf("a template whose %s was changed is taken (%v)", name, err)
			}
		}
	}
}

// TestTemplateIsKeptBesideOthers: what one loads nobody takes away, neither who keeps
// the same nor who keeps another and sweeps; afterwards the next one does.
func TestTemplateIsKeptBesideOthers(t *testing.T) {
	made, p := small(t)
	dir, other := filepath.Join(t.TempDir(), "vm"), p
	other.version = "QEMU 9.0"
	save := func(p plan, want ...string) {
		t.Helper()
		if err := made.save(t.Context(), dir, p); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		var names []string
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("there is %q, want %q", names, want)
		}
	}
	save(p, p.key())
	loading, err := copies.Hold(t.Context(), dir, p.key())
	if err != nil {
		t.Fatal(err)
	}
	save(p, p.key())
	save(other, p.key(), other.key())
	if loaded, err := read(loading.Home, p); err != nil {
		t.Errorf("it was taken from who loads it: %v", err)
	} else {
		loaded.close()
	}
	loading.Release()
	save(other, other.key())
}

// TestDiskFullKeepsNothing: a template that does not fit onto the disk leaves
// nothing there, and is still good.
func TestDiskFullKeepsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes a small disk")
	}
	made, p := small(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := made.save(t.Context(), dir, p); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("saved on a disk of 8 KB: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left %v", list)
	}
}

// TestMissingPartsAreNamed: without QEMU or kernel the tier does not open, and
// says what is missing and how to have it.
func TestMissingPartsAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernel")
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, cfg := range map[string]Config{
		"QEMU":   {QEMU: "/nowhere/qemu", Kernel: file},
		"kernel": {QEMU: "/bin/sh", Kernel: "/nowhere/vmlinuz"},
		"17 MB":  {QEMU: "/bin/sh", Kernel: file, MemoryMB: 17},
	} {
		_, err := Open(cfg)
		e := (*holdfast.Error)(nil)
		if !errors.As(err, &e) || !strings.Contains(e.Why, what) || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestMissingPartsAreNamedTogether: what is missing is named in one refusal, each
// with how to have it, and where nobody named a kernel the place that was
// looked at stands in it.
func TestMissingPartsAreNamedTogether(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{QEMU: "/nowhere/qemu", Kernel: "/nowhere/vmlinuz", Program: script})
	e := (*holdfast.Error)(nil)
	if !errors.As(err, &e) || e.Kind != holdfast.KindSpawn || !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, part := range []string{"there is no /nowhere/qemu", `there is none at "/nowhere/vmlinuz"`, script + " is no program for Linux"} {
		if strings.Count(e.Why, part) != 1 {
			t.Errorf("%q is not said once: %s", part, e.Why)
		}
	}
	for _, how := range []string{"qemu-system-x86", "linux-image-cloud-amd64", "CGO_ENABLED=0"} {
		if !strings.Contains(e.Hint, how) {
			t.Errorf("%q is not hinted at: %s", how, e.Hint)
		}
	}
	cfg := Config{}
	if e := findKernel(&cfg); (e == nil) != (cfg.Kernel != "") || e != nil && !strings.Contains(e.Why, kernels) {
		t.Errorf("no kernel is named: found %q, %v", cfg.Kernel, e)
	}
}

// machineThat is a tier whose QEMU is a shell script.
func machineThat(t *testing.T, does string) *Tier {
	t.Helper()
	dir := t.TempDir()
	qemu, file := filepath.Join(dir, "qemu"), filepath.Join(dir, "kernel")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo QEMU 0; exit; }\n" + does + "\n"
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(qemu, []byte(script), 0o755), os.WriteFile(file, []byte("kernel"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := Open(Config{Dir: filepath.Join(dir, "vm"), QEMU: qemu, Kernel: file, Program: parts(t).Program, NoKVM: true,
		Secret: func(string) bool { return false }, Roots: func(context.Context) ([]string, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}
