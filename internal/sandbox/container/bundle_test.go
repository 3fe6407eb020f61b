package container

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

func example() bundle {
	return bundle{
		id: "golden", args: []string{"/usr/bin/python3.11", "/code/main.py"}, env: []string{"HOME=/tmp"}, user: ociUser{workload, workload},
		rootfs: "/state/skeletons/a", entries: []entry{{"usr", "/state/root/usr"}}, code: "/run/code", work: "/run/work", network: "/proc/1/task/2/ns/net",
		memory: 4096 << 20, period: 100 * time.Millisecond, quota: 200 * time.Millisecond, group: "/holdfast-oci-1/run/container",
		rlimits: []ociRlimit{{"RLIMIT_NOFILE", 256, 256}}, arch: "SCMP_ARCH_X86_64", listener: "listener",
		rules: []sandbox.Rule{{Call: "read", Action: sandbox.RuleAllow}, {Call: "ptrace"}, {Call: "fsync", Action: sandbox.RuleFeign},
			{Call: "mmap", Action: sandbox.RuleAllow, When: []sandbox.Bits{{Arg: 3, Mask: 0x40000}}}, {Call: "mmap", When: []sandbox.Bits{{Arg: 3, Mask: 0x40000, Value: 0x40000}}}},
	}
}

// TestBundleGolden: what a runtime is given, word for word, as root and rootless.
func TestBundleGolden(t *testing.T) {
	less := example()
	less.user, less.self, less.group, less.network = ociUser{}, &ociUser{1000, 1000}, "", ""
	for name, b := range map[string]bundle{"root": example(), "rootless": less} {
		got, err := json.MarshalIndent(b.config(), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(got, '\n'), want) {
			t.Errorf("%s is not what stands in %s (-update writes it):\n%s", name, path, got)
		}
	}
}

// TestBundleKeepsTheFloor: whatever a bundle is made of, nothing of the document's
// floor is missing.
func TestBundleKeepsTheFloor(t *testing.T) {
	for _, b := range []bundle{{}, example()} {
		c := b.config()
		if !c.Root.Readonly || !c.Process.NoNewPrivileges || c.Process.Terminal || c.Process.Cwd != "/workspace" {
			t.Errorf("the floor is not there: %+v", c)
		}
		for set, list := range c.Process.Capabilities {
			if len(list) > 0 {
				t.Errorf("%s has %v", set, list)
			}
		}
		kinds := map[string]bool{}
		for _, n := range c.Linux.Namespaces {
			kinds[n.Type] = true
		}
		for _, want := range []string{"pid", "network", "ipc", "uts", "mount", "cgroup"} {
			if !kinds[want] {
				t.Errorf("no %s namespace", want)
			}
		}
		writable := 0
		for _, m := range c.Mounts {
			has := map[string]bool{}
			for _, o := range m.Options {
				has[o] = true
			}
			if !has["nosuid"] {
				t.Errorf("%s takes set-user-ID", m.Destination)
			}
			if m.Type == "bind" && !has["ro"] {
				writable++
			}
		}
		if writable != 1 {
			t.Errorf("%d writable mounts of the host, want the workspace alone", writable)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"runc version 1.1.5+ds1\ncommit: x\nspec: 1.0.2-dev\n": "runc 1.1.5+ds1",
		"crun version 1.8.1\ncommit: f8\n":                     "crun 1.8.1",
		"runsc version 0.0~20221219.0\nspec: 1.0.2-dev\n":      "runsc 0.0~20221219.0",
		"runsc version release-20231009.0\n":                   "runsc release-20231009.0",
		"runc version 1.0.3\n":                                 "old",
		"runc version 1.1.0-rc.1\n":                            "runc 1.1.0-rc.1",
		"crun version 0.18\n":                                  "old",
		"runc version 99999999999999999999\n":                  "",
		"runc version \n":                                      "",
		"hello":                                                "",
		"":                                                     "",
		"\x00\xff\nrunc version x\n":                           "",
	} {
		v, err := parseVersion(out)
		switch {
		case want == "":
			if err == nil {
				t.Errorf("%q is taken as %s", out, v)
			}
		case want == "old":
			if err != nil || v.old() == "" {
				t.Errorf("%q is not told to be too old: %v %v", out, v, err)
			}
		case err != nil || v.String() != want || v.old() != "":
			t.Errorf("%q is %s, %v, %s; want %s", out, v, err, v.old(), want)
		}
	}
}
