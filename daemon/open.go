// Package daemon is wiring: the only place that knows every name. It owns the state
// directory, and introduces doors, kernel and hands to each other.
package daemon

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/feature/keyset"
	"github.com/holdfast-dev/holdfast/internal/feature/modelvalue"
	"github.com/holdfast-dev/holdfast/internal/feature/recount"
	"github.com/holdfast-dev/holdfast/internal/feature/subagent"
	"github.com/holdfast-dev/holdfast/internal/feature/toolpin"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/service"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	mcp "github.com/holdfast-dev/holdfast/internal/frontend/mcp/service"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/observe/alert"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/observe/halthook"
	"github.com/holdfast-dev/holdfast/internal/observe/metrics"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/observe/telemetry"
	"github.com/holdfast-dev/holdfast/internal/observe/witness"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/internal/sandbox/tiers"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
	"github.com/holdfast-dev/holdfast/internal/worktree/versions"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Options is what Open needs beside the files.
type Options struct {
	// State is the state directory, absolute; Config the configuration
	// file, absolute, or empty for the defaults.
	State  string
	Config string
	// Version is the program's.
	Version string
	// Enabled is HOLDFAST_ENABLED as the environment has it (D35).
	Enabled    string
	EnabledSet bool
	Log        *slog.Logger
	// Notify is a shell command run for each notice that people should
	// hear of, with the notice as JSON on its standard input; empty runs
	// none. It stands beside review.notify of the configuration.
	Notify string
	// WorkTrees are directories that agents write to: configuration in
	// them is refused (D49).
	WorkTrees []string
}

// Daemon is the one owner of a state directory, with everything wired up.
type Daemon struct {
	Kernel *kernel.Kernel
	Paths  Paths

	opt    Options
	owner  *statedir.Owner
	store  *sqlite.Store
	raiser kernel.CounterRaiser // bound by the kernel
	eraser kernel.Eraser        // bound by the kernel

	recounter *recount.Recounter
	erasure   *erasure.Erasure
	tools     *toolpin.Catalog
	latch     *latch.Latch
	engine    *redact.Engine
	texts     *detector.Records  // engine, and detector
	detector  *detector.Detector // nil for none
	detectors *detector.Shelf    // of rows and contracts
	// unverified is why the store is not the one that was signed here last.
	unverified string
	secrets    []holdfast.Secret // that engine was made of
	unlocked   string            // why secrets could reach a disk
	signer     *ledger.Signer
	minter     *token.Minter
	runtime    string
	tele       *telemetry.Telemetry
	log        *slog.Logger
	since      time.Time
	began      *config.Config // the configuration at the start

	mu     sync.Mutex
	loaded *config.Loaded // guarded by mu
	page   pages          // guarded by mu
	code   string         // guarded by mu; where the code executor listens, if it does
	served *api.Server    // guarded by mu; nil until commands is called

	alerts       *alert.Service
	hooks        *halthook.Hooks
	metrics      *metrics.Metrics
	clients      clients
	sandboxes    *tiers.Set
	egress       *service.Service
	mappings     *mapping.Sessions
	values       *modelvalue.Values
	snapshots    *versions.Service
	keysets      []*keyset.Set
	sessionsDone sync.WaitGroup
	bearer       *bearer.Gate
	verifies     *token.Verifier
	mcp          *mcp.Service
	days         *report.Days
	witness      *witness.Witness
	reports      *report.Reports
	endPast      func() // nil until it is read
	watching     *anomaly.Watcher
	endWatching  func() // nil until it answers
}

// localIssuer is the name in tokens that the daemon mints for this machine.
const (
	localIssuer   = "holdfast"
	localAudience = "holdfast"
	localTTL      = 15 * time.Minute
	// localRole is the role of every agent that the daemon starts.
	localRole = "agent"
)

