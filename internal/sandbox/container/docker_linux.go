package container

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/heir"
)

// DockerConfig is what a tier behind a Docker engine needs.
type DockerConfig struct {
	// Dir is the tier's own, for folders of runs: an absolute path which the
	// engine sees as the same, because it mounts them.
	Dir string
	// Host is in the words of DOCKER_HOST, unix:// alone; empty is the usual
	// socket.
	Host string
	// Image is the local name of the image whose programs run; it is never
	// pulled.
	Image    string
	Programs Programs
	// Secret says whether a text holds a secret; nil refuses every environment.
	Secret func(string) bool
	// Warn takes a line about what goes wrong where no caller waits. It may be
	// nil.
	Warn func(string)
	// Within is how long the engine may take until the program begins; 60 s if
	// zero: some copy the image first.
	Within time.Duration
}

// dockerRuns is the folder of runs below the tier's own; an OCI runtime has another.
const dockerRuns = "docker"

// Docker runs code in containers of a Docker engine. It is safe for use by many
// at once. The engine hands no listener of its filter out: a call outside the
// allowlist ends the program, and nobody can say which it was.
type Docker struct {
	cfg     DockerConfig
	engine  *engine
	version engineVersion
	info    dockerInfo
	groups  groups // root's, where the engine keeps them itself
	grouped bool
	root    bool
	name    string // of this process: number and start; and of this tier
	line    heir.Line
	posture posture.Posture
	seq     atomic.Uint64
	running sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	troubles map[string]bool
	owed     []string // containers that could not be taken away yet
}

// dockerInfo is the part of GET /info that is used.
type dockerInfo struct {
	MemoryLimit, SwapLimit bool
	CPUPeriod              bool `json:"CpuCfsPeriod"`
	CPUQuota               bool `json:"CpuCfsQuota"`
	PidsLimit              bool
	CgroupDriver           string
	CgroupVersion          string
	SecurityOptions        []string
	Runtimes               map[string]any
	DefaultRuntime         string
}

// OpenDocker reaches the engine, takes away what dead ones of Holdfast have left
// there, and looks at the image. An error is a SpawnError that names what is
// missing and how to get it. The caller closes the tier.
func OpenDocker(ctx context.Context, cfg DockerConfig) (*Docker, error) {
	if cfg.Secret == nil {
		cfg.Secret = func(string) bool { return true }
	}
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	if cfg.Within == 0 {
		cfg.Within = time.Minute
	}
	if cfg.Programs == nil || !filepath.IsAbs(cfg.Dir) {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "a container tier needs a folder and programs", Hint: "give it an absolute path"}
	}
	socket, err := socketOf(cfg.Host)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, dockerRuns), 0o700); err != nil {
		return nil, failed(holdfast.KindSpawn, "make its folders", err)
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, failed(holdfast.KindSpawn, "know itself", err)
	}
	// Two of one process do not meet.
	d := &Docker{cfg: cfg, root: unix.Geteuid() == 0, name: fmt.Sprintf("%d-%s-%d", os.Getpid(), start, time.Now().UnixNano()), troubles: map[string]bool{}}
	if d.engine, d.version, err = reach(ctx, socket); err != nil {
		return nil, err
	}
	if err = d.engine.call(ctx, http.MethodGet, "/info", nil, nil, &d.info); err == nil {
		d.look()
		_, swept := engineEstate{d.engine, cfg.Dir, d.groups, d.grouped}.sweep(ctx, dead)
		d.trouble(swept)
		_, err = d.image(ctx)
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	if err == nil {
		err = d.try(ctx)
	}
	if err != nil {
		d.Close()
		return nil, failed(holdfast.KindSpawn, "be asked of the engine", err)
	}
	return d, nil
}

// try runs a program that does nothing, behind a language's own filter. A runtime
// that fails behind it is told from a program only where that one is known.
func (d *Docker) try(ctx context.Context) error {
	p, err := d.cfg.Programs.Program(ctx, sandbox.Static, nil)
	if err != nil {
		return err
	}
	spec := sandbox.Spec{ID: "try", Language: sandbox.Static, Code: nothing(), Timeout: d.cfg.Within, MemoryMB: 64, CPUPeriod: sandbox.DefaultPeriod, CPUQuota: sandbox.DefaultPeriod}
	res, err := d.execute(ctx, spec, p, posture.Instants{Received: time.Now(), Parsed: time.Now()})
	if err != nil {
		return err
	}
	if res.ExitCode != 7 {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("behind the Docker engine a program that ends with code 7 ended with %d: %.200s", res.ExitCode, printable(string(res.Stderr))), Hint: "its runtime may be another than runc: see `docker info`"}
	}
	if d.grouped && res.MemoryPeak == 0 {
		d.posture.Notes = append(d.posture.Notes, "what a run used is not known: the engine keeps its control groups where Holdfast does not see them")
	}
	return nil
}

