package vm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Tier runs code in the VM tier. It is safe for use by many at once.
type Tier struct {
	cfg   Config
	guard guard

	mu       sync.Mutex
	made     *template
	making   *making
	troubles []string // what is worse than it could be, a line each
	closed   bool
	running  sync.WaitGroup
	stop     context.CancelFunc // ends whatever runs
	life     context.Context
}

// Open looks for what guests are made of; the template is started when it is
// first needed. The caller closes the tier. The error says what is missing and
// how to get it.
func Open(cfg Config) (*Tier, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	if cfg.Secret == nil {
		cfg.Secret = func(string) bool { return true }
	}
	if cfg.MemoryMB == 0 {
		cfg.MemoryMB = defaultMemoryMB
	}
	if cfg.MemoryMB < minMemoryMB || cfg.MemoryMB > maxMemoryMB {
		return nil, &holdfast.Error{Kind: holdfast.KindLimit, Why: fmt.Sprintf("a guest cannot have %d MB", cfg.MemoryMB), Hint: fmt.Sprintf("say %d to %d, or nothing for %d", minMemoryMB, maxMemoryMB, defaultMemoryMB)}
	}
	if err := find(&cfg); err != nil {
		return nil, err
	}
	t := &Tier{cfg: cfg}
	t.guard.groups, t.guard.trouble = cfg.Groups, t.trouble
	t.life, t.stop = context.WithCancel(context.Background())
	return t, nil
}

// Close ends every machine and returns when nothing of the tier is under way.
// What comes later is refused.
func (t *Tier) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.running.Wait()
	t.guard.line.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made != nil {
		t.made.close()
		t.made = nil
	}
	return nil
}

func (t *Tier) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return failed("run: it is closed", unix.ESHUTDOWN)
	}
	t.running.Add(1)
	return nil
}

// failed is a SpawnError about something that the tier could not do.
func failed(what string, err error) error {
	return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the VM tier could not %s: %v", what, err), Hint: "`holdfast doctor` says what the VM tier needs here", Err: err}
}

// Prepare returns spec with every default and the exact language in it, or the
// document's error (003 2.1). It starts the template where there is none.
func (t *Tier) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	if err := t.enter(); err != nil {
		return sandbox.Spec{}, err
	}
	defer t.running.Done()
	spec.Tier = max(spec.Tier, posture.TierVM) // whose limits hold
	room := RoomMB(t.cfg.MemoryMB)
	if spec.AnyMemory = spec.AnyMemory || spec.MemoryMB == 0; spec.AnyMemory {
		spec.MemoryMB = min(room, sandbox.LimitsOf(spec.Tier).MemoryMB)
	}
	spec, err := sandbox.Check(spec, t.cfg.Secret)
	if err == nil && spec.MemoryMB > room {
		err = &holdfast.Error{Kind: holdfast.KindLimit, Why: fmt.Sprintf("a guest has %d MB for code, and %d are asked for", room, spec.MemoryMB), Hint: "ask for less, or give guests more in holdfast.yaml: sandbox: vm: {memory: MB}"}
	}
	if err != nil {
		return sandbox.Spec{}, err
	}
	made, err := t.template(ctx)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec.Language, err = made.language(spec.Language)
	return spec, err
}

// language is the exact name of the one that is asked for, exactly or loosely:
// "python" is every python3.11, "node" every node22.
func (t *template) language(asked string) (string, error) {
	if slices.Contains(t.hello.Languages, asked) {
		return asked, nil
	}
	loose := map[string]string{"python": "python3", "nodejs": "node"}[asked]
	if loose == "" {
		loose = asked
	}
	for _, l := range t.hello.Languages {
		if loose != "" && strings.TrimRight(l, "0123456789.") == strings.TrimRight(loose, "0123456789.") && strings.HasPrefix(l, loose) {
			return l, nil
		}
	}
	return "", &holdfast.Error{Kind: holdfast.KindLanguage, Why: fmt.Sprintf("the language %.64q cannot be run in a guest", asked), Hint: "the guest has " + strings.Join(t.hello.Languages, ", ")}
}

// Run runs the code of spec, which is checked again. A nil error means that it
// ran, whatever came of it; else nothing of it has run, and the error is a
// *holdfast.Error of the document's kinds (003 2.1, 2.2). Where a wall was at
// fault, and not the request, there is a result too, in SPAWN_ERROR.
func (t *Tier) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	at := posture.Instants{Received: time.Now()}
	usual := spec.MemoryMB
	spec, err := t.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	at.Parsed = time.Now()
	res, err := t.run(ctx, spec, at)
	if err != nil {
		at.Ended = time.Now()
		return sandbox.Unbegun(spec, t.Posture(), at, err), err
	}
	if spec.MemoryMB < usual {
		res.Posture.Notes = append(res.Posture.Notes, fmt.Sprintf("the run had %d MB and not the usual %d, which is more than its guest has for code", spec.MemoryMB, usual))
	}
	return res, nil
}

