package daemon

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/redactlog"
)

// openEngine makes the one engine of the ledger, the log, the pages and the
// notices.
func (d *Daemon) openEngine(ctx context.Context) error {
	c := d.loaded.Config.Redact
	var m redact.Memory
	secrets, err := config.Register(ctx, &m, c.Register)
	if err != nil {
		return err
	}
	own := config.OwnSecrets(&m, d.loaded.Config)
	secrets = append(secrets, own...)
	if d.engine, err = redact.New(redact.Options{Literals: secrets, Probable: c.Kinds()}); err != nil {
		return err
	}
	d.secrets = secrets
	d.log = redactlog.New(d.opt.Log, d.engine)
	if d.unlocked = m.Trouble(); d.unlocked == "" {
		d.unlocked = d.engine.Trouble()
	}
	return nil
}

// weakerRedaction is one sentence where registered secrets are kept less well
// than they should be.
func (d *Daemon) weakerRedaction() []string {
	if d.unlocked == "" {
		return nil
	}
	return []string{"redact.register: " + d.unlocked}
}
