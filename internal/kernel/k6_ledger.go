package kernel

import (
	"cmp"
	"context"

	"github.com/holdfast-dev/holdfast"
)

// k6Ledger is armed here: the ledger is open and takes records. It is
// performed when the begin and the entry are written (D2).
func k6Ledger(_ context.Context, j *judgement) holdfast.Opinion {
	if err := j.k.store.Poisoned(); err != nil {
		op := deny(holdfast.K6, holdfast.KindWALWrite, "the ledger failed to write and takes nothing until it is reopened", "mend the disk, then restart holdfast; it replays what is durable")
		op.State, op.Kind = "WRITE_FAILED", cmp.Or(j.refusals().Record, op.Kind)
		return op
	}
	return allow(holdfast.K6, "ACCUMULATING", "armed", "the ledger takes records")
}
