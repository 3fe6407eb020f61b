package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// reloading is a daemon whose rules are written again and again while clients
// cross without pause. Set n refuses what is asked with "no" by three rules, the
// first on its own line.
type reloading struct {
	*fixture.State
	rules string
	log   *refusals

	sent, allowed, denied atomic.Int64
	mu                    sync.Mutex
	strange               []string    // guarded by mu; answers that are no set's
	sets                  map[int]int // guarded by mu; denials by set
}

// refusals counts the rules files that were refused.
type refusals struct{ n atomic.Int64 }

func (r *refusals) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (r *refusals) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *refusals) WithGroup(string) slog.Handler { return r }

func (r *refusals) Handle(_ context.Context, rec slog.Record) error {
	if strings.HasPrefix(rec.Message, "the configuration is not reloaded") {
		r.n.Add(1)
	}
	return nil
}

// reloadClients is how many cross at once, and refuseEvery which of their requests
// every set refuses: so few that none is turned away for being refused too often.
const reloadClients, refuseEvery = 16, 40

// setOf is rules file n; the comment makes an error in each stand on another line.
func setOf(n int) string {
	return strings.Repeat("#\n", n) + fmt.Sprintf(`rules:
  - {id: first, on: request, boundary: %[1]s, when: args.path == "no", message: set %[2]d objects}
  - {id: second, on: request, boundary: %[1]s, when: args.path == "no", message: second of %[2]d}
  - {id: third, on: request, boundary: %[1]s, when: args.path == "no", message: third of %[2]d}
  - {id: asks, on: request, boundary: %[1]s, when: "past('%[1]s', '1h').count() < 0", message: never}
`, fixture.Wait, n)
}

