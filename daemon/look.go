package daemon

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/overview"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/halthook"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Look says how the state in p is while nobody owns it, as far as it can be
// read: s is the store open for reading, or nil where there is none.
func Look(ctx context.Context, p Paths, s kernel.Store) (*api.Status, error) {
	st := &api.Status{State: p.Dir, Ledger: []api.TenantLedger{}}
	if _, err := os.Lstat(p.Dir); missing(err) {
		st.Problems = append(st.Problems, "there is no state directory yet")
		return st, nil
	}
	h, err := lookHalt(p)
	if err != nil {
		return nil, err
	}
	st.Halt = h
	st.HaltHooks = halthook.ReadRuns(hooksFile(p), p.Halt)
	st.DiskUsed, st.DiskFree = diskUse(p)
	st.Problems = append(st.Problems, HalfWay(p, false)...)
	if s == nil {
		return st, nil
	}
	return st, s.View(ctx, func(tx kernel.Tx) error { return fill(tx, st) })
}

// Now returns what happens now: for one tenant, or for all if tenant is empty. A tenant of which
// nothing is recorded is a NotFoundError.
func (d *Daemon) Now(ctx context.Context, tenant string) (n *api.Now, err error) {
	now := time.Now()
	r := d.days.Today(ctx, now)
	err = d.store.View(ctx, func(tx kernel.Tx) error {
		n, err = overview.Live(tx, d.overviewSource(), r, now, tenant)
		return err
	})
	return n, err
}

// overviewSource returns what an overview is made of.
func (d *Daemon) overviewSource() overview.Source {
	return overview.Source{Halt: d.halted(), Watch: d.watching, Witness: d.witness.Trouble()}
}

// LookNow returns what happens now in a state that no process owns: see overview.Read.
func LookNow(ctx context.Context, p Paths, s kernel.Store, why, tenant string) (*api.Now, error) {
	h, err := lookHalt(p)
	if err != nil {
		return nil, err
	}
	return overview.Read(ctx, h, s, why, tenant)
}

// lookHalt reads the latch of a state without owning it.
func lookHalt(p Paths) (s api.Halt, err error) {
	latch, err := latch.New(p.Halt)
	if err != nil {
		return s, err
	}
	if h, err := latch.Read(); h.Halted || err != nil {
		s = api.Halt{Halted: true, HaltWho: h.Who, HaltWhy: h.Why, HaltWhen: h.When}
	}
	return s, nil
}

// LedgerKey reads the key that verifies the ledger of the state in p, without
// owning it.
func LedgerKey(p Paths) (*ledger.Verifier, error) {
	b, err := guard.ReadRegular(p.LedgerKey, guard.MaxKeyFile, guard.CheckPrivate(p.LedgerKey))
	if missing(err) {
		if _, err := os.Lstat(p.DB); err == nil {
			return nil, usage.HintErrorf("put it back from a backup, or give the public key that you kept", "%s is missing, but the store it belongs to is there", p.LedgerKey)
		}
		return nil, usage.HintErrorf("the first command that acts makes it", "there is no ledger key in %s yet", p.Dir)
	}
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(string(b), "holdfast ledger v1 ")
	s, err := ledger.ParseSigner(holdfast.NewSecret(strings.TrimSuffix(text, "\n")))
	if !ok || err != nil {
		return nil, usage.HintErrorf("put it back from a backup", "%s does not hold a ledger key", p.LedgerKey)
	}
	return s.Verifier(), nil
}
