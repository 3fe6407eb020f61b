package kernel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The parts of records that a person may erase (D14): what the entry and the
// question keep beside the record, and the begin: the redacted payload of what
// acted. EraseAll is every one.
const (
	EraseRequest = "request"
	EraseOutput  = "output"
	ErasePreview = "preview"
	EraseAll     = "all"
)

// EraseBefore begins the Subject of a statement that erases the parts of
// everything that is older than a time, which follows it in RFC 3339.
const EraseBefore = "before "

// Erased is what an erasure came to.
type Erased struct {
	Parts int `json:"parts"`
	// Hashes are those of the parts, as the records keep them; of more than
	// 100 only the first.
	Hashes []string `json:"hashes"`
	// Kept is how many parts stay because a person is still to answer, or
	// to use an answer.
	Kept int `json:"kept,omitzero"`
}

// erasing is one person's erasure under way.
type erasing struct {
	k      *Kernel
	tenant string
	w      *Word
	held   map[string]bool // crossings that a review is waiting for
	out    Erased
	done   bool // the statement is spent
}

// Erase erases parts of records on a person's word, and records that with who,
// why and what (D14): the statement's Subject is a crossing's id, or EraseBefore
// and a time, its Value which part. Records, hashes and so every proof stay.
// Errors: NotFoundError where there is no such crossing, ConflictError where the
// part is gone already, was never there, or belongs to what waits in review or
// has not ended.
func (k *Kernel) Erase(tenant string, signed operator.Signed) (Erased, error) {
	w, err := k.VerifySigned(signed)
	if err != nil {
		return Erased{}, err
	}
	if err := cmp.Or(w.CheckAct(operator.Erase), w.CheckTenant(tenant)); err != nil {
		return Erased{}, err
	}
	e := &erasing{k: k, tenant: tenant, w: w, held: map[string]bool{}}
	switch w.Value {
	case EraseRequest, EraseOutput, ErasePreview, EraseAll:
	default:
		return Erased{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("there is no part %q",
			excerpt.Of(w.Value, 64)), Hint: "request, output, preview or all"}
	}
	text, bulk := strings.CutPrefix(w.Subject, EraseBefore)
	if !bulk {
		return e.out, e.crossing(w.Subject)
	}
	before, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Erased{}, &holdfast.Error{Kind: holdfast.KindUsage, Why: "the time before which is erased cannot be read", Hint: "such as 2026-01-31T00:00:00Z"}
	}
	return e.out, e.before(before)
}

// partOf says which part of a record that is; "" is none that has a name.
func partOf(s *ledger.Stored) string {
	switch s.Kind {
	case ledger.KindBegin:
		return EraseRequest
	case ledger.KindEntry:
		return EraseOutput
	}
	if ev, err := ledger.ParseEvent(s.Record); err == nil && ev.Name == "review_proposed" {
		return ErasePreview
	}
	return ""
}

// chosen says whether the statement is about that record's part.
func (e *erasing) chosen(s *ledger.Stored) bool {
	return e.w.Value == EraseAll || e.w.Value == partOf(s)
}

