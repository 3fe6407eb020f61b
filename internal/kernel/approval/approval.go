// Package approval keeps the questions to people and their answers: reviews, the signed
// statements by which a person speaks, and remembered approvals. It is the only way from a hold
// to an allow, and an approval is used up by the begin of its crossing, in one transaction
// (spec 003 section 1.8, D11).
//
// Read case.go (a request, from its hold to the use of its approval), then decide.go (a person's
// answer) and word.go (a signed statement, and its one use).
package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Source is what a Book needs of the kernel. Its fields are required.
type Source struct {
	// View runs fn on a consistent snapshot of the store.
	View func(ctx context.Context, fn func(Reader) error) error
	// Update runs fn in one transaction in which features take part, and which no caller can
	// cancel. fn may run more than once.
	Update func(fn func(Tx) error) error
	// Poisoned returns why the store takes nothing more, or nil.
	Poisoned func() error
	// Halted returns the refusal of everything while everything is halted, otherwise nil.
	Halted func() error
	// Contract returns the active contract of a boundary, or nil, and the policy to which an
	// approval there is bound.
	Contract func(boundary string) (c *contract.Contract, policy string)
	// Operator returns the operators' public keys, empty without one.
	Operator func() []operator.Public
	// Attended is called after a person's statement was carried out. agent is the one that may
	// continue, or "".
	Attended func(tenant, agent string)
	// Notify tells people of a review, or of a rule, which has no ID of a review.
	Notify func(level, event string, about review.Review, why string)
	Now    func() time.Time
	// Instant returns a time that never goes back.
	Instant func() time.Time

	Runtime string // the state's ID; statements are bound to it
	Redact  *redact.Engine
	Records *record.Writer
	Random  io.Reader
	Log     *slog.Logger
}

// Reader reads reviews, events and rows.
type Reader interface {
	table.Reader
	Review(id string) (review.Review, error)
	// ReviewFor returns the newest review of that binding, whatever its policy or state.
	ReviewFor(b review.Binding) (review.Review, error)
	// Reviews returns at most limit reviews, newest first.
	Reviews(tenant string, state review.State, limit int) ([]review.Review, error)
	Events(tenant, crossing string, limit int) ([]ledger.Stored, error)
	Heads() ([]ledger.Head, error)
}

// Tx is one transaction.
type Tx interface {
	Reader
	table.Writer
	PutReview(r review.Review, was review.State) error
	// Event appends an event.
	Event(e record.Event) error
	// CloseHeld writes the entry of a crossing that was held and will never begin. answer is the
	// state in which a person's answer, if any, left the review: time or a new policy may have
	// changed it since.
	CloseHeld(r *review.Review, answer review.State, outcome ledger.Outcome, why error) error
	// RaiseSignal delivers a signal to the features, and returns what they add to its event.
	RaiseSignal(s signal.Signal) (map[string]any, error)
	// AnswerPause changes the pause of an agent by the answer to the review about it.
	AnswerPause(r *review.Review, w *Word) error
}

// Book keeps the approvals of one kernel. It is safe for concurrent use.
type Book struct {
	src   Source
	wakes wakes
	// Look is the interval at which a caller of Await reads the store by itself; zero is 5
	// seconds. It is set before the first Await.
	Look time.Duration
}

// New returns the Book of a kernel.
func New(src Source) *Book { return &Book{src: src} }

// Refusal carries a denial out of a transaction.
type Refusal struct{ Opinion holdfast.Opinion }

// Error implements error.
func (r *Refusal) Error() string { return r.Opinion.Why }

// newRefusal returns the denial of K7 by that name.
func newRefusal(kind holdfast.Kind, rule, why, hint string) error {
	return &Refusal{holdfast.Opinion{Gate: holdfast.K7, Kind: kind, Rule: rule, Why: why, Hint: hint}}
}

// listLimit bounds what a list of reviews returns.
const listLimit = 1000

// Reviews lists reviews, newest first, without their entries; an empty state
// lists all.
func (b *Book) Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error) {
	var out []review.Review
	err := b.src.View(ctx, func(tx Reader) error {
		var err error
		out, err = tx.Reviews(tenant, state, listLimit)
		return err
	})
	for i := range out {
		out[i].Entry = nil
	}
	return out, err
}

// Review returns one review by its ID, without its entry.
func (b *Book) Review(ctx context.Context, id string) (review.Review, error) {
	var r review.Review
	err := b.src.View(ctx, func(tx Reader) (err error) {
		r, err = findReview(tx, id)
		return err
	})
	r.Entry = nil
	return r, err
}

// findReview returns a review, or the error that people get for an unknown ID.
func findReview(tx Reader, id string) (review.Review, error) {
	r, err := tx.Review(id)
	if errors.Is(err, table.ErrNotFound) {
		err = review.NoReview(id)
	}
	return r, err
}

// hashText returns the SHA-256 of a text in hexadecimal.
func hashText(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
