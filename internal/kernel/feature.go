package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Feature is a capability that takes part in crossings without being part of the kernel:
// a package under internal/feature. In addition to Spec it has any of the verbs Preparer, Joiner,
// BeginHook, EntryHook, SignalHandler, Reactor and Recaller; New finds out which.
type Feature interface{ Spec() Spec }

// Spec is what a feature declares.
type Spec struct {
	// Name is lower-case letters and "_". Records and counters of the feature bear it.
	Name string
	// Tables are the feature's. The store must have been opened with them.
	Tables []*table.Def
	// Gates are those at which its parts are evaluated.
	Gates []holdfast.Gate
	// Boundaries are those that only the feature crosses.
	Boundaries []Reserved
}

// Reserved are boundaries that only their feature crosses, by Host.Cross.
type Reserved struct {
	// Prefix begins their names. Why and Hint refuse everyone else.
	Prefix, Why, Hint string
	// Unasked, if not empty, exempts the feature's crossings from K7, for that reason.
	Unasked string
	// Unruled, if not empty, exempts them from everything but permission, ledger and halt,
	// and is the reason of K8.
	Unruled string
	// Unrated exempts them from the rates of K3.
	Unrated bool
}

// Reader reads rows and, read-only, what the kernel keeps. A kernel.Tx is one.
type Reader interface {
	table.Reader
	Agent(tenant, name string) (holdfast.Agent, error)
	Agents(tenant string) ([]holdfast.Agent, error)
	Review(id string) (review.Review, error)
	Counter(d budget.Draw) (budget.Counter, error)
	Counters(prefix string, fn func(key string, c budget.Counter) error) error
	Heads() ([]ledger.Head, error)
	Leaf(tenant string, seq int64) (ledger.Stored, error)
	Leaves(tenant string, from, to int64, fn func(ledger.Stored) error) error
	Crossing(tenant, id string) ([]ledger.Stored, error)
	Open(fn func(ledger.Stored) error) error
}

// View is a request as features see it. Nothing in it may be changed.
type View struct {
	Boundary string
	Who      *holdfast.Identity
	Granted  token.Set       // once K2 has allowed
	Token    holdfast.Secret // for the feature's crossings on behalf of the request
	Contract *holdfast.Contract
	Doc      *payload.Doc // nil if it is malformed
	Extra    *payload.Doc // what is next to the payload, or nil
	Size     int          // of both as they came, in bytes
	Exact    string       // hash of exactly this request, "" if it is malformed
	Risk     holdfast.Risk
	Now      time.Time
	// Facts are what rules see of the request at the gate that is evaluated.
	Facts *constitution.Facts
	// Answered says that a person has answered exactly this request. It is set in Fetch.
	Answered bool
	// Prepared is the value that the feature's Prepare returned.
	Prepared any
	// Draws are what K3 reserves without the features.
	Draws []budget.Draw
	// Looks says that the request is only checked or explained: nothing is done for it.
	Looks bool
}

// Preparer compiles the feature's section of a policy. It is pure; an error refuses the
// policy. section is nil if the policy has none.
type Preparer interface {
	Prepare(section any, p *Policy) (any, error)
}

// Joiner reads, in the view that reads the facts of a crossing, what the feature knows of
// it. It does no I/O. What it reads of rows, agents and reviews is read again in the
// transaction of the begin; if anything changed, the crossing is evaluated again.
type Joiner interface {
	// Join returns nil if the feature takes no part in the crossing. An error denies.
	Join(r Reader, v *View) (Part, error)
}

// Part is what a feature knows of one crossing. It is also a Fetcher, a Claimer or a Recorder
// if it has those methods.
type Part interface {
	// Evaluate returns the feature's opinion at a gate of its Spec: Allow without any
	// objection, Deny, or Hold, which the kernel resolves by a review of exactly this
	// request. It reads nothing but the part and the view, and ends by ctx. The zero
	// opinion denies.
	Evaluate(ctx context.Context, g holdfast.Gate, v *View) holdfast.Opinion
}

