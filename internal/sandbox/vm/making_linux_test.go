package vm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestTemplateIsMadeForWhoeverWaits: the first asker's end does not take the
// machine from the next, and the last one's ends it.
func TestTemplateIsMadeForWhoeverWaits(t *testing.T) {
	b := machineThat(t, "exec sleep 600")
	one, _, err := b.join()
	two, _, err2 := b.join()
	if err != nil || err2 != nil || one == nil || one != two {
		t.Fatalf("%v %v: %p %p", err, err2, one, two)
	}
	if b.leave(one) {
		t.Error("it is given up while one waits")
	}
	select {
	case <-one.done:
		t.Errorf("it ended: %v", one.err)
	default:
	}
	if !b.leave(two) {
		t.Error("it goes on for nobody")
	}
	<-one.done
	if one.made != nil || one.err == nil {
		t.Errorf("%v %v", one.made, one.err)
	}
	if three, _, err := b.join(); err != nil || three == one {
		t.Errorf("who comes later joins what was given up (%v)", err)
	}
}

// TestGuestThatLacksAFileSaysSo: a kernel with too little memory unpacks a part of
// its file system and goes on, and so would a guest without its languages.
func TestGuestThatLacksAFileSaysSo(t *testing.T) {
	mark := filepath.Join(t.TempDir(), guestWhole)
	hello := greeting{Languages: []string{"python3.11", sandbox.Static}, Absent: map[string]string{"node": "bus error"}}
	for _, c := range []struct{ roster, why string }{
		{"", "not unpacked to the end"}, {"1", ""}, {"2", "bus error"}, {"many", "can use only"},
	} {
		if c.roster != "" {
			if err := os.WriteFile(mark, []byte(c.roster), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := whole(mark, hello)
		if (err == nil) != (c.why == "") || err != nil && (!strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "more memory")) {
			t.Errorf("%q: %v", c.roster, err)
		}
	}
}

// TestGuestGivesWhatItHas where nobody asked for an amount, as when it stands in for
// a container; what was asked for it gives, or refuses.
func TestGuestGivesWhatItHas(t *testing.T) {
	b := machineThat(t, "exit 3")
	for _, c := range []struct {
		memory int64
		any    bool
		kind   holdfast.Kind
	}{{4096, true, holdfast.KindSpawn}, {0, false, holdfast.KindSpawn}, {4096, false, holdfast.KindLimit}, {RoomMB(0), false, holdfast.KindSpawn}, {RoomMB(0) + 1, false, holdfast.KindLimit}} {
		_, err := b.Prepare(t.Context(), sandbox.Spec{ID: "r", Language: "python3", Code: []byte("0"), MemoryMB: c.memory, AnyMemory: c.any})
		if holdfast.KindOf(err) != c.kind { // SpawnError: it is let in, and there is no machine
			t.Errorf("%d MB, any %t: %v", c.memory, c.any, err)
		}
	}
}

// TestProgramWithLibrariesIsRefused before anything is started: a guest has none.
func TestProgramWithLibrariesIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernel")
	if err := os.WriteFile(file, []byte("kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, why := range map[string]string{"/bin/sh": "/bin/sh needs the libraries", file: "is no program for Linux"} {
		_, err := Open(Config{QEMU: "/bin/sh", Kernel: file, Program: program})
		e := (*holdfast.Error)(nil)
		if !errors.As(err, &e) || e.Kind != holdfast.KindSpawn || !strings.Contains(e.Why, why) || !strings.Contains(e.Hint, "CGO_ENABLED=0") {
			t.Errorf("%s: %v", program, err)
		}
	}
}
