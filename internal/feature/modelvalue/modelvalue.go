// Package modelvalue keeps the values behind placeholders of models (D13a), sealed and for less than a day, so that
// a session continues after a restart. They are erased with the parts of records of their session.
package modelvalue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/ledger"
)

// keptFor is the age at which a batch ends: a little less than the day in which it must be erased, for the sweep.
const keptFor = 24*time.Hour - 5*time.Minute

// The bounds of one row, of one sweep's transaction, and of what one session of an agent has.
const (
	maxPlain = 512 << 10 // bytes of a row before it is sealed; table.MaxDoc holds its base64
	maxStep  = 200
	maxRows  = 4096 // mapping merges its batches long before, unless the session uses many rows of the allowlist
)

var (
	batchRows = table.New[batchKey, batchRow]("model_value", table.Options{})
	endRows   = table.New[endKey, struct{}]("model_value_end", table.Options{})
)

// batchKey is one batch of values of an agent's session at a row of the allowlist.
type batchKey struct {
	Tenant string `table:"tenant"`
	Who    string `table:"who"` // hash of agent and session
	Place  string `table:"place"`
	ID     string `table:"id"` // begins with the time, so that older ones come first
}

type batchRow struct {
	Sealed []byte `json:"sealed"`
	End    int64  `json:"end"` // Unix time in seconds
}

// endKey orders the batches by their end.
type endKey struct {
	End    int64  `table:"end_at"`
	Tenant string `table:"tenant"`
	Who    string `table:"who"`
	Place  string `table:"place"`
	ID     string `table:"id"`
}

// Tables returns the tables of the feature, for the store.
func Tables() []*table.Def { return []*table.Def{batchRows.Def(), endRows.Def()} }

// Values is the feature, and the mapping.Keeper of a state. Feature binds it to a kernel; before that it keeps
// nothing. It is safe for concurrent use.
type Values struct {
	seal   kernel.Sealer
	forget func(tenant, agent, session string)
	host   kernel.Host

	mu   sync.Mutex
	rows map[rowsKey]int // guarded by mu; how many rows a session has, of those that were counted
}

// rowsKey is one session of an agent, whose rows are counted together.
type rowsKey struct{ tenant, who string }

// New returns Values that are sealed with seal. forget is called after the values of a session were erased.
func New(seal kernel.Sealer, forget func(tenant, agent, session string)) *Values {
	return &Values{seal: seal, forget: forget, rows: map[rowsKey]int{}}
}

// Feature binds v to a kernel, for kernel.Config.
func (v *Values) Feature(h kernel.Host) kernel.Feature {
	v.host = h
	return v
}

// Spec implements kernel.Feature.
func (v *Values) Spec() kernel.Spec { return kernel.Spec{Name: "model_value", Tables: Tables()} }

// hashOwner returns the name of an agent's session in the table.
func hashOwner(agent, session string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + session))
	return hex.EncodeToString(sum[:16])
}

// sealContext returns what a batch is sealed together with.
func (k batchKey) sealContext() []byte {
	return []byte("model value\x00" + k.Tenant + "\x00" + k.Who + "\x00" + k.Place + "\x00" + k.ID)
}

// LoadBatches implements mapping.Keeper. A batch that cannot be opened is left out, and logged.
func (v *Values) LoadBatches(ctx context.Context, tenant, agent, session string) (list []mapping.Batch, err error) {
	now, who := v.host.Now().Unix(), hashOwner(agent, session)
	err = v.host.View(ctx, func(r kernel.Reader) error {
		in := table.Range{Prefix: []any{tenant, who}, Limit: maxRows}
		return batchRows.Scan(r, in, func(k batchKey, row batchRow, _ int64) error {
			if row.End <= now {
				return nil
			}
			b, err := v.openBatch(k, row)
			if err != nil {
				v.host.Log().Error("values behind placeholders are unreadable", "row", k.Place, "err", err)
				return nil
			}
			list = append(list, b)
			return nil
		})
	})
	return list, err
}

// openBatch returns the contents of a row.
func (v *Values) openBatch(k batchKey, row batchRow) (b mapping.Batch, err error) {
	plain, err := v.seal.Open(row.Sealed, k.sealContext())
	if err != nil {
		return b, err
	}
	err = json.Unmarshal(plain, &b)
	b.ID, b.Row, b.Saved = k.ID, k.Place, time.Unix(row.End, 0).Add(-keptFor)
	return b, err
}

