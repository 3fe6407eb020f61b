package versions

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestArchiveCommand: a command gets the whole archive and its name; how it ends is
// recorded, and one that hangs is ended with all that it has started.
func TestArchiveCommand(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "  archive: {command: [/bin/sh, -c, 'exec /bin/sh ./send'], timeout: 2s}\n")
	dir := t.TempDir()
	s.write("a", strings.Repeat("good", 50_000))
	s.write("b", string(noise(300_000))) // more than a pipe holds
	m := s.taken()
	command := func(script string) (*archived, error) {
		s.configure(
			func(c *Archive) { c.Command = []string{"/bin/sh", "-c", "cd " + dir + "; " + script} },
		)
		return s.d.snapshots.archive(t.Context(), "me", m.ID, "asked for")
	}
	last := func() map[string]any {
		ev := s.events(m.ID, eventArchived)
		return ev[len(ev)-1]
	}
	for script, why := range map[string]string{
		"cat >/dev/null; echo no room; exit 3": "exit status 3: no room",
		"head -c 100 >/dev/null; exit 0":       "before it had read the whole archive",
		"exit 0":                               "before it had read the whole archive",
		"no-such-program":                      "exit status 127",
		"sleep 1000 & sleep 1000":              "took longer than 2s",
		"cat >/dev/null; setsid sleep 3 &":     "holds its output open",
	} {
		if _, err := command(script); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", script, err)
		}
		if ev := last(); ev["done"] != false || ev["error"] == nil {
			t.Errorf("%s: %v", script, ev)
		}
	}
	if ev := s.events(m.ID, eventArchived); !slices.ContainsFunc(ev, func(e map[string]any) bool { return e["said"] == "no room" }) {
		t.Errorf("%v", ev)
	}
	// What it leaves behind in a group of its own holds the archive up no longer than it.
	if _, err := command("exec 3<&0; setsid sleep 1000 >/dev/null 2>&1 & echo $! >left; exit 4"); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "left"))
	left, aerr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err := errors.Join(err, aerr); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(left, syscall.SIGKILL)
	s.configure(func(c *Archive) { c.Timeout = 0 })
	a, err := command(`cat > "$HOLDFAST_ARCHIVE" && echo sent`)
	if err != nil || a.Path != "" || a.Said != "sent" || a.Verified != beforeSent {
		t.Fatalf("%+v, %v", a, err)
	}
	if ev := last(); ev["done"] != true || ev["verified"] != beforeSent || ev["sha256"] != a.SHA256 {
		t.Errorf("%v", ev)
	}
	r, err := VerifyArchive(t.Context(), filepath.Join(dir, a.Archive), dir, nil)
	if err != nil || r.SHA256 != a.SHA256 || !r.OwnKey {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestArchiveThatIsGivenBack: what a command has is verified where it went, by another
// that gives it back. Whatever that one does, it is bounded, recorded and told, and
// nothing but the whole archive, byte for byte, passes.
func TestArchiveThatIsGivenBack(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "  archive: {command: [/bin/sh, -c, 'cat > there/$HOLDFAST_ARCHIVE'], verify: [/bin/sh, -c, 'cat there/$HOLDFAST_ARCHIVE'], timeout: 2s}\n")
	dir := t.TempDir()
	s.write("a", "good")
	s.write("b", string(noise(300_000)))
	m := s.taken()
	archive := func(script string) (*archived, error) {
		s.configure(func(c *Archive) {
			c.Command, c.Verify = []string{"/bin/sh", "-c", "cat > " + dir + "/$HOLDFAST_ARCHIVE"}, []string{"/bin/sh", "-c", "cd " + dir + "; " + script}
		})
		return s.d.snapshots.archive(t.Context(), "me", m.ID, "asked for")
	}
	last := func() map[string]any {
		ev := s.events(m.ID, eventArchived)
		return ev[len(ev)-1]
	}
	for script, why := range map[string]string{
		"echo other":                    "is not it: 6 bytes of SHA-256 ",
		"tr a b <$HOLDFAST_ARCHIVE":     "bytes of SHA-256 ",
		"head -c 100 $HOLDFAST_ARCHIVE": "is not it: 100 bytes",
		"exit 0":                        "is not it: nothing",
		"cat $HOLDFAST_ARCHIVE; echo":   "is not it: more than its ",
		"exec yes":                      "is not it: more than its ",
		"trap '' PIPE TERM; while :; do cat $HOLDFAST_ARCHIVE; done": "is not it: more than its ",
		"cat no-such-file >&2; exit 3":                               "gives it back failed: exit status 3: cat: ",
		"no-such-program":                                            "gives it back failed: exit status 127",
		"sleep 1000 & sleep 1000":                                    "took longer than 2s",
	} {
		a, err := archive(script)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %+v, %v", script, a, err)
		}
		if ev := last(); ev["done"] != false || ev["error"] == nil || ev["verified"] != nil {
			t.Errorf("%s: %v", script, ev)
		}
		if left, _ := filepath.Glob(filepath.Join(s.d.snapshots.Dir, scratchName+"*")); len(left) != 0 {
			t.Errorf("%s: %v is left", script, left)
		}
	}
	s.configure(func(c *Archive) { c.Timeout = 0 })
	a, err := archive("cat $HOLDFAST_ARCHIVE; echo gladly >&2")
	if err != nil || a.Verified != givenBack || a.To != archiveCommand {
		t.Fatalf("%+v, %v", a, err)
	}
	if ev := last(); ev["done"] != true || ev["verified"] != givenBack || ev["sha256"] != a.SHA256 {
		t.Errorf("%v", ev)
	}
}

// noise is text that does not pack.
func noise(n int) []byte {
	b, state := make([]byte, n), uint64(n)
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 56)
	}
	return b
}
