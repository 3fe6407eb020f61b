// Package kernel is the crossing machine: it evaluates a request by eight gates, writes it
// down before it takes effect, holds it for a person if it must, and can be stopped at any
// time (spec 003 section 1, D1-D14c).
//
// Read state.go (the states), gates.go (the gates), cross.go (the way of a crossing), then
// feature.go (how a capability takes part without being in here).
//
// What every crossing needs is here: stops and running crossings, because a stop commits
// before a begin or finds the crossing; the agents' records; reservations; replays and leases.
// An attempt to leave a sandbox is answered here, because its cut, pause and question are one
// step; what else follows one is a feature's, by signal.
//
// Ports (ports.go) are questions that one feature answers: which contract is active for a tool
// of a server, who asks within an agent, and what is kept before an action. Two powers have one
// user each: only an Eraser erases parts of the ledger, only a CounterRaiser raises a counter past
// its limit. The packages below this one have a subject each and know no Kernel: approval (the
// questions to people and their answers: the only way from a hold to an allow; approvals.go joins
// it), flight (what runs), stops (what may not begin), past, record, checkpoint and deadline.
//
// What rules name as facts is fetched here, because K8 uses it for the output as well. An ended
// chain is a row and no stop, because there may be any number of them; a paused agent is a
// state of its record, which every reader of agents shows.
package kernel

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/kernel/past"
	"github.com/holdfast-dev/holdfast/internal/kernel/record"
	"github.com/holdfast-dev/holdfast/internal/kernel/stops"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/flood"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config is what a kernel is made of. Store, Latch, Verifier, Redact, Policy
// and Sealer are required: without one of them there is no kernel.
type Config struct {
	Store    Store
	Latch    Latch
	Verifier Verifier
	Redact   *redact.Engine
	// Records redacts the texts of records, by Redact and a detector; nil is Redact alone.
	Records *detector.Records
	Policy  *Policy
	Sealer  Sealer
	// Operator returns the operators' public keys, empty while there is
	// none. It is asked at each decision, so that a key made later counts.
	Operator func() []operator.Public
	// Runtime is the state's id; operator statements are bound to it.
	Runtime string
	// Disabled, when not empty, is why HOLDFAST_ENABLED halts (D35).
	Disabled string
	// Notify is told of what people should hear of, after it is durable.
	// It must not wait. Nil tells nobody.
	Notify func(Notice)
	// Refused is told the number of requests refused because the ledger is
	// poisoned, so that it can be recorded after the restart (D5).
	Refused func(total int64)
	// Features make the features, in the order in which they are evaluated and receive
	// signals. The store must have been opened with their tables.
	Features []func(Host) Feature
	// Catalog knows the boundaries that servers list; nil knows none.
	Catalog Catalog
	// Lineage knows the agents within agents; nil takes none.
	Lineage Lineage
	// Observer may be nil.
	Observer Observer
	// CounterRaiser is bound to the kernel, for package recount. It may be nil.
	CounterRaiser *CounterRaiser
	// Eraser is bound to the kernel, for package erasure. It may be nil.
	Eraser *Eraser
	// Versions may be nil: an act whose contract asks for it is then refused.
	Versions Versions
	// MarkKey is the key of the marks that begins keep of past functions, 32
	// bytes that nobody else knows and that stay with the state. Nil is one for
	// this process alone: marks of another key are as none.
	MarkKey []byte

	Log    *slog.Logger
	Tracer trace.Tracer
	// Now and Random are the clock and the randomness; nil means the real.
	Now    func() time.Time
	Random io.Reader
}

// Kernel judges crossings and drives them. It is safe for concurrent use; its
// methods are the only callers of Store.Update.
type Kernel struct {
	*approval.Book // reviews and remembered approvals

	store    Store
	latch    Latch
	verifier Verifier
	redact   *redact.Engine
	sealer   Sealer
	operator func() []operator.Public
	disabled string
	notify   func(Notice)
	onRefuse func(int64)
	observer Observer
	versions Versions
	log      *slog.Logger
	tracer   trace.Tracer
	clock    func() time.Time
	random   io.Reader

	policy      atomic.Pointer[policy]
	swaps       swaps
	past        *past.Keeper
	records     *record.Writer
	catalog     Catalog
	lineage     Lineage
	lineageHost *host
	reserved    []*Reserved
	flights     flight.Set
	fled        fled
	stopped     stops.Set
	features    features
	reacting    chan struct{} // one React at a time
	flood       flood.Counter
	refused     atomic.Int64
	turn        sync.Mutex // one policy change at a time
	last        atomic.Int64
	entered     atomic.Int64 // created_at of the newest entry, in microseconds
	halts       sync.Mutex   // one of Halt, Halted, Lifted and Resume at a time
	said        time.Time    // guarded by halts; when Halt was last called
	halting     atomic.Bool  // the halt in force is recorded, or is being
	cuts        atomic.Int64 // crossings that the halt in force has cut
}

