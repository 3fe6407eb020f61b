package sandboxtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// containerExceptions is every attempt that in a container comes to something
// else than in the process tier, by the reason.
func containerExceptions() reasons {
	return slices.Concat(firstExceptions(), filterExceptions(), foundExceptions(), heldExceptions())
}

// firstExceptions: the program is number 1 of its namespace.
func firstExceptions() reasons {
	holds := func(name string, f func(*testing.T, *suite)) exception {
		return exception{try: try{name: "property/" + name}, holds: f}
	}
	goesOn := row("signal/stop itself", "", ends(posture.Completed, "", 0))
	goesOn.spec = soon(20_000) // it comes to its end, and needs the time to begin
	return reasons{
		{"the first process of a namespace is sent signals by none in it, itself among them", slices.Concat(
			each(may, "signal", "kill the init", "ask after the init", "kill by thread", "kill by thread alone"),
			each(may, "node", "kill the init"),
			[]exception{goesOn},
			each(ends(posture.Completed, "", 0), "signal", "kill itself"),
			each(ends(posture.Completed, "", 0), "node", "kill itself"))},
		{"so abort ends it by the fault that the C library then makes", slices.Concat(
			each(ends(posture.Completed, posture.ReasonSignal, 139), "signal", "abort itself"),
			each(ends(posture.Completed, posture.ReasonSignal, 139), "node", "abort"))},
		{"the init is itself", slices.Concat(
			each(does("reached\n"), "node", "debug the init"),
			each(does("reached\n"), "look", "another's limits"),
			each(says("parent 0\n"), "look", "its parent is not of the host"),
			[]exception{
				holds("no way and no device", func(t *testing.T, s *suite) {
					res := s.python(t, `
import socket
try: say(socket.if_nameindex())
except OSError as e: say('none')
say('pid',os.getpid())`)
					if string(res.Stdout) != "none\npid 1\n" {
						t.Errorf("%q", res.Stdout)
					}
				}),
				holds("nothing but itself is seen", func(t *testing.T, s *suite) { seesAlone(t, s, "[1]\n") }),
				holds("two at once share no names", func(t *testing.T, s *suite) { bindNames(t, s, 1) }),
			})},
	}
}

// filterExceptions: the filter is built by the runtime's libseccomp, from a
// configuration that names calls.
func filterExceptions() reasons {
	unnamed := func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		never(t, res)
		if res.State != posture.SyscallBlocked || res.ExitCode != posture.ExitSyscall || res.Reason != posture.ReasonEscape {
			t.Errorf("ended as %s %d %q, want an escape", res.State, res.ExitCode, res.Reason)
		}
	}
	died := func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		never(t, res)
		if res.State != posture.Timeout && (res.State != posture.SyscallBlocked || res.Reason != posture.ReasonEscape) {
			t.Errorf("ended as %s %d %q", res.State, res.ExitCode, res.Reason)
		}
	}
	// Where the library knows the name it is a violation, or an escape.
	newer := func(name, call string) exception {
		return row(name, "", func(t *testing.T, s *suite, res *posture.Result) {
			t.Helper()
			if res.Call == nil {
				denied("ENOSYS")(t, s, res)
				return
			}
			killed(call, res.Reason)(t, s, res)
		})
	}
	thread := func(name string) exception {
		x := row("foreign/"+name, "", died)
		x.spec = soon(1500)
		return x
	}
	compiled := func(name, trick string) exception {
		x := thread(name)
		x.static = trick
		return x
	}
	return reasons{
		{"calls of another architecture cannot have rules of their own in an OCI configuration: the kernel ends the program, and nobody is asked for a name", each(unnamed, "foreign",
			"int 0x80", "int 0x80 execve", "int 0x80 socketcall", "int 0x80 mount", "a far jump into 32 bits", "x32 getpid", "x32 execve", "x32 mount")},
		{"of several threads it ends the one", []exception{thread("int 0x80 getpid by a thread"), compiled("int 0x80 in a compiled program", "int80"), compiled("int 0x80 in a compiled thread", "int80thread")}},
		{"runc answers what is newer than its library with ENOSYS before the filter sees it", []exception{
			newer("mount/open_tree_attr", "open_tree_attr"), newer("mount/statmount", "statmount"), newer("mount/listmount", "listmount"), newer("mount/listns", "listns"), newer("kernel/security modules", "lsm_get_self_attr"),
			row("kernel/a number that nothing has", "", denied("ENOSYS"))}},
	}
}

// foundExceptions: a runtime raises a /proc and the usual devices.
func foundExceptions() reasons {
	own := func(names ...string) []exception { return each(may, "files", names...) }
	return reasons{
		{"a /proc of itself, of which what tells of the host is masked", slices.Concat(
			own("read /proc", "read /proc/self/exe", "read /proc/self/mem", "read /proc/self/environ", "read /proc/self/fd/0", "read /proc/1/status", "read /proc/kallsyms", "read /proc/thread-self/attr/current",
				"read /proc/1/environ", "read /proc/1/root", "read /proc/1/cwd", "read /proc/1/ns/net", "read /proc/1/mem"),
			each(may, "node", "read /proc/self/environ", "read /proc/self/maps", "read /proc/self/exe", "read /proc/1/cmdline", "read /proc/sys/kernel/hostname", "open /proc/self/mem", "with a clock of shared memory"))},
		{"harmless devices", slices.Concat(own("read /dev/zero", "read /dev/random", "read /dev/stdin"),
			each(may, "node", "open /dev/zero", "open /dev/full"),
			each(denied("ENXIO"), "node", "open /dev/tty"), each(denied("ENXIO"), "terminal", "the terminal device"),
			each(does("['fd', 'full', 'null', 'ptmx', 'random', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']\n"), "files", "the only devices"))},
		{"its standard input is a pipe of the runtime's, which has ended", slices.Concat(own("the times of a device by its descriptor", "the mode of its input"),
			[]exception{{try: try{name: "property/no descriptor leaks"}, holds: func(t *testing.T, s *suite) { opens(t, s, "0 0o10000\n1 0o10000\n2 0o10000\n") }}})},
		{"its workspace and its /proc", each(does("beyond ['proc', 'workspace']\n"), "files", "the only folders")},
		{"what it looks through has a /proc, whose pipes and memory are read without waiting", []exception{{try: try{name: "property/no secret is found"}, holds: secretInProc}}},
	}
}

// heldExceptions: the limits are the container tier's.
func heldExceptions() reasons {
	return reasons{
		{"its limits are others, which internal/sandbox tries", []exception{{try: try{name: "property/bad requests are named"}}}},
	}
}

// secretInProc: nothing of Holdfast's environment is found, through /proc either.
func secretInProc(t *testing.T, s *suite) {
	secret := newSecret()
	t.Setenv("SUITE_SECRET", secret)
	code := strings.Replace(findSecret, "with open(os.path.join(d,n),'rb') as f: b=f.read()", "with open(os.open(os.path.join(d,n),os.O_NONBLOCK),'rb') as f: b=f.read(1<<20) or b''", 1)
	if code == findSecret {
		t.Fatal("the search reads files in other words")
	}
	res := s.python(t, code, func(spec *sandbox.Spec) { spec.Timeout = 3 * time.Minute }) // it looks through all of the runtime
	if out := string(res.Stdout); !strings.Contains(out, "looked in ") || !strings.HasSuffix(out, "found []\n") {
		t.Errorf("IT FOUND THE SECRET: %q %.600q", out, res.Stderr)
	}
}
