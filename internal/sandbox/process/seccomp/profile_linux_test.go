package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

var update = flag.Bool("update", false, "write testdata/calls.txt anew")

// everyCall is every name that Linux has on the architectures that Holdfast
// runs on.
func everyCall() []string {
	names := map[string]bool{}
	for _, t := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		for n := range t.SyscallNames {
			names[n] = true
		}
	}
	for n := range newerCalls {
		names[n] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// class is what becomes of a call: of a conditional one, whose conditions are
// not met. (All arguments are 1, so that no identity asked for is root.)
func class(p *Profile, name string) string {
	ones := [6]uint64{1, 1, 1, 1, 1, 1}
	j := Call{Name: name, args: ones}.Evaluate()
	other := j.kind.String()
	if j.kind == kindRefused {
		other += " " + unix.ErrnoName(j.Errno)
	}
	for _, a := range p.allow {
		if a.name != name {
			continue
		}
		switch {
		case isAnswered(name):
			return "answered"
		case a.feigned:
			return "feigned"
		case len(a.when) == 0:
			return "allowed"
		case a.feign != nil:
			return "conditional or feigned, else " + other
		}
		return "conditional, else " + other
	}
	return other
}

// TestEveryCallIsClassified locks what becomes of each system call of Linux in
// each language (D16). What is in none of the lists is a violation, and stands
// in the file as one: a change of any is a change of that file.
func TestEveryCallIsClassified(t *testing.T) {
	python, node, static := PythonProfile(), NodeProfile(), StaticProfile()
	var b strings.Builder
	fmt.Fprintf(&b, "# What becomes of each system call: in every language, or in python3 | node | static.\n")
	for _, n := range everyCall() {
		c := []string{class(python, n), class(node, n), class(static, n)}
		line := strings.Join(c, " | ")
		if c[0] == c[1] && c[1] == c[2] {
			line = c[0]
		}
		fmt.Fprintf(&b, "%s: %s\n", n, line)
	}
	const file = "testdata/calls.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range got {
		if !slices.Contains(old, line) {
			t.Errorf("%s does not say: %s\n(if that is meant: go test ./internal/sandbox/process/seccomp -run %s -update, and look at what has changed)", file, line, t.Name())
		}
	}
	for _, line := range old {
		if !slices.Contains(got, line) {
			t.Errorf("%s says what is not so: %s", file, line)
		}
	}
}

// TestEachLanguagesOwnListIsHeld: no language's profile lets in what is no call, or what
// no program needs but to get out.
func TestEachLanguagesOwnListIsHeld(t *testing.T) {
	profiles := map[string]*Profile{"python3": PythonProfile(), "node": NodeProfile(), sandbox.Static: StaticProfile()}
	for name, p := range profiles {
		for _, a := range p.allow {
			if !knownCall(a.name) {
				t.Errorf("%s names %s, which is no system call", name, a.name)
			}
			if slices.Contains(words(escapes), a.name) {
				t.Errorf("%s lets %s in, which is an attempt to get out", name, a.name)
			}
		}
	}
}

// TestListsAreDisjoint: a name stands in one list only, once, and is a name; a
// call that passes under conditions is refused otherwise, on purpose.
func TestListsAreDisjoint(t *testing.T) {
	in := map[string][]string{}
	add := func(list string, names []string) {
		for _, n := range names {
			in[n] = append(in[n], list)
			if !knownCall(n) {
				t.Errorf("%s names %s, which is no system call", list, n)
			}
		}
	}
	add("documentCalls", words(documentCalls))
	for _, w := range widened {
		add("widened", words(w.calls))
	}
	for _, r := range refused {
		add("refused", words(r.calls))
	}
	add("escapes", words(escapes))
	add("becoming", words(becoming))
	for _, a := range limited {
		if l := in[a.name]; !slices.Equal(l, []string{"refused"}) && l != nil {
			t.Errorf("%s has conditions and stands in %v", a.name, l)
		}
		if _, ok := refusals()[a.name]; !ok {
			t.Errorf("%s has conditions, and is not refused when they fail", a.name)
		}
	}
	for n, l := range in {
		if len(l) != 1 {
			t.Errorf("%s stands in %v", n, l)
		}
	}
}