// FactUser is a Part that evaluates rules of more kinds than K8 does: what they name is
// fetched with the facts of K8.
type FactUser interface{ RuleKinds() []constitution.On }

// Noter is a Part that has something for the caller, in Outcome.Verdicts.
type Noter interface{ Note() json.RawMessage }

// Fetcher is a Part that needs I/O, or a crossing of its own, right before a gate. An error
// denies there. It is not called for a replay. For a request that is only looked at it reads,
// and cannot cross.
type Fetcher interface {
	Fetch(ctx context.Context, g holdfast.Gate, v *View) error
}

// Claimer is a Part that asks K3 for more than the contract does.
type Claimer interface{ Claims() Claims }

// Claims are amounts and rates of the feature's own counters, whose keys begin with
// ClaimKey, and what is added to the limits of other draws.
type Claims struct {
	Draws  []budget.Draw
	Rates  []budget.Rate
	Raised []Raise
}

// Raise adds Amount, 0 or more, to the limit of the draws of that counter and window, and of
// that name if it has one.
type Raise struct {
	Key    string
	Window int64
	Name   string
	Amount int64
}

// ClaimKey begins the keys of a feature's counters.
func ClaimKey(feature string) string { return "feature/" + feature + "/" }

// Recorder is a Part that leaves in the begin, or in the entry of a denial, what it decided
// by: a value whose JSON has at most ledger.MaxFeatureText bytes once it is redacted.
type Recorder interface{ Record() any }

// Recaller makes a part again of what it recorded, without any row of the feature.
type Recaller interface {
	Recall(record json.RawMessage) (Part, error)
}

// Starter looks after its rows before the first crossing, such as those that an earlier
// version wrote.
type Starter interface {
	OnStart(tx FeatureTx) error
}

// BeginHook takes part in the transaction that begins a crossing, after its leaf, if the
// feature has a part in it. It may refuse (Refuse), or ask that the crossing be evaluated
// again (ErrAgain); either undoes the transaction, as any other error does, which denies.
type BeginHook interface {
	OnBegin(tx FeatureTx, p Part, b *ledger.Begin) error
}

// EntryHook takes part in the transaction of every entry but a replay's: of what a
// crossing came to, of a denial, of a hold that ended, and of what recovery closes; after
// its leaf, of a denial before it. It
// works from the record; the part is nil after a restart. It has
// HookTime. A failure leaves the entry as it is without the hook, stops the agent, and
// delivers the entry to the hook again until it succeeds.
type EntryHook interface {
	OnEntry(tx FeatureTx, p Part, e *ledger.Entry) error
}

// EntryFilter is an EntryHook that only some entries concern. WantsEntry is pure; OnEntry is
// not called for an entry for which it reports false.
type EntryFilter interface {
	WantsEntry(e *ledger.Entry) bool
}

// SignalHandler receives each signal in the transaction that raises it. What it returns is
// merged into the signal's event. It has HookTime. If signal.Critical, a failure leaves
// everything else as it is, stops the agent where nothing else did, and delivers the
// signal again until the handler succeeds; otherwise it undoes the transaction.
type SignalHandler interface {
	OnSignal(tx FeatureTx, s signal.Signal) (map[string]any, error)
}

// Reactor does what a transaction left to be done after its commit. React is called until
// it returns nil, also after a crash, so that it must be idempotent.
type Reactor interface {
	React(ctx context.Context, t Task) error
}

// HookTime is the time that a signal handler or an entry hook has. After it every call of
// its transaction returns an error.
const HookTime = time.Second

