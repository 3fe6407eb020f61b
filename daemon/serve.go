package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/listener"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// Serving is how Serve behaves.
type Serving struct {
	// Linger ends Serve when its last client has gone: a daemon that was
	// started for one command ends with it.
	Linger bool
	// Ready is told, once, where the pages are; it may be nil.
	Ready func(pages string)
}

// How often time asks for something.
const (
	sweepEvery  = 5 * time.Second
	latchEvery  = time.Second
	configEvery = 2 * time.Second
	lingerAfter = 5 * time.Second
	// lingerFirst is how long a lingering daemon waits for its first client.
	lingerFirst = 30 * time.Second
	// idleTime bounds how long a command that asks nothing keeps the daemon: a
	// person may be typing a passphrase.
	idleTime = time.Hour
)

// Serve listens on the socket and the pages' address until ctx ends, or, where
// it lingers, until its last client has gone.
func (d *Daemon) Serve(ctx context.Context, s Serving) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sock, err := d.listenSocket()
	if err != nil {
		return err
	}
	defer sock.Close()
	if n := server.SweepLost(); n > 0 {
		d.log.Warn("what MCP servers of a killed holdfast left running was ended", "processes", n)
	}
	pages, err := d.listenPages(s.Linger)
	if err != nil {
		return err
	}
	site, err := d.openPages(pages)
	if err != nil {
		return err
	}
	defer d.closePages()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	run := func(f func(context.Context)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := d.guarded(func() { f(ctx) }); err != nil {
				select {
				case errs <- err:
				default: // one is enough to end on
				}
			}
		}()
	}
	run(d.hooks.Run)
	run(d.alerts.Run)
	run(d.sweep)
	run(d.releaseMemory)
	run(d.watchLatch)
	run(d.sign)
	run(d.witness.Run)
	run(d.watchConfig)
	run(d.reports.Run)
	run(d.snapshots.RunFollow)
	run(d.snapshots.RunDaily)
	run(func(ctx context.Context) { _ = d.recounter.Compare(ctx) }) // it logs, and status says
	for _, keys := range d.keysets {
		run(keys.Run)
	}
	commands := d.commands()
	commands.Ending = ctx.Done()
	code, err := d.openExecutor(ctx, commands, s.Linger)
	if err != nil {
		return err
	}
	defer code.close()
	if err := d.listenEgress(s.Linger); err != nil {
		return errors.Join(err, d.egress.Close())
	}
	door := &http.Server{Handler: d.clients.counting(commands.Handler()), ConnState: d.clients.trackConn,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, ErrorLog: d.errorLog()}
	go func() { errs <- code.serve() }()
	if len(d.egress.Listeners()) > 0 {
		go func() { errs <- d.egress.ServeListeners() }()
	}
	go func() { errs <- door.Serve(&api.Listener{Listener: sock, Refused: d.turnedAway}) }()
	address := ""
	if pages != nil {
		address = "http://" + pages.Addr().String()
		in := listener.ForServer(pages, site)
		go func() { errs <- site.Serve(in) }()
	}
	if err := d.Kernel.Started(person()); err != nil {
		return err
	}
	if s.Ready != nil {
		s.Ready(address)
	}
	if s.Linger {
		d.clients.lingering()
		run(func(ctx context.Context) { d.clients.linger(ctx, cancel) })
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-errs:
	}
	cancel()
	d.closePages()
	d.mcp.CloseConnections()
	code.close()
	err = errors.Join(err, d.egress.Close(), d.mcp.Close())
	err = errors.Join(err, shutdown(door), shutdown(site))
	wg.Wait()
	d.sessionsDone.Wait()
	return err
}

// shutdown lets requests under way end, for two seconds.
func shutdown(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}

func (d *Daemon) turnedAway(err error) { d.log.Warn("a connection was turned away", "err", err) }

