//go:build linux

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestUnaskedIsNoWider: of every language's rules what passes without anybody
// being asked is what passes here, and the few calls that stand here by name.
func TestUnaskedIsNoWider(t *testing.T) {
	wider := map[string]bool{"execve": true, "exit_group": true, "fstatfs": true, "statfs": true, "futex": true}
	for name, p := range map[string]*Profile{"python": PythonProfile(), "node": NodeProfile(), "static": StaticProfile()} {
		ends, seen := 0, map[string]bool{}
		for _, r := range p.Rules() {
			switch {
			case r.Action != sandbox.RuleAsk && r.Unasked != 0:
				t.Errorf("%s: %s is not asked about, and has an answer", name, r.Call)
			case r.Unasked == sandbox.UnaskedAllow && !wider[r.Call]:
				t.Errorf("%s: %s passes unasked", name, r.Call)
			case r.Unasked == sandbox.UnaskedAllow:
				seen[r.Call] = true
			case r.Action == sandbox.RuleAsk && r.Unasked == 0:
				ends++
			}
		}
		if ends < 60 || len(seen) != len(wider) {
			t.Errorf("%s: %d calls end the program, and of those that pass unasked there are %v", name, ends, seen)
		}
	}
}

// TestUnaskedAnswers: what the kernel's filter answers by itself.
func TestUnaskedAnswers(t *testing.T) {
	const private, wake, realtime = 0x80, 1, 0x100
	rules := PythonProfile().Rules()
	said := func(call string, args ...uint64) (got sandbox.Rule) {
		var all [6]uint64
		copy(all[:], args)
		n := 0
		for _, r := range rules {
			if r.Call == call && speaks(r, all) {
				got, n = r, n+1
			}
		}
		if n != 1 {
			t.Errorf("%s%x: %d rules speak", call, all, n)
		}
		return got
	}
	for _, c := range []struct {
		call string
		args []uint64
		want sandbox.Unasked
	}{
		{"ptrace", nil, 0}, {"mount", nil, 0}, {"bpf", nil, 0}, {"io_uring_setup", nil, 0}, {"setns", nil, 0}, {"unshare", nil, 0}, {"execveat", nil, 0}, {"setuid", nil, 0}, {"keyctl", nil, 0},
		{"socket", []uint64{unix.AF_INET}, sandbox.Unasked(unix.EACCES)}, {"socket", []uint64{unix.AF_ALG}, 0}, {"socket", []uint64{1<<32 | unix.AF_VSOCK}, 0}, {"prctl", []uint64{unix.PR_SET_SECCOMP}, 0}, {"prctl", []uint64{unix.PR_SET_DUMPABLE}, sandbox.Unasked(unix.EINVAL)}, {"clone3", nil, sandbox.Unasked(unix.ENOSYS)}, {"fork", nil, sandbox.Unasked(unix.EPERM)},
		{"clone", []uint64{unix.CLONE_NEWUSER}, 0}, {"clone", []uint64{threadMust | unix.CLONE_NEWNET}, 0}, {"clone", []uint64{17}, sandbox.Unasked(unix.EPERM)}, {"ioctl", []uint64{0, 0x5412}, 0}, {"ioctl", []uint64{0, 0x5413 + 1}, sandbox.Unasked(unix.ENOTTY)}, {"sysinfo", nil, sandbox.Unasked(unix.ENOSYS)},
		{"futex", []uint64{0, 0}, sandbox.UnaskedAllow}, {"futex", []uint64{0, futexWaitFor | realtime}, sandbox.UnaskedAllow}, {"futex", []uint64{0, wake}, sandbox.Unasked(unix.EINVAL)},
		{"futex", []uint64{0, 3}, sandbox.Unasked(unix.EINVAL)}, {"execve", nil, sandbox.UnaskedAllow},
	} {
		if r := said(c.call, c.args...); r.Action != sandbox.RuleAsk || r.Unasked != c.want {
			t.Errorf("%s%x: %+v, want %d", c.call, c.args, r, c.want)
		}
	}
	if r := said("futex", 0, wake|private); r.Action != sandbox.RuleAllow {
		t.Errorf("a private futex: %+v", r)
	}
}