// FeatureTx is what a feature may do in a transaction.
type FeatureTx interface {
	Reader
	table.Writer
	// Event appends an event leaf.
	Event(e Event) error
	// Raise delivers a signal to the handlers, after the one that is being delivered.
	Raise(s signal.Signal) error
	// Stop puts a stop in place, and returns its ID. Lift lifts one of the feature's,
	// Reword gives one another Why.
	Stop(s Stop) (string, error)
	Lift(tenant, id string) error
	Reword(tenant, id, why string) error
	// OpenReview asks a person about what is shown. fill completes the review: who asks,
	// of whom and why. domain begins what its exact hash is over.
	OpenReview(about, domain string, shown any, fill func(*review.Review)) (*review.Review, error)
	// WaitingReviews returns those about an agent that wait for an answer.
	WaitingReviews(tenant, agent string, about ...string) ([]review.Review, error)
	// PauseAgent pauses an agent that runs, for what a review asks about, and records e
	// with why. If cut, its crossings in progress are cut after the commit.
	PauseAgent(a *holdfast.Agent, r *review.Review, cut bool, e Event) (paused bool, err error)
	// EndChain has every request of the chain refused permanently; ErrExists if it has
	// ended already.
	EndChain(tenant, chain string, e EndedChain) error
	// Later leaves a task for the feature's React.
	Later(t Task) error
	// Notify tells people, and After runs fn, after the commit.
	Notify(n Notice)
	After(fn func())
}

// Host is what a feature may do outside of a crossing.
type Host interface {
	View(ctx context.Context, fn func(Reader) error) error
	// Commit writes rows, events, stops, signals and tasks in one transaction.
	Commit(ctx context.Context, fn func(FeatureTx) error) error
	// CommitSigned is Commit on a person's word of that act, which it uses up.
	CommitSigned(signed operator.Signed, act string, fn func(FeatureTx, *Word) error) error
	// Stop arms a stop, cuts what it stops if it says so, and makes it durable. If it
	// cannot be written it remains until a restart.
	Stop(ctx context.Context, s Stop) (string, error)
	// Cross makes a crossing at one of the feature's Boundaries. In Fetch it belongs to
	// the crossing that is evaluated.
	Cross(ctx context.Context, req holdfast.Request, act Act) (*holdfast.Outcome, error)
	// Within returns a context in which Cross belongs to that crossing and flow.
	Within(ctx context.Context, crossing, correlation string) context.Context
	// Halt halts everything, for a condition; Halted reports whether it is halted.
	Halt(condition watch.Name, who, why string) (cut int, err error)
	Halted() bool
	// RecordError returns err as what could not be recorded.
	RecordError(err error) error
	// Redact returns JSON without what records must not hold; Quote returns at most n
	// bytes of such a text.
	Redact(json []byte) ([]byte, error)
	Quote(text string, n int) string
	Log() *slog.Logger
	Now() time.Time
	Observer() Observer
}

// Word is what a person said.
type Word = approval.Word

// Refuse returns the error by which a BeginHook refuses.
func Refuse(op holdfast.Opinion) error {
	op.Verdict = holdfast.Deny
	if op.Kind == "" {
		op.Kind = holdfast.KindPermission
	}
	return &errRefused{op}
}

// ErrAgain is returned by a BeginHook to have the crossing evaluated again.
var ErrAgain = errOtherRows

// feature is one feature with its verbs, nil for those that it does not have.
type feature struct {
	Feature
	spec    Spec
	readies Preparer
	joins   Joiner
	begins  BeginHook
	enters  EntryHook
	filters EntryFilter
	handles SignalHandler
	reacts  Reactor
	recalls Recaller
	starts  Starter
}

func newFeature(f Feature) *feature {
	out := &feature{Feature: f, spec: f.Spec()}
	out.readies, _ = f.(Preparer)
	out.joins, _ = f.(Joiner)
	out.begins, _ = f.(BeginHook)
	out.enters, _ = f.(EntryHook)
	out.filters, _ = f.(EntryFilter)
	out.handles, _ = f.(SignalHandler)
	out.reacts, _ = f.(Reactor)
	out.recalls, _ = f.(Recaller)
	out.starts, _ = f.(Starter)
	return out
}

// features are those of a kernel, in the order of the composition.
type features struct {
	all []*feature
}

