package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// ErasedEvent is the name of the event that records an erasure of parts. Its
// data say which leaves, [from, to), and how many parts of them.
const ErasedEvent = "parts_erased"

// maxRuns bounds what is remembered of missing parts and of erasures.
const maxRuns = 100_000

// erasures compares the parts that are missing with the erasures that are
// recorded, which come after them. Missing parts with none that is there
// between them are one run, so that a retention leaves one.
type erasures struct {
	runs     []run
	broken   bool // a part that is there came after the last run
	missing  int64
	noted    []run
	recorded int64
}

// run is leaves from first to last.
type run struct{ first, last int64 }

func (e *erasures) present() { e.broken = true }

func (e *erasures) miss(seq int64) error {
	e.missing++
	if n := len(e.runs); n > 0 && !e.broken {
		e.runs[n-1].last = seq
		return nil
	}
	if len(e.runs) == maxRuns {
		return refuse("parts are missing in more than %d places", maxRuns)
	}
	e.runs, e.broken = append(e.runs, run{seq, seq}), false
	return nil
}

// maybeErasure says at a glance whether an event could record an erasure.
func maybeErasure(record []byte) bool {
	return bytes.Contains(record, []byte(`,"event":"`+ErasedEvent+`"`))
}

func (e *erasures) event(seq int64, record []byte) error {
	v, err := ParseEvent(record)
	if err != nil || v.Name != ErasedEvent {
		return err
	}
	var d struct{ From, To, Parts int64 }
	if err := json.Unmarshal(v.Data, &d); err != nil || d.From < 0 || d.To <= d.From || d.To > seq || d.Parts < 0 || d.Parts > d.To-d.From {
		return refuse("an erasure that does not say what it erased")
	}
	e.recorded += d.Parts
	r := run{d.From, d.To - 1}
	if n := len(e.noted); n > 0 && r.first >= e.noted[n-1].first && r.first <= e.noted[n-1].last+1 {
		e.noted[n-1].last = max(e.noted[n-1].last, r.last)
		return nil
	}
	if len(e.noted) == maxRuns {
		return refuse("more than %d separate erasures", maxRuns)
	}
	e.noted = append(e.noted, r)
	return nil
}

// unrecorded is where a part was erased that no erasure covers, and what to say
// of it; nothing where there is none. Between the ends of a run there may be
// leaves that no erasure names because they never had a part; the number of
// parts tells those from others.
func (e *erasures) unrecorded() (seq int64, why string) {
	slices.SortFunc(e.noted, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(e.noted); i++ {
		e.noted[i].last = max(e.noted[i].last, e.noted[i-1].last)
	}
	for _, r := range e.runs {
		for _, seq := range [...]int64{r.first, r.last} {
			if !e.covered(seq) {
				return seq, "the part was erased without a record"
			}
		}
	}
	if e.missing > e.recorded {
		return -1, fmt.Sprintf("%d parts are missing and %d were erased with a record: parts were erased without a record", e.missing, e.recorded)
	}
	return 0, ""
}

// covered says whether the last erasure that begins at or before a leaf, or one
// before that, reaches it: each one's last is that of all up to it.
func (e *erasures) covered(seq int64) bool {
	i, exact := slices.BinarySearchFunc(e.noted, seq, func(r run, seq int64) int { return cmp.Compare(r.first, seq) })
	return exact || i > 0 && e.noted[i-1].last >= seq
}
