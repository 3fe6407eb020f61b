package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
)

// The latch is what the kernel asks for.
var _ kernel.Latch = (*latch.Latch)(nil)

func TestFindState(t *testing.T) {
	wd, _ := os.Getwd()
	cases := []struct {
		name, flag string
		env        []string
		want       string // empty: an error
	}{
		{"the flag comes first", "/f", []string{"HOLDFAST_STATE", "/e", "HOME", "/h"}, "/f"},
		{"a relative flag", "f/../g", nil, filepath.Join(wd, "g")},
		{"the environment", "", []string{"HOLDFAST_STATE", "/e", "XDG_STATE_HOME", "/x"}, "/e"},
		{"XDG", "", []string{"XDG_STATE_HOME", "/x", "HOME", "/h"}, "/x/holdfast"},
		{"a relative XDG is ignored", "", []string{"XDG_STATE_HOME", "x", "HOME", "/h"}, "/h/.local/state/holdfast"},
		{"home", "", []string{"HOME", "/h"}, "/h/.local/state/holdfast"},
		{"empty is a mistake", "", []string{"HOLDFAST_STATE", "", "HOME", "/h"}, ""},
		{"relative is another one elsewhere", "", []string{"HOLDFAST_STATE", "e", "HOME", "/h"}, ""},
		{"NUL", "a\x00b", nil, ""},
		{"nothing", "", nil, ""},
		{"a relative home", "", []string{"HOME", "h"}, ""},
	}
	for _, c := range cases {
		got, err := FindState(c.flag, env(c.env...))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestOpenState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p, err := OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; d != filepath.Dir(filepath.Dir(dir)); d = filepath.Dir(d) {
		if info, _ := os.Stat(d); info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v", d, info.Mode())
		}
	}
	seen := map[string]bool{}
	for _, f := range []string{p.DB, p.Lock, p.Sock, p.Halt, p.OperatorKey, p.OperatorPub, p.LedgerKey, p.SealKey, p.TokenKey, p.RuntimeID, p.Log} {
		if filepath.Dir(f) != p.Dir || seen[f] {
			t.Errorf("%s is twice or elsewhere", f)
		}
		seen[f] = true
	}
	if filepath.Base(p.Halt) != "HALT" || filepath.Base(p.Sock) != "sock" || filepath.Base(p.Lock) != "owner.lock" {
		t.Errorf("%+v", p)
	}
}

func TestOpenStateRefuses(t *testing.T) {
	cases := map[string]struct {
		make func(dir string) error
		want string
	}{
		"a file":           {func(d string) error { return os.WriteFile(d, nil, 0o600) }, "not a directory"},
		"others can enter": {func(d string) error { return dirMode(d, 0o755) }, "others can enter"},
		"the group can":    {func(d string) error { return dirMode(d, 0o710) }, "others can enter"},
		"parent writable":  {func(d string) error { return os.Chmod(filepath.Dir(d), 0o777) }, "can be written by others"},
		"dangling link":    {func(d string) error { return os.Symlink("/nowhere/at/all", d) }, ""},
		"link to itself":   {func(d string) error { return os.Symlink(d, d) }, ""},
		"of another user": {func(d string) error {
			if os.Geteuid() != 0 {
				return dirMode(d, 0o755)
			}
			return errors.Join(dirMode(d, 0o700), os.Chown(d, 12345, 12345))
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := stateDir(t)
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenState(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if _, err := OpenState("relative"); err == nil {
		t.Error("a relative directory was accepted")
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if _, err := OpenState(long); err == nil || !strings.Contains(err.Error(), "too long") || hintOf(err) == "" {
		t.Errorf("a long path: %v", err)
	}
}

func dirMode(path string, m os.FileMode) error {
	return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, m))
}

func TestLoadKeys(t *testing.T) {
	o, err := AcquireOwner(stateDir(t), noon)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Release()
	a, err := LoadKeys(o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadKeys(o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Runtime != b.Runtime || a.Ledger.Reveal() != b.Ledger.Reveal() || a.LedgerPub != b.LedgerPub || string(a.Seal) != string(b.Seal) || !a.Token.Equal(b.Token) {
		t.Fatal("a second load gives other keys")
	}
	checkKeys(t, a)
	for _, f := range keyFiles(o.Paths) {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(o.Paths.Dir, ".new-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func keyFiles(p Paths) []string { return []string{p.RuntimeID, p.SealKey, p.TokenKey, p.LedgerKey} }

func TestLoadKeysRefuses(t *testing.T) {
	whole := map[string]string{}
	o, err := AcquireOwner(stateDir(t), noon)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Release()
	if _, err := LoadKeys(o); err != nil {
		t.Fatal(err)
	}
	for _, f := range keyFiles(o.Paths) {
		b, _ := os.ReadFile(f)
		whole[f] = string(b)
	}
	put := func(f, text string) { _ = os.WriteFile(f, []byte(text), 0o600) }
	for _, f := range keyFiles(o.Paths) {
		good := whole[f]
		bad := map[string]string{
			"empty": "", "truncated": good[:len(good)/2], "no newline": strings.TrimSpace(good), "NUL": "\x00",
			"two lines": good + good,
			"enormous":  good + strings.Repeat("x", guard.MaxKeyFile), "not UTF-8": "\xff" + good,
			"zeros": good[:strings.LastIndex(good, " ")+1] + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		}
		for _, other := range keyFiles(o.Paths) {
			if other != f {
				bad["swapped with "+filepath.Base(other)] = whole[other]
			}
		}
		for name, text := range bad {
			put(f, text)
			if k, err := LoadKeys(o); err == nil {
				t.Errorf("%s, %s: accepted %v", filepath.Base(f), name, k)
			} else if secret := strings.TrimSpace(good[strings.LastIndex(good, " ")+1:]); strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: the error shows the key", filepath.Base(f), name)
			}
			if b, _ := os.ReadFile(f); string(b) != text {
				t.Errorf("%s, %s: the file was changed", filepath.Base(f), name)
			}
		}
		put(f, good)
		if err := os.Chmod(f, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKeys(o); err == nil || hintOf(err) == "" {
			t.Errorf("%s readable by the group: %v", filepath.Base(f), err)
		}
		if err := errors.Join(os.Rename(f, f+"2"), os.Symlink(f+"2", f), os.Chmod(f+"2", 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKeys(o); err == nil {
			t.Errorf("%s as a link was accepted", filepath.Base(f))
		}
		if err := os.Rename(f+"2", f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadKeys(o); err != nil {
		t.Fatalf("after all is put back: %v", err)
	}
	// With a store there, a lost key is not replaced by a new one.
	put(o.Paths.DB, "")
	if err := os.Remove(o.Paths.LedgerKey); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKeys(o); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("a lost ledger key: %v", err)
	}
	_ = o.Release()
	if _, err := LoadKeys(o); err == nil {
		t.Fatal("keys without the lock")
	}
}

func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}
