package kernel

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Store keeps everything that must outlive the process. Only the kernel calls
// Update. storetest.Run is the contract that every implementation passes.
type Store interface {
	// View runs fn on a consistent snapshot. fn must not write; a verb that
	// writes returns an error.
	View(ctx context.Context, fn func(Tx) error) error
	// Update runs fn alone, as if no other update ran beside it, and
	// returns nil only after everything fn wrote is durable. Many updates
	// share one sync (group commit). An error from fn undoes what fn wrote
	// and nothing else; fn is called at most once. If the commit itself
	// fails the store is poisoned: this and every later Update returns
	// ErrPoisoned until the store is opened again (D14). A ctx that ends
	// before fn has started returns its error and writes nothing; after
	// that it is ignored.
	Update(ctx context.Context, fn func(Tx) error) error
	// UpdateUnhurried is Update for what nothing waits for: it may wait up to MaxLull for
	// an update whose commit it shares. Later updates see what fn wrote, views
	// after the commit, after which alone UpdateUnhurried returns.
	UpdateUnhurried(ctx context.Context, fn func(Tx) error) error
	// Poisoned says whether a commit failed, and what it was.
	Poisoned() error
	// Backup writes a consistent copy of the store to the file, which must
	// not exist, while the store goes on.
	Backup(ctx context.Context, file string) error
	// Close waits for updates under way and releases the store.
	Close() error
}

// MaxLull is how long a store may let an update wait that nobody waits for, so
// that it shares the commit of another.
const MaxLull = 20 * time.Millisecond

// Tx is what one update or view may do. Times are UTC with microseconds. Not
// found is ErrNotFound. Slices that are returned belong to the caller, slices
// that are given belong to the Tx until Update returns.
type Tx interface {
	// Append adds one leaf to its tenant's tree and returns its place. At
	// most one begin and one entry exist per crossing: a second is
	// ErrExists. A begin after its entry is ErrExists too.
	Append(l ledger.Leaf) (ledger.Place, error)
	// Leaf returns the leaf at seq of the tenant.
	Leaf(tenant string, seq int64) (ledger.Stored, error)
	// Crossing returns the begin and the entry of a crossing, whichever
	// exist, with their places, in that order.
	Crossing(tenant, id string) ([]ledger.Stored, error)
	// Leaves calls fn for the leaves in [from, to) in order, stopping at
	// the first error. It holds one leaf at a time.
	Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error
	// Events returns the events that name a crossing, in order, at most
	// limit. None, or an empty id, is no error.
	Events(tenant, crossing string, limit int) ([]ledger.Stored, error)
	// Open calls fn for every begin that has no entry, oldest first.
	Open(fn func(ledger.Stored) error) error
	// Heads returns the size and root of every tenant's tree, by tenant.
	Heads() ([]ledger.Head, error)
	// Nodes reads the tenant's tree as it is in this transaction.
	Nodes(tenant string) ledger.Nodes
	// EraseParts erases the erasable parts of the tenant's leaves in
	// [from, to), which were durable before this update began. Records and
	// hashes stay, and so every proof (D14).
	EraseParts(tenant string, from, to int64) error
	// PutCheckpoint keeps a signed checkpoint; one of the same size for
	// the same tenant is kept as it is. Checkpoint returns the newest.
	PutCheckpoint(c ledger.SignedCheckpoint) error
	Checkpoint(tenant string) (ledger.SignedCheckpoint, error)

	// Counter returns the usage of a draw's key in the draw's window; a
	// key that was never used, or whose window has passed, is zero.
	Counter(d budget.Draw) (budget.Counter, error)
	// Counters calls fn for every counter whose key begins with prefix, in the
	// order of their keys and each in the window it was last drawn on in, stopping
	// at the first error.
	Counters(prefix string, fn func(key string, c budget.Counter) error) error
	// Draw takes all draws or none (D9). The first that does not fit is
	// returned with its counter, and nothing is taken.
	Draw(ds []budget.Draw) (*budget.Refusal, error)
	// Settle replaces what draws took by what was used; amounts are by
	// index. A draw whose window has passed is left alone. A counter never
	// goes below zero.
	Settle(ds []budget.Draw, used []int64) error
	// Rate takes one place in each of the rates or none: at most r.Limit
	// takings in any r.Window. The first full one is returned with how
	// long until there is room.
	Rate(rs []budget.Rate, now time.Time) (*budget.Refusal, error)
	// PeekRate is Rate without taking.
	PeekRate(rs []budget.Rate, now time.Time) (*budget.Refusal, error)

	// Agent returns an agent's record; PutAgent writes it. Agents returns a
	// tenant's, by name; an empty tenant means every tenant's, by tenant. DropAgent
	// removes one; of one that is not there it is nil.
	Agent(tenant, name string) (holdfast.Agent, error)
	PutAgent(a holdfast.Agent) error
	DropAgent(tenant, name string) error
	Agents(tenant string) ([]holdfast.Agent, error)

	// Revoke makes a token id worthless for ever; a second time is nil.
	Revoke(tenant, jti string, at time.Time) error
	Revoked(tenant, jti string) (bool, error)

	// Review returns a review by id. PutReview creates it when was is
	// review.None, and otherwise replaces it only if its state is still
	// was: ErrConflict says that somebody was faster.
	Review(id string) (review.Review, error)
	PutReview(r review.Review, was review.State) error
	// ReviewFor returns the newest review of that binding's tenant, agent,
	// boundary and exact hash, whatever its policy or state.
	ReviewFor(b review.Binding) (review.Review, error)
	// Reviews returns reviews newest first; an empty state means all, an
	// empty tenant every tenant. At most limit.
	Reviews(tenant string, state review.State, limit int) ([]review.Review, error)

	// PutReplay seals a settled result under its scope; Replay returns it
	// until it expires. DropReplays erases what expired before now.
	PutReplay(r Replay) error
	Replay(key string) (Replay, error)
	DropReplays(now time.Time) (int, error)

	// The rows of the tables that the store was opened with. Those of the kernel are
	// always among them (Tables).
	table.Writer
}

// Replay is a settled result that may be given back (D10). Body is sealed:
// the store never sees it open.
type Replay struct {
	// Key is the scope: a hash over tenant, boundary, agent, principal and key.
	Key      string
	Exact    string
	Crossing string
	Sealed   []byte
	Expires  time.Time
}
