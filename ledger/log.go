package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// CheckpointLog is what the tree of CheckpointsTenant says was signed: of each
// tenant the newest head. It is what finds a tree that was cut back, or taken
// away whole, together with its own checkpoints. The zero value is empty; it
// needs memory for one head per tenant.
//
// A state whose every tree, this log's too, was put back to one earlier moment
// holds together; only a checkpoint that was kept elsewhere tells that.
type CheckpointLog struct{ newest map[string]Head }

// Add takes the log's next leaf. Each must be the event of a checkpoint, and a
// tenant's must grow: else the error is a *Fault, of the log or of the tenant.
func (l *CheckpointLog) Add(seq int64, record []byte) error {
	h, err := RecordedHead(record)
	if err != nil {
		return &Fault{CheckpointsTenant, seq, why(err)}
	}
	if was, ok := l.newest[h.Tenant]; ok {
		switch {
		case h.Size < was.Size:
			return &Fault{h.Tenant, h.Size, fmt.Sprintf("%d leaves were signed, and later %d (leaf %d of %s): the ledger was cut back", was.Size, h.Size, seq, CheckpointsTenant)}
		case h.Size == was.Size && h.Root != was.Root:
			return &Fault{h.Tenant, h.Size - 1, fmt.Sprintf("two trees of %d leaves were signed (leaf %d of %s): history was rewritten", h.Size, seq, CheckpointsTenant)}
		}
	}
	if l.newest == nil {
		l.newest = make(map[string]Head)
	}
	l.newest[h.Tenant] = h
	return nil
}

// RecordedHead reads the head of another tenant that a leaf of the log records.
func RecordedHead(record []byte) (Head, error) {
	e, err := ParseEvent(record)
	if err != nil {
		return Head{}, err
	}
	h, err := CheckpointHead(e)
	if err == nil && h.Tenant == CheckpointsTenant {
		err = refuse("the log of checkpoints records one of itself")
	}
	return h, err
}

// Newest returns the newest head that was recorded of each tenant, by tenant.
func (l *CheckpointLog) Newest() []Head {
	return slices.SortedFunc(maps.Values(l.newest), func(a, b Head) int { return cmp.Compare(a.Tenant, b.Tenant) })
}

// Covers is a *Fault if the newest checkpoint of a tenant, of which it takes
// the size, zero for none, is not the newest that is recorded: both are written
// in one transaction, so one of the two was taken away. The log's own head is
// recorded nowhere.
func (l *CheckpointLog) Covers(signed Head) error {
	recorded := l.newest[signed.Tenant].Size
	switch {
	case signed.Tenant == CheckpointsTenant || signed.Size == recorded:
		return nil
	case signed.Size > recorded:
		return &Fault{signed.Tenant, -1, fmt.Sprintf("a checkpoint of %d leaves is signed, and the log of checkpoints does not have it: %s was cut back", signed.Size, CheckpointsTenant)}
	}
	return &Fault{signed.Tenant, -1, fmt.Sprintf("the log of checkpoints records that %d leaves were signed, and that checkpoint is missing: it was taken away", recorded)}
}

// CompareTenants is the order of tenants in an export: the log of checkpoints,
// which says what the others must be, then the others by their bytes.
func CompareTenants(a, b string) int {
	if a == b {
		return 0
	}
	switch CheckpointsTenant {
	case a:
		return -1
	case b:
		return 1
	}
	return cmp.Compare(a, b)
}
