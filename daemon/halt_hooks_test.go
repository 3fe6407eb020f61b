package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/halthook"
	"github.com/holdfast-dev/holdfast/ledger"
)

// haltHooked is a state whose hooks write a line into a file each time they run.
type haltHooked struct {
	t   *testing.T
	opt Options
	dir string
}

// newHaltHooked makes one; HERE in a hook's script is its directory.
func newHaltHooked(t *testing.T, scripts ...string) *haltHooked {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := quiet + "alerts:\n  halt_hooks:\n"
	for i, s := range scripts {
		b, err := json.Marshal(strings.ReplaceAll(s, "HERE", dir))
		if err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("    - {name: hook %d, command: [/bin/sh, -c, %s], env: [HF_TEST_NAMED], timeout: 20s}\n", i, b)
	}
	h := &haltHooked{t, Options{State: filepath.Join(dir, "s"), Config: filepath.Join(dir, "holdfast.yaml"), Version: "test"}, dir}
	if err := os.WriteFile(h.opt.Config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *haltHooked) at(name string) string { return filepath.Join(h.dir, name) }

func (h *haltHooked) lines(name string) []string {
	b, _ := os.ReadFile(h.at(name))
	return strings.Fields(string(b))
}

// soon waits until what is.
func (h *haltHooked) soon(what string, is func() bool) {
	h.t.Helper()
	for start := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			h.t.Fatalf("waited too long for %s", what)
		}
	}
}

// runs are the events of hooks, in their order, once there are so many.
func (h *haltHooked) runs(d *Daemon, n int) (out []map[string]any) {
	h.t.Helper()
	h.soon(fmt.Sprintf("%d runs of hooks", n), func() bool { return countEvents(h.t, d, "halt_hook") >= n })
	err := d.Store().View(h.t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
			if l.Kind != ledger.KindEvent {
				return nil
			}
			e, err := ledger.ParseEvent(l.Record)
			if err != nil || e.Name != "halt_hook" {
				return err
			}
			data := map[string]any{"name": e.Subject}
			out = append(out, data)
			return json.Unmarshal(e.Data, &data)
		})
	})
	if err != nil || len(out) != n {
		h.t.Fatalf("%v: %d hooks are recorded, not %d: %v", err, len(out), n, out)
	}
	return out
}

// Hooks run once a halt, when the latch is set: said twice, seen by two who watch,
// or found by the daemon after this one, it is one halt. Another halt is another.
func TestD34_HaltHooks_once_a_halt(t *testing.T) {
	h := newHaltHooked(t, `test -e "$HOLDFAST_STATE/HALT" && echo set >> HERE/ran`, "cat > HERE/told")
	d, c, down := serve(t, h.opt)
	for range 3 {
		if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "it loops"}); err != nil {
			t.Fatal(err)
		}
	}
	h.runs(d, 2)
	if b, _ := os.ReadFile(h.at("told")); !strings.Contains(string(b), "it loops") || !json.Valid(b) {
		t.Errorf("a hook was told %q", b)
	}
	st, err := c.Status(t.Context())
	if err != nil || len(st.HaltHooks) != 2 || st.HaltHooks[0].Name != "hook 0" || st.HaltHooks[0].Error != "" || st.HaltHooks[0].At.IsZero() {
		t.Errorf("%v %+v", err, st.HaltHooks)
	}
	down()
	// Who looks without a daemon sees the same; the next daemon runs none again.
	if got := halthook.ReadRuns(hooksFile(d.Paths), d.Paths.Halt); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	d, c, down = serve(t, h.opt)
	defer func() { down() }()
	if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "again"}); err != nil {
		t.Fatal(err)
	}
	// A halt after it is another one: here the latch goes and comes by hand.
	if err := os.Remove(d.Paths.Halt); err != nil {
		t.Fatal(err)
	}
	h.soon("the latch's removal to be seen", func() bool { return countEvents(t, d, "halt_latch_removed") == 1 })
	if err := os.WriteFile(d.Paths.Halt, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.runs(d, 4)
	if got := h.lines("ran"); !slices.Equal(got, []string{"set", "set"}) {
		t.Errorf("the hooks of two halts ran %q", got)
	}
}