// crossing erases the parts of one.
func (e *erasing) crossing(id string) error {
	ctx, cancel := edge()
	defer cancel()
	return walError(e.k.runInScope(ctx, func(tx *scope) error {
		leaves, err := e.leavesOf(tx, id)
		if err != nil {
			return err
		}
		if err := e.waiting(tx); err != nil {
			return err
		}
		if e.held[id] {
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "crossing " + excerpt.Of(id, 64) + " waits in review, and what a person is to see is not erased", Hint: "decide it first; an approval is used or expires within " + review.Lifetime.String()}
		}
		var there []ledger.Stored
		gone := 0
		for i := range leaves {
			switch s := &leaves[i]; {
			case !e.chosen(s) || !hasPart(s):
			case s.Part == nil:
				gone++
			default:
				there = append(there, *s)
			}
		}
		switch {
		case len(there) == 0 && gone > 0:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "that part of crossing " + excerpt.Of(id, 64) + " is gone: it was erased already", Hint: "`holdfast ledger show` tells by whom"}
		case len(there) == 0:
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "crossing " + excerpt.Of(id, 64) + " has no such part", Hint: "a part is the redacted request, output or preview, where one is kept"}
		}
		for _, s := range there {
			if err := e.erase(tx, []ledger.Stored{s}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// hasPart says whether the record names a part.
func hasPart(s *ledger.Stored) bool {
	p, err := ledger.PeekRecord(s.Record)
	return err == nil && p.PartHash != nil
}

// leavesOf are the records of a crossing that has ended.
func (e *erasing) leavesOf(tx Tx, id string) ([]ledger.Stored, error) {
	leaves, err := tx.Crossing(e.tenant, id)
	if errors.Is(err, ErrNotFound) {
		leaves, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(leaves) == 1 && leaves[0].Kind == ledger.KindBegin {
		return nil, &holdfast.Error{Kind: holdfast.KindConflict, Why: "crossing " + excerpt.Of(id, 64) + " has not ended", Hint: "wait for it, or cut it with `holdfast halt`"}
	}
	const most = 32
	events, err := tx.Events(e.tenant, id, most)
	if err != nil {
		return nil, err
	}
	if leaves = append(leaves, events...); len(leaves) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no crossing %q of tenant %s", excerpt.Of(id, 64), excerpt.Of(e.tenant, 64)), Hint: "`holdfast ledger tail` lists them"}
	}
	return leaves, nil
}

// waiting notes the crossings whose question waits, or whose answer may still
// be used.
func (e *erasing) waiting(tx Tx) error {
	for _, state := range []review.State{review.Pending, review.Deferred, review.Approved} {
		rs, err := tx.Reviews(e.tenant, state, approval.MaxWaiting)
		if err != nil {
			return err
		}
		for i := range rs {
			e.held[rs[i].Crossing] = true
		}
	}
	return nil
}

// erase erases the parts of leaves that stand together, and records it.
func (e *erasing) erase(tx *scope, there []ledger.Stored) error {
	if !e.done {
		if err := e.w.Spend(tx); err != nil {
			return err
		}
		e.done = true
	}
	from, to := there[0].Seq, there[len(there)-1].Seq+1
	if err := tx.EraseParts(e.tenant, from, to); err != nil {
		return err
	}
	sum := sha256.New()
	hash := ""
	for _, s := range there {
		hash = ledger.PartHash(s.Part)
		sum.Write([]byte(hash))
		if err := blank(tx, &s); err != nil {
			return err
		}
		if len(e.out.Hashes) < 100 {
			e.out.Hashes = append(e.out.Hashes, hash)
		}
	}
	if len(there) > 1 {
		hash = hex.EncodeToString(sum.Sum(nil))
	}
	e.out.Parts += len(there)
	crossing := ""
	if len(there) == 1 {
		crossing = there[0].Crossing
	}
	data := e.w.Data()
	data["from"], data["to"], data["parts"], data["part"], data["part_hash"] = from, to, len(there), e.w.Value, hash
	more, err := tx.raiseSignal(signal.PartsErased{Tenant: e.tenant, From: from, To: to})
	if err != nil {
		return err
	}
	maps.Copy(data, more)
	return e.k.event(tx, Event{Tenant: e.tenant, Crossing: crossing, Name: ledger.ErasedEvent, Who: e.w.Reviewer,
		Subject: e.w.Subject, Data: data})
}

// blank takes the preview out of the review as well: the ledger is not the only
// place that shows it.
func blank(tx Tx, s *ledger.Stored) error {
	if partOf(s) != ErasePreview {
		return nil
	}
	ev, err := ledger.ParseEvent(s.Record)
	if err != nil {
		return err
	}
	r, err := tx.Review(ev.Subject)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Preview, r.Shape = "", nil
	return tx.PutReview(r, r.State)
}

// before erases what is older than a time, in steps, each of which is whole.
func (e *erasing) before(before time.Time) error {
	if !before.Before(e.k.now()) {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: "the time before which is erased lies ahead", Hint: "name one that has passed"}
	}
	var size int64
	if err := timely(func(ctx context.Context) error {
		return e.k.store.View(ctx, func(tx Tx) error {
			heads, err := tx.Heads()
			for _, h := range heads {
				if h.Tenant == e.tenant {
					size = h.Size
				}
			}
			return err
		})
	}); err != nil {
		return walError(err)
	}
	for from := int64(0); from < size; from += eraseBatch {
		if err := timely(func(ctx context.Context) error { return e.batch(ctx, from, min(size, from+eraseBatch), before) }); err != nil {
			return err
		}
	}
	if e.out.Parts == 0 {
		return &holdfast.Error{Kind: holdfast.KindConflict, Why: "nothing older than that has a part that could be erased", Hint: "what waits in review is kept: " + fmt.Sprint(e.out.Kept)}
	}
	return nil
}

// batch erases what is old among the leaves [from, to).
func (e *erasing) batch(ctx context.Context, from, to int64, before time.Time) error {
	return walError(e.k.runInScope(ctx, func(tx *scope) error {
		if err := e.waiting(tx); err != nil {
			return err
		}
		var run []ledger.Stored
		flush := func() error {
			if len(run) == 0 {
				return nil
			}
			own := run
			run = nil
			return e.erase(tx, own)
		}
		var old []ledger.Stored
		if err := tx.Leaves(e.tenant, from, to, func(s ledger.Stored) error {
			if s.Part != nil {
				s.Record, s.Part = append([]byte(nil), s.Record...), append([]byte(nil), s.Part...)
				old = append(old, s)
			}
			return nil
		}); err != nil {
			return err
		}
		for i := range old {
			s := &old[i]
			keep := e.held[s.Crossing] && s.Crossing != ""
			if keep {
				e.out.Kept++
			}
			if keep || !s.At.Before(before) || !e.chosen(s) {
				if err := flush(); err != nil {
					return err
				}
				continue
			}
			run = append(run, *s)
		}
		return flush()
	}))
}
