package versions

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/observe/anomaly"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/trace/noop"
)

// testOptions are those of openDaemon.
type testOptions struct {
	State      string
	Config     string
	Enabled    string
	EnabledSet bool
}

// testDaemon is a kernel with a store, a latch, a watch and a Service, as the daemon composes them.
type testDaemon struct {
	Kernel *kernel.Kernel
	Paths  struct{ Dir, DB, Halt, LedgerKey, SealKey, TokenKey string }

	opt       testOptions
	store     *sqlite.Store
	latch     *latch.Latch
	signer    *ledger.Signer
	minter    *token.Minter
	runtime   string
	snapshots *Service
	watching  *anomaly.Watcher
	endWatch  func()
}

// openDaemon opens the state of o, which it makes if it is missing.
func openDaemon(ctx context.Context, o testOptions) (_ *testDaemon, err error) {
	d := &testDaemon{opt: o, runtime: "test-runtime"}
	d.Paths.Dir, d.Paths.DB = o.State, filepath.Join(o.State, "holdfast.db")
	d.Paths.Halt, d.Paths.LedgerKey = filepath.Join(o.State, "HALT"), filepath.Join(o.State, "ledger.key")
	d.Paths.SealKey, d.Paths.TokenKey = filepath.Join(o.State, "seal.key"), filepath.Join(o.State, "token.key")
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, err
	}
	l, err := config.Load(o.Config)
	if err != nil {
		return nil, err
	}
	d.snapshots = New(d.options())
	settings := settingsOf(l)
	if err := d.snapshots.Hold(settings); err != nil {
		return nil, err
	}
	d.snapshots.Set(settings)
	if err := d.openParts(ctx); err != nil {
		return nil, err
	}
	if err := d.openKernel(l); err != nil {
		return nil, err
	}
	if _, err := d.Kernel.Recover(0); err != nil {
		return nil, err
	}
	if _, err := d.Kernel.Halted(); err != nil {
		return nil, err
	}
	if err := d.Kernel.Lifted(); err != nil {
		return nil, err
	}
	d.endWatch = d.watching.Start(ctx)
	if err := d.snapshots.Resume(ctx); err != nil {
		return nil, err
	}
	d.snapshots.TellMoved()
	return d, d.Kernel.Past().Read(ctx)
}

func (d *testDaemon) openParts(ctx context.Context) (err error) {
	if d.signer, err = ledger.GenerateKey(bytes.NewReader(testKey), d.runtime); err != nil {
		return err
	}
	// Archives are searched for the keys of the state.
	err = errors.Join(os.WriteFile(d.Paths.LedgerKey, []byte("holdfast ledger v1 "+d.signer.Secret().Reveal()+"\n"),
		0o600),
		os.WriteFile(d.Paths.SealKey, []byte("holdfast seal v1 "+hex.EncodeToString(testKey)+"\n"), 0o600),
		os.WriteFile(d.Paths.TokenKey, []byte("holdfast token v1 "+base64.StdEncoding.EncodeToString(testKey)+"\n"),
			0o600))
	if err != nil {
		return err
	}
	if d.minter, err = token.NewMinter(ed25519.NewKeyFromSeed(testKey), "holdfast", "holdfast"); err != nil {
		return err
	}
	if d.store, err = sqlite.Open(ctx, sqlite.Options{Path: d.Paths.DB, Tables: feature.Tables()}); err != nil {
		return err
	}
	d.latch, err = latch.New(d.Paths.Halt)
	return err
}

func (d *testDaemon) openKernel(l *config.Loaded) error {
	engine, err := redact.New(redact.Options{})
	if err != nil {
		return err
	}
	verifier, err := token.NewVerifier(d.minter.Issuer())
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(testKey)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}
	d.watching = anomaly.New(anomaly.Options{
		Store: d.store,
		Latch: d.latch, Log: d.log(), Mask: plain, Alert: func(watch.Finding) {}, Notify: func(kernel.Notice) {},
		Kernel: func() anomaly.Kernel { return watchKernel{d.Kernel, respond.FromKernel(d.Kernel)} },
		Token: func() (holdfast.Secret, error) {
			return d.Mint(holdfast.Identity{Agent: anomaly.Agent, Kind: "watch", Principal: "holdfast"})
		},
		Answered: func(*watch.Finding, int, error) {},
		Guard:    func(f func()) error { f(); return nil },
	}, l.Config.WatchLimits())
	disabled := ""
	if d.opt.EnabledSet {
		disabled = "HOLDFAST_ENABLED is " + d.opt.Enabled
	}
	d.Kernel, err = kernel.New(kernel.Config{
		Store: d.store, Latch: d.latch, Verifier: verifier, Redact: engine, Sealer: testSealer{aead}, Policy: d.own(l),
		Operator: func() []operator.Public { return nil }, Runtime: d.runtime, Disabled: disabled, Observer: d.watching,
		Notify: func(kernel.Notice) {}, Refused: func(int64) {}, Versions: d.snapshots, Log: d.log(),
		Tracer: noop.NewTracerProvider().Tracer(""), MarkKey: testKey, Features: feature.All(),
	})
	return err
}

// testKey is every key of a testDaemon.
var testKey = []byte("0123456789abcdefghijklmnopqrstuv")

// testSealer is AES-256-GCM with a random nonce in front.
type testSealer struct{ aead cipher.AEAD }

// Seal implements kernel.Sealer.
func (s testSealer) Seal(plain, bound []byte) ([]byte, error) {
	return s.aead.Seal(nil, nil, plain, bound), nil
}

