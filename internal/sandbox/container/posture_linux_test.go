package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestPosturesTellOfCallsAlike: the wall seccomp is an allowlist that holds, whoever
// names what is outside it; whether that is named is told apart, the same way of
// every runtime, and what becomes of other architectures' calls by their names.
func TestPosturesTellOfCallsAlike(t *testing.T) {
	oci := func(name, platform string) posture.Posture {
		c := &Tier{root: true, runtime: runtime{version: version{name: name, text: "1.2"}, platform: platform}}
		return c.seen(nil)
	}
	engine := func(options ...string) posture.Posture {
		d := &Docker{root: true, engine: &engine{api: "1.41"}, info: dockerInfo{SecurityOptions: options}}
		d.look()
		return d.posture
	}
	for name, c := range map[string]struct {
		p              posture.Posture
		allowed, named bool
	}{
		"runc":                   {oci("runc", ""), true, true},
		"crun":                   {oci("crun", ""), true, true},
		"runsc":                  {oci("runsc", "systrap"), false, false},
		"docker":                 {engine("name=seccomp,profile=default"), true, false},
		"docker without seccomp": {engine(), false, false},
	} {
		told := func(words string) bool {
			return slices.ContainsFunc(c.p.Notes, func(n string) bool { return strings.Contains(n, words) })
		}
		if up := slices.Contains(c.p.Up, posture.WallSeccomp); up != c.allowed || up == (c.p.Down[posture.WallSeccomp] != "") || c.p.Names != c.named || told("no call is named: ") == c.named || !told("another architecture (i386, x32)") {
			t.Errorf("%s: %+v", name, c.p)
		}
	}
}