// listenSocket makes the socket, 0600, in the place of one that a crash left:
// the lock is ours, so nobody listens on it.
func (d *Daemon) listenSocket() (net.Listener, error) {
	if err := os.Remove(d.Paths.Sock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", d.Paths.Sock)
	if err != nil {
		return nil, usage.HintErrorf(
			"use a --state with a shorter path on a local disk", "cannot listen on %s: %v", d.Paths.Sock, err,
		)
	}
	if err := os.Chmod(d.Paths.Sock, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// every calls f again and again until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}

func (d *Daemon) sweep(ctx context.Context) {
	every(ctx, sweepEvery, func() {
		if d.store.Poisoned() != nil {
			return
		}
		if _, err := d.Kernel.Sweep(); err != nil {
			d.log.Error("the sweep failed", "err", err)
		}
		d.eraseOld()
		d.eraseValues()
	})
}

func (d *Daemon) sign(ctx context.Context) {
	every(ctx, time.Duration(d.config().Ledger.CheckpointInterval), func() {
		if d.store.Poisoned() != nil {
			return
		}
		if _, err := d.witness.Checkpoint(ctx); err != nil {
			d.log.Error("the ledger could not be signed", "err", err)
		}
	})
}

// watchLatch learns of the latch from the file system, and looks by itself
// every second in case the file system does not tell (D34).
func (d *Daemon) watchLatch(ctx context.Context) {
	events, stop := latch.Watch(d.Paths.Halt, d.log)
	defer stop()
	t := time.NewTicker(latchEvery)
	defer t.Stop()
	known := d.latched()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
		case <-t.C:
		}
		now := d.latched()
		if now == known {
			continue
		}
		if err := d.seen(now); err != nil {
			d.log.Error("what became of the halt latch could not be recorded", "halted", now.Halted, "err", err)
		}
		known = now
	}
}

// latched is what the latch says: another halt says something else, also where the
// latch was not seen to be gone between the two.
func (d *Daemon) latched() latch.State {
	s, _ := d.latch.Read()
	s.Err = nil // a value of its own each time
	return s
}

func (d *Daemon) seen(now latch.State) error {
	if !now.Halted {
		return d.Kernel.Lifted()
	}
	_, err := d.Kernel.Halted()
	return err
}

// watchConfig reloads the configuration when it changes, and takes up one that
// appears where there was none.
func (d *Daemon) watchConfig(ctx context.Context) {
	l := d.snapshot()
	for l.Path == "" {
		select {
		case <-ctx.Done():
			return
		case <-time.After(configEvery):
		}
		l = d.appeared(l)
	}
	if err := config.Watch(ctx, l, d.apply, d.log); err != nil && ctx.Err() == nil {
		d.log.Error("the configuration is no longer watched", "err", err)
	}
}

// appeared looks for a configuration where there was none.
func (d *Daemon) appeared(none *config.Loaded) *config.Loaded {
	path, err := config.FindPath("", os.LookupEnv)
	if err != nil || path == "" {
		return none
	}
	l, err := config.Load(path, none.WorkTrees...)
	if err == nil {
		err = d.apply(l)
	}
	if err != nil {
		d.log.Error("a configuration appeared and is not in force", "path", path, "err", err)
		return none
	}
	d.log.Info("a configuration appeared and is in force", "path", path)
	return l
}

// apply puts a loaded configuration in force, whole or not at all.
func (d *Daemon) apply(l *config.Loaded) error {
	settings := versionSettings(&l.Config.Snapshots)
	if err := d.snapshots.Hold(settings); err != nil {
		return err
	}
	if err := d.Kernel.SetPolicy(d.own(l), person()); err != nil {
		return err
	}
	d.detectors.Set(l.Config.ListDetectors())
	d.watching.Watch.Use(l.Config.WatchLimits())
	d.mu.Lock()
	d.loaded = l
	d.mu.Unlock()
	d.alerts.Reload(l.Config.AlertSettings())
	d.snapshots.Set(settings)
	d.snapshots.Reloaded()
	d.snapshots.TellMoved()
	for _, what := range config.ListUntaken(d.began, d.config()) {
		d.log.Warn("not all of the configuration is in force", "what", what)
	}
	return nil
}

// unapplied returns what is wrong between the configuration on disk and the active one, or "". waits reports that
// the one on disk is valid.
func (d *Daemon) unapplied() (why string, waits bool) {
	now := d.snapshot()
	path := now.Path
	if path == "" {
		found, err := config.FindPath("", os.LookupEnv)
		if err != nil || found == "" {
			return "", false
		}
		path = found
	}
	l, err := config.Load(path, now.WorkTrees...)
	switch {
	case err != nil:
		why, hint := usage.Explain(err)
		if hint != "" {
			why += " (" + hint + ")"
		}
		return "the configuration " + path + " does not load, and the one before it stays in force: " + excerpt.Of(strings.ReplaceAll(why, "\n", "; "), 1024), false
	case l.Hash != now.Hash:
		return "the configuration " + path + " is not in force yet", true
	}
	return "", false
}

// snapshot is the configuration in force.
func (d *Daemon) snapshot() *config.Loaded {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loaded
}

func (d *Daemon) config() *config.Config { return d.snapshot().Config }

// clients counts who is connected to the socket. A connection keeps a lingering
// daemon while it lasts; only an MCP connection, or a run of code or of a
// workspace, keeps it for a while longer.
type clients struct {
	mu      sync.Mutex
	n       int                         // guarded by mu; requests, those that took their connection over too
	open    map[net.Conn]http.ConnState // guarded by mu; connections that no request took over
	seen    bool                        // guarded by mu; an MCP connection or a run
	last    time.Time                   // guarded by mu; the end of the last one
	lingers bool                        // guarded by mu; the daemon ends with them
}

func (c *clients) lingering() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lingers = true
}

func (c *clients) areWaitedFor() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lingers
}

func (c *clients) counting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stays := r.URL.Path == "/v1/mcp" || r.URL.Path == "/v1/exec" || r.URL.Path == "/v1/run"
		c.enter(stays)
		defer c.leave(stays)
		h.ServeHTTP(w, r)
	})
}

func (c *clients) enter(stays bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.seen = c.n+1, c.seen || stays
}

func (c *clients) leave(stays bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if stays {
		c.last = time.Now()
	}
}

// trackConn notes the state of a connection. It is an http.Server's ConnState hook.
func (c *clients) trackConn(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateHijacked || state == http.StateClosed {
		delete(c.open, conn)
		return
	}
	if c.open == nil {
		c.open = map[net.Conn]http.ConnState{}
	}
	c.open[conn] = state
}

// count returns the number of clients: of requests, and of connections without one.
func (c *clients) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	for _, state := range c.open {
		if state != http.StateActive {
			n++
		}
	}
	return n
}

// linger calls end once nobody has been connected for a while.
func (c *clients) linger(ctx context.Context, end func()) {
	start := time.Now()
	every(ctx, 250*time.Millisecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		gone := c.n == 0 && len(c.open) == 0 && ((c.seen && time.Since(c.last) > lingerAfter) || (!c.seen && time.Since(start) > lingerFirst))
		if gone {
			end()
		}
	})
}