// look tells from the engine's own words which walls it raises.
func (d *Docker) look() {
	i := d.info
	d.grouped = d.root && i.CgroupDriver == "cgroupfs"
	d.groups = findGroups("/" + groupPrefix + d.name)
	p := posture.Posture{Tier: posture.TierContainer, Mode: "rootless", Groups: "v" + i.CgroupVersion, Down: map[posture.Wall]string{}, Instead: map[posture.Wall]string{},
		Unbound: map[string]string{"io": "what it writes is memory, and is bounded as that; reading its image is not"},
		Notes: []string{namesNone("the Docker engine") + "one outside the allowlist ends the program with 159", "a call of " + foreign + " ends the thread that makes it", "a program that ends itself with 159 is taken for one that was ended", "a program may become another one of its image (execve), in the same walls",
			"two runs of one image can tell each other something, by words in memory of its files and by how full the engine's disk is"}}
	p.Runtime = fmt.Sprintf("docker %.40s (API %s)", printable(d.version.Version), d.engine.api)
	down := func(stands bool, w posture.Wall, why string) {
		if !stands {
			p.Down[w] = why
		}
	}
	const kernel = "the engine says that it cannot bound it on this kernel"
	down(i.MemoryLimit, posture.WallMemory, kernel)
	down(i.CPUPeriod && i.CPUQuota, posture.WallCPU, kernel)
	down(i.PidsLimit, posture.WallPids, kernel)
	down(d.option("seccomp"), posture.WallSeccomp, "the engine says that it has no seccomp")
	p.Down[posture.WallLandlock] = "the engine raises none"
	if d.root {
		p.Mode = "root"
	} else {
		down(d.option("userns") || d.option("rootless"), posture.WallUser, "the engine has no user namespace for containers, and the workspace's owner is the user who runs Holdfast")
		p.Down[posture.WallScratch], p.Instead[posture.WallScratch] = "an ordinary user can have no memory mounted for the workspace, which is a folder of the disk", "RLIMIT_FSIZE bounds each file at 100 MB"
		p.Unbound["io"] = "what it writes is a folder of the state directory's disk"
	}
	for _, w := range posture.Walls() {
		if p.Down[w] == "" {
			p.Up = append(p.Up, w)
		}
	}
	d.posture = p
}

// option says whether the engine names a way of security.
func (d *Docker) option(name string) bool {
	return slices.ContainsFunc(d.info.SecurityOptions, func(o string) bool { return o == "name="+name || strings.HasPrefix(o, "name="+name+",") })
}

// runtime is the engine's plain one, by name; empty is its default.
func (d *Docker) runtime() string {
	if _, there := d.info.Runtimes["runc"]; there {
		return "runc"
	}
	return ""
}

// imageName is a repository with a tag or a digest, or an image's own digest.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
})

// image looks the image up, and whether containers of it can be held.
func (d *Docker) image(ctx context.Context) (dockerImage, error) {
	const make = "make one from a folder with the programs in it: `tar -C FOLDER -c . | docker import - NAME`, then name it as `sandbox: container: image: NAME`; `docker images` lists those that are there, and none is fetched"
	var i dockerImage
	if d.cfg.Image == "" {
		return i, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "the Docker engine runs programs of an image, and none is named", Hint: make}
	}
	if !imageName().MatchString(d.cfg.Image) || strings.Contains(d.cfg.Image, "..") || len(d.cfg.Image) > 255 {
		return i, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("%.80q is no name of an image", d.cfg.Image), Hint: make}
	}
	err := d.engine.call(ctx, http.MethodGet, "/images/"+d.cfg.Image+"/json", nil, nil, &i)
	if absent(err) {
		return i, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the Docker engine has no image %.80q", d.cfg.Image), Hint: make}
	}
	if err != nil {
		return i, failed(holdfast.KindSpawn, "look at its image", err)
	}
	return i, i.suits(d.cfg.Image)
}

// engineEstate is what a tier behind an engine leaves where its Holdfast is
// killed.
type engineEstate struct {
	engine  *engine
	dir     string // the tier's
	groups  groups
	grouped bool
}

// sweep takes away what those left whose names are theirs, and says whether there
// was any.
func (e engineEstate) sweep(ctx context.Context, theirs func(name string) bool) (found bool, err error) {
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	filter := `{"label":[` + strconv.Quote(labelDir+"="+e.dir) + `]}`
	errs := []error{e.engine.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {filter}}, nil, &list)}
	for _, c := range list {
		if owner := c.Labels[labelOwner]; c.Labels[labelDir] == e.dir && theirs(owner) {
			found = true
			errs = append(errs, e.engine.remove(c.ID))
		}
	}
	runs := filepath.Join(e.dir, dockerRuns)
	entries, err := os.ReadDir(runs)
	errs = append(errs, err)
	for _, run := range entries {
		if theirs(run.Name()) {
			found = true
			errs = append(errs, clearGround(filepath.Join(runs, run.Name())))
		}
	}
	if e.grouped {
		for _, g := range e.groups.siblings(theirs) {
			found = true
			killBelow(g)
			errs = append(errs, removeEverywhere(filepath.Base(g)))
		}
	}
	return found, errors.Join(errs...)
}

