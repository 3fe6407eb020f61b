// Package tiers opens the sandboxes of one state directory when they are first needed, and runs code in the
// weakest one that is strong enough.
package tiers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// RunHelperRole runs this process as a sandbox's helper, and does not return, if a sandbox
// started the program again as one: as a launcher, as the heir that tidies up after it, or
// in a guest of the VM tier as the supervisor. Otherwise it returns. Call it first in main,
// and in TestMain of a package whose tests run code: walls are built by a process that has
// nothing else in its memory.
func RunHelperRole() {
	process.Launcher()
	container.Launcher()
	vm.Launcher()
	vm.Guest(openInGuest)
}

// A tier is one kind of sandbox (spec 000 "Sandbox types").
type tier interface {
	Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error)
	Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error)
	Posture() posture.Posture
	Languages() ([]string, map[string]string)
	Troubles() []string
	Close() error
}

// Config has the settings of the tiers. Its zero value takes what the system has.
type Config struct {
	// Runtime is the OCI runtime of the container tier, by name or absolute path, or "docker" for the engine
	// that DOCKER_HOST names; empty takes the first one that works.
	Runtime string
	// Image is the image in which an OCI runtime runs code, EngineImage the one of a Docker engine. Without one,
	// code sees the private copy of its language's runtime.
	Image       image.Source
	EngineImage string
	// Kernel and QEMU are absolute paths, and MemoryMB is the guest's memory, of the VM tier: see vm.Config.
	Kernel, QEMU string
	MemoryMB     int
}

// Options is what a Set is made of.
type Options struct {
	// Dir is the state directory.
	Dir    string
	Config Config
	// Engine finds secrets in what is given to code, and redacts what code writes.
	Engine *redact.Engine
	Log    *slog.Logger
}

// Set opens each tier when it is first needed: finding languages takes longer than most
// commands, and starting a VM longer than that. It may be used by several goroutines.
type Set struct {
	opt      Options
	process  lazyTier[*process.Tier]
	stronger [2]lazyTier[tier] // container and vm, the weaker first
}

// New returns a Set in which nothing is open yet.
func New(opt Options) *Set { return &Set{opt: opt} }

// lazyTier is a tier that may be open.
type lazyTier[T tier] struct {
	mu   sync.Mutex
	tier T // guarded by mu
	is   bool
}

// getOrOpen returns the tier, and opens it if it is not open. After an error the next call tries again:
// what was missing may have been installed.
func (s *lazyTier[T]) getOrOpen(open func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is {
		return s.tier, nil
	}
	t, err := open()
	if err == nil {
		s.tier, s.is = t, true
	}
	return t, err
}

// getIfOpen returns the tier if it is open. It does not wait for one that is being opened.
func (s *lazyTier[T]) getIfOpen() (t T, ok bool) {
	if !s.mu.TryLock() {
		return t, false
	}
	defer s.mu.Unlock()
	return s.tier, s.is
}

func (s *lazyTier[T]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.is {
		return nil
	}
	return s.tier.Close()
}

// parked is the number of processes of a language that wait for code behind their walls:
// as many as a burst of requests needs on a small machine, at 3 MB each.
const parked = 4

// OpenProcess returns the process tier. It opens it at the first call.
func (s *Set) OpenProcess(ctx context.Context) (*process.Tier, error) {
	return s.process.getOrOpen(func() (*process.Tier, error) {
		return process.Open(ctx, process.Config{
			Dir:    filepath.Join(s.opt.Dir, "sandbox"),
			Secret: s.HasSecret,
			Note:   func(line string) { s.opt.Log.Info("sandbox", "doing", line) },
			Warn:   func(line string) { s.opt.Log.Warn("sandbox", "trouble", line) },
			Parked: parked,
		})
	})
}

// HasSecret reports whether a text holds what must not be in a sandbox: a secret by
// its form, or a registered one. Addresses and numbers of people may be in it.
func (s *Set) HasSecret(text string) bool {
	for _, f := range s.opt.Engine.Text([]byte(text)).Findings {
		if strings.HasPrefix(f.Rule, "secret.") {
			return true
		}
	}
	return false
}

// listFrom returns the tiers that are at least as strong as least, the weakest first.
func listFrom(least posture.Tier) []posture.Tier {
	list := []posture.Tier{posture.TierProcess, posture.TierContainer, posture.TierVM}
	return list[max(0, min(int(least-posture.TierProcess), len(list)-1)):]
}

