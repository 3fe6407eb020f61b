package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
)

// Programs is where languages come from, and who answers their filters: the
// process tier.
type Programs interface {
	// Program returns how programs of a language are run, less the calls of
	// narrow.
	Program(ctx context.Context, language string, narrow []string) (sandbox.Program, error)
	// Watch answers a program's filter; it owns the descriptors.
	Watch(sandbox.Watching) (sandbox.Watcher, error)
	// Languages names what can run, and of the others why not.
	Languages() ([]string, map[string]string)
}

// Config is what a tier needs.
type Config struct {
	// Dir is the tier's own: folders of runs, and what a runtime keeps of them.
	Dir string
	// Runtime is auto or empty for the first that works of runc, crun and runsc,
	// one of these names, or a path.
	Runtime string
	// Image is the root that programs find; its zero value gives each the private
	// copy of its language's runtime. Images is the folder in which its copy
	// stands; empty is one in Dir.
	Image    image.Source
	Images   string
	Programs Programs
	// Secret says whether a text holds a secret; nil refuses every environment.
	Secret func(string) bool
	// Warn takes a line about what goes wrong where no caller waits. It may be
	// nil.
	Warn func(string)
	// Within is how long a runtime may take until the program begins; 20 s if
	// zero.
	Within time.Duration
}

// Tier runs code in containers. It is safe for use by many at once.
type Tier struct {
	cfg     Config
	runtime runtime
	groups  groups
	root    bool
	name    string // of this process: number and start; and of this tier
	line    heir.Line
	posture posture.Posture
	house   *house // nil without an image
	seq     atomic.Uint64
	running sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	troubles map[string]bool
}

// Open looks for a runtime, takes away what dead ones of Holdfast have left in
// cfg.Dir, and runs a container that does nothing, which shows which walls stand.
// An error is a SpawnError that names what is missing and how to get it. The
// caller closes the tier.
func Open(ctx context.Context, cfg Config) (*Tier, error) {
	if cfg.Secret == nil {
		cfg.Secret = func(string) bool { return true }
	}
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	if cfg.Within == 0 {
		cfg.Within = 20 * time.Second
	}
	if cfg.Programs == nil || !filepath.IsAbs(cfg.Dir) {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "a container tier needs a folder and programs", Hint: "give it an absolute path"}
	}
	for _, d := range []string{cfg.Dir, filepath.Join(cfg.Dir, "state"), filepath.Join(cfg.Dir, "runs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, failed(holdfast.KindSpawn, "make its folders", err)
		}
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, failed(holdfast.KindSpawn, "know itself", err)
	}
	list, err := find(ctx, cfg.Runtime, filepath.Join(cfg.Dir, "state"))
	if err != nil {
		return nil, err
	}
	// Two of one process do not meet.
	t := &Tier{cfg: cfg, root: unix.Geteuid() == 0, name: fmt.Sprintf("%d-%s-%d", os.Getpid(), start, time.Now().UnixNano()), troubles: map[string]bool{}}
	t.groups = findGroups("/" + groupPrefix + t.name)
	t.ctx, t.stop = context.WithCancel(context.Background())
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	if err := t.choose(ctx, list); err != nil {
		t.leave()
		return nil, err
	}
	return t, nil
}

// choose takes the first runtime in which a container runs.
func (t *Tier) choose(ctx context.Context, list []runtime) error {
	var why []string
	for _, r := range list {
		t.runtime = r
		_, err := estate{t.cfg.Dir, r, t.groups}.sweep(dead)
		t.trouble(err)
		t.bequeath()
		if err = t.try(ctx); err == nil {
			return nil
		}
		text := err.Error()
		if e := (*holdfast.Error)(nil); errors.As(err, &e) {
			text = e.Why
		}
		why = append(why, fmt.Sprintf("%s (%s%s): %s", r.path, r.version.text, onPlatform(r.platform), text))
	}
	t.stop()
	t.groups.close()
	t.line.Close()
	return &holdfast.Error{Kind: holdfast.KindSpawn, Why: "no container runs here: " + strings.Join(why, "; "), Hint: "run a container by hand to see more (`" + list[0].path + " --debug run`), or " + installOne}
}

func onPlatform(name string) string {
	if name == "" {
		return ""
	}
	return ", platform " + name
}

// Close ends whatever still runs, and returns when nothing of it is left. What
// comes later is refused.
func (t *Tier) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.running.Wait()
	t.groups.close()
	t.line.Close()
	return t.leave()
}

