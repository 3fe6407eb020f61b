// Package alert decides what people hear of: findings and the kernel's notices become messages to channels, and notices
// to the review webhook and the notify commands. All of them wait in one queue of notify, which delivers them.
package alert

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

const (
	// A channel that fails for failingTime is reported through the others. checkEvery is the
	// time between two checks.
	failingTime = time.Minute
	checkEvery  = 5 * time.Second
	// questionsEvery is the time between two looks for open reviews that the webhook does
	// not know.
	questionsEvery = 5 * time.Minute
	// settleTime is the time that an alert which is not CRITICAL waits: the watch answers a
	// moment later what the kernel reports immediately, with a pause.
	settleTime = time.Second
)

// Settings are the configuration of what people hear of.
type Settings struct {
	Kinds map[string]string // of the channels, by name
	// Routes are the channels that each severity goes through, and Report those of the
	// daily report.
	Routes map[watch.Severity][]string
	Report []string
	// Fallbacks describe, one sentence each, the severities that go another way than the
	// specification's.
	Fallbacks []string
	// WebhookURL is the address of the review webhook, or "", and Plain lets http cross the
	// network.
	WebhookURL    string
	WebhookSecret func() (holdfast.Secret, error)
	Plain         bool
	ReviewCommand []string // runs for each notice about a review
}

// Kernel reads reviews.
type Kernel interface {
	Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error)
	Review(ctx context.Context, id string) (review.Review, error)
}

// Options are what a Service works with.
type Options struct {
	Dir              string // the state directory
	Runtime, Version string
	Kernel           func() Kernel // made after the service, which it notifies
	Journal          *notify.Journal
	Mask             func(string) string
	// Channel opens a configured channel. Its error names the place of the address, and
	// never the address.
	Channel func(ctx context.Context, name string) (*notify.Channel, error)
	// Page returns the address of a review's page, or "".
	Page func(review string) string
	// Runner runs the notify commands. Command is the shell command of `up --notify`, or "".
	Runner  command.Runner
	Command string
	// Failing is called with what is wrong with channels, or "", each time they are checked.
	Failing func(why string)
	Log     *slog.Logger
}

// Service notifies people. It may be used by many goroutines.
type Service struct {
	Options
	queue *notify.Queue

	mu       sync.Mutex
	settings Settings        // guarded by mu
	answered map[string]bool // guarded by mu; whether the last try of a destination succeeded
	halt     watch.Finding   // guarded by mu; the newest halt that people heard of
}

// Open reads what waits in the state directory.
func Open(o Options, s Settings) (*Service, error) {
	a := &Service{Options: o, settings: s, answered: map[string]bool{}}
	var err error
	a.queue, err = notify.OpenQueue(filepath.Join(o.Dir, "alerts.waiting"), notify.Options{
		Transport: a.openTransport, Route: a.findRoute, Known: a.isConfigured, Done: a.recordResult,
		Lost: o.Journal.WriteLost, Log: o.Log, Settle: settleTime})
	if err != nil {
		return nil, usage.HintErrorf(
			"move it away; what waits there to be told is lost with it", "the alerts that wait cannot be read: %v", err,
		)
	}
	a.takeOldQuestions()
	return a, nil
}

// Close closes the queue. Run has ended before.
func (a *Service) Close() error { return a.queue.Close() }

// Run delivers until ctx ends.
func (a *Service) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { a.queue.Run(ctx) })
	a.logFallbacks(ctx)
	a.putQuestions(ctx)
	checks, questions := time.NewTicker(checkEvery), time.NewTicker(questionsEvery)
	defer checks.Stop()
	defer questions.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-checks.C:
			a.CheckChannels(time.Now())
		case <-questions.C:
			a.putQuestions(ctx)
		}
	}
}

// Reload applies other settings. What waits is tried immediately.
func (a *Service) Reload(s Settings) {
	a.mu.Lock()
	a.settings = s
	a.mu.Unlock()
	a.queue.Reroute()
	a.logFallbacks(context.Background())
}

func (a *Service) config() Settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings
}

// logFallbacks logs what goes another way: as information if no channel is configured, since
// the operator may not want any.
func (a *Service) logFallbacks(ctx context.Context) {
	s, level := a.config(), slog.LevelWarn
	if len(s.Kinds) == 0 {
		level = slog.LevelInfo
	}
	for _, why := range s.Fallbacks {
		a.Log.Log(ctx, level, why)
	}
}

// Waiting returns the number of items that wait.
func (a *Service) Waiting() int { return a.queue.Waiting() }

// Put takes a message that was made elsewhere.
func (a *Service) Put(i notify.Item, now time.Time) { a.queue.Put(i, now) }
