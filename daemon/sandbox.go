package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
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
	vm.Guest(inGuest)
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

// sandboxes opens each tier when it is first needed: looking for languages takes
// longer than most commands, and making a VM ready longer than that.
type sandboxes struct {
	d       *Daemon
	process site[*process.Tier]
	more    [2]site[tier] // container and vm, the weaker first
}

// site is where one tier stands once it is open.
type site[T tier] struct {
	mu   sync.Mutex
	tier T // guarded by mu
	is   bool
}

// get opens it where nobody has. What failed is tried again by the next: what was
// missing may have been installed.
func (s *site[T]) get(open func() (T, error)) (T, error) {
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

// look is the tier if it is open; what opens just now is not waited for.
func (s *site[T]) look() (t T, ok bool) {
	if !s.mu.TryLock() {
		return t, false
	}
	defer s.mu.Unlock()
	return s.tier, s.is
}

func (s *site[T]) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.is {
		return nil
	}
	return s.tier.Close()
}

// parked is how many processes of a language wait for code behind their walls:
// as many as a burst of requests brings on a small machine, at 3 MB each.
const parked = 4

func (s *sandboxes) open(ctx context.Context) (*process.Tier, error) {
	return s.process.get(func() (*process.Tier, error) {
		return process.Open(ctx, process.Config{
			Dir:    filepath.Join(s.d.Paths.Dir, "sandbox"),
			Secret: s.secret,
			Note:   func(line string) { s.d.log.Info("sandbox", "doing", line) },
			Warn:   func(line string) { s.d.log.Warn("sandbox", "trouble", line) },
			Parked: parked,
		})
	})
}

// secret says whether a text holds what must not be in a sandbox: a secret by
// its form, or a registered one. Addresses and numbers of people may be.
func (s *sandboxes) secret(text string) bool {
	for _, f := range s.d.engine.Text([]byte(text)).Findings {
		if strings.HasPrefix(f.Rule, "secret.") {
			return true
		}
	}
	return false
}

// from returns the tiers that are at least so strong, the weakest first.
func from(least posture.Tier) []posture.Tier {
	list := []posture.Tier{posture.TierProcess, posture.TierContainer, posture.TierVM}
	return list[max(0, min(int(least-posture.TierProcess), len(list)-1)):]
}

// opened is the tier of that name, open.
func (s *sandboxes) opened(ctx context.Context, which posture.Tier) (tier, error) {
	if which <= posture.TierProcess {
		return s.open(ctx)
	}
	return s.more[which-posture.TierContainer].get(func() (tier, error) { return s.openMore(ctx, which) })
}

// Language implements api.Sandbox. Every tier runs the languages that the process
// tier finds.
func (s *sandboxes) Language(ctx context.Context, asked string) (string, bool) {
	t, err := s.open(ctx)
	if err != nil {
		return "", false
	}
	exact, err := t.Exact(ctx, asked)
	return exact, err == nil
}

// Prepare implements api.Sandbox. It opens no stronger tier: nothing is made for
// a request that no gate has judged.
func (s *sandboxes) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	t, err := s.open(ctx)
	if err != nil {
		return sandbox.Spec{}, err
	}
	if spec.Tier == posture.TierVM && spec.MemoryMB == 0 { // as much as there can be, so that the payload says it
		spec.MemoryMB, spec.AnyMemory = min(vm.RoomMB(s.d.began.Sandbox.VM.Memory), sandbox.LimitsOf(spec.Tier).MemoryMB), true
	}
	return t.Prepare(ctx, spec)
}

// Run implements api.Sandbox. Where the tier that spec names is not there the next
// stronger one is taken, and a lesser one never: then the refusal names what is
// missing. What the code wrote is masked like everything that is shown.
func (s *sandboxes) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	t, instead, err := s.strong(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, holdfast.ErrNotStarted)
	}
	res, err := t.Run(ctx, spec)
	if err != nil {
		return res, fmt.Errorf("%w: %w", err, holdfast.ErrNotStarted)
	}
	if res.Posture.Tier < spec.Tier {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("it ran in the %s tier and not in the %s tier; its result is withheld", res.Posture.Tier, spec.Tier)}
	}
	if instead != "" {
		res.Chosen = spec.Chosen + "; it ran in the " + res.Posture.Tier.String() + " tier: " + instead
	}
	res.Stdout, res.Stderr = s.d.engine.Text(res.Stdout).Out, s.d.engine.Text(res.Stderr).Out
	return res, nil
}

// strong is the weakest tier that is there and as strong as spec says; instead is
// why it is not the one that spec names.
func (s *sandboxes) strong(ctx context.Context, spec sandbox.Spec) (t tier, instead string, err error) {
	var absent error
	for _, which := range from(spec.Tier) {
		if t, err = s.opened(ctx, which); err == nil {
			return t, instead, nil
		}
		if which <= posture.TierProcess {
			return nil, "", err
		}
		if absent == nil {
			why, _ := usage.Explain(err)
			absent, instead = lacking(spec, err), "the "+which.String()+" tier is missing here: "+why
		}
	}
	return nil, "", absent
}

// lacking is the refusal of what needs a tier that is not there.
func lacking(spec sandbox.Spec, err error) error {
	why, hint := usage.Explain(err)
	kind := holdfast.KindSpawn
	if posture.StateOf(err) == posture.SpawnError {
		kind = holdfast.KindOf(err)
	}
	return &holdfast.Error{Kind: kind, Hint: cmp.Or(hint, "`holdfast doctor` says how to have it"), Err: err,
		Why: fmt.Sprintf("%s; and the %s tier is missing here: %s", spec.Chosen, spec.Tier, why)}
}

// standing are the tiers that are open, the weakest first.
func (s *sandboxes) standing() []tier {
	var list []tier
	if t, ok := s.process.look(); ok {
		list = append(list, t)
	}
	for i := range s.more {
		if t, ok := s.more[i].look(); ok {
			list = append(list, t)
		}
	}
	return list
}

// troubles are what is wrong with the tiers; none before code was run, or while
// one opens: the status does not wait for that.
func (s *sandboxes) troubles() (list []string) {
	for _, t := range s.standing() {
		list = append(list, t.Troubles()...)
	}
	return list
}

// postures are those of the tiers that are open, for the status.
func (s *sandboxes) postures() (list []posture.Posture) {
	for _, t := range s.standing() {
		list = append(list, t.Posture())
	}
	return list
}

// close ends the stronger tiers first: they stand on what the process tier made.
func (s *sandboxes) close() error {
	return errors.Join(s.more[1].close(), s.more[0].close(), s.process.close())
}
