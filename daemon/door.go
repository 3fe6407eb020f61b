package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/overview"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// API is the door for commands, for a command that is the owner itself.
func (d *Daemon) API() *api.Client { return api.Direct(d.commands().Handler()) }

// commands is what answers commands and runs code, one for all doors: they share
// its room.
func (d *Daemon) commands() *api.Server {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served == nil {
		d.served = d.api(d.loaded.Config.Sandbox.Room())
	}
	return d.served
}

// Attend heeds the latch while do runs, for a command that is the owner itself:
// a halt cuts what it has begun (D34).
func (d *Daemon) Attend(do func() error) error {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.guarded(func() { d.watchLatch(ctx) }) }()
	err := do()
	cancel()
	return errors.Join(err, <-ended)
}

func (d *Daemon) api(room api.Room) *api.Server {
	return &api.Server{Kernel: d.frontKernel(), Mint: d.Mint, Status: d.Status,
		Now: d.Now, Budgets: d.budgets, Backup: d.backup, Checkpoint: d.witness.Checkpoint, TestAlerts: d.alerts.Test,
		Drained: d.drained, MCP: d.mcp.Open, Token: d.giveToken, Open: d.PageLink, Sandbox: d.sandboxes,
		Room: room, Secret: d.sandboxes.HasSecret,
		Mask:   func(s string) string { return string(d.mask([]byte(s))) },
		Own:    func() []string { return d.Kernel.Policy().Own },
		Egress: d.egress, Network: d.egress, Snapshots: d.snapshots, Log: d.log, Busy: &d.sessionsDone}
}

func (d *Daemon) backup(ctx context.Context, file string) error {
	if !filepath.IsAbs(file) {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: "the backup's path must be absolute"}
	}
	if err := d.store.Backup(ctx, file); err != nil {
		if errors.Is(err, kernel.ErrExists) || errors.Is(err, os.ErrExist) {
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: file + " exists already", Hint: "name a file that does not exist"}
		}
		return &holdfast.Error{Kind: holdfast.KindInternal, Why: "the backup could not be written to " + file, Hint: "is there room, and may holdfast write there?", Err: err}
	}
	return d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "state_backed_up", Who: person(), Subject: filepath.Base(file)})
}

