//go:build linux

package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkspaceProfile: every name in the lists is a call, none of what is a way
// out passes, and each profile fits into a filter.
func TestWorkspaceProfile(t *testing.T) {
	for _, exec := range []bool{false, true} {
		p := WorkspaceProfile(exec)
		if _, err := p.Compile(); err != nil {
			t.Error(err)
		}
		for _, a := range p.allow {
			if !knownCall(a.name) && a.name != "fstatat" && a.name != "time" {
				t.Errorf("there is no call %s", a.name)
			}
			if a.feigned || a.feign != nil {
				t.Errorf("%s is feigned: in a workspace calls happen", a.name)
			}
			if slices.Contains(workspaceEscapeNames(), a.name) && a.when == nil {
				t.Errorf("%s, a way out, passes", a.name)
			}
		}
		if got := p.Passes("memfd_create", [6]uint64{}); got != exec {
			t.Errorf("memory without a name passes: %v", got)
		}
	}
	for _, list := range []string{workspaceEscapes} {
		for _, n := range words(list) {
			if !knownCall(n) {
				t.Errorf("there is no call %s", n)
			}
		}
	}
	for _, r := range workspaceRefused {
		for _, n := range words(r.calls) {
			if !knownCall(n) {
				t.Errorf("there is no call %s", n)
			}
		}
	}
}

// TestWorkspaceJudges: what a call comes to, by its numbers.
func TestWorkspaceJudges(t *testing.T) {
	p := WorkspaceProfile(false)
	const (
		passes = iota
		refuses
		escapes
	)
	for _, tc := range []struct {
		name string
		args [6]uint64
		want int
	}{
		{"execve", [6]uint64{}, passes}, {"fork", [6]uint64{}, passes}, {"exit_group", [6]uint64{}, passes}, {"statfs", [6]uint64{}, passes}, {"fsync", [6]uint64{}, passes},
		{"clone", [6]uint64{uint64(unix.SIGCHLD)}, passes}, {"clone", [6]uint64{unix.CLONE_NEWUSER}, escapes}, {"clone", [6]uint64{unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, escapes}, {"clone3", [6]uint64{}, refuses},
		{"unshare", [6]uint64{unix.CLONE_FILES}, passes}, {"unshare", [6]uint64{unix.CLONE_NEWNS}, escapes}, {"unshare", [6]uint64{unix.CLONE_NEWTIME}, escapes}, {"unshare", [6]uint64{unix.CLONE_SIGHAND}, refuses},
		{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, passes}, {"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, 262}, refuses}, {"socket", [6]uint64{unix.AF_PACKET}, refuses}, {"socket", [6]uint64{unix.AF_ALG}, escapes}, {"socket", [6]uint64{unix.AF_VSOCK}, escapes},
		{"ioctl", [6]uint64{0, 0x540e}, passes}, {"ioctl", [6]uint64{0, 0x5412}, escapes}, {"ioctl", [6]uint64{0, 1<<32 | 0x5412}, escapes}, {"ioctl", [6]uint64{0, 0x1234}, refuses},
		{"chmod", [6]uint64{0, 0o755}, passes}, {"chmod", [6]uint64{0, 0o4755}, refuses}, {"fchmodat", [6]uint64{0, 0, 0o2755}, refuses}, {"openat", [6]uint64{0, 0, unix.O_CREAT, 0o4755}, refuses}, {"openat2", [6]uint64{}, refuses},
		{"seccomp", [6]uint64{1, 0}, passes}, {"seccomp", [6]uint64{1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, refuses},
		{"ptrace", [6]uint64{}, refuses}, {"io_uring_setup", [6]uint64{}, refuses}, {"chroot", [6]uint64{}, refuses}, {"setns", [6]uint64{}, escapes}, {"mount", [6]uint64{}, escapes}, {"bpf", [6]uint64{}, escapes},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_NOFILE}, passes}, {"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, 1}, refuses}, {"splice", [6]uint64{}, refuses}, {"memfd_create", [6]uint64{}, refuses},
	} {
		nr, ok := callNumber(tc.name)
		if !ok {
			t.Errorf("there is no call %s", tc.name)
			continue
		}
		got := passes
		if !p.Passes(tc.name, tc.args) {
			got = refuses
			if NewCall(int32(nr), nativeArch(), tc.args).EvaluateInWorkspace().kind == kindEscape {
				got = escapes
			}
		}
		if got != tc.want {
			t.Errorf("%s %v comes to %d, want %d", tc.name, tc.args, got, tc.want)
		}
	}
	if k := (Call{Foreign: true, Name: "read"}).EvaluateInWorkspace().kind; k != kindEscape {
		t.Errorf("a call of another architecture is %v", k)
	}
}