// Open implements kernel.Sealer.
func (s testSealer) Open(sealed, bound []byte) ([]byte, error) {
	return s.aead.Open(nil, nil, sealed, bound)
}

func plain(s string) string { return s }

func (d *testDaemon) log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// options are those of the Service.
func (d *testDaemon) options() Options {
	return Options{
		Dir:   filepath.Join(d.Paths.Dir, "snapshots"),
		State: d.Paths.Dir, DB: d.Paths.DB, Mask: plain, Person: "ann", Log: d.log,
		Store: func() Store {
			if d.store == nil {
				return nil
			}
			return d.store
		},
		Own:        func() []string { return d.Kernel.Policy().Own },
		Key:        func() *ledger.Verifier { return d.signer.Verifier() },
		Checkpoint: func(context.Context) (int, error) { return d.Kernel.Checkpoint(d.signer) },
		Token: func(now time.Time) (holdfast.Secret, error) {
			tok, _, err := d.minter.Mint(holdfast.Identity{Tenant: holdfast.Local,
				Roles: []string{Role}, Agent: keeperAgent,
				Principal: keeperAgent, Session: "today"}, time.Hour, now)
			return tok, err
		},
		Halted: func() bool { return d.latch.Halted() || d.opt.EnabledSet },
		Condition: func(holds bool, why string) {
			d.watching.Take(d.watching.Watch.Set(holdfast.Local, "", watch.SnapshotMissing, holds, time.Now(), why))
		},
		Committed: func(a kernel.Acting, files int) {
			d.watching.Take(d.watching.Watch.Committed(a.Tenant, a.Agent, a.Crossing, files, time.Now()))
		},
		Run: command.Runner{
			Environ: func(names []string) []string {
				return append(server.Environment(os.Environ(), names), "HOLDFAST_STATE="+d.Paths.Dir)
			},
			Mask: func(b []byte) []byte { return b }, Log: d.log(),
		}.Run,
	}
}

// settingsOf converts the section snapshots of a configuration.
func settingsOf(l *config.Loaded) *Settings {
	c := &l.Config.Snapshots
	at, _ := c.TimeOfDay() // it was checked
	s := &Settings{DailyAt: at,
		KeepDays: c.KeepDays, Archive: Archive{Dir: c.Archive.Folder, Command: c.Archive.Command,
			Verify: c.Archive.Verify, Env: c.Archive.Env, Timeout: time.Duration(c.Archive.Timeout)}}
	trees := c.ListTrees()
	for i, t := range c.Trees {
		s.Trees = append(s.Trees, Tree{Tree: trees[i], Agents: t.Agents, Named: t.Named, Found: t.Found})
	}
	return s
}

// own completes a loaded policy.
func (d *testDaemon) own(l *config.Loaded) *kernel.Policy {
	own := *l.Policy
	AddPolicy(&own)
	own.Own = append([]string{d.Paths.Dir}, l.Files...)
	if dir := l.Config.Snapshots.Archive.Folder; dir != "" {
		own.Own = append(own.Own, dir)
	}
	own.Settings = report.SettingsOf(&own)
	return &own
}

// apply makes a loaded configuration active, whole or not at all.
func (d *testDaemon) apply(l *config.Loaded) error {
	settings := settingsOf(l)
	if err := d.snapshots.Hold(settings); err != nil {
		return err
	}
	if err := d.Kernel.SetPolicy(d.own(l), "ann"); err != nil {
		return err
	}
	d.snapshots.Set(settings)
	d.snapshots.Reloaded()
	d.snapshots.TellMoved()
	return nil
}

// Mint returns a token of an agent.
func (d *testDaemon) Mint(id holdfast.Identity) (holdfast.Secret, error) {
	id.Tenant, id.Roles = holdfast.Local, []string{"agent"}
	id.Principal, id.Session = cmp.Or(id.Principal, "agent:"+id.Agent), cmp.Or(id.Session, id.Agent+"-today")
	tok, _, err := d.minter.Mint(id, time.Hour, time.Now())
	return tok, err
}

// Close ends everything that openDaemon began.
func (d *testDaemon) Close() error {
	if d.snapshots != nil {
		d.snapshots.Rest()
	}
	if d.endWatch != nil {
		d.endWatch()
	}
	if d.store == nil {
		return nil
	}
	var err error
	if d.Kernel != nil && d.store.Poisoned() == nil {
		_, err = d.Kernel.Checkpoint(d.signer)
	}
	return errors.Join(err, d.store.Close())
}

// eventsNamed returns the data of all events of that name, once there are n.
func (d *testDaemon) eventsNamed(t *testing.T, name string, n int) (out []map[string]any) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out = nil
		err := d.store.View(t.Context(), func(tx kernel.Tx) error {
			return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
				if l.Kind != ledger.KindEvent {
					return nil
				}
				e, err := ledger.ParseEvent(l.Record)
				if err != nil || e.Name != name {
					return err
				}
				data := map[string]any{"subject": e.Subject}
				out = append(out, data)
				return json.Unmarshal(e.Data, &data)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(out) >= n {
			return out
		}
		if time.Now().After(end) {
			t.Fatalf("%d events %s, not %d", len(out), name, n)
		}
	}
}

// loadConfig loads text as holdfast.yaml.
func loadConfig(t *testing.T, text string) (*config.Loaded, error) {
	t.Helper()
	return config.Load(filepath.Join(testfile.Write(t, map[string]string{"holdfast.yaml": text}), "holdfast.yaml"))
}

// watchKernel is the kernel with the feature that answers findings.
type watchKernel struct {
	*kernel.Kernel
	*respond.Responses
}