// A halt that was set while nobody ran, by a touch as in the document, has its hooks
// run by who starts next; one that the daemon's end breaks off is run by the next.
func TestD34_HaltHooks_found_at_the_start(t *testing.T) {
	h := newHaltHooked(t, `echo ran >> HERE/ran; echo $$ > HERE/pid; test -e HERE/go || sleep 1000`)
	if err := os.MkdirAll(h.opt.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.opt.State, "HALT"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, _, down := serve(t, h.opt)
	h.soon("the hook", func() bool { return len(h.lines("pid")) == 1 })
	down()
	if got := halthook.ReadRuns(hooksFile(d.Paths), d.Paths.Halt); len(got) != 0 {
		t.Errorf("what was broken off counts as run: %+v", got)
	}
	if err := os.WriteFile(h.at("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, _, down = serve(t, h.opt)
	h.runs(d, 1)
	down()
	d, err := Open(t.Context(), h.opt) // a command that owns the state, beside no daemon
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := d.RunHaltHooks(t.Context()); len(got) != 1 || got[0].Error != "" || len(h.lines("ran")) != 2 {
		t.Errorf("%+v, and it ran %d times", got, len(h.lines("ran")))
	}
}

// A hook that fails, hangs with a child, prints without end or wants what it is not
// given holds nobody up: what was in flight is cut before, the next one runs, each
// is recorded with what became of it, and a failure is said.
func TestD34_HaltHooks_that_fail(t *testing.T) {
	t.Setenv("HF_TEST_NAMED", "given")
	t.Setenv("HF_TEST_SECRET", "kept back")
	h := newHaltHooked(t, "echo no such workflow >&2; exit 3", "exec 3> HERE/pipe; sleep 1000 & wait", "yes 'a long story'| head -c 20000000",
		`echo "[$HF_TEST_NAMED$HF_TEST_SECRET]"`, "exec /nowhere/at/all")
	text, err := os.ReadFile(h.opt.Config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `wait"], env: [HF_TEST_NAMED], timeout: 20s`, `wait"], timeout: 1s`, 1))
	if err := os.WriteFile(h.opt.Config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	childless := make(chan error, 1)
	if err := syscall.Mkfifo(h.at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _, err := os.ReadFile(h.at("pipe")); childless <- err }() // until nobody has it any more
	d, c, down := serve(t, h.opt)
	defer down()
	tok, err := d.Mint(holdfast.Identity{Agent: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := d.Kernel.Enter(t.Context(), holdfast.Request{Boundary: "agent/step", Payload: []byte(`{"action":"go"}`), Token: tok}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Halt(t.Context(), api.Word{Who: "carol", Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-x.Context().Done():
	default:
		t.Error("what was in flight waits for the hooks")
	}
	got := h.runs(d, 5)
	for i, want := range []struct {
		ok   bool
		said string
	}{{false, "no such workflow"}, {false, ""}, {true, "a long story"}, {true, "[given]"}, {false, "nowhere"}} {
		said, _ := got[i]["said"].(string)
		if got[i]["name"] != fmt.Sprint("hook ", i) || got[i]["ok"] != want.ok || !strings.Contains(said, want.said) || len(said) > 600 {
			t.Errorf("hook %d: %v", i, got[i])
		}
	}
	if why, _ := got[1]["error"].(string); !strings.Contains(why, "longer than 1s") {
		t.Errorf("the one that hangs: %v", got[1])
	}
	select {
	case <-childless:
	case <-time.After(time.Minute):
		t.Error("what a hook has started goes on after it")
	}
	st, err := c.Status(t.Context())
	if said := strings.Join(st.Problems, "\n"); err != nil || !strings.Contains(said, "the halt hook hook 0 failed: exit status 3: no such workflow") || strings.Count(said, "the halt hook") != 3 {
		t.Errorf("%v %s", err, said)
	}
}

// TestHaltHooksAreNotRepeatedOnceTheLatchIsGone: a halt that is said again has its hooks behind it, also where the
// latch is lifted before they would run.
func TestHaltHooksAreNotRepeatedOnceTheLatchIsGone(t *testing.T) {
	h := newHaltHooked(t, "echo ran >> HERE/ran")
	d, err := Open(t.Context(), h.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range 2 {
		if _, err := d.Kernel.Halt("carol", fmt.Sprint("for the ", i)); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := os.Remove(d.Paths.Halt); err != nil {
				t.Fatal(err)
			}
		}
		d.RunHaltHooks(t.Context())
		if got := h.lines("ran"); len(got) != 1 {
			t.Fatalf("after %d halts the hook ran %d times", i+1, len(got))
		}
	}
}