// Open takes the state directory, opens what is in it, and closes what a crash
// left open. It is the only place that takes the owner's lock (D48). Close
// gives everything back.
func Open(ctx context.Context, opt Options) (_ *Daemon, err error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{opt: opt, log: opt.Log, since: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.loaded, err = config.LoadHere(opt.Config, opt.WorkTrees...); err != nil {
		return nil, err
	}
	d.began = d.loaded.Config
	if d.owner, err = statedir.AcquireOwner(opt.State, time.Now()); err != nil {
		return nil, err
	}
	d.Paths = d.owner.Paths
	d.snapshots = d.newVersions()
	settings := versionSettings(&d.loaded.Config.Snapshots)
	if err = d.snapshots.Hold(settings); err != nil {
		return nil, err
	}
	d.snapshots.Set(settings)
	keys, err := statedir.LoadKeys(d.owner)
	if err != nil {
		return nil, err
	}
	d.runtime = keys.Runtime
	if err = d.openParts(ctx, keys); err != nil {
		return nil, err
	}
	if err = d.recover(); err != nil {
		return nil, err
	}
	d.endWatching = d.watching.Start(ctx) // before it is told of what holds
	if err = d.snapshots.Resume(ctx); err != nil {
		return nil, err
	}
	d.snapshots.TellMoved()
	if d.unverified != "" {
		d.condition("", "", watch.VerificationFailed, true, d.unverified)
	}
	return d, d.readPast(ctx)
}

func (d *Daemon) openParts(ctx context.Context, keys *statedir.Keys) (err error) {
	if err = d.openEngine(ctx); err != nil {
		return err
	}
	if d.signer, err = ledger.ParseSigner(keys.Ledger); err != nil {
		return err
	}
	if d.store, err = sqlite.Open(ctx, sqlite.Options{Path: d.Paths.DB, Tables: feature.Tables()}); err != nil {
		return err
	}
	d.days, d.witness = report.NewDays(d.store), d.newWitness()
	if err = witness.CheckSigned(ctx, d.store, d.signer.Verifier()); err != nil {
		return err
	}
	if err = statedir.MarkStore(d.Paths); err != nil {
		return err
	}
	if d.latch, err = latch.New(d.Paths.Halt); err != nil {
		return err
	}
	if err = d.heedWitness(ctx); err != nil {
		return err
	}
	if d.minter, err = token.NewMinter(keys.Token, localIssuer, localAudience); err != nil {
		return err
	}
	if d.tele, err = telemetry.New(ctx, telemetry.Options{
		Endpoint: d.loaded.Config.Telemetry.Endpoint, Headers: d.loaded.Config.Telemetry.Headers,
		Version: d.opt.Version, Runtime: keys.Runtime, Log: d.log,
	}); err != nil {
		return err
	}
	if d.verifies, err = d.verifier(); err != nil {
		return err
	}
	mcpSeal, err := hkdf.Key(sha256.New, keys.Seal, nil, "holdfast mcp request state v1", gateway.SealSize)
	if err != nil {
		return err
	}
	marks, err := hkdf.Key(sha256.New, keys.Seal, nil, "holdfast past marks v1", sha256.Size)
	if err != nil {
		return err
	}
	seal, err := newSealer(keys.Seal)
	if err != nil {
		return err
	}
	mappings, err := hkdf.Key(sha256.New, keys.Seal, nil, "holdfast model placeholders v1", sha256.Size)
	if err != nil {
		return err
	}
	d.egress = d.newEgress(mappings, seal)
	d.sandboxes = tiers.New(tiers.Options{
		Dir: d.Paths.Dir, Config: d.began.Sandbox.TierConfig(), Engine: d.engine, Log: d.log,
	})
	if err = d.openAlerts(); err != nil {
		return err
	}
	d.reports = d.newReports()
	d.metrics = metrics.New()
	d.watching = d.newWatcher()
	d.Kernel, err = kernel.New(d.kernelConfig(seal, marks))
	d.erasure = erasure.New(&d.eraser, func() time.Duration { return time.Duration(d.config().Ledger.Retention) })
	d.recounter = recount.New(d.store, &d.raiser, d.log, d.maskText)
	if err == nil {
		d.bearer = bearer.New(d.Kernel, d.verifies, d.store, d.log)
		d.mcp = d.newMCP(mcpSeal)
		d.metrics.LookAt(d.metricSources())
	}
	return err
}

// newWitness returns what keeps the newest signed head of the ledger.
func (d *Daemon) newWitness() *witness.Witness {
	return witness.New(witness.Options{
		File: d.Paths.Signed, Signer: d.signer, Store: d.store, Notify: d.notice, Mask: d.maskText,
		Sign: func(s *ledger.Signer) (int, error) { return d.Kernel.Checkpoint(s) },
		Disk: func(ctx context.Context) (witness.Disk, error) {
			return sqlite.Open(ctx, sqlite.Options{Path: d.Paths.DB, ReadOnly: true, Tables: feature.Tables()})
		},
		Changed: func(holds bool, why string) { d.condition("", "", watch.VerificationFailed, holds, why) },
	})
}

// newReports returns the daily reports.
func (d *Daemon) newReports() *report.Reports {
	return report.New(report.Options{
		Dir: d.Paths.Reports, Store: d.store, Runtime: d.runtime, Mask: d.maskText, Log: d.log,
		Record: func(e kernel.Event) error { return d.Kernel.Record(e) },
		State: func() report.State {
			return report.State{
				Settings: d.Kernel.Policy().Settings, Halted: d.latch.Halted(), Disabled: d.disabled() != "",
			}
		},
		Target: func() ([]string, time.Duration, error) {
			to := d.config().Alerts.Report
			at, err := to.TimeOfDay()
			return to.To, at, err
		},
		Send: d.alerts.Put,
	})
}

// heedWitness halts if the store does not hold what was signed here last. A
// person lifts that, who knows.
func (d *Daemon) heedWitness(ctx context.Context) error {
	why, err := d.witness.CheckStore(ctx)
	if err != nil || why == "" {
		return err
	}
	d.unverified = why
	d.log.Error("everything is halted", "why", why)
	_, err = d.latch.SetFirst("holdfast", why, time.Now())
	return err
}

// kernelConfig returns what the kernel is made of.
func (d *Daemon) kernelConfig(seal *sealer, markKey []byte) kernel.Config {
	d.tools = toolpin.New(d.engine)
	return kernel.Config{
		Store: d.store, Latch: d.latch, Verifier: d.verifies, Redact: d.engine, Records: d.texts, Sealer: seal,
		Policy: d.own(d.loaded), Operator: d.operators, Runtime: d.Runtime(), Disabled: d.disabled(),
		Notify: d.notice, Refused: d.keepRefused, Observer: observers{d.metrics, d.watching}, Versions: d.snapshots,
		Log: d.log, Tracer: d.tele.Tracer(), MarkKey: markKey, Features: append(feature.All(), d.values.Feature),
		CounterRaiser: &d.raiser, Eraser: &d.eraser, Catalog: d.tools, Lineage: subagent.New(d.engine),
	}
}

// frontKernel is what frontends call: the kernel, and what it asks of features.
type frontKernel struct {
	*kernel.Kernel
	*toolpin.Catalog
	*goals
	*budgets
	*erasure.Erasure
}

type (
	goals   = goal.Goals
	budgets = exceed.Budgets
)

func (d *Daemon) frontKernel() frontKernel {
	return frontKernel{d.Kernel, d.tools, goal.FromKernel(d.Kernel), exceed.FromKernel(d.Kernel), d.erasure}
}

// readPast begins to read the ledger for rules that ask the past, and waits a
// little for it: a command that makes one crossing would else be refused by a rule
// that needs a moment.
func (d *Daemon) readPast(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, pastWait)
	defer cancel()
	err := d.Kernel.Past().Read(soon)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.log.Warn("the ledger is still being read for rules that ask the past; they fail until it is read", "err", err)
	}
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Kernel.Past().Follow(going)
	}()
	d.endPast = func() { stop(); <-ended }
	return nil
}