func (t *Tier) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return failed(holdfast.KindSpawn, "run: it is closed", unix.ESHUTDOWN)
	}
	t.running.Add(1)
	return nil
}

// Languages returns the exact names of what can run here, and of each language
// that is not there why.
func (t *Tier) Languages() ([]string, map[string]string) { return t.cfg.Programs.Languages() }

// Runtime is the runtime's name and version, as it says it, and of runsc the
// platform that it uses.
func (t *Tier) Runtime() string { return t.runtime.version.String() + onPlatform(t.runtime.platform) }

// Troubles are what went wrong where no caller waited, each once.
func (t *Tier) Troubles() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.troubles))
}

const maxTroubles = 32

func (t *Tier) trouble(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := fmt.Sprintf("%.300s", err); !t.troubles[text] && len(t.troubles) < maxTroubles {
		t.troubles[text] = true
		t.cfg.Warn(text)
	}
}

// Posture is which walls stand here (D20), as Open tried them.
func (t *Tier) Posture() posture.Posture {
	p := t.posture
	p.Up, p.Down, p.Instead, p.Unbound = slices.Clone(p.Up), maps.Clone(p.Down), maps.Clone(p.Instead), maps.Clone(p.Unbound)
	p.Runtime = t.Runtime()
	return t.house.tell(p)
}

// Prepare returns spec with every default and the exact language in it, or the
// document's error (003 2.1).
func (t *Tier) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	spec, _, err := t.prepare(ctx, spec)
	return spec, err
}

func (t *Tier) prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, sandbox.Program, error) {
	return prepare(ctx, spec, t.cfg.Secret, t.cfg.Programs)
}

// prepare is what every runtime of the tier makes of a request.
func prepare(ctx context.Context, spec sandbox.Spec, secret func(string) bool, from Programs) (sandbox.Spec, sandbox.Program, error) {
	spec.Tier = posture.TierContainer
	spec, err := sandbox.Check(spec, secret)
	if err != nil {
		return sandbox.Spec{}, sandbox.Program{}, err
	}
	p, err := from.Program(ctx, spec.Language, spec.Narrow)
	if err != nil {
		return sandbox.Spec{}, p, err
	}
	spec.Language = p.Exact
	if p.Check != nil {
		err = p.Check(spec.Code)
	}
	return spec, p, err
}

// Run runs the code of spec, which is checked again. A nil error means that it
// ran, whatever came of it; else nothing of it has run, and the error is a
// *holdfast.Error of the document's kinds (003 2.1, 2.2). Where a wall was at
// fault, and not the request, there is a result too, in SPAWN_ERROR.
func (t *Tier) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	at := posture.Instants{Received: time.Now()}
	spec, p, err := t.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	at.Parsed = time.Now()
	res, err := t.run(ctx, spec, p, at)
	if err != nil {
		at.Ended = time.Now()
		return sandbox.Unbegun(spec, t.Posture(), at, err), err
	}
	return res, nil
}

// lacking refuses a request for walls that do not stand (D20).
func lacking(up posture.Posture, need []posture.Wall, p sandbox.Program) error {
	missing := up.Missing(need)
	if len(missing) == 0 {
		return nil
	}
	return &holdfast.Error{
		Kind: holdfast.KindSpawn,
		Why:  fmt.Sprintf("the container tier is missing %s here: %s", posture.Asked(missing), up.Down[missing[0]]),
		Hint: "`holdfast doctor` says how to have every wall; to take less, write in holdfast.yaml under `boundaries:`, as one entry: " + up.Lesser("exec/"+p.Exact),
	}
}

func (t *Tier) run(ctx context.Context, spec sandbox.Spec, p sandbox.Program, at posture.Instants) (*posture.Result, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.running.Done()
	posture := t.Posture()
	if err := lacking(posture, spec.Need, p); err != nil {
		return nil, err
	}
	res, err := t.execute(ctx, spec, p, at, manner{})
	if res != nil {
		res.Posture = posture
	}
	return res, err
}

// failed is an error of the document's kind: the sandbox could not do its part.
func failed(kind holdfast.Kind, what string, err error) error {
	if own := (*holdfast.Error)(nil); errors.As(err, &own) {
		return err
	}
	return &holdfast.Error{Kind: kind, Why: fmt.Sprintf("the container could not %s: %v", what, err), Hint: "run `holdfast doctor`: it tries every wall and says what to do", Err: err}
}
