package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func revealed(ss []holdfast.Secret) string {
	var out []string
	for _, s := range ss {
		out = append(out, s.Reveal())
	}
	return strings.Join(out, "|")
}

func TestRegisterReadsEverySource(t *testing.T) {
	dir := testfile.Write(t,
		map[string]string{"lines": "first secret \r\n\n  second/secret\n", "whole": "-----\nkey of\ntwo lines\n"})
	t.Setenv("HOLDFAST_TEST_SECRET", "from the environment")
	for from, want := range map[string]string{
		"file:" + dir + "/lines":                          "first secret|second/secret",
		"whole:" + dir + "/whole":                         "-----\nkey of\ntwo lines",
		"env:HOLDFAST_TEST_SECRET":                        "from the environment",
		"cmd:printf 'third one\\nfourth one'; echo x >&2": "third one|fourth one",
	} {
		r, err := ParseRegister(from)
		if err != nil {
			t.Fatal(err)
		}
		var m redact.Memory
		got, err := Register(t.Context(), &m, []RegisterConfig{r})
		if err != nil || revealed(got) != want {
			t.Errorf("%s gives %q, %v", from, revealed(got), err)
		}
	}
}

func TestRegisterRefusesWhatItCannotHold(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"empty": "\n\n",
		"short": "long enough\nabc\n", "large": strings.Repeat("canary-", 10_000), "open": "canary-open"})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_TEST_LARGE", strings.Repeat("canary-", 10_000))
	for name, c := range map[string]struct {
		from RegisterConfig
		say  string
	}{
		"nothing in it": {RegisterConfig{File: dir + "/empty"}, "holds none"},
		"too short":     {RegisterConfig{File: dir + "/short"}, "line 2 of "},
		"too large":     {RegisterConfig{File: dir + "/large"}, "more than 65536 bytes"},
		"others read":   {RegisterConfig{File: dir + "/open"}, "open"},
		"no file":       {RegisterConfig{File: dir + "/none"}, "cannot read"},
		"a directory":   {RegisterConfig{File: dir}, "not a regular file"},
		"no variable":   {RegisterConfig{Env: "HOLDFAST_TEST_NONE"}, "is not set"},
		"long variable": {RegisterConfig{Env: "HOLDFAST_TEST_LARGE"}, "more than 65536 bytes"},
		"fails":         {RegisterConfig{Command: []string{"/bin/sh", "-c", "echo canary-out; echo canary-err >&2; exit 3"}}, "exit status 3"},
		"no program":    {RegisterConfig{Command: []string{dir + "/none"}}, "cannot be started"},
		"endless":       {RegisterConfig{Command: []string{"/bin/sh", "-c", "yes canary"}}, "more than 65536 bytes"},
	} {
		var m redact.Memory
		got, err := Register(t.Context(), &m, []RegisterConfig{c.from})
		if err == nil || got != nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "canary-") {
			t.Errorf("%s: %d, %v", name, len(got), err)
		}
	}
}