// TestAdditionsHaveReasons: what a profile has beyond the document's list says
// why (D18), and the document's list is there whole.
func TestAdditionsHaveReasons(t *testing.T) {
	document := append(words(documentCalls), "mmap", "ioctl", "prctl", "prlimit64", "fcntl", "madvise")
	for lang, p := range map[string]*Profile{"python3": PythonProfile(), "node": NodeProfile(), "static": StaticProfile()} {
		var names []string
		for _, a := range p.allow {
			if slices.Contains(names, a.name) {
				t.Errorf("%s allows %s twice: the filter looks at the first only", lang, a.name)
			}
			names = append(names, a.name)
			if a.why == "" && !slices.Contains(document, a.name) {
				t.Errorf("%s allows %s without a reason", lang, a.name)
			}
		}
		for _, n := range document {
			if !slices.Contains(names, n) {
				t.Errorf("%s lacks %s of the document's list", lang, n)
			}
		}
	}
	if n := len(document); n != 44 {
		t.Errorf("the document's list has %d calls", n)
	}
}

func TestNarrowing(t *testing.T) {
	p := PythonProfile()
	q, err := p.Without([]string{"unlink", "clone", "reboot"})
	if err != nil {
		t.Fatal(err)
	}
	if q.Passes("unlink", [6]uint64{}) || q.Passes("clone", [6]uint64{threadMust}) || !q.Passes("read", [6]uint64{}) {
		t.Error("without did not take away what it was told to")
	}
	if !p.Passes("unlink", [6]uint64{}) {
		t.Error("narrowing one run narrowed the language")
	}
	for _, a := range q.allow {
		if !slices.ContainsFunc(p.allow, func(b allowed) bool { return b.name == a.name }) {
			t.Errorf("without added %s", a.name)
		}
	}
	for _, bad := range []string{"", "unlinkk", "read\n", "*"} {
		if _, err := p.Without([]string{bad}); err == nil {
			t.Errorf("without(%q) took nothing away and did not say so", bad)
		}
	}
}

// TestJudge goes through what hangs on arguments or architecture.
func TestJudge(t *testing.T) {
	native, i386 := nativeArch(), uint32(tables()[1].ID)
	for _, c := range []struct {
		what string
		call Call
		want judgement
	}{
		{"a foreign architecture's read", NewCall(3, i386, [6]uint64{}), judgement{}},
		{"ptrace", Call{Name: "ptrace", arch: native}, judgement{}},
		{"TIOCSTI", Call{Name: "ioctl", args: [6]uint64{0, 0x5412}}, judgement{}},
		{"TIOCSTI with high bits", Call{Name: "ioctl", args: [6]uint64{0, 1<<32 | 0x5412}}, judgement{}},
		{"another ioctl", Call{Name: "ioctl", args: [6]uint64{0, 0x1234}}, judgement{kindRefused, unix.ENOTTY}},
		{"fork by clone", Call{Name: "clone", args: [6]uint64{uint64(unix.SIGCHLD)}}, judgement{kindRefused, unix.EPERM}},
		{"clone into a new user namespace", Call{Name: "clone", args: [6]uint64{unix.CLONE_NEWUSER}}, judgement{}},
		{"clone3", Call{Name: "clone3"}, judgement{kindRefused, unix.ENOSYS}},
		{"a TCP socket", Call{Name: "socket", args: [6]uint64{unix.AF_INET}}, judgement{kindRefused, unix.EACCES}},
		{"a netlink socket, as getaddrinfo opens", Call{Name: "socket", args: [6]uint64{unix.AF_NETLINK}}, judgement{kindRefused, unix.EACCES}},
		{"the kernel's cryptography by socket", Call{Name: "socket", args: [6]uint64{unix.AF_ALG}}, judgement{}},
		{"to become root", Call{Name: "setresuid", args: [6]uint64{5, 0, 5}}, judgement{}},
		{"to become another", Call{Name: "setuid", args: [6]uint64{1000}}, judgement{kind: kindViolation}},
		{"to install a filter by prctl", Call{Name: "prctl", args: [6]uint64{unix.PR_SET_SECCOMP}}, judgement{kind: kindViolation}},
		{"another prctl", Call{Name: "prctl", args: [6]uint64{unix.PR_SET_DUMPABLE}}, judgement{kindRefused, unix.EINVAL}},
		{"a call newer than the tables", NewCall(999, native, [6]uint64{}), judgement{kind: kindViolation}},
		{"pidfd_open, which asyncio and Go try", Call{Name: "pidfd_open"}, judgement{kindRefused, unix.ENOSYS}},
	} {
		if got := c.call.Evaluate(); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
