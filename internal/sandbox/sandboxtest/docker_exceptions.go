package sandboxtest

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// dockerExceptions is every attempt that behind a Docker engine comes to something
// else than behind an OCI runtime, by the reason.
func dockerExceptions() reasons {
	return slices.Concat(unaskedExceptions(), engineExceptions())
}

// unaskedExceptions: the filter answers by itself, and cannot tell a first execve
// from a second.
func unaskedExceptions() reasons {
	unnamed := func(t *testing.T, _ *suite, res *posture.Result) { t.Helper(); endedUnnamed(t, res) }
	second := does("second\n")
	return reasons{
		{"it may become another program of its image, in the same walls", slices.Concat(
			each(second, "exec", "execve", "execve by a thread", "execve through proc self exe", "execve through proc self fd", "execve through dev fd", "the loader as a program"),
			each(sure("no trick\n", func(res *posture.Result) bool { return res.ExitCode == 2 && res.Reason == "" }), "exec", "a compiled program starts itself", "a compiled thread starts itself"),
			each(ends(posture.Completed, "", 0), "exec", "execve with no arguments"),
			each(denied("EFAULT"), "exec", "execve of nothing"))},
		{"of what it wrote itself nothing is executed, and asking does not end it", slices.Concat(
			each(fails("PermissionError"), "exec", "a script of its own", "a program of its own"),
			each(fails("PermissionError"), "identity", "a file that gives rights"))},
		{"signals to the init, which it is, are refused by the filter", slices.Concat(
			each(denied("EPERM"), "signal", "kill the init", "kill by thread", "kill by thread alone"),
			each(denied("EPERM"), "node", "kill the init"),
			each(fails("PermissionError"), "signal", "kill itself"))},
		{"the engine gives one number for a code and for a signal", slices.Concat(
			each(ends(posture.Completed, "", 139), "signal", "abort itself", "a fault"),
			each(ends(posture.Completed, "", 139), "node", "abort"),
			each(ends(posture.SyscallBlocked, posture.ReasonSyscall, 159), "signal", "a status that looks like a kill"))},
		{"nobody tells one foreign call from another", each(unnamed, "foreign",
			"int 0x80", "int 0x80 execve", "int 0x80 socketcall", "int 0x80 mount", "a far jump into 32 bits", "x32 getpid", "x32 execve", "x32 mount")},
		{"a number without a name ends it, whatever the runtime's library knows", each(unnamed, "kernel", "a number that nothing has")},
		{"nobody is there to answer what the machine has: there is no such call", slices.Concat(
			each(fails("PermissionError"), "limit", "core files"),
			[]exception{
				row("node/memory and load", `
say(os.totalmem()<2**20&&os.loadavg().every(n=>n===0)?'nothing':'reached')`, says("nothing")),
				{try: try{name: "property/how many threads there are is seen by no other run"}, holds: func(t *testing.T, s *suite) {
					denied("ENOSYS")(t, s, s.python(t, `
with attempt(): raw('sysinfo',ctypes.create_string_buffer(256))`))
				}},
			})},
	}
}

// engineExceptions: what the engine makes for every container, and what two of one
// image share.
func engineExceptions() reasons {
	empty := func(name, path string) exception {
		return row(name, `
say('empty' if not open('`+path+`').read() else 'reached')`, does("empty\n"))
	}
	return reasons{
		{"files of the engine's own, which are empty here", []exception{
			empty("files/read /etc/hostname", "/etc/hostname"), empty("files/read /etc/resolv.conf", "/etc/resolv.conf"), row("files/write /etc/passwd", "", denied("EROFS")),
			row("files/read /proc/self/root/etc", `
say('own' if sorted(os.listdir('/proc/self/root/etc'))==['hostname','hosts','mtab','resolv.conf'] else 'reached')`, does("own\n")),
			row("files/read /sys", `
say('empty' if not os.listdir('/sys') else 'reached')`, does("empty\n")),
			row("node/read /etc/resolv.conf", `
say(fs.readFileSync('/etc/resolv.conf').length===0?'empty':'reached')`, does("empty\n")),
			row("files/the only folders", "", does("beyond ['.dockerenv', 'etc', 'proc', 'sys', 'workspace']\n")),
		}},
		{"memory, queues and terminals of its own namespaces", slices.Concat(
			each(may, "files", "read /dev/shm", "read /dev/ptmx", "the times of a device"),
			each(may, "node", "a file in shared memory"),
			each(denied("EINVAL"), "terminal", "a terminal of its own"),
			each(does("['fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']\n"), "files", "the only devices"))},
		{"its standard input is /dev/null", slices.Concat(
			each(denied("EPERM"), "files", "the mode of its input"),
			[]exception{{try: try{name: "property/no descriptor leaks"}, holds: func(t *testing.T, s *suite) { opens(t, s, "0 0o20000\n1 0o10000\n2 0o10000\n") }}})},
		{"two runs of one image share its files, and the disk that they lie on: the posture says that they can tell each other something", []exception{
			{try: try{name: "property/a thread that ends wakes no other run"}}, {try: try{name: "property/a lock that its owner leaves wakes no other run"}},
			{try: try{name: "property/how full the disk is is not seen"}}, {try: try{name: "node/how full the disk is"}},
		}},
		{"the engine's own programs hold a lock on all of the host's /dev/null, which hides any other from who looks for it", []exception{{try: try{name: "property/a lock on a device is not seen by the host"}}}},
		{"a violation ends it each time, unnamed", []exception{{try: try{name: "property/attempts do not wear the walls"}, holds: func(t *testing.T, s *suite) {
			for range 5 {
				endedUnnamed(t, s.python(t, `raw('mount',None,None,None,0,None)`))
			}
		}}}},
	}
}