// SaveBatch implements mapping.Keeper. It returns a *holdfast.Error if the session has too many rows: a value whose
// placeholder could not be restored after a restart is not sent.
func (v *Values) SaveBatch(ctx context.Context, o mapping.Owner, b mapping.Batch, drop []string) ([]string, error) {
	now := v.host.Now()
	parts, err := splitBatch(b)
	if err != nil {
		return nil, err
	}
	end := now.Add(keptFor)
	if !b.Saved.IsZero() && b.Saved.Before(now) {
		end = b.Saved.Add(keptFor)
	}
	k := batchKey{Tenant: o.Tenant, Who: hashOwner(o.Agent, o.Session), Place: o.Row}
	var ids []string
	rows := map[string]batchRow{}
	for i, plain := range parts {
		k.ID = fmt.Sprintf("%016x-%04x-%s", end.Add(-keptFor).UnixMicro(), i, rand.Text()[:8])
		sealed, err := v.seal.Seal(plain, k.sealContext())
		if err != nil {
			return nil, err
		}
		ids = append(ids, k.ID)
		rows[k.ID] = batchRow{Sealed: sealed, End: end.Unix()}
	}
	err = v.host.Commit(ctx, func(tx kernel.FeatureTx) error {
		if err := v.reserveRows(tx, k, len(ids)-len(drop)); err != nil {
			return err
		}
		for _, id := range drop {
			k.ID = id
			if err := deleteBatch(tx, k); err != nil {
				return err
			}
		}
		for _, id := range ids {
			k.ID = id
			end := endKey{rows[id].End, k.Tenant, k.Who, k.Place, k.ID}
			if err := errors.Join(batchRows.Insert(tx, k, rows[id]), endRows.Insert(tx, end, struct{}{})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		v.forgetRows(k) // the count may have the rows of a commit that failed
	}
	return ids, err
}

// reserveRows counts n more rows of the session of k. It returns an error if they are too many.
func (v *Values) reserveRows(r kernel.Reader, k batchKey, n int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := rowsKey{k.Tenant, k.Who}
	have, known := v.rows[of]
	if !known {
		in := table.Range{Prefix: []any{k.Tenant, k.Who}, Limit: maxRows + 1}
		if err := batchRows.Scan(r, in, func(batchKey, batchRow, int64) error { have++; return nil }); err != nil {
			return err
		}
		if len(v.rows) >= maxRows {
			clear(v.rows) // they are counted again
		}
	}
	v.rows[of] = have
	if n > 0 && have+n > maxRows {
		return &holdfast.Error{Kind: holdfast.KindBounds, Gate: holdfast.K6, Rule: "redact/values",
			Why:  "cannot keep the values behind placeholders: the session has too many",
			Hint: "start a new session, or erase this one with `holdfast ledger erase`"}
	}
	v.rows[of] = have + n
	return nil
}

// forgetRows has the rows of the session of k counted again.
func (v *Values) forgetRows(k batchKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.rows, rowsKey{k.Tenant, k.Who})
}

// deleteBatch removes a batch, and its end.
func deleteBatch(tx kernel.FeatureTx, k batchKey) error {
	row, _, err := batchRows.Get(tx, k)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(batchRows.Delete(tx, k), endRows.Delete(tx, endKey{row.End, k.Tenant, k.Who, k.Place, k.ID}))
}

// splitBatch returns a batch as JSON texts of at most maxPlain bytes each.
func splitBatch(b mapping.Batch) (parts [][]byte, err error) {
	size := 0
	var part mapping.Batch
	flush := func() error {
		if len(part.Values)+len(part.Signed) == 0 {
			return nil
		}
		text, err := json.Marshal(part)
		parts, part, size = append(parts, text), mapping.Batch{}, 0
		return err
	}
	for _, value := range b.Values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if size+len(text) > maxPlain {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		part.Values, size = append(part.Values, value), size+len(text)+1
	}
	for _, sum := range b.Signed {
		if size += 64; size > maxPlain {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		part.Signed = append(part.Signed, sum)
	}
	return parts, flush()
}

// Sweep erases the batches whose time is over.
func (v *Values) Sweep(ctx context.Context) error {
	for {
		var over []endKey
		now := v.host.Now().Unix()
		err := v.host.View(ctx, func(r kernel.Reader) error {
			return endRows.Scan(r, table.Range{Limit: maxStep}, func(k endKey, _ struct{}, _ int64) error {
				if k.End <= now {
					over = append(over, k)
				}
				return nil
			})
		})
		if err != nil || len(over) == 0 {
			return err
		}
		err = v.host.Commit(ctx, func(tx kernel.FeatureTx) error {
			for _, k := range over {
				batch := batchKey{k.Tenant, k.Who, k.Place, k.ID}
				if err := errors.Join(batchRows.Delete(tx, batch), endRows.Delete(tx, k)); err != nil {
					return err
				}
				tx.After(func() { v.forgetRows(batch) })
			}
			return nil
		})
		if err != nil || len(over) < maxStep {
			return err
		}
	}
}

// owner is one session of an agent of a tenant.
type owner struct{ agent, session string }

// OnSignal implements kernel.SignalHandler: the values of a session are erased with the parts of one of its
// requests.
func (v *Values) OnSignal(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
	erased, ok := s.(signal.PartsErased)
	if !ok {
		return nil, nil
	}
	owners, oldest := map[owner]bool{}, v.host.Now().Add(-24*time.Hour)
	err := tx.Leaves(erased.Tenant, erased.From, erased.To, func(leaf ledger.Stored) error {
		if leaf.Kind != ledger.KindBegin {
			return nil
		}
		b, err := ledger.ParseBegin(leaf.Record)
		if err != nil {
			return err
		}
		if b.Timestamp.Before(oldest) {
			return nil // its values are gone
		}
		agent := b.Agent
		if b.Owner != "" {
			agent = b.Owner
		}
		owners[owner{agent, b.Session}] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	for o := range owners {
		if err := v.eraseOwner(tx, erased.Tenant, o); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// eraseOwner erases the values of one session, and has the memory forget them after the commit.
func (v *Values) eraseOwner(tx kernel.FeatureTx, tenant string, o owner) error {
	who := batchKey{Tenant: tenant, Who: hashOwner(o.agent, o.session)}
	ends := map[batchKey]int64{}
	in := table.Range{Prefix: []any{tenant, who.Who}, Limit: maxRows}
	if err := batchRows.Scan(tx, in, func(k batchKey, row batchRow, _ int64) error {
		ends[k] = row.End
		return nil
	}); err != nil {
		return err
	}
	for k, end := range ends {
		if err := errors.Join(batchRows.Delete(tx, k), endRows.Delete(tx, endKey{end, k.Tenant, k.Who, k.Place,
			k.ID})); err != nil {
			return err
		}
	}
	tx.After(func() {
		v.forgetRows(who)
		v.forget(tenant, o.agent, o.session)
	})
	return nil
}
