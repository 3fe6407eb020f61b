package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// template is a machine that waits for an order, as it is kept: its memory,
// which nobody can write any more, the state of its devices, and what it said
// of itself.
type template struct {
	hardware
	memory *os.File // sealed
	state  []byte
	hello  greeting
	// For the posture: what runs it, and what is to be known of it.
	runtime string
	notes   []string
}

// plan is everything that decides what a template is.
type plan struct {
	hardware
	version string // what QEMU says of itself
	kernel  string
	image   *os.File
	digests []string // of QEMU, kernel, and image
}

// maxState is the most that the state of a machine's devices may take: it is
// some 60 KB.
const maxState = 16 << 20

// boot starts a machine and keeps it when it waits. An error says in words what
// did not happen; nothing is left behind.
func boot(ctx context.Context, p plan, within time.Duration) (_ *template, err error) {
	t := &template{hardware: p.hardware}
	if t.memory, err = memory("ram", int64(p.memoryMB)<<20); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.memory.Close()
		}
	}()
	state, err := memory("state", 0)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if err := t.bring(ctx, p, within, state); err != nil {
		return nil, err
	}
	info, err := state.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || info.Size() > maxState {
		return nil, fmt.Errorf("the state of its devices has %d bytes", info.Size())
	}
	t.state = make([]byte, info.Size())
	if _, err := state.ReadAt(t.state, 0); err != nil {
		return nil, err
	}
	return t, seal(t.memory)
}

// bring boots the machine, hears its greeting, keeps its state and ends it.
func (t *template) bring(ctx context.Context, p plan, within time.Duration, state *os.File) error {
	box, err := memory("box", boxBytes)
	if err != nil {
		return err
	}
	defer box.Close()
	kernel, err := copied(p.kernel)
	if err != nil {
		return err
	}
	defer kernel.Close()
	m, err := start(behindWalls, p.hardware, append(p.arguments(false), bootArguments()...), state, t.memory, box, kernel, p.image)
	if err != nil {
		return err
	}
	defer m.close()
	defer m.within(ctx, within)()
	f, err := m.expect(frameReady)
	if err != nil {
		return err
	}
	if t.hello, err = readGreeting(f.body); err != nil {
		return err
	}
	return m.keep(state)
}

func readGreeting(b []byte) (greeting, error) {
	var g greeting
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&g); err != nil {
		return g, fmt.Errorf("the guest's greeting cannot be read: %w", err)
	}
	if len(g.Languages) == 0 {
		return g, errors.New("the guest has no language")
	}
	return g, nil
}

// close gives the memory back; machines that were restored from it go on.
func (t *template) close() { t.memory.Close() }

// restored is a machine in the middle of a run.
type restored struct {
	*machine
	box *os.File
}

// restore starts a machine that resume lets go on from the template.
func (t *template) restore(by way) (_ *restored, err error) {
	state, err := memory("state", 0)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	if _, err := state.WriteAt(t.state, 0); err != nil {
		return nil, err
	}
	r := &restored{}
	if r.box, err = memory("box", boxBytes); err != nil {
		return nil, err
	}
	if r.machine, err = start(by, t.hardware, append(t.arguments(true), restoreArguments()...), state, t.memory, r.box); err != nil {
		r.box.Close()
		return nil, err
	}
	return r, nil
}

func (r *restored) close() {
	r.machine.close()
	r.box.Close()
}
