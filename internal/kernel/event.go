package kernel

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Event is something to record in addition to crossings (D6).
type Event = record.Event

// event appends an event leaf in the transaction of what it tells.
func (k *Kernel) event(tx Tx, e Event) error {
	leaf, err := k.eventLeaf(e)
	if err != nil {
		return err
	}
	_, err = tx.Append(leaf)
	return err
}

func (k *Kernel) eventLeaf(e Event) (ledger.Leaf, error) {
	id, err := k.newID()
	if err != nil {
		return ledger.Leaf{}, err
	}
	at := k.instant()
	r := ledger.Event{ID: id, TenantID: e.Tenant, Crossing: e.Crossing, Timestamp: at, Clock: behind(k.now(), at), Name: e.Name,
		Who: visible.ReplaceUnprintable(orNobody(e.Who)), Subject: visible.ReplaceUnprintable(orNobody(e.Subject))}
	if len(e.Data) > 0 {
		if r.Data, err = json.Marshal(e.Data); err != nil {
			return ledger.Leaf{}, err
		}
	}
	var part []byte
	if len(e.Part) > 0 {
		if part, r.PartHash, err = k.records.Part(e.Part); err != nil {
			return ledger.Leaf{}, err
		}
	}
	return k.records.Leaf(ledger.KindEvent, e.Tenant, e.Crossing, at, &r, part)
}

// Record writes one event, durably.
func (k *Kernel) Record(e Event) error {
	ctx, cancel := edge()
	defer cancel()
	return walError(k.store.Update(ctx, func(tx Tx) error { return k.event(tx, e) }))
}