// Notice is something that people should hear of (D41a).
type Notice struct {
	Level    string `json:"level"` // info, warning, error, critical
	Event    string `json:"event"`
	Tenant   string `json:"tenant_id"`
	Agent    string `json:"agent,omitempty"`
	Boundary string `json:"boundary,omitempty"`
	Review   string `json:"review,omitempty"`
	Crossing string `json:"crossing,omitempty"`
	Why      string `json:"why"`
	// Condition is the one that the watch halted for. Only code reads it.
	Condition watch.Name `json:"-"`
}

// New makes a kernel and refuses to exist without a ledger, a latch, a
// verifier, a redactor, a sealer and a policy. Call Recover before the first
// crossing.
func New(cfg Config) (*Kernel, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("a kernel needs a store")
	case cfg.Latch == nil:
		return nil, errors.New("a kernel needs a halt latch")
	case cfg.Verifier == nil:
		return nil, errors.New("a kernel needs a token verifier")
	case cfg.Redact == nil:
		return nil, errors.New("a kernel needs a redaction engine")
	case cfg.Sealer == nil:
		return nil, errors.New("a kernel needs a sealer")
	case cfg.Policy == nil || cfg.Policy.Version == "":
		return nil, errors.New("a kernel needs a policy with a version")
	}
	k := &Kernel{store: cfg.Store, latch: cfg.Latch, verifier: cfg.Verifier, redact: cfg.Redact,
		sealer: cfg.Sealer, operator: cfg.Operator, disabled: cfg.Disabled,
		notify: cfg.Notify, onRefuse: cfg.Refused, observer: cfg.Observer, versions: cfg.Versions, log: cfg.Log,
		tracer: cfg.Tracer,
		clock:  cfg.Now, random: cfg.Random, reacting: make(chan struct{}, 1)}
	k.defaults()
	if cfg.Records == nil {
		cfg.Records = detector.NewRecords(k.redact, nil)
	}
	k.records = record.NewWriter(cfg.Records, k.random)
	k.Book = k.newBook(cfg.Runtime)
	if err := k.makeFeatures(cfg.Features); err != nil {
		return nil, err
	}
	pol, err := k.preparePolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	k.policy.Store(pol)
	k.bindPorts(&cfg)
	if err := k.openPast(cfg.MarkKey); err != nil {
		return nil, err
	}
	if cfg.CounterRaiser != nil {
		cfg.CounterRaiser.k = k
	}
	if cfg.Eraser != nil {
		cfg.Eraser.host = &host{k, eraserFeature}
	}
	return k, nil
}

func (k *Kernel) defaults() {
	if k.operator == nil {
		k.operator = func() []operator.Public { return nil }
	}
	if k.notify == nil {
		k.notify = func(Notice) {}
	}
	if k.observer == nil {
		k.observer = unobserved{}
	}
	if k.onRefuse == nil {
		k.onRefuse = func(int64) {}
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.tracer == nil {
		k.tracer = noop.NewTracerProvider().Tracer("")
	}
	if k.clock == nil {
		k.clock = time.Now
	}
	if k.random == nil {
		k.random = rand.Reader
	}
}

// now is the clock.
func (k *Kernel) now() time.Time { return k.clock() }

// instant is a time that never goes backwards, in whole microseconds: records
// are ordered by it (spec 003 section 1.5, invariant 5).
func (k *Kernel) instant() time.Time {
	for {
		now := k.clock().UnixMicro()
		last := k.last.Load()
		if now <= last {
			now = last + 1
		}
		if k.last.CompareAndSwap(last, now) {
			return time.UnixMicro(now).UTC()
		}
	}
}

// newID makes a crossing's id: a UUIDv7, so that ids are ordered by time.
func (k *Kernel) newID() (string, error) {
	id, err := uuid.NewV7FromReader(k.random)
	if err != nil {
		return "", &holdfast.Error{Kind: holdfast.KindInternal, Why: "an id could not be made", Err: err}
	}
	return id.String(), nil
}

// Policy returns the policy in force. It must not be changed.
func (k *Kernel) Policy() *Policy { return k.policy.Load().Policy }

// asked is nil while running, and otherwise the refusal of everything (D34,
// D35). Agents read it, so it does not say who halted or why: the event does,
// and status.
func (k *Kernel) asked() error {
	if k.disabled != "" {
		return &holdfast.Error{Kind: holdfast.KindHalted, Why: k.disabled, Hint: "unset HOLDFAST_ENABLED or set it to true"}
	}
	if !k.latch.Halted() {
		return nil
	}
	return errHalted()
}

func errHalted() error {
	return &holdfast.Error{Kind: holdfast.KindHalted, Why: "everything is halted", Hint: "a person can lift it with `holdfast resume`"}
}
