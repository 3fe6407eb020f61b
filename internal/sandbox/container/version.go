package container

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// version is a runtime's own, as it says it.
type version struct {
	name  string // runc, crun, runsc
	text  string
	parts [3]int
}

var versionLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(runc|crun|runsc) version ([0-9A-Za-z.+~_-]{1,64})\s*$`)
})

// parseVersion reads what `RUNTIME --version` prints.
func parseVersion(out string) (version, error) {
	m := versionLine().FindStringSubmatch(out)
	if m == nil {
		return version{}, fmt.Errorf("it says %.80q of its version, and that is no word of runc, crun or runsc", out)
	}
	v := version{name: m[1], text: m[2]}
	numbers, _, _ := strings.Cut(strings.TrimPrefix(m[2], "release-"), "~")
	for i, part := range strings.SplitN(numbers, ".", 3) {
		part = part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(part)
		if err != nil || n > 99_999_999 {
			return version{}, fmt.Errorf("its version %q has no number", m[2])
		}
		v.parts[i] = n
	}
	return v, nil
}

// String is name and version.
func (v version) String() string { return v.name + " " + v.text }

// least are the first versions that hand the listener of a seccomp filter out
// (OCI runtime specification 1.0.2-dev, config-linux.md "seccomp").
var least = map[string][3]int{"runc": {1, 1, 0}, "crun": {0, 19, 0}}

// listens says whether the runtime hands out a filter's listener.
func (v version) listens() bool { _, ok := least[v.name]; return ok }

// platforms are the ways in which a runtime may be started, the best first.
// runsc's kvm is not among them: where the machine's KVM is none it hangs.
func (v version) platforms() []string {
	if v.name == "runsc" {
		return []string{"systrap", "ptrace"}
	}
	return []string{""}
}

// old says why a runtime is too old, or "".
func (v version) old() string {
	want := least[v.name]
	for i := range want {
		if c := cmp.Compare(v.parts[i], want[i]); c != 0 {
			if c < 0 {
				return fmt.Sprintf("%s hands out no listener of its filter, which begins with %s %d.%d", v, v.name, want[0], want[1])
			}
			break
		}
	}
	return ""
}
