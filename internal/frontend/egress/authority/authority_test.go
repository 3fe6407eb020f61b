package authority

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

func TestAuthority_IsMadeOnceAndKeptSafe(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err != nil || !bytes.Equal(a.PEM(), b.PEM()) {
		t.Fatalf("opened again: %v", err)
	}
	key := filepath.Join(dir, authorityKey)
	if s, _ := os.Stat(key); s.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %o", s.Mode().Perm())
	}
	refuses := func(what string) {
		t.Helper()
		before, _ := os.ReadFile(key)
		_, err := Open(dir)
		var he *holdfast.Error
		if !errors.As(err, &he) || he.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
		if after, _ := os.ReadFile(key); !bytes.Equal(before, after) {
			t.Errorf("%s: the key was replaced", what)
		}
	}
	os.Chmod(key, 0o640)
	refuses("a key that a group can read")
	os.Chmod(key, 0o604)
	refuses("a key that everybody can read")
	os.Chmod(key, 0o600)
	good, _ := os.ReadFile(key)
	os.WriteFile(key, good[:len(good)/2], 0o600)
	refuses("half a key")
	other := t.TempDir()
	if _, err := Open(other); err != nil {
		t.Fatal(err)
	}
	strange, _ := os.ReadFile(filepath.Join(other, authorityKey))
	os.WriteFile(key, strange, 0o600)
	refuses("another key")
	os.Remove(key)
	refuses("no key beside a certificate")
	os.WriteFile(key, good, 0o600)
	if _, err := Open(dir); err != nil {
		t.Errorf("the good key again: %v", err)
	}
	os.Remove(filepath.Join(dir, authorityCert))
	refuses("no certificate beside a key")
}

func TestAuthority_LeavesAreForOneHostAndAFewAreKept(t *testing.T) {
	a, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h, _ := domain.ParseHost("good.test")
	one, err := a.Leaf(h)
	if err != nil {
		t.Fatal(err)
	}
	if two, _ := a.Leaf(h); two != one {
		t.Error("a leaf was made twice")
	}
	if one.Leaf.VerifyHostname("good.test") != nil || one.Leaf.VerifyHostname("x.good.test") == nil || one.Leaf.IsCA {
		t.Error("the leaf is for something else")
	}
	for i := range maxLeaves + 50 {
		h, _ := domain.ParseHost(fmt.Sprintf("n%d.test", i))
		if _, err := a.Leaf(h); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.used.Len(); n != maxLeaves || len(a.leaves) != n {
		t.Errorf("%d leaves are kept", n)
	}
	if _, err := a.Leaf(domain.Host{}); err == nil {
		t.Error("a certificate for no host")
	}
}
