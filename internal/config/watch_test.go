package config

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// lines counts what was logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	dir := testfile.Write(t,
		map[string]string{"holdfast.yaml": "version: 1\nrules: {files: [rules.yaml]}\n", "rules.yaml": rulesFile})
	path := filepath.Join(dir, "holdfast.yaml")
	first, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *Loaded, 10)
	refuse := make(chan error, 1)
	var out lines
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Watch(ctx, first, func(l *Loaded) error {
			select {
			case err := <-refuse:
				return err
			default:
			}
			got <- l
			return nil
		}, slog.New(slog.NewTextHandler(&out, nil)))
	}()
	next := func(what string) *Loaded {
		t.Helper()
		select {
		case l := <-got:
			return l
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing was reloaded", what)
			return nil
		}
	}
	waitFor := func(what string, n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); out.count(what) < n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q was not logged %d times", what, n)
			}
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	put("rules.yaml", rulesFile+"# more\n")
	if l := next("a rules file"); l.Hash == first.Hash {
		t.Fatal("the same hash")
	}
	// A broken file keeps the old policy and is told once.
	put("holdfast.yaml", "version: 1\nboundries: []\n")
	waitFor("is not reloaded", 1)
	if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	// An editor that replaces the file; and what is refused by whoever
	// applies it.
	refuse <- errors.New("not now")
	put("new", "version: 1\nlimits: [{scope: agent, per_minute: 5}]\n")
	if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
		t.Fatal(err)
	}
	waitFor("is not applied", 1)
	put("holdfast.yaml", "version: 1\nlimits: [{scope: agent, per_minute: 6}]\n")
	if l := next("after a refusal"); l.Policy.Rates[0].PerMinute != 6 {
		t.Fatalf("%+v", l.Policy.Rates)
	}
	if out.count("is not reloaded") != 1 || len(got) != 0 {
		t.Errorf("told %d times, %d more reloads", out.count("is not reloaded"), len(got))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestWatchWithoutAFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Watch(ctx, &Loaded{}, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

// A file that is named before it exists is found when it comes, wherever.
func TestWatchFindsWhatWasMissing(t *testing.T) {
	t.Parallel()
	dir := testfile.Write(t, map[string]string{"c/holdfast.yaml": "version: 1\n", "r/rules.yaml.off": rulesFile})
	first, err := Load(filepath.Join(dir, "c/holdfast.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *Loaded, 1)
	var out lines
	// Changed after it was read and before it is watched.
	if err := os.WriteFile(first.Path, []byte("version: 1\nrules: {files: [../r/rules.yaml]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = watchFiles(t.Context(), first, func(l *Loaded) error { got <- l; return nil }, slog.New(slog.NewTextHandler(&out, nil)), 50*time.Millisecond)
	}()
	for end := time.Now().Add(time.Minute); out.count("is not reloaded") == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // it is looked at again and again, and told once
	if n := out.count("is not reloaded"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if err := os.Rename(filepath.Join(dir, "r/rules.yaml.off"), filepath.Join(dir, "r/rules.yaml")); err != nil {
		t.Fatal(err)
	}
	select {
	case l := <-got:
		if l.Policy.Rules == nil {
			t.Error("no rules")
		}
	case <-time.After(time.Minute):
		t.Fatal("not found")
	}
}
