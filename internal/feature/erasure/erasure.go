// Package erasure erases the redacted parts of records: on a person's word, and when the time
// is over for which they are kept. Records, hashes and so every proof stay (D14).
package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// The parts of records that a person may erase: the redacted payload of the begin, what the
// entry keeps, and what the question shows. All is every one.
const (
	Request = "request"
	Output  = "output"
	Preview = "preview"
	All     = "all"
)

// Before begins the Subject of a statement that erases the parts of everything that is older
// than a time, which follows it in RFC 3339.
const Before = "before "

// stepTime bounds one transaction.
const stepTime = 30 * time.Second

// maxHashes bounds how many hashes an Erased names.
const maxHashes = 100

// Erased is the result of an erasure.
type Erased struct {
	Parts int `json:"parts"`
	// Hashes are those of the parts, as the records keep them; of more than
	// maxHashes only the first.
	Hashes []string `json:"hashes"`
	// Kept is the number of parts that stay because a person is still to answer, or
	// to use an answer.
	Kept int `json:"kept,omitzero"`
}

// Erasure erases parts of records. It is safe for concurrent use.
type Erasure struct {
	eraser *kernel.Eraser
	keep   func() time.Duration
}

// New returns an Erasure that erases with eraser, which a kernel has bound. keep returns how
// long parts are kept; 0 is permanently.
func New(eraser *kernel.Eraser, keep func() time.Duration) *Erasure { return &Erasure{eraser, keep} }

// erasing is one person's erasure in progress.
type erasing struct {
	*kernel.Eraser

	tenant string
	word   *kernel.Word
	held   map[string]bool // crossings that a review is waiting for
	out    Erased
	used   bool // the word is
}

// Erase erases parts of records on a person's word, and records that with who, why and what:
// the statement's Subject is a crossing's ID, or Before and a time, its Value which part.
// Errors: NotFoundError if there is no such crossing, ConflictError if the part is erased
// already, never existed, or belongs to what waits in review or has not ended.
func (e *Erasure) Erase(tenant string, signed operator.Signed) (Erased, error) {
	w, err := e.eraser.Verify(signed, operator.Erase)
	if err != nil {
		return Erased{}, err
	}
	if err := w.CheckTenant(tenant); err != nil {
		return Erased{}, err
	}
	x := &erasing{Eraser: e.eraser, tenant: tenant, word: w, held: map[string]bool{}}
	switch w.Value {
	case Request, Output, Preview, All:
	default:
		return Erased{}, &holdfast.Error{Kind: holdfast.KindUsage,
			Why: fmt.Sprintf("there is no part %q", excerpt.Of(w.Value, 64)), Hint: "request, output, preview or all"}
	}
	text, bulk := strings.CutPrefix(w.Subject, Before)
	if !bulk {
		err := x.inStep(func(tx kernel.EraserTx) error { return x.eraseCrossing(tx, w.Subject) })
		return x.out, err
	}
	before, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Erased{}, &holdfast.Error{Kind: holdfast.KindUsage,
			Why: "the time before which is erased cannot be read", Hint: "such as 2026-01-31T00:00:00Z"}
	}
	err = x.eraseBefore(before)
	return x.out, err
}

// partOf returns which part of a record that is, "" if it has no name.
func partOf(s *ledger.Stored) string {
	switch s.Kind {
	case ledger.KindBegin:
		return Request
	case ledger.KindEntry:
		return Output
	}
	if ev, err := ledger.ParseEvent(s.Record); err == nil && ev.Name == "review_proposed" {
		return Preview
	}
	return ""
}

// isChosen reports whether the statement is about that record's part.
func (e *erasing) isChosen(s *ledger.Stored) bool {
	return e.word.Value == All || e.word.Value == partOf(s)
}

// inStep runs fn in one transaction.
func (e *erasing) inStep(fn func(kernel.EraserTx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	return e.Commit(ctx, fn)
}

// eraseCrossing erases the parts of one.
func (e *erasing) eraseCrossing(tx kernel.EraserTx, id string) error {
	leaves, err := e.leavesOf(tx, id)
	if err != nil {
		return err
	}
	if err := e.noteHeld(tx); err != nil {
		return err
	}
	if e.held[id] {
		return newConflict("decide it first; an approval is used or expires within "+review.Lifetime.String(),
			"crossing %s waits in review, and what a person is to see is not erased", excerpt.Of(id, 64))
	}
	var found []ledger.Stored
	gone := 0
	for i := range leaves {
		switch s := &leaves[i]; {
		case !e.isChosen(s) || !hasPart(s):
		case s.Part == nil:
			gone++
		default:
			found = append(found, *s)
		}
	}
	switch {
	case len(found) == 0 && gone > 0:
		return newConflict("`holdfast ledger show` tells by whom",
			"that part of crossing %s is gone: it was erased already", excerpt.Of(id, 64))
	case len(found) == 0:
		return newConflict("a part is the redacted request, output or preview, where one is kept",
			"crossing %s has no such part", excerpt.Of(id, 64))
	}
	for _, s := range found {
		if err := e.eraseRun(tx, []ledger.Stored{s}); err != nil {
			return err
		}
	}
	return nil
}

func newConflict(hint, why string, about ...any) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Why: fmt.Sprintf(why, about...), Hint: hint}
}

