package process

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/hostlimit"
)

// adviceFor says what to do where no code can be run, by the kind of the error
// and by what this system says of itself.
func adviceFor(err error) string {
	return advice(err, func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	})
}

// advice reads files of /proc by read, which returns "" for one that is not
// there.
func advice(err error, read func(path string) string) string {
	var e *holdfast.Error
	errors.As(err, &e)
	confined := hasLine(read("/proc/self/status"), "Seccomp:\t2")
	switch {
	case e != nil && e.Kind == holdfast.KindMount && errors.Is(err, unix.ENOSPC):
		return e.Hint
	case e != nil && e.Kind == holdfast.KindSeccomp && !strings.Contains(read("/proc/sys/kernel/seccomp/actions_avail"), "user_notif"):
		return "this kernel cannot tell of forbidden calls (seccomp user notification): use Linux 5.19 or later"
	case e != nil && e.Kind == holdfast.KindSeccomp:
		return "another program that watches system calls may be around this process: a container's agent, perhaps; run Holdfast outside it"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are root's here: sysctl kernel.unprivileged_userns_clone=1, or run Holdfast as root"
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs without a profile: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give holdfast a profile that says `userns,`"
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are off: sysctl user.max_user_namespaces=15000"
	case masked(read("/proc/self/mountinfo")):
		return "this container hides parts of /proc, and then none of its own can be made: docker run --security-opt systempaths=unconfined --security-opt seccomp=unconfined"
	case confined:
		return "a filter of system calls, a container's perhaps, keeps namespaces from this process: docker run --security-opt seccomp=unconfined"
	case e != nil && e.Hint != "" && !errors.As(err, new(hostlimit.SeeDoctor)):
		return e.Hint
	}
	return "namespaces (user, pid, net, mnt, uts, ipc, cgroup) need Linux 5.14 or later, built with them"
}

func hasLine(text, line string) bool {
	return bytes.Contains([]byte("\n"+text+"\n"), []byte("\n"+line+"\n"))
}

// masked says whether something is mounted over parts of /proc.
func masked(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == "/proc/kcore" || f[4] == "/proc/keys" || f[4] == "/proc/sys") {
			return true
		}
	}
	return false
}

// adviceAbout says what to do about a wall that is known not to stand.
func adviceAbout(w posture.Wall) string {
	switch w {
	case posture.WallMemory, posture.WallCPU, posture.WallPids:
		return "until then a run needs a contract that names the lesser posture"
	case posture.WallLandlock:
		return "a kernel from 5.13 on has it, where `lsm=` lists it; the other walls do without"
	}
	return ""
}
