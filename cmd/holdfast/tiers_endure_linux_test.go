//go:build linux && endure

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// guests is a site whose daemon has guests of a real machine. The daemon is
// built as the product is, since it is the first process of its guests, and finds
// Python alone, which halves the time that its template takes. What is missing for
// it skips the test, and fails it in CI.
func guests(t *testing.T) (s *site, up *exec.Cmd, pass string) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	switch {
	case os.Geteuid() != 0:
		t.Skip("only root hides a program of the system's")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		missing("there is no qemu-system-x86_64; `make deps` installs it")
	}
	kernels, _ := filepath.Glob("../../bin/guest/vmlinuz")
	installed, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if kernels = append(kernels, installed...); len(kernels) == 0 {
		missing("there is no kernel to boot; `make deps` puts Debian's into bin/guest")
	}
	kernel, err := filepath.Abs(kernels[0])
	if err != nil {
		t.Fatal(err)
	}
	program := builtOnce(t, ours)
	s = newSite(t, tiersPolicy("container: {runtime: runc}, vm: {kernel: "+kernel+", memory: 512}"))
	pass = s.operator()
	if err := shareRoots(filepath.Join(s.dir, "s")); err != nil {
		t.Fatal(err)
	}
	up = s.command("up", "--no-operator")
	up.Path, up.Args = "/usr/bin/unshare", append([]string{"unshare", "--mount", "sh", "-c",
		`for n in /usr/bin/node /usr/local/bin/node; do [ ! -e $n ] || mount --bind /dev/null $n; done; PATH=/usr/sbin:/usr/bin:/sbin:/bin exec "$@"`, "sh", program}, up.Args[1:]...)
	s.begin("up", up)
	s.after("up", "listening")
	return s, up, pass
}

// TestTiersEndToEnd sends requests through a daemon into guests of a real machine, as
// TestContainersEndToEnd does into containers. Where a guest is emulated its template
// takes half a minute of processor time.
func TestTiersEndToEnd(t *testing.T) {
	t.Parallel()
	s, up, pass := guests(t)
	s.tryTier(tierTrial{tier: "vm", runtime: "QEMU emulator version ", note: "accelerator ", entropy: "31",
		why: "vm: predicted entropy 31 is over 30", child: "qemu-system"}, up.Process.Pid, pass)
}
