package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/hostlimit"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// Config is what a tier needs.
type Config struct {
	// Dir is where private copies of runtimes are kept; it is the tier's own.
	Dir string
	// Secret says whether a text holds a secret; nil refuses every environment.
	Secret func(string) bool
	// Note takes a line about what takes long, such as copying a runtime. It
	// may be nil.
	Note func(string)
	// Warn takes a line about what goes wrong where no caller waits for an
	// answer; each kind is said once a minute at most. It may be nil.
	Warn func(string)
	// Parked is how many workloads of a language wait behind their walls for
	// requests, from the second request of that language on: none if 0, half as
	// many of languages that need much memory.
	Parked int
}

// Tier runs code in the process tier. It is safe for use by many at once.
type Tier struct {
	cfg    Config
	groups *cgroup.Groups
	langs  *language.Catalogue
	abi    int

	filters   filters
	troubles  troubles
	mu        sync.Mutex
	launchers map[string]*launcherConn
	closed    atomic.Bool    // set with mu held
	running   sync.WaitGroup // runs that were let in
	making    sync.WaitGroup // seats in the making, and runs that leave
	leaving   chan struct{}  // a place for each run that leaves
	last      atomic.Bool    // see Last
}

// Open looks for languages and control groups; launchers start when they are
// first needed. The caller closes the tier.
func Open(ctx context.Context, cfg Config) (*Tier, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	if cfg.Secret == nil {
		cfg.Secret = func(string) bool { return true }
	}
	t := &Tier{cfg: cfg, groups: cgroup.Find("/proc", hostUser), abi: min(landlockABI(), 7), launchers: map[string]*launcherConn{}, leaving: make(chan struct{}, maxLeaving), troubles: troubles{say: cfg.Warn}}
	t.groups.Sweep()
	t.langs = language.Find(ctx)
	return t, nil
}

// Close ends every launcher, and with it whatever still runs, and returns when
// nothing of the tier is under way any more. What comes later is refused.
func (t *Tier) Close() error {
	t.mu.Lock()
	t.closed.Store(true)
	list := slices.Collect(maps.Values(t.launchers))
	clear(t.launchers)
	t.mu.Unlock()
	for _, z := range list {
		z.close()
	}
	t.running.Wait() // they hold groups
	t.making.Wait()
	for _, z := range list {
		z.empty()
	}
	t.groups.Close()
	return nil
}

// enter lets a run in, which Close then waits for.
func (t *Tier) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return errClosed()
	}
	t.running.Add(1)
	return nil
}

func errClosed() error { return failed(holdfast.KindSpawn, "run: it is closed", unix.ESHUTDOWN) }

func (t *Tier) ending() bool { return t.closed.Load() }

// unready is what could not be made ahead of a request; of a tier that closes
// that is no news.
func (t *Tier) unready(err error) {
	if !t.ending() {
		t.troubles.seatFailed(err)
	}
}

// Languages returns the exact names of what can run here as far as is known, and
// of each language that is not there why. What only a script on PATH leads to is
// known when it has been asked for.
func (t *Tier) Languages() ([]string, map[string]string) {
	list, absent := t.langs.List()
	var names []string
	for _, l := range list {
		names = append(names, l.Exact)
	}
	slices.Sort(names)
	return names, absent
}

// Exact returns the exact name of a language that can be run here, such as
// python3.11 for python3, or an UnsupportedLanguageError.
func (t *Tier) Exact(ctx context.Context, asked string) (string, error) {
	l, err := t.language(ctx, asked)
	return l.Exact, err
}

func (t *Tier) language(ctx context.Context, asked string) (language.Language, error) {
	l, ok := t.langs.Find(ctx, asked)
	if ok {
		return l, nil
	}
	names, absent := t.Languages()
	hint := "this machine has " + strings.Join(names, ", ")
	if why := absent[asked]; why != "" {
		hint = why
	}
	return language.Language{}, &holdfast.Error{Kind: holdfast.KindLanguage, Why: fmt.Sprintf("the language %.64q cannot be run here", asked), Hint: hint}
}

// Prepare returns spec with every default and the exact language in it, or the
// document's error (003 2.1).
func (t *Tier) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	spec, err := sandbox.Check(spec, t.cfg.Secret)
	if err != nil {
		return sandbox.Spec{}, err
	}
	l, err := t.language(ctx, spec.Language)
	if err == nil && len(spec.Narrow) > 0 {
		_, err = t.filters.filter(l, spec.Narrow) // a name that no kernel has is the caller's mistake
	}
	spec.Language = l.Exact // the boundary's: exec/python3.11
	return spec, err
}

// Run runs the code of spec, which is checked again. A nil error means that it
// ran, whatever came of it; else nothing of it has run, and the error is a
// *holdfast.Error of the document's kinds (003 2.1, 2.2). Where a wall was at
// fault, and not the request, there is a result too, in SPAWN_ERROR.
func (t *Tier) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	at := posture.Instants{Received: time.Now()}
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
	return res, nil
}

// run is Run of a request that was found good at the instants.
func (t *Tier) run(ctx context.Context, spec sandbox.Spec, at posture.Instants) (*posture.Result, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.running.Done()
	l, err := t.language(ctx, spec.Language)
	if err != nil {
		return nil, err
	}
	posture := t.Posture()
	if missing := posture.Missing(spec.Need); len(missing) > 0 {
		return nil, t.short("exec/"+l.Exact, posture, missing)
	}
	if err := hostlimit.CheckRoom(spec.MemoryMB, tapeSize); err != nil {
		return nil, err
	}
	o, err := t.order(l, spec)
	if err != nil {
		return nil, err
	}
	res, err := t.launch(ctx, l, o, spec, at)
	if errors.As(err, new(died)) && ctx.Err() == nil {
		res, err = t.launch(ctx, l, o, spec, at) // once more: somebody else killed them
	}
	if res != nil {
		res.Posture = posture
	}
	return res, err
}