// openTier returns one tier, open.
func (s *Set) openTier(ctx context.Context, which posture.Tier) (tier, error) {
	if which <= posture.TierProcess {
		return s.OpenProcess(ctx)
	}
	return s.stronger[which-posture.TierContainer].getOrOpen(func() (tier, error) { return s.openStronger(ctx, which) })
}

// Language returns the exact name of a language, and reports whether it can be run. Every tier runs the
// languages that the process tier finds.
func (s *Set) Language(ctx context.Context, asked string) (string, bool) {
	t, err := s.OpenProcess(ctx)
	if err != nil {
		return "", false
	}
	exact, err := t.Exact(ctx, asked)
	return exact, err == nil
}

// Prepare completes a spec. It opens no stronger tier: nothing is made for a request that no gate
// has evaluated.
func (s *Set) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	t, err := s.OpenProcess(ctx)
	if err != nil {
		return sandbox.Spec{}, err
	}
	if spec.Tier == posture.TierVM && spec.MemoryMB == 0 { // as much as there can be, so that the payload says it
		spec.MemoryMB, spec.AnyMemory = min(vm.RoomMB(s.opt.Config.MemoryMB),
			sandbox.LimitsOf(spec.Tier).MemoryMB), true
	}
	return t.Prepare(ctx, spec)
}

// Run runs code in the tier that spec names or, if it does not exist here, in the next stronger one, and never in a
// weaker one: then the refusal names what is missing. What the code wrote is redacted.
func (s *Set) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	t, instead, err := s.chooseTier(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, holdfast.ErrNotStarted)
	}
	res, err := t.Run(ctx, spec)
	if err != nil {
		return res, fmt.Errorf("%w: %w", err, holdfast.ErrNotStarted)
	}
	if res.Posture.Tier < spec.Tier {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn,
			Why: fmt.Sprintf("it ran in the %s tier and not in the %s tier; its result is withheld",
				res.Posture.Tier, spec.Tier)}
	}
	if instead != "" {
		res.Chosen = spec.Chosen + "; it ran in the " + res.Posture.Tier.String() + " tier: " + instead
	}
	res.Stdout, res.Stderr = s.opt.Engine.Text(res.Stdout).Out, s.opt.Engine.Text(res.Stderr).Out
	return res, nil
}

// chooseTier returns the weakest tier that exists here and is as strong as spec says; instead is
// why it is not the one that spec names.
func (s *Set) chooseTier(ctx context.Context, spec sandbox.Spec) (t tier, instead string, err error) {
	var absent error
	for _, which := range listFrom(spec.Tier) {
		if t, err = s.openTier(ctx, which); err == nil {
			return t, instead, nil
		}
		if which <= posture.TierProcess {
			return nil, "", err
		}
		if absent == nil {
			why, _ := usage.Explain(err)
			absent, instead = refuseWithout(spec, err), "the "+which.String()+" tier is missing here: "+why
		}
	}
	return nil, "", absent
}

// refuseWithout returns the refusal of a spec whose tier does not exist here, because of err.
func refuseWithout(spec sandbox.Spec, err error) error {
	why, hint := usage.Explain(err)
	kind := holdfast.KindSpawn
	if posture.StateOf(err) == posture.SpawnError {
		kind = holdfast.KindOf(err)
	}
	return &holdfast.Error{Kind: kind, Hint: cmp.Or(hint, "`holdfast doctor` says how to have it"), Err: err,
		Why: fmt.Sprintf("%s; and the %s tier is missing here: %s", spec.Chosen, spec.Tier, why)}
}

// listOpen returns the tiers that are open, the weakest first.
func (s *Set) listOpen() []tier {
	var list []tier
	if t, ok := s.process.getIfOpen(); ok {
		list = append(list, t)
	}
	for i := range s.stronger {
		if t, ok := s.stronger[i].getIfOpen(); ok {
			list = append(list, t)
		}
	}
	return list
}

// Health returns what is wrong with the open tiers, nil if nothing is. It does not wait for a tier that is
// being opened.
func (s *Set) Health() (list []string) {
	for _, t := range s.listOpen() {
		list = append(list, t.Troubles()...)
	}
	return list
}

// Postures returns those of the open tiers, the weakest first.
func (s *Set) Postures() (list []posture.Posture) {
	for _, t := range s.listOpen() {
		list = append(list, t.Posture())
	}
	return list
}

// Close ends the stronger tiers first: they use what the process tier made.
func (s *Set) Close() error {
	return errors.Join(s.stronger[1].close(), s.stronger[0].close(), s.process.close())
}