// remove takes a container away, with what runs in it.
func (e *engine) remove(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := e.call(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
	if absent(err) {
		return nil
	}
	return err
}

// owe takes a container away, now or when the engine answers again.
func (d *Docker) owe(id string) {
	err := d.engine.remove(id)
	d.trouble(err)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.owed = append(d.owed, id)
	}
}

// settle takes away what is owed, until the engine does not answer.
func (d *Docker) settle() {
	d.mu.Lock()
	owed := d.owed
	d.owed = nil
	d.mu.Unlock()
	for i, id := range owed {
		if d.engine.remove(id) != nil {
			d.mu.Lock()
			d.owed = append(d.owed, owed[i:]...)
			d.mu.Unlock()
			return
		}
	}
}

// removeEverywhere takes a control group away in every hierarchy: the engine's
// runtime makes one in each, above a container's, and leaves it.
func removeEverywhere(name string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	errs := []error{err}
	for line := range strings.Lines(string(b)) {
		before, after, _ := strings.Cut(line, " - ")
		if head := strings.Fields(before); len(head) > 4 && strings.HasPrefix(after, "cgroup") {
			if dir := filepath.Join(head[4], name); unix.Access(dir, unix.F_OK) == nil {
				errs = append(errs, removeGroup(dir, soon()))
			}
		}
	}
	return errors.Join(errs...)
}

// Close ends whatever still runs, and returns when nothing of it is left. What
// comes later is refused.
func (d *Docker) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.running.Wait()
	if d.grouped {
		d.trouble(removeEverywhere(filepath.Base(d.groups.parent)))
	}
	d.line.Close()
	d.engine.close()
	return nil
}

func (d *Docker) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return failed(holdfast.KindSpawn, "run: it is closed", unix.ESHUTDOWN)
	}
	d.running.Add(1)
	return nil
}

// Languages returns the exact names of what can run here, and of each language
// that is not there why. The image must have their interpreters by name.
func (d *Docker) Languages() ([]string, map[string]string) { return d.cfg.Programs.Languages() }

// Runtime is the engine and its version, as it says it.
func (d *Docker) Runtime() string { return d.posture.Runtime }

// Troubles are what went wrong where no caller waited, each once.
func (d *Docker) Troubles() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.troubles))
}

func (d *Docker) trouble(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := fmt.Sprintf("%.300s", err); !d.troubles[text] && len(d.troubles) < maxTroubles {
		d.troubles[text] = true
		d.cfg.Warn(text)
	}
}

// Posture is which walls stand here (D20), as the engine says of itself.
func (d *Docker) Posture() posture.Posture {
	p := d.posture
	p.Up, p.Down, p.Instead, p.Unbound, p.Notes = slices.Clone(p.Up), maps.Clone(p.Down), maps.Clone(p.Instead), maps.Clone(p.Unbound), slices.Clone(p.Notes)
	return p
}

// Prepare returns spec with every default and the exact language in it, or the
// document's error (003 2.1).
func (d *Docker) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	spec, _, err := d.prepare(ctx, spec)
	return spec, err
}

func (d *Docker) prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, sandbox.Program, error) {
	return prepare(ctx, spec, d.cfg.Secret, d.cfg.Programs)
}

// Run runs the code of spec, which is checked again. A nil error means that it
// ran, whatever came of it; else nothing of it has run, and the error is a
// *holdfast.Error of the document's kinds (003 2.1, 2.2). Where a wall was at
// fault, and not the request, there is a result too, in SPAWN_ERROR.
func (d *Docker) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	at := posture.Instants{Received: time.Now()}
	spec, p, err := d.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	at.Parsed = time.Now()
	res, err := d.run(ctx, spec, p, at)
	if err != nil {
		at.Ended = time.Now()
		return sandbox.Unbegun(spec, d.Posture(), at, err), err
	}
	return res, nil
}

func (d *Docker) run(ctx context.Context, spec sandbox.Spec, p sandbox.Program, at posture.Instants) (*posture.Result, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.running.Done()
	posture := d.Posture()
	if err := lacking(posture, spec.Need, p); err != nil {
		return nil, err
	}
	res, err := d.execute(ctx, spec, p, at)
	if res != nil {
		res.Posture = posture
	}
	return res, err
}
