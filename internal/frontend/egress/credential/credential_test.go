package credential

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// rowWith is a row whose credential comes from there.
func rowWith(s Source) *domain.Domain {
	return &domain.Domain{Name: "a.example.com",
		Credential: &domain.Credential{Header: "Authorization", Source: s.Text()}}
}

func TestEgress_Credential_isReadAgainAtEachUse(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"key": "first-value-of-the-key\nsecond line\n"})
	file := filepath.Join(dir, "key")
	var c Reader
	d := rowWith(Source{File: file})
	for _, want := range []string{"first-value-of-the-key", "another-value-of-it"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := c.Read(context.Background(), d)
		if err != nil || v.Reveal() != want {
			t.Fatalf("%v %v", v.Reveal(), err)
		}
	}
	// An answer may still show the one that was replaced.
	if known, n := c.ListSecrets(); len(known) != 2 || n != 2 {
		t.Errorf("%d known, %d changes", len(known), n)
	}
	t.Setenv("HF_TEST_CREDENTIAL", "Bearer of-the-environment")
	v, err := c.Read(context.Background(), rowWith(Source{Env: "HF_TEST_CREDENTIAL"}))
	if err != nil || v.Reveal() != "Bearer of-the-environment" {
		t.Fatal(v.Reveal(), err)
	}
	known, _ := c.ListSecrets()
	if len(known) != 3 || !strings.Contains(known[0].Reveal()+known[1].Reveal()+known[2].Reveal(), "of-the-environment") || strings.Contains(known[0].Reveal(), "Bearer") {
		t.Error("the value behind the scheme is not registered by itself")
	}
}

// Two rows with one value register it once, and that is found out when it is
// read, not for each request.
func TestEgress_Credential_equalValuesAreFoundOutOnce(t *testing.T) {
	var c Reader
	for i := range 40 {
		c.Keep(fmt.Sprintf("env:V%d", i), holdfast.NewSecret(fmt.Sprintf("the-value-of-number-%d", i%20)))
	}
	known, changes := c.ListSecrets()
	if len(known) != 20 || changes != 40 {
		t.Errorf("%d known, %d changes", len(known), changes)
	}
	if n := testing.AllocsPerRun(100, func() { c.ListSecrets() }); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
	c.Keep("env:V0", holdfast.NewSecret("another-value-of-it"))
	if known, _ := c.ListSecrets(); len(known) != 21 {
		t.Errorf("%d known after one was replaced", len(known))
	}
}

// What cannot be had is named by its row, without a value; a command that nobody
// asked is asked only where that is wanted.
func TestEgress_Credential_whatIsMissingIsNamed(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"key": "value-of-the-file\n", "empty": "\n"})
	var rows []domain.Domain
	for name, s := range map[string]Source{
		"file.example.com": {File: filepath.Join(dir, "key")}, "empty.example.com": {File: filepath.Join(dir, "empty")},
		"gone.example.com": {File: filepath.Join(dir, "gone")}, "env.example.com": {Env: "HF_TEST_NOT_SET"},
		"fails.example.com": {Command: []string{"/bin/sh", "-c", "echo hunter2hunter2; exit 3"}},
	} {
		d := *rowWith(s)
		d.Name = name
		rows = append(rows, d)
	}
	table, err := domain.NewTable(append(rows, domain.Domain{Name: "none.example.com"}))
	if err != nil {
		t.Fatal(err)
	}
	var c Reader
	say := func(ask bool) string {
		var names []string
		for _, m := range c.ListMissing(t.Context(), table, ask) {
			if m.Why == "" || m.Hint == "" || m.Header != "Authorization" ||
				strings.Contains(fmt.Sprint(m), "hunter2") {
				t.Errorf("%+v", m)
			}
			names = append(names, strings.TrimSuffix(m.Row, ".example.com"))
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for i, want := range []string{"empty env gone", "empty env fails gone", "empty env fails gone"} {
		if got := say(i == 1); got != want {
			t.Errorf("asked %d times: %q, want %q", i, got, want)
		}
	}
}

// A service quotes the name and password behind Basic, and the password alone.
func TestEgress_Credential_whatAServiceQuotesIsRegistered(t *testing.T) {
	var c Reader
	c.Keep("env:A", holdfast.NewSecret(base64.StdEncoding.EncodeToString([]byte("robot:not-a-word-77"))))
	known, _ := c.ListSecrets()
	var all []string
	for _, v := range known {
		all = append(all, v.Reveal())
	}
	for _, want := range []string{"cm9ib3Q6bm90LWEtd29yZC03Nw==", "robot:not-a-word-77", "not-a-word-77"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is not registered", want)
		}
	}
}