// makeFeatures makes the features of a kernel.
func (k *Kernel) makeFeatures(make []func(Host) Feature) error {
	for _, fn := range make {
		h := &host{k: k}
		f := newFeature(fn(h))
		h.f = f
		if !isFeatureName(f.spec.Name) || k.featureNamed(f.spec.Name) != nil {
			return fmt.Errorf("invalid feature name %q: expected letters, and no other feature's name", f.spec.Name)
		}
		k.features.all = append(k.features.all, f)
	}
	return nil
}

// mustHurry reports whether the entry hook of a feature writes, for that entry, what gates read.
func (k *Kernel) mustHurry(e *ledger.Entry) bool {
	return slices.ContainsFunc(k.features.all, func(f *feature) bool {
		return f.enters != nil && (f.filters == nil || f.filters.WantsEntry(e)) &&
			slices.ContainsFunc(f.spec.Tables, func(d *table.Def) bool { return d.Gates })
	})
}

func isFeatureName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '_' {
			return false
		}
	}
	return s != ""
}

// Feature returns the feature of that name, or nil.
func (k *Kernel) Feature(name string) Feature {
	if f := k.featureNamed(name); f != nil {
		return f.Feature
	}
	return nil
}

// startFeatures lets the features look after their rows.
func (k *Kernel) startFeatures(ctx context.Context) error {
	for _, f := range k.features.all {
		if f.starts == nil {
			continue
		}
		if err := (&host{k, f}).Commit(ctx, f.starts.OnStart); err != nil {
			return fmt.Errorf("feature %s: %w", f.spec.Name, err)
		}
	}
	return nil
}

// featureNamed returns the feature of that name, or nil.
func (k *Kernel) featureNamed(name string) *feature {
	for _, f := range k.features.all {
		if f.spec.Name == name {
			return f
		}
	}
	return nil
}

// host is the Host of one feature.
type host struct {
	k *Kernel
	f *feature
}

func (h *host) View(ctx context.Context, fn func(Reader) error) error {
	return h.k.store.View(ctx, func(tx Tx) error { return fn(tx) })
}

func (h *host) Commit(ctx context.Context, fn func(FeatureTx) error) error {
	return walError(h.k.runInScope(ctx, func(s *scope) error {
		tx := s.txFor(h.f)
		defer tx.endHook()
		return fn(tx)
	}))
}

func (h *host) Redact(json []byte) ([]byte, error) {
	res, err := h.k.redact.JSON(json)
	return res.Out, err
}

func (h *host) Quote(text string, n int) string { return h.k.quote(text, n) }

func (h *host) Log() *slog.Logger { return h.k.log }

func (h *host) Cross(ctx context.Context, req holdfast.Request, act Act) (*holdfast.Outcome, error) {
	for i := range h.f.spec.Boundaries {
		if own := &h.f.spec.Boundaries[i]; strings.HasPrefix(req.Boundary, own.Prefix) {
			return h.k.crossBy(ctx, req, act, own)
		}
	}
	return &holdfast.Outcome{Boundary: req.Boundary}, fmt.Errorf("cannot cross %.64q: it is not the feature's %s",
		req.Boundary, h.f.spec.Name)
}

func (h *host) CommitSigned(signed operator.Signed, act string, fn func(FeatureTx, *Word) error) error {
	_, err := h.k.runSigned(signed, act, func(s *scope, w *Word) error {
		tx := s.txFor(h.f)
		defer tx.endHook()
		return fn(tx, w)
	})
	return err
}

func (h *host) Within(ctx context.Context, crossing, correlation string) context.Context {
	return within(ctx, inside{id: crossing, correlation: correlation, child: true, tasks: &tasks{}})
}

func (h *host) Halt(condition watch.Name, who, why string) (int, error) {
	return h.k.haltFor(condition, who, why)
}

func (h *host) Halted() bool { return h.k.asked() != nil }

func (h *host) RecordError(err error) error { return walError(err) }

func (h *host) Now() time.Time { return h.k.now() }

func (h *host) Observer() Observer { return h.k.observer }

func (h *host) Stop(ctx context.Context, s Stop) (string, error) {
	return h.k.stopNow(ctx, h.f.spec.Name, s)
}
