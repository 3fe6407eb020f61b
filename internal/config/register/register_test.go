package register

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func revealAll(ss []holdfast.Secret) string {
	var out []string
	for _, s := range ss {
		out = append(out, s.Reveal())
	}
	return strings.Join(out, "|")
}

func TestReadReadsEverySource(t *testing.T) {
	dir := testfile.Write(t,
		map[string]string{"lines": "first secret \r\n\n  second/secret\n", "whole": "-----\nkey of\ntwo lines\n"})
	t.Setenv("HOLDFAST_TEST_SECRET", "from the environment")
	for from, want := range map[string]string{
		"file:" + dir + "/lines":                          "first secret|second/secret",
		"whole:" + dir + "/whole":                         "-----\nkey of\ntwo lines",
		"env:HOLDFAST_TEST_SECRET":                        "from the environment",
		"cmd:printf 'third one\\nfourth one'; echo x >&2": "third one|fourth one",
	} {
		r, err := Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		var m redact.Memory
		got, err := Read(t.Context(), &m, []Source{r})
		if err != nil || revealAll(got) != want {
			t.Errorf("%s gives %q, %v", from, revealAll(got), err)
		}
	}
}

func TestReadRefusesWhatItCannotHold(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"empty": "\n\n",
		"short": "long enough\nabc\n", "large": strings.Repeat("canary-", 10_000), "open": "canary-open"})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_TEST_LARGE", strings.Repeat("canary-", 10_000))
	for name, c := range map[string]struct {
		from Source
		say  string
	}{
		"nothing in it": {Source{File: dir + "/empty"}, "holds none"},
		"too short":     {Source{File: dir + "/short"}, "line 2 of "},
		"too large":     {Source{File: dir + "/large"}, "more than 65536 bytes"},
		"others read":   {Source{File: dir + "/open"}, "open"},
		"no file":       {Source{File: dir + "/none"}, "cannot read"},
		"a directory":   {Source{File: dir}, "not a regular file"},
		"no variable":   {Source{Env: "HOLDFAST_TEST_NONE"}, "is not set"},
		"long variable": {Source{Env: "HOLDFAST_TEST_LARGE"}, "more than 65536 bytes"},
		"fails":         {Source{Command: []string{"/bin/sh", "-c", "echo canary-out; echo canary-err >&2; exit 3"}}, "exit status 3"},
		"no program":    {Source{Command: []string{dir + "/none"}}, "cannot be started"},
		"endless":       {Source{Command: []string{"/bin/sh", "-c", "yes canary"}}, "more than 65536 bytes"},
	} {
		var m redact.Memory
		got, err := Read(t.Context(), &m, []Source{c.from})
		if err == nil || got != nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "canary-") {
			t.Errorf("%s: %d, %v", name, len(got), err)
		}
	}
}

// A command that hangs, and what it left behind with its output open, hold
// nobody up.
func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var m redact.Memory
	start := time.Now()
	_, err := Read(ctx, &m, []Source{{Command: []string{"/bin/sh", "-c", "sleep 30 & sleep 30"}}})
	if err == nil || time.Since(start) > 25*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestParseTakesNoValue(t *testing.T) {
	for _, text := range []string{"", "canary-hunter2", "file:", "env:", "env:canary-hunter2", "cmd:", "literal:canary-hunter2", "file:a\x00b"} {
		if r, err := Parse(text); holdfast.KindOf(err) != holdfast.KindUsage || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}