// pastWait is how long Open waits for the ledger to be read.
const pastWait = 2 * time.Second

// own completes a loaded policy with the paths that are Holdfast's own (D12)
// and with how long things are kept.
func (d *Daemon) own(l *config.Loaded) *kernel.Policy {
	own := *l.Policy
	d.connectJudges(&own)
	versions.AddPolicy(&own)
	own.Own = append(append([]string{d.Paths.Dir}, l.Files...), l.Config.FactPaths()...)
	if dir, err := os.UserConfigDir(); err == nil && len(l.Files) == 0 {
		own.Own = append(own.Own, filepath.Join(dir, "holdfast")) // where there is none yet
	}
	if folder := l.Config.Snapshots.Archive.Folder; folder != "" {
		own.Own = append(own.Own, folder)
	}
	own.ReplayFor = time.Duration(l.Config.Ledger.Results)
	own.ForgetRequests = l.Config.Ledger.Requests == "none"
	own.Settings = report.SettingsOf(&own)
	own.Settings.Snapshots = len(l.Config.Snapshots.ListTrees()) > 0
	if r, ok := own.Rules.(interface{ Weakened() []string }); ok {
		own.Weakened = append(slices.Clone(own.Weakened), r.Weakened()...)
	}
	own.Weakened = append(slices.Clone(own.Weakened), d.weakerRedaction()...)
	for _, w := range own.Weakened {
		d.log.Warn("weakened", "what", w)
	}
	for _, w := range l.Deprecated {
		d.log.Warn("deprecated", "what", w)
	}
	return &own
}

// disabled is why HOLDFAST_ENABLED halts, or empty (D35).
func (d *Daemon) disabled() string {
	if latch.Enabled(d.opt.Enabled, d.opt.EnabledSet) {
		return ""
	}
	return fmt.Sprintf("HOLDFAST_ENABLED is %q", excerpt.Word(d.opt.Enabled))
}