// measureReload counts what becomes of requests while rules are reloaded, whole and
// half written, in turns: answers, and what the ledger has of them.
func measureReload(b *measure.Run) (_ []measure.Figure, err error) {
	r, stop, err := openReload(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	alone, err := r.loaded(b, func(context.Context) error {
		time.Sleep(b.Span(2 * time.Second))
		return nil
	})
	if err != nil {
		return nil, err
	}
	rounds := b.Rounds(20)
	while, err := r.loaded(b, func(ctx context.Context) error { return r.rewrite(ctx, rounds) })
	if err != nil {
		return nil, err
	}
	begun, closed, denied, err := r.recorded(b.Ctx)
	if err != nil {
		return nil, err
	}
	lost := r.sent.Load() - r.allowed.Load() - r.denied.Load()
	for _, d := range []int64{r.allowed.Load() - begun, r.allowed.Load() - closed, r.denied.Load() - denied} {
		lost += max(d, -d)
	}
	f := measure.Figure{Name: fmt.Sprintf("requests lost by %d reloads, %d half written", rounds, rounds), Measured: float64(lost), Unit: fmt.Sprintf("of %d", r.sent.Load()), Target: "0", Binding: true,
		Note: fmt.Sprintf("%d were allowed: %d begun and %d closed in the ledger; %d refused by %d sets, %d in the ledger; %d answers are no set's%s; %d files refused",
			r.allowed.Load(), begun, closed, r.denied.Load(), len(r.sets), denied, len(r.strange), such(r.strange), r.log.n.Load())}
	f.Met = lost == 0 && len(r.strange) == 0
	g := measure.Figure{Name: "  a crossing meanwhile, p50", Measured: measure.Millis(while.P50), Unit: "ms"}
	return []measure.Figure{f, g.RatioTo(measure.Millis(alone.P50), "without reloads")}, nil
}

func such(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + list[0] + ")"
}

func openReload(b *measure.Run) (*reloading, func() error, error) {
	r := &reloading{log: &refusals{}, sets: map[int]int{}}
	var err error
	if r.State, err = fixture.OpenStateWith(b, "reload", fixture.NewConfig(), func(o *daemon.Options) { o.Log = slog.New(r.log) }); err != nil {
		return nil, nil, err
	}
	r.rules = filepath.Join(b.Dir, "reload-config", "rules.yaml")
	ctx, cancel := context.WithCancel(b.Ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- r.Daemon.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
	stop := func() error {
		cancel()
		return errors.Join(<-ended, r.Daemon.Close())
	}
	select {
	case <-ready:
	case served := <-ended:
		ended <- served
		return nil, nil, errors.Join(errors.New("the daemon ended"), stop())
	}
	if err := r.put(ctx, setOf(0)); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return r, stop, nil
}

// loaded lets the clients cross until do is done, and returns how they fared.
func (r *reloading) loaded(b *measure.Run, do func(context.Context) error) (measure.Speed, error) {
	reqs, err := r.NewRequests(fixture.Wait, nil, reloadClients, 1)
	if err != nil {
		return measure.Speed{}, err
	}
	ctx, cancel := context.WithCancel(b.Ctx)
	defer cancel()
	var over atomic.Bool
	ended := make(chan error, 1)
	go func() {
		defer over.Store(true)
		ended <- do(ctx)
	}()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for i, req := range reqs {
		wg.Go(func() {
			var mine []time.Duration
			for n := i; !over.Load(); n++ {
				req.Payload = []byte(`{"path":"yes"}`)
				if n%refuseEvery == 0 {
					req.Payload = []byte(`{"path":"no"}`)
				}
				start := time.Now()
				r.cross(b.Ctx, req, n%refuseEvery == 0)
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	wg.Wait()
	return measure.Speed{P50: measure.Percentile(all, 50), P99: measure.Percentile(all, 99)}, <-ended
}

// cross makes one request and sees whether its answer is one set's, whole.
func (r *reloading) cross(ctx context.Context, req holdfast.Request, no bool) {
	r.sent.Add(1)
	out, err := r.Daemon.Kernel.Cross(ctx, req, fixture.Succeed)
	if err == nil && out.Verdict == holdfast.Allow {
		r.allowed.Add(1)
		if no {
			r.odd("what every set refuses was allowed")
		}
		return
	}
	r.denied.Add(1)
	why := ""
	if err != nil {
		why = err.Error()
	}
	number, ok := setIn(out.Opinions)
	if !no || !ok {
		r.odd(why)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sets[number]++
}

// setIn is the one set whose every rule spoke in an answer: its number, the line on
// which its rule stands, and how many more object.
func setIn(said []holdfast.Opinion) (n int, ok bool) {
	for _, op := range said {
		if op.Verdict == holdfast.Deny {
			_, err := fmt.Sscanf(op.Why, "set %d objects (and 2 more rules object)", &n)
			return n, err == nil && op.Gate == holdfast.K8 && strings.HasSuffix(op.Rule, fmt.Sprintf("rules.yaml:%d)", n+2))
		}
	}
	return 0, false
}

func (r *reloading) odd(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strange = append(r.strange, why)
}

// rewrite writes each set whole, after its first half, which must be refused
// while the set before stays in force.
func (r *reloading) rewrite(ctx context.Context, rounds int) error {
	for n := 1; n <= rounds; n++ {
		was, refused := r.policy(), r.log.n.Load()
		text := setOf(n)
		half := text[:strings.Index(text, ", message: third")]
		if err := os.WriteFile(r.rules, []byte(half), 0o600); err != nil {
			return err
		}
		if err := soon(ctx, func() bool { return r.log.n.Load() > refused }); err != nil {
			return fmt.Errorf("half of rules %d was not refused: %w", n, err)
		}
		if r.policy() != was {
			return fmt.Errorf("half of rules %d took effect", n)
		}
		if err := r.put(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// put writes rules and waits until they are in force.
func (r *reloading) put(ctx context.Context, text string) error {
	was := r.policy()
	if err := os.WriteFile(r.rules, []byte(text), 0o600); err != nil {
		return err
	}
	if err := soon(ctx, func() bool { return r.policy() != was && r.Daemon.Kernel.Past().Status().Ready }); err != nil {
		return fmt.Errorf("the rules did not take effect: %w", err)
	}
	return nil
}

func (r *reloading) policy() string { return r.Daemon.Kernel.Policy().Version }

// soon waits until something is so, for half a minute at most.
func soon(ctx context.Context, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// recorded counts what the ledger has of the clients: begins, their entries, and
// entries of what was refused.
func (r *reloading) recorded(ctx context.Context) (begun, closed, denied int64, err error) {
	err = r.Daemon.Store().View(ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(heads, func(h ledger.Head) bool { return h.Tenant == "tenant-0" })
		if i < 0 {
			return errors.New("nothing was written")
		}
		return tx.Leaves(heads[i].Tenant, 0, heads[i].Size, func(l ledger.Stored) error {
			switch {
			case l.Kind == ledger.KindBegin:
				begun++
			case l.Kind != ledger.KindEntry:
			default:
				e, err := ledger.ParseEntry(l.Record)
				if err != nil {
					return err
				}
				if e.BeginSeq != nil {
					closed++
				} else {
					denied++
				}
			}
			return nil
		})
	})
	return begun, closed, denied, err
}