// A command that hangs, and what it left behind with its output open, hold
// nobody up.
func TestRegisterEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var m redact.Memory
	start := time.Now()
	_, err := Register(ctx, &m, []RegisterConfig{{Command: []string{"/bin/sh", "-c", "sleep 30 & sleep 30"}}})
	if err == nil || time.Since(start) > 25*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestParseRegisterTakesNoValue(t *testing.T) {
	for _, text := range []string{"", "canary-hunter2", "file:", "env:", "env:canary-hunter2", "cmd:", "literal:canary-hunter2", "file:a\x00b"} {
		if r, err := ParseRegister(text); holdfast.KindOf(err) != holdfast.KindUsage || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestRedactSectionIsJudgedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"  register: [{}]":                           "holdfast.yaml:3: a source of secrets needs one of",
		"  register:\n    - {env: A, file: b}":       "holdfast.yaml:4: a source of secrets needs one of",
		"  register:\n    - {env: canary-hunter2}":   "holdfast.yaml:4: redact.register: that is no name",
		"  register:\n    - canary-hunter2":          "holdfast.yaml:4: redact.register[0]: no value stands in this file",
		"  register:\n    - {value: canary-hunter2}": `holdfast.yaml:4: unknown key "value"`,
		"  register:\n    - {env: A, whole: true}":   "holdfast.yaml:4: whole belongs to a file",
		"  register:\n    - {command: []}":           "holdfast.yaml:4: a command without a program",
		"  register:\n    - {file: nowhere}":         "holdfast.yaml:4: cannot read",
		"  probable: [everything]":                   "holdfast.yaml:3: redact.probable[0] must be one of",
		"  probable: secrets":                        "holdfast.yaml:3: redact.probable must be a list",
		"  unknown: 1":                               "holdfast.yaml:3: unknown key",
	} {
		_, err := load(t, "version: 1\nredact:\n"+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// What the log is given, in a message, an attribute, an error, a group or a
// logger's own attributes, passes the engine before any handler.
func TestLogHoldsNothingThatIsRegistered(t *testing.T) {
	var m redact.Memory
	e, err := redact.New(redact.Options{Literals: []holdfast.Secret{m.Secret([]byte("canary-hunter2"))}})
	if err != nil {
		t.Fatal(err)
	}
	for _, json := range []bool{false, true} {
		var b bytes.Buffer
		var h slog.Handler = slog.NewTextHandler(&b, nil)
		if json {
			h = slog.NewJSONHandler(&b, nil)
		}
		l := maskedLog(slog.New(h), e).With("who", "canary-hunter2").WithGroup("canary-hunter2")
		l.Info("a canary-hunter2 b", "s", "canary-hunter2", "err", errors.New("x canary-hunter2"), "any", struct{ A []string }{[]string{"canary-hunter2"}},
			slog.Group("g", "inner", []byte("canary-hunter2")), "canary-hunter2", 3, "secret", holdfast.NewSecret("canary-hunter2"), "nil", nil, "n", 7)
		text := b.String()
		if strings.Contains(text, "hunter2") || strings.Count(text, redact.MaskSecret) < 7 || !strings.Contains(text, "REDACTED") {
			t.Errorf("%s", text)
		}
	}
}

func TestPanicsOfTheDaemonAreLoggedAndMasked(t *testing.T) {
	var m redact.Memory
	var b bytes.Buffer
	e, err := redact.New(redact.Options{Literals: []holdfast.Secret{m.Secret([]byte("canary-hunter2"))}})
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{log: maskedLog(slog.New(slog.NewTextHandler(&b, nil)), e)}
	if err := d.guarded(func() { panic("lost canary-hunter2") }); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if strings.Contains(b.String(), "hunter2") || !strings.Contains(b.String(), "panicked") {
		t.Error(b.String())
	}
	if err := d.guarded(func() {}); err != nil {
		t.Error(err)
	}
	b.Reset()
	endpoint{d: d}.config(backend{name: "fs"}).Panicked("lost canary-hunter2", "stack canary-hunter2")
	if strings.Contains(b.String(), "hunter2") || !strings.Contains(b.String(), "panicked") {
		t.Errorf("the gateway's: %s", b.String())
	}
}

// The section makes the engine that is used: a registered secret, and a name
// that only its surroundings tell, do not come through; without it they do. A
// later change is said to wait for the next start.
func TestRedactSectionMakesTheEngine(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"secrets": "canary-hunter2\n",
		"holdfast.yaml": "version: 1\nredact: {register: [{file: secrets}], probable: [secrets, names]}\n"})
	state := filepath.Join(dir, "s")
	text := "the word canary-hunter2, from Dear Mr. John Smith, opened by key q8Zr4Tx1Lw9Nv3Bk7Jm2Hd6F"
	plain, err := redact.New(redact.Options{})
	if err != nil || plain.Text([]byte(text)).Found() {
		t.Fatalf("it is found anyway: %v", err)
	}
	d, err := Open(t.Context(), Options{State: state, Config: filepath.Join(dir, "holdfast.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := d.maskText(text); strings.Contains(got, "hunter2") || strings.Contains(got, "Smith") {
		t.Errorf("%s", got)
	}
	st, err := d.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	weaker := slices.ContainsFunc(st.Weakened, func(w string) bool { return strings.HasPrefix(w, "redact.register: ") })
	if weaker != (d.unlocked != "") {
		t.Errorf("weakened %q, unlocked %q", st.Weakened, d.unlocked)
	}
	if d.redactChanged() != "" {
		t.Error(d.redactChanged())
	}
	if err := os.WriteFile(filepath.Join(dir, "holdfast.yaml"), []byte("version: 1\n# moved\nredact: {register: [{file: secrets}], probable: [secrets]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(filepath.Join(dir, "holdfast.yaml"))
	if err == nil {
		err = d.apply(l)
	}
	if err != nil || !strings.Contains(d.redactChanged(), "started again") {
		t.Errorf("%q, %v", d.redactChanged(), err)
	}
}

// Memory that could not be locked is announced like every other weakening.
func TestUnlockedMemoryIsAnnounced(t *testing.T) {
	d, err := Open(t.Context(), Options{State: filepath.Join(testfile.Write(t, map[string]string{"x": ""}), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if w := d.own(d.loaded).Weakened; len(w) != 0 {
		t.Errorf("weakened without a reason: %q", w)
	}
	d.unlocked = "the system locks no more memory"
	if w := d.own(d.loaded).Weakened; len(w) != 1 || w[0] != "redact.register: the system locks no more memory" {
		t.Errorf("%q", w)
	}
}