// drained waits, at most ten seconds, until no crossing is in flight while
// everything is halted.
func (d *Daemon) drained(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		n := len(d.Kernel.Flights())
		if n == 0 || !d.latch.Halted() || ctx.Err() != nil {
			return n
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// Status says how Holdfast is.
func (d *Daemon) Status(ctx context.Context) (*api.Status, error) {
	p := d.Kernel.Policy()
	s := &api.Status{Version: d.opt.Version, State: d.Paths.Dir, Runtime: d.runtime, PID: os.Getpid(), Since: d.since.UTC(),
		Policy: p.Version, Files: p.From, Weakened: p.Weakened, Flights: d.Kernel.Flights(), Clients: d.clients.count(), Lingers: d.clients.areWaitedFor()}
	s.Halt = d.halted()
	s.HaltHooks = d.hooks.ListRuns()
	for _, k := range d.operators() {
		s.Operator = append(s.Operator, k.ID())
	}
	s.Watch = d.watchStatus()
	d.sayPast(s)
	d.sayCounters(s)
	d.sayStops(s)
	s.Servers = d.mcp.ListStates()
	d.sayUnlisted(s)
	if err := d.store.Poisoned(); err != nil {
		s.Problems = append(s.Problems, "the ledger failed to write: everything is refused until a restart")
	}
	why, waits := d.unapplied()
	if why != "" {
		s.Problems = append(s.Problems, why)
	}
	s.Conditions = api.Conditions{Disabled: d.disabled() != "",
		Unapplied: waits, NeedRestart: config.ListUntaken(d.began, d.config())}
	s.Problems = append(s.Problems, s.Conditions.NeedRestart...)
	s.Problems, s.Alerts = append(s.Problems, d.alerts.ListProblems()...), d.alerts.ListChannels()
	s.Problems = append(append(append(s.Problems, d.hooks.ListProblems()...), d.sandboxes.Health()...),
		append(d.egress.Health(), d.detectors.Health()...)...)
	s.Problems = append(s.Problems, d.snapshots.Problems()...)
	s.Problems = append(s.Problems, d.reports.Troubles()...)
	if why := d.witness.Trouble(); why != "" {
		s.Problems = append(s.Problems, why)
	}
	at, off := d.pagesAt()
	s.Executor, s.Egress, s.Sandboxes = d.executorAt(), d.egress.Status(ctx), d.sandboxes.Postures()
	if s.Egress != nil {
		for _, m := range s.Egress.Missing {
			s.Problems = append(s.Problems, m.String()+" ("+m.Hint+")")
		}
	}
	if s.Pages = at; off != "" {
		s.Problems = append(s.Problems, off)
	}
	if len(s.Operator) == 0 {
		s.Problems = append(s.Problems, "there is no operator key: nobody can approve or resume; make one with `holdfast init`")
	}
	s.DiskUsed, s.DiskFree = diskUse(d.Paths)
	return s, d.store.View(ctx, func(tx kernel.Tx) error { return fill(tx, s) })
}

// halted says whether everything is halted.
func (d *Daemon) halted() (s api.Halt) {
	if h, err := d.latch.Read(); h.Halted || err != nil {
		s = api.Halt{Halted: true, HaltWho: d.maskText(h.Who), HaltWhy: d.maskText(h.Why), HaltWhen: h.When}
	}
	if why := d.disabled(); why != "" {
		s.Halted, s.HaltWhy = true, why
	}
	return s
}

// spent is what all tenants spent on models; nil where nothing was.
func spent(tx kernel.Tx, now time.Time) (*api.Spend, error) {
	day, month, err := spend.Read(tx, now)
	if err != nil || len(month) == 0 {
		return nil, err
	}
	if day == nil {
		day = []spend.Sum{}
	}
	return &api.Spend{Day: now.UTC().Format("2006-01-02"), Month: now.UTC().Format("2006-01"), Today: day, ThisMonth: month}, nil
}

// fill adds what the store knows.
func fill(tx kernel.Tx, s *api.Status) error {
	var err error
	if s.Waiting, err = overview.CountWaiting(tx, ""); err != nil {
		return err
	}
	as, err := tx.Agents("")
	if err != nil {
		return err
	}
	for _, a := range as {
		if a.Owner == "" {
			s.Agents++
		} else {
			s.Within++
		}
		if a.State != holdfast.AgentRunning {
			s.Paused = append(s.Paused, a.Name)
			if a.Why != "" {
				if s.PausedWhy == nil {
					s.PausedWhy = map[string]string{}
				}
				s.PausedWhy[a.Name] = a.Why
			}
		}
	}
	if s.Goals, err = goal.ListPaused(tx); err != nil {
		return err
	}
	heads, err := tx.Heads()
	if err != nil {
		return err
	}
	if s.Blocked, err = exceed.Blocks(tx, time.Now()); err != nil {
		return err
	}
	if s.Spend, err = spent(tx, time.Now()); err != nil {
		return err
	}
	for _, h := range heads {
		n, err := exceed.ChainsEnded(tx, h.Tenant)
		if err != nil {
			return err
		}
		s.ChainsEnded += n
		t := api.TenantLedger{Tenant: h.Tenant, Leaves: h.Size, Root: h.Root.String()}
		c, err := tx.Checkpoint(h.Tenant)
		if err != nil && !errors.Is(err, kernel.ErrNotFound) {
			return err
		}
		if err == nil {
			t.Signed, t.At = c.Size, c.At
		}
		s.Ledger = append(s.Ledger, t)
	}
	sort.Slice(s.Ledger, func(i, k int) bool { return s.Ledger[i].Tenant < s.Ledger[k].Tenant })
	return nil
}

// diskUse is what the state takes, and what its disk has left, in bytes.
func diskUse(p Paths) (used, free int64) {
	for _, f := range []string{p.DB, p.DB + "-wal", p.DB + "-shm", p.Log} {
		if i, err := os.Stat(f); err == nil {
			used += i.Size()
		}
	}
	var st syscall.Statfs_t
	if syscall.Statfs(p.Dir, &st) == nil {
		free = int64(st.Bavail) * int64(st.Bsize)
	}
	return used, free
}

// decidingCommand is what a person types to decide a review, with the state
// directory where it is not the usual one.
func (d *Daemon) decidingCommand(review string) string {
	usual, err := FindState("", func(name string) (string, bool) {
		if name == "HOLDFAST_STATE" {
			return "", false
		}
		return os.LookupEnv(name)
	})
	if err == nil && usual == d.Paths.Dir {
		return "holdfast review approve " + review
	}
	return "holdfast --state " + d.Paths.Dir + " review approve " + review
}
