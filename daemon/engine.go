package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/redactlog"
)

// openEngine makes the one engine of the ledger, the log, the pages and the
// notices.
func (d *Daemon) openEngine(ctx context.Context) error {
	c := d.loaded.Config.Redact
	var m redact.Memory
	secrets, err := register.Read(ctx, &m, c.Register)
	if err != nil {
		return err
	}
	own := config.OwnSecrets(&m, d.loaded.Config)
	secrets = append(secrets, own...)
	if d.engine, err = redact.New(redact.Options{Literals: secrets}); err != nil {
		return err
	}
	d.secrets = secrets
	if err := d.openDetector(ctx); err != nil {
		return err
	}
	d.log = redactlog.New(d.opt.Log, d.texts)
	d.detectors = detector.NewShelf(d.log)
	d.detectors.Set(d.loaded.Config.ListDetectors())
	if d.unlocked = m.Trouble(); d.unlocked == "" {
		d.unlocked = d.engine.Trouble()
	}
	return nil
}

// detectorReady bounds the wait for the detector at the start. Without an answer texts of records are masked whole.
const detectorReady = 10 * time.Second

// openDetector starts the detector of names and addresses, if there is one, and makes the redaction of records.
func (d *Daemon) openDetector(ctx context.Context) (err error) {
	d.texts = detector.NewRecords(d.engine, nil)
	own := redactlog.New(d.opt.Log, d.texts) // its words must not wait for itself
	if d.detector, err = d.loaded.Config.Redact.Detector.Start(own); d.detector == nil {
		return err
	}
	d.texts = detector.NewRecords(d.engine, d.detector)
	ctx, cancel := context.WithTimeout(ctx, detectorReady)
	defer cancel()
	if err := d.detector.WaitReady(ctx); err != nil {
		own.Warn("redaction detector not ready", "err", err)
	}
	return nil
}

// newToolEngine returns what gives the engine for arguments and results of MCP tools, which is made when the first
// contract asks for it. It writes the masks of traffic. It is nil, which refuses, if it cannot be made.
func (d *Daemon) newToolEngine() func() *redaction.Engine {
	return sync.OnceValue(func() *redaction.Engine {
		e, err := redact.New(redact.Options{Masks: redact.Egress, Literals: d.secrets})
		if err != nil {
			d.log.Error("tool calls refused: redaction unavailable", "err", err)
			return nil
		}
		return &redaction.Engine{Engine: e, Detector: d.detectors.FinderOf}
	})
}

// weakerRedaction is one sentence where registered secrets are kept less well
// than they should be.
func (d *Daemon) weakerRedaction() []string {
	if d.unlocked == "" {
		return nil
	}
	return []string{"redact.register: " + d.unlocked}
}