// recover closes what a crash left open, and records the requests that a
// poisoned ledger could not.
func (d *Daemon) recover() error {
	n, path := int64(0), d.refusedFile()
	b, err := os.ReadFile(path)
	if err == nil {
		n, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	}
	r, err := d.Kernel.Recover(n)
	if err != nil {
		return err
	}
	d.eraseOld()
	d.eraseValues()
	if r.Closed > 0 {
		d.log.Warn("crossings were left open by a crash; their outcome is recorded as unknown", "count", r.Closed)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := d.Kernel.Halted(); err != nil {
		return err
	}
	return d.Kernel.Lifted()
}

// eraseOld erases the parts of records whose time is over. What it leaves the next sweep erases.
func (d *Daemon) eraseOld() {
	if err := d.erasure.EraseOld(); err != nil {
		d.log.Error("old parts of records were not erased", "err", err)
	}
}

func (d *Daemon) refusedFile() string { return filepath.Join(d.Paths.Dir, "refused") }

// keepRefused notes how many requests a poisoned ledger refused, outside of
// it, as well as a full disk lets it (D5).
func (d *Daemon) keepRefused(total int64) {
	if total&(total-1) != 0 && total%100 != 0 {
		return
	}
	if err := os.WriteFile(d.refusedFile(), []byte(strconv.FormatInt(total, 10)+"\n"), 0o600); err != nil {
		d.log.Error("the count of refused requests could not be kept", "count", total, "err", err)
	}
}

// operators reads the operators' public keys, at each use: a key made later
// counts, and one that was removed does not.
func (d *Daemon) operators() []operator.Public {
	b, err := guard.ReadRegular(d.Paths.OperatorPub, operator.MaxKeyList, guard.CheckPrivate(d.Paths.OperatorPub))
	if missing(err) {
		return nil
	}
	var out []operator.Public
	if err == nil {
		out, err = operator.ParseKeys(string(b))
	}
	if err != nil {
		d.log.Error("the operators' keys cannot be read", "err", err)
		return nil
	}
	return out
}

// Runtime is the state's id, to which operator statements are bound.
func (d *Daemon) Runtime() string { return d.runtime }

// Mint makes a short-lived token for an agent of this machine (D8).
func (d *Daemon) Mint(id holdfast.Identity) (holdfast.Secret, error) {
	tok, _, err := d.mint(id, localTTL)
	return tok, err
}

func (d *Daemon) mint(id holdfast.Identity, ttl time.Duration) (holdfast.Secret, holdfast.Identity, error) {
	id.Tenant, id.Roles = holdfast.Local, []string{localRole}
	if id.Principal == "" {
		id.Principal = "agent:" + id.Agent
	}
	if err := d.Kernel.Nameable(id); err != nil {
		return holdfast.Secret{}, holdfast.Identity{}, err
	}
	if id.Session == "" {
		id.Session = sessionOf(id.Agent, time.Now())
	}
	return d.minter.Mint(id, ttl, time.Now())
}

// sessionOf is the session of an agent that names none: one a day.
func sessionOf(agent string, now time.Time) string {
	return agent + "-" + now.UTC().Format("2006-01-02")
}

// Store is the open store, for reading.
func (d *Daemon) Store() kernel.Store { return d.store }

// Close ends everything that Open began, in the opposite order.
func (d *Daemon) Close() error {
	errs := []error{d.closeEgress(), d.closeSandboxes()}
	if d.snapshots != nil {
		d.snapshots.Rest()
	}
	if d.endWatching != nil {
		d.endWatching()
	}
	if d.endPast != nil {
		d.endPast()
	}
	if d.store != nil {
		if d.Kernel != nil && d.store.Poisoned() == nil {
			_, err := d.witness.Checkpoint(context.Background())
			errs = append(errs, err)
		}
		errs = append(errs, d.store.Close())
	}
	for _, k := range d.keysets {
		k.Close()
	}
	if d.alerts != nil {
		errs = append(errs, d.alerts.Close())
	}
	if d.tele != nil {
		errs = append(errs, d.tele.Close(context.Background()))
	}
	d.detectors.Close()
	d.detector.Close() // what was recorded before needed it
	return errors.Join(append(errs, d.owner.Release())...)
}

// person names the user of this process.
func person() string {
	if u := os.Getenv("USER"); u != "" {
		return excerpt.Word(u)
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// sealer is AES-256-GCM with a random nonce in front (D10).
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead}, nil
}

// Seal encrypts plain so that it opens only together with bound.
func (s *sealer) Seal(plain, bound []byte) ([]byte, error) {
	return s.aead.Seal(nil, nil, plain, bound), nil
}

// Open is the other way; a changed byte of either is an error.
func (s *sealer) Open(sealed, bound []byte) ([]byte, error) {
	return s.aead.Open(nil, nil, sealed, bound)
}
