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

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/redactlog"
	"github.com/holdfast-dev/holdfast/ledger"
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
		l := redactlog.New(slog.New(h), detector.NewRecords(e, nil)).With("who",
			"canary-hunter2").WithGroup("canary-hunter2")
		l.Info("a canary-hunter2 b", "s", "canary-hunter2",
			"err", errors.New("x canary-hunter2"), "any", struct{ A []string }{[]string{"canary-hunter2"}},
			slog.Group(
				"g", "inner", []byte("canary-hunter2"),
			), "canary-hunter2", 3, "secret", holdfast.NewSecret("canary-hunter2"), "nil", nil, "n", 7)
		text := b.String()
		if strings.Contains(text, "hunter2") || strings.Count(text, mask.Secret) < 7 ||
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
	d := &Daemon{log: redactlog.New(slog.New(slog.NewTextHandler(&b, nil)), detector.NewRecords(e, nil))}
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

// detectorOf has a shell find "Smith" in a text in which nothing is escaped.
const detectorOf = `version: 1
redact:
  register: [{file: secrets}]
  detector:
    timeout: 20s
    command: [sh, -c, 'while IFS= read -r line; do
      id=${line#*:}; id=${id%%,*}; text=${line#*text\":\"}; found=; before=${text%%Smith*};
      if [ "$before" != "$text" ]; then found="{\"start\":${#before},\"end\":$((${#before} + 5)),\"kind\":\"name\"}"; fi;
      echo "{\"id\":$id,\"findings\":[$found]}"; done']
`

// A name that the detector finds reaches neither the log, nor a text of the ledger, nor an alert; what a caller is
// answered is not a record. A detector that has ended hides all of their texts, and no word of the ledger.
func TestDetectorMasksTextsOfRecords(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"secrets": "canary-hunter2\n", "holdfast.yaml": detectorOf})
	var b bytes.Buffer
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: filepath.Join(dir, "holdfast.yaml"),
		Log: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	said := func(text string) (inLog, inAlert, inLedger, inAnswer string) {
		t.Helper()
		b.Reset()
		d.log.Info("said", "text", text)
		inLog = b.String()
		if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "said", Who: "a", Subject: "b",
			Data: map[string]any{"why": text, "state": "open"}}); err != nil {
			t.Fatal(err)
		}
		err := d.store.View(t.Context(), func(tx kernel.Tx) error {
			heads, err := tx.Heads()
			at := slices.IndexFunc(heads, func(h ledger.Head) bool { return h.Tenant == holdfast.Local })
			if err != nil || at < 0 {
				return err
			}
			l, err := tx.Leaf(holdfast.Local, heads[at].Size-1)
			inLedger = string(l.Record)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return inLog, d.maskText(text), inLedger, string(d.mask([]byte(text)))
	}
	inLog, inAlert, inLedger, inAnswer := said("of Smith and canary-hunter2")
	for _, text := range []string{inLog, inAlert, inLedger} {
		if !strings.Contains(text, "of [pii redacted] and [secret redacted]") || strings.Contains(text, "Smith") {
			t.Error(text)
		}
	}
	if inAnswer != "of Smith and [secret redacted]" {
		t.Error(inAnswer)
	}
	d.detector.Close()
	inLog, inAlert, inLedger, _ = said("of nothing")
	if !strings.Contains(inLog, `text="[secret redacted]"`) || inAlert != "[secret redacted]" ||
		!strings.Contains(inLedger, `"why":"[secret redacted]"`) || !strings.Contains(inLedger, `"state":"open"`) {
		t.Error(inLog, inAlert, inLedger)
	}
}

// Keys that have no effect any longer are named in the log.
func TestStartNamesDeprecatedKeys(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"holdfast.yaml": "version: 1\nredact: {probable: [names]}\n"})
	var b bytes.Buffer
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: filepath.Join(dir, "holdfast.yaml"),
		Log: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !strings.Contains(b.String(), "msg=deprecated") || !strings.Contains(b.String(),
		"redact: probable is deprecated") {
		t.Error(b.String())
	}
}

// The section makes the engine that is used: a registered secret, and a name
// that the detector finds, do not come through; without it they do. A
// later change is said to wait for the next start.
func TestRedactSectionMakesTheEngine(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"secrets": "canary-hunter2\n",
		"holdfast.yaml": detectorOf})
	state := filepath.Join(dir, "s")
	text := "the word canary-hunter2, from Dear Mr. John Smith, opened by lot q8Zr4Tx1Lw9Nv3Bk7Jm2Hd6F"
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
	), []byte("version: 1\n# moved\nredact: {register: [{file: secrets}]}\n"), 0o600); err != nil {
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

// The detectors of rows start with the daemon, follow the configuration, are shown when they do not start, and end with
// the daemon.
func TestRowsDetectorsFollowTheConfiguration(t *testing.T) {
	const row = "version: 1\negress:\n  domains:\n    a.example.com:\n      redact: {detector: {command: [PROGRAM]}}\n"
	dir := testfile.Write(t, map[string]string{"holdfast.yaml": strings.ReplaceAll(row, "PROGRAM", "/no/such/program")})
	path := filepath.Join(dir, "holdfast.yaml")
	d, err := Open(t.Context(), Options{State: filepath.Join(dir, "s"), Config: path})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	list := d.detectors.Health()
	if len(list) != 1 || !strings.Contains(list[0], `cannot start the redaction detector "/no/such/program"`) {
		t.Error(list)
	}
	finder := func() detector.Finder {
		return d.detectors.FinderOf(d.snapshot().Domains.Domains()[0].Detector)
	}
	if _, err := finder().Find(t.Context(), []byte("Smith")); !detector.IsFailure(err) {
		t.Error(err)
	}
	_, program, _ := strings.Cut(detectorOf, "command: [")
	program = strings.TrimSuffix(strings.TrimSpace(program), "]")
	text := strings.ReplaceAll(row, "[PROGRAM]", "["+program+"], timeout: 20s")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.apply(l); err != nil {
		t.Fatal(err)
	}
	found, err := finder().Find(t.Context(), []byte("of Smith"))
	if err != nil || len(found) != 1 || found[0].Offset != 3 || d.detectors.Health() != nil {
		t.Error(found, err, d.detectors.Health())
	}
	if e := d.newToolEngine()(); e.Detector(d.snapshot().Domains.Domains()[0].Detector) == nil {
		t.Error("tools have no detectors")
	}
	last := finder()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := last.Find(context.Background(), []byte("of Smith again")); !errors.Is(err, detector.ErrClosed) {
		t.Error(err)
	}
}
