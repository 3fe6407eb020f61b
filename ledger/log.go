package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// CheckpointLog is what the tree of CheckpointsTenant says was signed: of each
// tenant every head. It is what finds a tree that was cut back, written anew, or
// taken away whole, together with its own checkpoints. The zero value is empty;
// it needs memory for one head per tenant and some three bytes per checkpoint.
//
// A state whose every tree, this log's too, was put back to one earlier moment
// holds together; only a checkpoint that was kept elsewhere tells that.
type CheckpointLog struct{ tenants map[string]*recorded }

// Add takes the log's next leaf. Each must be the event of a checkpoint, and a
// tenant's must grow: else the error is a *Fault, of the log or of the tenant.
func (l *CheckpointLog) Add(seq int64, record []byte) error {
	h, err := RecordedHead(record)
	if err != nil {
		return &Fault{CheckpointsTenant, seq, why(err)}
	}
	r := l.tenants[h.Tenant]
	if r != nil {
		switch was := r.newest; {
		case h.Size < was.Size:
			return &Fault{h.Tenant, h.Size, fmt.Sprintf("%d leaves were signed, and later %d (leaf %d of %s): the ledger was cut back", was.Size, h.Size, seq, CheckpointsTenant)}
		case h.Size == was.Size && h.Root != was.Root:
			return &Fault{h.Tenant, h.Size - 1, fmt.Sprintf("two trees of %d leaves were signed (leaf %d of %s): history was rewritten", h.Size, seq, CheckpointsTenant)}
		case h.Size == was.Size:
			return nil
		}
	}
	if l.tenants == nil {
		l.tenants = make(map[string]*recorded)
	}
	if r == nil {
		r = new(recorded)
		l.tenants[h.Tenant] = r
	}
	r.add(h)
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
	out := make([]Head, 0, len(l.tenants))
	for _, tenant := range slices.Sorted(maps.Keys(l.tenants)) {
		out = append(out, l.tenants[tenant].newest)
	}
	return out
}

// Covers is a *Fault if the newest checkpoint of a tenant, of which it takes
// the size, zero for none, is not the newest that is recorded: both are written
// in one transaction, so one of the two was taken away. The log's own head is
// recorded nowhere; SignedWhole judges that.
func (l *CheckpointLog) Covers(signed Head) error {
	var recorded int64
	if r := l.tenants[signed.Tenant]; r != nil {
		recorded = r.newest.Size
	}
	switch {
	case signed.Tenant == CheckpointsTenant || signed.Size == recorded:
		return nil
	case signed.Size > recorded:
		return &Fault{signed.Tenant, -1, fmt.Sprintf("a checkpoint of %d leaves is signed, and the log of checkpoints does not have it: %s was cut back", signed.Size, CheckpointsTenant)}
	}
	return &Fault{signed.Tenant, -1, fmt.Sprintf("the log of checkpoints records that %d leaves were signed, and that checkpoint is missing: it was taken away", recorded)}
}

// SignedWhole is a *Fault if the log of checkpoints, of that size, has not its
// own newest checkpoint over all of it: the log grows and is signed in one
// transaction, so that one which is not signed to its end has lost a signature,
// and what it says of the others nobody vouches for.
func SignedWhole(size, signed int64) error {
	if size == signed {
		return nil
	}
	return &Fault{CheckpointsTenant, -1, fmt.Sprintf("%d leaves, and the newest checkpoint covers %d: a checkpoint of the log was taken away", size, signed)}
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
