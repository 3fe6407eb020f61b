package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/kernel"
)

// API is the door for commands, for a command that is the owner itself.
func (d *Daemon) API() *api.Client { return api.Direct(d.api().Handler()) }

func (d *Daemon) api() *api.Server {
	return &api.Server{Kernel: d.Kernel, Mint: d.Mint, Status: d.Status, Backup: d.backup, Checkpoint: d.checkpoint,
		Drained: d.drained, MCP: d.openMCP, Log: d.log}
}

func (d *Daemon) checkpoint(context.Context) (int, error) { return d.Kernel.Checkpoint(d.signer) }

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
		Policy: p.Version, Files: p.From, Weakened: p.Weakened, Flights: d.Kernel.Flights(), Clients: d.clients.count()}
	if h, err := d.latch.Read(); h.Halted || err != nil {
		s.Halted, s.HaltWho, s.HaltWhy, s.HaltWhen = true, h.Who, h.Why, h.When
	}
	if why := d.disabled(); why != "" {
		s.Halted, s.HaltWhy = true, why
	}
	for _, k := range d.operators() {
		s.Operator = append(s.Operator, k.ID())
	}
	d.mu.Lock()
	s.Servers = map[string]string{}
	for name, n := range d.sessions {
		if n > 0 {
			s.Servers[name] = "running"
		}
	}
	d.mu.Unlock()
	if err := d.store.Poisoned(); err != nil {
		s.Problems = append(s.Problems, "the ledger failed to write: everything is refused until a restart")
	}
	if why := d.unapplied(); why != "" {
		s.Problems = append(s.Problems, why)
	}
	if len(s.Operator) == 0 {
		s.Problems = append(s.Problems, "there is no operator key: nobody can approve or resume; make one with `holdfast init`")
	}
	s.DiskUsed, s.DiskFree = diskUse(d.Paths)
	return s, d.store.View(ctx, func(tx kernel.Tx) error { return fill(tx, s) })
}

// fill adds what the store knows.
func fill(tx kernel.Tx, s *api.Status) error {
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := tx.Reviews("", state, 1000)
		if err != nil {
			return err
		}
		s.Waiting += len(rs)
	}
	as, err := tx.Agents("")
	if err != nil {
		return err
	}
	s.Agents = len(as)
	for _, a := range as {
		if a.State != holdfast.AgentRunning {
			s.Paused = append(s.Paused, a.Name)
		}
	}
	heads, err := tx.Heads()
	if err != nil {
		return err
	}
	for _, h := range heads {
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

// connections are the MCP connections under way, so that an ending daemon can
// close them.
type connections struct {
	mu sync.Mutex
	m  map[io.Closer]bool // guarded by mu
}

func (c *connections) add(x io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[io.Closer]bool{}
	}
	c.m[x] = true
}

func (c *connections) remove(x io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, x)
}

func (d *Daemon) closeConnections() {
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	for c := range d.conns.m {
		_ = c.Close()
	}
}

// openMCP starts a server, and returns what puts it behind the gates for one
// client. What it returns must be called once: it owns the server.
func (d *Daemon) openMCP(h api.Hello) (func(context.Context, io.ReadWriteCloser) error, error) {
	cmd, trusted, err := d.serverCommand(h)
	if err != nil {
		return nil, err
	}
	proc, err := server.Start(cmd)
	if err != nil {
		return nil, err
	}
	d.sessionsDone.Add(1)
	return func(ctx context.Context, conn io.ReadWriteCloser) error {
		defer d.sessionsDone.Done()
		return d.serveMCP(ctx, h, trusted, proc, conn)
	}, nil
}

// serveMCP relays between one client and one server until either ends.
func (d *Daemon) serveMCP(ctx context.Context, h api.Hello, trusted bool, proc *server.Process, conn io.ReadWriteCloser) error {
	d.conns.add(conn)
	defer d.conns.remove(conn)
	d.session(h.Name, 1)
	defer d.session(h.Name, -1)
	id := holdfast.Identity{Agent: h.Agent, Kind: h.Kind, Session: h.Session, Intent: h.Intent}
	err := gateway.Serve(ctx, conn, proc, gateway.Config{
		Kernel: d.Kernel, Server: h.Name, Token: d.tokens(id), TrustedHints: trusted,
		Log: d.log, Traceparent: kernel.Traceparent, ReviewHint: d.decidingCommand,
	})
	if err != nil {
		d.log.Warn("an MCP session ended", "server", h.Name, "err", err)
	}
	return err
}

// serverCommand is what is started for a hello. Configuration speaks for a
// name: nobody else's command may take it, and with it the trust in its hints
// and its contracts. Starting it is recorded first, and refused while halted.
func (d *Daemon) serverCommand(h api.Hello) (server.Command, bool, error) {
	cmd := server.Command{Name: h.Name, Argv: h.Command, Dir: h.Dir, Env: h.Env, Log: d.log.With("mcp_server", printable(h.Name)),
		Mask: func(line []byte) []byte { return d.engine.Text(line).Out }}
	c, configured := d.config().MCP.Servers[h.Name]
	switch {
	case configured && len(cmd.Argv) == 0:
		cmd.Argv, cmd.Dir = c.Command, c.Cwd
		cmd.Env = append(cmd.Env, c.Env...)
	case configured && !slices.Equal(cmd.Argv, c.Command):
		return cmd, false, &holdfast.Error{Kind: holdfast.KindConflict, Why: "the configuration names another command for the MCP server " + h.Name,
			Hint: "leave the command out, or give this one another --name"}
	}
	if s, err := d.latch.Read(); s.Halted || err != nil || d.disabled() != "" {
		return cmd, false, &holdfast.Error{Kind: holdfast.KindHalted, Why: "everything is halted: no MCP server is started", Hint: "a person can lift it with `holdfast resume`"}
	}
	sum := sha256.Sum256([]byte(strings.Join(cmd.Argv, "\x00")))
	program := ""
	if len(cmd.Argv) > 0 {
		program = filepath.Base(cmd.Argv[0])
	}
	return cmd, configured && c.TrustedHints, d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "mcp_server_started", Who: person(), Subject: clip(h.Name),
		Data: map[string]any{"agent": clip(h.Agent), "program": clip(program), "argv_sha256": hex.EncodeToString(sum[:])}})
}

// printable keeps a name from writing lines of its own into a log.
func printable(s string) string { return strconv.QuoteToGraphic(clip(s)) }

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

func (d *Daemon) session(name string, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[name] += by
}

// tokens returns a source of one agent's tokens: one is used for half its
// life, so that a stolen one is soon worthless and a call seldom waits for a
// signature.
func (d *Daemon) tokens(id holdfast.Identity) func(context.Context) (holdfast.Secret, error) {
	var mu sync.Mutex
	var tok holdfast.Secret
	var until time.Time
	return func(context.Context) (holdfast.Secret, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); !now.Before(until) {
			t, err := d.Mint(id)
			if err != nil {
				return holdfast.Secret{}, err
			}
			tok, until = t, now.Add(localTTL/2)
		}
		return tok, nil
	}
}