func (t *Tier) launch(ctx context.Context, l language.Language, o *order, spec sandbox.Spec, at posture.Instants) (*posture.Result, error) {
	z, err := t.launcher(ctx, l)
	if err != nil {
		return nil, err
	}
	t.parkSoon(z)
	res := t.warm(ctx, z, l, o, spec, at)
	if res == nil {
		res, err = t.execute(ctx, z, o, spec, at)
	}
	if errors.As(err, new(died)) {
		select { // a launcher that is dying still looks alive
		case <-z.done:
		case <-time.After(deathWithin):
		}
	}
	return res, err
}

// deathWithin is how long a launcher that was killed may look alive, on a machine
// that has much else to do; one that lives longer was not: the run's own first
// process was. A run that is tried again with one that is dying would fail.
const deathWithin = 2 * time.Second

// died is the error of a run whose launcher or first process is gone before
// anything of the code began: it can be run again, and is not run twice.
type died struct{ error }

func (d died) Unwrap() error { return d.error }

// short is the refusal where walls are missing (D20). Its hint has the contract
// that takes what stands, word for word.
func (t *Tier) short(boundary string, p posture.Posture, missing []posture.Wall) error {
	why := t.listLacks()[missing[0]].Why // the advice is for doctor
	word := "a wall"
	if len(missing) > 1 {
		word = "walls"
	}
	return &holdfast.Error{
		Kind: kindOf(missing[0]),
		Why:  fmt.Sprintf("the sandbox is missing %s here: %s (%s)", word, posture.Asked(missing), why),
		Hint: "`holdfast doctor` says how to have every wall; to take less, write in holdfast.yaml under `boundaries:`, as one entry: " + p.Lesser(boundary),
	}
}

// kindOf is the document's error where a wall is not there at all.
func kindOf(w posture.Wall) holdfast.Kind {
	switch w {
	case posture.WallMemory, posture.WallCPU, posture.WallPids:
		return holdfast.KindCgroup
	}
	return holdfast.KindSpawn
}

// launcher returns the launcher of a language, started anew if it has ended.
func (t *Tier) launcher(ctx context.Context, l language.Language) (*launcherConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return nil, errClosed()
	}
	if z := t.launchers[l.Exact]; z != nil && z.alive() {
		return z, nil
	}
	root, err := l.Root(ctx, t.cfg.Dir, t.cfg.Note)
	if err != nil {
		return nil, failed(holdfast.KindMount, "copy the runtime", err)
	}
	z, err := startLauncher(root.Path, t.newPool(l, root.Path))
	if err == nil {
		if err = t.groups.Admit(z.cmd.Process.Pid); err != nil {
			z.close()
		}
	}
	if err != nil {
		root.Release()
		return nil, failed(holdfast.KindNamespace, "start its launcher", err)
	}
	z.root = root
	if old := t.launchers[l.Exact]; old != nil {
		old.empty()
	}
	t.launchers[l.Exact] = z
	return z, nil
}

// order turns a request into what its tape is made of.
func (t *Tier) order(l language.Language, spec sandbox.Spec) (*order, error) {
	if l.Check != nil {
		if err := l.Check(spec.Code); err != nil {
			return nil, err
		}
	}
	filter, err := t.filters.filter(l, spec.Narrow)
	if err != nil {
		return nil, err
	}
	up, _ := t.groups.Walls()
	return &order{
		gauged: !slices.Contains(up, posture.WallMemory),
		id:     spec.ID,
		argv:   l.Argv(), env: l.Environment(spec.Environment), given: len(spec.Environment) > 0, code: spec.Code, codeName: l.CodeName,
		files: spec.Files, filter: filter,
		landlockABI: t.abi, static: l.Program == "",
		limits: append(lesser(up, spec), []rlimit{
			atMost(unix.RLIMIT_CORE, 1), // not 0 where cores are piped: see coreLimit and hostlimit.CheckRoom
			{unix.RLIMIT_NOFILE, sandbox.OpenFiles}, {unix.RLIMIT_FSIZE, sandbox.ScratchBytes},
			{unix.RLIMIT_MEMLOCK, 0}, {unix.RLIMIT_MSGQUEUE, 0}, atMost(unix.RLIMIT_SIGPENDING, 256),
			cpuLimit(spec.Timeout),
		}...),
	}, nil
}

// Posture is which walls stand here (D20).
func (t *Tier) Posture() posture.Posture {
	p := posture.Posture{Tier: posture.TierProcess, Names: true, Mode: "rootless", Groups: t.groups.Mode(),
		Down: map[posture.Wall]string{}}
	if unix.Geteuid() == 0 {
		p.Mode = "root"
	}
	// 003 2.1 calls the row optional.
	p.Unbound = map[string]string{"io": "what it writes is memory, and is bounded as that; reading its own read-only runtime is not"}
	down := t.listLacks()
	for _, w := range posture.Walls() {
		l, lost := down[w]
		if !lost {
			p.Up = append(p.Up, w)
			continue
		}
		p.Down[w] = l.Error()
		if w == posture.WallLandlock {
			continue
		}
		if p.Instead == nil {
			p.Instead = map[posture.Wall]string{}
		}
		p.Instead[w] = instead(w)
	}
	return p
}

// listLacks returns why each wall that does not stand here does not.
func (t *Tier) listLacks() map[posture.Wall]cgroup.Lack {
	_, down := t.groups.Walls()
	if t.abi == 0 {
		down[posture.WallLandlock] = cgroup.Lack{Why: "this kernel has no Landlock"}
	}
	return down
}
