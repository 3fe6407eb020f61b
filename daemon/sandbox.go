package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// Launcher turns this process into a launcher of the sandbox, and does not
// return, if Holdfast started it as one. A program in which code is run calls
// it first thing in main: the walls are built by a process that has nothing
// else in its memory.
func Launcher() { process.Launcher() }

// sandboxes opens the tiers when the first code is run: looking for languages
// takes longer than most commands.
type sandboxes struct {
	d    *Daemon
	mu   sync.Mutex
	tier *process.Tier
}

// parked is how many processes of a language wait for code behind their walls:
// as many as a burst of requests brings on a small machine, at 3 MB each.
const parked = 4

func (s *sandboxes) open(ctx context.Context) (*process.Tier, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tier != nil {
		return s.tier, nil
	}
	t, err := process.Open(ctx, process.Config{
		Dir:    filepath.Join(s.d.Paths.Dir, "sandbox"),
		Secret: s.secret,
		Note:   func(line string) { s.d.log.Info("sandbox", "doing", line) },
		Warn:   func(line string) { s.d.log.Warn("sandbox", "trouble", line) },
		Parked: parked,
	})
	s.tier = t
	return t, err
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

// Prepare implements api.Sandbox.
func (s *sandboxes) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	t, err := s.open(ctx)
	if err != nil {
		return sandbox.Spec{}, err
	}
	return t.Prepare(ctx, spec)
}

// Run implements api.Sandbox. What the code wrote is masked like everything that
// is shown.
func (s *sandboxes) Run(ctx context.Context, spec sandbox.Spec, least sandbox.Tier) (*sandbox.Result, error) {
	if least > sandbox.TierProcess {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the contract demands the %s tier, and this version has none", least), Hint: "let the contract of exec/" + spec.Language + " say tier: process"}
	}
	t, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	res, err := t.Run(ctx, spec)
	if err != nil {
		return res, fmt.Errorf("%w: %w", err, holdfast.ErrNotStarted)
	}
	res.Stdout, res.Stderr = s.d.engine.Text(res.Stdout).Out, s.d.engine.Text(res.Stderr).Out
	return res, nil
}

// troubles are what is wrong with the tier; none before code was run, or while
// it opens: the status does not wait for that.
func (s *sandboxes) troubles() []string {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	if s.tier == nil {
		return nil
	}
	return s.tier.Troubles()
}

func (s *sandboxes) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tier == nil {
		return nil
	}
	return s.tier.Close()
}
