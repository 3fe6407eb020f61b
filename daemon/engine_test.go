package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
	"github.com/holdfast-dev/holdfast/internal/redact/redactlog"
)

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
		l := redactlog.New(slog.New(h), e).With("who", "canary-hunter2").WithGroup("canary-hunter2")
		l.Info("a canary-hunter2 b", "s", "canary-hunter2",
			"err", errors.New("x canary-hunter2"), "any", struct{ A []string }{[]string{"canary-hunter2"}},
			slog.Group(
				"g", "inner", []byte("canary-hunter2"),
			), "canary-hunter2", 3, "secret", holdfast.NewSecret("canary-hunter2"), "nil", nil, "n", 7)
		text := b.String()
		if strings.Contains(text, "hunter2") || strings.Count(text, placeholder.Secret) < 7 ||
			!strings.Contains(text, "REDACTED") {
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
	d := &Daemon{log: redactlog.New(slog.New(slog.NewTextHandler(&b, nil)), e)}
	if err := d.guarded(
		func() { panic("lost canary-hunter2") },
	); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if strings.Contains(b.String(), "hunter2") || !strings.Contains(b.String(), "panicked") {
		t.Error(b.String())
	}
	if err := d.guarded(func() {}); err != nil {
		t.Error(err)
	}
	b.Reset()
	opened, err := Open(t.Context(), Options{State: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	opened.log = d.log
	opened.newMCP(nil).Panicked("lost canary-hunter2", "stack canary-hunter2")
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
	if strings.Join(config.ListUntaken(d.began, d.config()), "; ") != "" {
		t.Error(strings.Join(config.ListUntaken(d.began, d.config()), "; "))
	}
	if err := os.WriteFile(filepath.Join(
		dir, "holdfast.yaml",
	), []byte("version: 1\n# moved\nredact: {register: [{file: secrets}], probable: [secrets]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(filepath.Join(dir, "holdfast.yaml"))
	if err == nil {
		err = d.apply(l)
	}
	if err != nil || !strings.Contains(strings.Join(config.ListUntaken(d.began, d.config()), "; "), "started again") {
		t.Errorf("%q, %v", strings.Join(config.ListUntaken(d.began, d.config()), "; "), err)
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