func TestEgress_Credential_commandRunsOnceAMinute(t *testing.T) {
	dir := t.TempDir()
	d := rowWith(
		Source{Command: []string{"/bin/sh", "-c", "echo x >>" + dir + "/runs; sleep 0.2; echo value-of-the-command"}},
	)
	var c Reader
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := c.Read(context.Background(), d); err != nil || v.Reveal() != "value-of-the-command" {
				t.Error(v.Reveal(), err)
			}
		})
	}
	wg.Wait()
	runs := func() int {
		b, err := os.ReadFile(dir + "/runs")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "x")
	}
	if runs() != 1 {
		t.Fatalf("it ran %d times for twenty at once", runs())
	}
	c.mu.Lock()
	c.printed[d.Credential.Source].at = time.Now().Add(-credentialFor - time.Second)
	c.mu.Unlock()
	if _, err := c.Read(context.Background(), d); err != nil || runs() != 2 {
		t.Fatalf("%v, %d runs", err, runs())
	}
}

// What cannot be had is an error that names the place and shows no value, and a
// command that failed is tried again.
func TestEgress_Credential_failuresAreSaidAndNotKept(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"open": "hunter2hunter2\n",
		"empty": "\n", "control": "hunter2\x01\n", "huge": strings.Repeat("hunter2", 10_000)})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := func(name string) Source { return Source{File: filepath.Join(dir, name)} }
	flag := filepath.Join(dir, "flag")
	for name, c := range map[string]struct {
		from Source
		want string
	}{
		"none":       {at("none"), "cannot read"},
		"open":       {at("open"), "open"},
		"empty":      {at("empty"), "does not hold a header's value"},
		"control":    {at("control"), "does not hold a header's value"},
		"huge":       {at("huge"), "more than"},
		"not set":    {Source{Env: "HF_TEST_NOT_SET"}, "is not set"},
		"no program": {Source{Command: []string{filepath.Join(dir, "none")}}, "the command cannot be started"},
		"fails": {Source{Command: []string{"/bin/sh", "-c", "echo hunter2hunter2; exit 3"}},
			"the command failed: exit status 3"},
		"prints much": {Source{Command: []string{"/bin/sh", "-c", "yes hunter2 | head -c 100000"}},
			"printed more than"},
		"prints lines": {Source{Command: []string{"/bin/sh", "-c", "echo; echo hunter2"}},
			"does not hold a header's value"},
	} {
		t.Run(name, func(t *testing.T) {
			var all Reader
			_, err := all.Read(context.Background(), rowWith(c.from))
			if err == nil {
				t.Fatal("read")
			}
			why, hint := usage.Explain(err)
			if !strings.Contains(why, "the credential of a.example.com: ") || !strings.Contains(why, c.want) || strings.Contains(why+hint, "hunter2") {
				t.Errorf("%q %q", why, hint)
			}
		})
	}
	var c Reader
	d := rowWith(Source{Command: []string{"/bin/sh", "-c", "test -e " + flag + " && echo value-at-last"}})
	if _, err := c.Read(context.Background(), d); err == nil {
		t.Fatal("read")
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Read(context.Background(), d); err != nil || v.Reveal() != "value-at-last" {
		t.Fatal(err)
	}
}

// A command that does not end is ended, with what it started.
func TestEgress_Credential_commandIsBounded(t *testing.T) {
	t.Parallel()
	var c Reader
	start := time.Now()
	_, err := c.Read(context.Background(), rowWith(Source{Command: []string{"/bin/sh", "-c", "sleep 60 & sleep 60"}}))
	if err == nil || !strings.Contains(err.Error(), "took longer than 5s") || time.Since(start) > 4*CommandTimeout {
		t.Fatalf("%v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start = time.Now()
	if _, err := c.Read(ctx,
		rowWith(Source{Command: []string{"sleep", "60"}})); err == nil || time.Since(start) > CommandTimeout {
		t.Fatalf("a caller who has gone is waited for: %v", err)
	}
}