func (t *Tier) run(ctx context.Context, spec sandbox.Spec, at posture.Instants) (*posture.Result, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.running.Done()
	made, err := t.template(ctx)
	if err != nil {
		return nil, err
	}
	up := t.Posture()
	if missing := up.Missing(spec.Need); len(missing) > 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "the guest is missing a wall: " + posture.Asked(missing), Hint: "to take less, write in holdfast.yaml under `boundaries:`, as one entry: " + up.Lesser("exec/"+spec.Language)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	at.Raised = time.Now()
	r, err := made.restore(behindWalls)
	if err != nil {
		return nil, failed(restoring, err)
	}
	defer r.close()
	res, err := r.perform(ctx, spec, &at)
	if err != nil {
		return nil, err
	}
	r.close()
	at.Freed = time.Now()
	res.Posture = up
	res.Start, res.End, res.Gone = at.Raised, at.Freed, at.Torn
	res.WallTime = res.End.Sub(res.Start)
	res.Walk(at)
	return res, nil
}

// perform gives a restored machine its order, waits for the answer, and ends
// it. From the moment on at which the order was taken there is a result,
// whatever becomes of the machine.
func (r *restored) perform(ctx context.Context, spec sandbox.Spec, at *posture.Instants) (*posture.Result, error) {
	defer r.within(ctx, acceptWithin)()
	if what, err := r.begin(spec); err != nil {
		if ctx.Err() != nil {
			err = errStopped
		}
		return nil, failed(what, err)
	}
	at.Ready = time.Now()
	at.Began = at.Ready
	defer r.within(ctx, spec.Timeout+answerAfter)()
	f, err := r.expect(frameDone)
	at.Ended = time.Now()
	r.machine.close() // before what it left is read
	at.Torn = time.Now()
	var res *posture.Result
	var refused *holdfast.Error
	if err == nil {
		res, refused, err = r.answer(f, spec.ID)
	}
	switch {
	case refused != nil:
		at.Ready, at.Began = time.Time{}, time.Time{}
		return nil, refused
	case err != nil:
		res = lost(ctx, spec, at.Ended.Sub(at.Began), err)
	}
	first := posture.Stage{Name: "restore", Took: at.Ready.Sub(at.Raised)}
	res.Stages = append([]posture.Stage{first}, res.Stages...)
	return res, nil
}

var errStopped = errors.New("it was stopped before it began")

const restoring = "restore a machine"

// begin lets a machine go on and take its order. An error is of what it says.
func (r *restored) begin(spec sandbox.Spec) (what string, err error) {
	if err := r.resume(); err != nil {
		return restoring, err
	}
	return r.take(spec)
}

// take has a machine that goes on take its order.
func (r *restored) take(spec sandbox.Spec) (what string, err error) {
	if err := r.order(spec); err != nil {
		return "tell a machine what to run", err
	}
	_, err = r.expect(frameAccepted)
	return restoring, err
}

// order puts the request into the shared memory and says so.
func (r *restored) order(spec sandbox.Spec) error {
	box, err := unix.Mmap(int(r.box.Fd()), 0, boxBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(box)
	o := order{Seed: make([]byte, seedBytes), Host: hostName(spec.ID), Now: time.Now()}
	rand.Read(o.Seed)
	if o.Length, err = packSpec(spec, box); err != nil {
		return err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return r.sent(writeFrame(r.port, frame{frameOrder, b}))
}

func hostName(id string) string { return "vm-" + strings.ReplaceAll(id[:min(len(id), 60)], "_", "-") }

// answer reads what a machine left that is gone.
func (r *restored) answer(f frame, id string) (*posture.Result, *holdfast.Error, error) {
	var o outcome
	if err := json.Unmarshal(f.body, &o); err != nil || o.Length <= 0 || o.Length > boxBytes {
		return nil, nil, errors.New("it does not say how long its answer is")
	}
	b := make([]byte, o.Length)
	if _, err := r.box.ReadAt(b, 0); err != nil {
		return nil, nil, err
	}
	return unpackAnswer(b, id)
}

// lost is the result of a run of which the machine told nothing.
func lost(ctx context.Context, spec sandbox.Spec, took time.Duration, err error) *posture.Result {
	res := &posture.Result{ID: spec.ID, State: posture.Completed, ExitCode: posture.ExitLimit, Reason: posture.ReasonHalt, Path: posture.PathParked, OutputFiles: map[string][]byte{}}
	switch {
	case ctx.Err() != nil:
		res.Err = "Killed: the run was stopped"
	case took >= spec.Timeout:
		res.State, res.Reason, res.Err = posture.Timeout, posture.ReasonWall, "Timeout exceeded"
	default:
		res.Err = "Killed: the virtual machine ended or told what cannot be believed: " + words(err.Error())
	}
	res.Stderr = []byte(res.Err + "\n")
	return res
}

// Posture is which walls stand here (D20): those in the guest, which stand
// within the machine's own.
func (t *Tier) Posture() posture.Posture {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := posture.Posture{Tier: posture.TierVM, Mode: "rootless", Groups: "none", Up: []posture.Wall{}}
	if t.made != nil {
		p = t.made.hello.Posture
		p.Tier, p.Runtime, p.Notes = posture.TierVM, t.made.runtime, slices.Clone(t.made.notes)
	}
	if os.Geteuid() == 0 {
		p.Mode = "root"
	}
	return p
}

// Languages returns the exact names of what can run in a guest, once there is a
// template, and of each language that is not there why.
func (t *Tier) Languages() ([]string, map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made == nil {
		return nil, map[string]string{}
	}
	return slices.Clone(t.made.hello.Languages), t.made.hello.Absent
}

// Troubles are what is wrong with the tier that no run was told of, a line each.
func (t *Tier) Troubles() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.troubles)
}