// hasPart reports whether the record names a part.
func hasPart(s *ledger.Stored) bool {
	p, err := ledger.PeekRecord(s.Record)
	return err == nil && p.PartHash != nil
}

// maxEvents bounds how many events of one crossing are looked at.
const maxEvents = 32

// leavesOf returns the records of a crossing that has ended.
func (e *erasing) leavesOf(tx kernel.EraserTx, id string) ([]ledger.Stored, error) {
	leaves, err := tx.Crossing(e.tenant, id)
	if errors.Is(err, kernel.ErrNotFound) {
		leaves, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(leaves) == 1 && leaves[0].Kind == ledger.KindBegin {
		return nil, newConflict("wait for it, or cut it with `holdfast halt`", "crossing %s has not ended",
			excerpt.Of(id, 64))
	}
	events, err := tx.Events(e.tenant, id, maxEvents)
	if err != nil {
		return nil, err
	}
	if leaves = append(leaves, events...); len(leaves) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound,
			Why:  fmt.Sprintf("there is no crossing %q of tenant %s", excerpt.Of(id, 64), excerpt.Of(e.tenant, 64)),
			Hint: "`holdfast ledger tail` lists them"}
	}
	return leaves, nil
}

// noteHeld notes the crossings whose question waits, or whose answer may still
// be used.
func (e *erasing) noteHeld(tx kernel.EraserTx) error {
	for _, state := range []review.State{review.Pending, review.Deferred, review.Approved} {
		rs, err := tx.Reviews(e.tenant, state)
		if err != nil {
			return err
		}
		for i := range rs {
			e.held[rs[i].Crossing] = true
		}
	}
	return nil
}

// eraseRun erases the parts of consecutive leaves, and records it.
func (e *erasing) eraseRun(tx kernel.EraserTx, run []ledger.Stored) error {
	if !e.used {
		if err := tx.UseWord(e.word); err != nil {
			return err
		}
		e.used = true
	}
	sum, hash, crossing := sha256.New(), "", ""
	for i := range run {
		hash = ledger.PartHash(run[i].Part)
		sum.Write([]byte(hash))
		if len(e.out.Hashes) < maxHashes {
			e.out.Hashes = append(e.out.Hashes, hash)
		}
		if partOf(&run[i]) != Preview {
			continue
		}
		ev, err := ledger.ParseEvent(run[i].Record)
		if err != nil {
			return err
		}
		if err := tx.ErasePreview(ev.Subject); err != nil { // the ledger is not the only place that shows it
			return err
		}
	}
	if len(run) == 1 {
		crossing = run[0].Crossing
	} else {
		hash = hex.EncodeToString(sum.Sum(nil))
	}
	e.out.Parts += len(run)
	from, to := run[0].Seq, run[len(run)-1].Seq+1
	data := e.word.Data()
	data["from"], data["to"], data["parts"], data["part"], data["part_hash"] = from, to, len(run), e.word.Value, hash
	return tx.EraseParts(from, to, kernel.Event{Tenant: e.tenant, Crossing: crossing, Name: ledger.ErasedEvent,
		Who: e.word.Reviewer, Subject: e.word.Subject, Data: data})
}

// eraseBefore erases what is older than a time, in steps, each of which is whole.
func (e *erasing) eraseBefore(before time.Time) error {
	if !before.Before(e.Now()) {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: "the time before which is erased lies ahead",
			Hint: "name one that has passed"}
	}
	size, err := e.treeSize()
	if err != nil {
		return err
	}
	for from := int64(0); from < size; from += batch {
		err := e.inStep(func(tx kernel.EraserTx) error {
			return e.eraseBatch(tx, from, min(size, from+batch), before)
		})
		if err != nil {
			return err
		}
	}
	if e.out.Parts == 0 {
		return newConflict("what waits in review is kept: "+fmt.Sprint(e.out.Kept),
			"nothing older than that has a part that could be erased")
	}
	return nil
}

// treeSize returns the number of the tenant's leaves.
func (e *erasing) treeSize() (size int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	err = e.View(ctx, func(r kernel.Reader) error {
		heads, err := r.Heads()
		for _, h := range heads {
			if h.Tenant == e.tenant {
				size = h.Size
			}
		}
		return err
	})
	return size, e.RecordError(err)
}

// eraseBatch erases what is old among the leaves [from, to).
func (e *erasing) eraseBatch(tx kernel.EraserTx, from, to int64, before time.Time) error {
	if err := e.noteHeld(tx); err != nil {
		return err
	}
	var run []ledger.Stored
	flush := func() error {
		own := run
		if run = nil; len(own) == 0 {
			return nil
		}
		return e.eraseRun(tx, own)
	}
	if err := tx.Leaves(e.tenant, from, to, func(s ledger.Stored) error {
		if s.Part == nil {
			return nil
		}
		keep := e.held[s.Crossing] && s.Crossing != ""
		if keep {
			e.out.Kept++
		}
		if keep || !s.At.Before(before) || !e.isChosen(&s) {
			return flush()
		}
		run = append(run, s)
		return nil
	}); err != nil {
		return err
	}
	return flush()
}
