package kernel

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Rules is what the kernel needs of a constitution.
type Rules interface {
	// Judge asks every rule for that kind whose boundary pattern matches,
	// and returns those that spoke, in the rules' order. It ends by ctx.
	Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding
	// Predicate finds a predicate over outputs by its id.
	Predicate(id string) (constitution.Predicate, bool)
	// Pasts are the past functions of all rules. See asks each that concerns
	// the crossing what it sees of it, and never returns nil.
	Pasts() []*constitution.Past
	See(ctx context.Context, f constitution.Facts) []constitution.Sight
	// Misfits says of a boundary that was seen after the rules were loaded
	// which of them could never speak there, one sentence each.
	Misfits(b constitution.Boundary) ([]string, error)
	// Texts are what the rules say, in their order.
	Texts() []constitution.Text
	// Facts are those that the rules of these kinds name which judge a boundary.
	Facts(boundary string, on ...constitution.On) []string
}

// FactSource fetches what rules name as facts.NAME (D3).
type FactSource interface {
	// Fetch fetches those facts and returns one of each name, with a value or
	// why there is none. It ends by ctx. request makes what a fact that hangs on
	// the request is given, a FactRequest, and is called before it returns.
	Fetch(ctx context.Context, names []string, request func() ([]byte, error)) map[string]constitution.Fetched
}

// Observer is told of what happened, once it is durable, for those who count it.
// It must not wait, and keeps nothing of what it is given. Many goroutines call
// it.
type Observer interface {
	// GoalsJudged is told of the verdicts on one submission that was decided,
	// and whether it was admitted. One that waits for a person is not decided.
	GoalsJudged(verdicts []goalrule.Verdict, admitted bool)
	// Crossed is told of each request that was refused or held, and of each
	// crossing that ended.
	Crossed(c Crossed)
	// Escaped is told of each attempt to leave a sandbox that came to light after its
	// crossing had ended, of which Crossed was told without it. agent is who asked for
	// that crossing.
	Escaped(tenant, agent, crossing string)
	// Attended is told of each word of a person's that was carried out: somebody
	// looks after the tenant's agents, or, where tenant is empty, after everything.
	// agent is whom it let go on, "" where it let nobody.
	Attended(tenant, agent string)
}

// Crossed is what became of one request.
type Crossed struct {
	// Boundary is the name by which a contract lists it; empty where none does,
	// for then the name is the caller's own.
	Boundary string
	Verdict  holdfast.Verdict
	// Gate is the one that refused or held; of what was allowed it says nothing.
	Gate holdfast.Gate
	// Outcome is empty of what was held.
	Outcome ledger.Outcome
	// Spoke are the rules on the request and on the output that spoke.
	Spoke []constitution.Finding
	// Entry is what was written of it; nil of what was held. It is the kernel's.
	Entry *ledger.Entry
	// Passive says that its door has seen that it only reads, or only connects: two
	// that are alike are then no loop.
	Passive bool
	// OverBudget says that it spent what its session had, so that its agent was
	// paused and a person asked (D41).
	OverBudget bool
}

// unobserved is an Observer that looks away.
type unobserved struct{}

func (unobserved) GoalsJudged([]goalrule.Verdict, bool) {}
func (unobserved) Crossed(Crossed)                      {}
func (unobserved) Escaped(string, string, string)       {}
func (unobserved) Attended(string, string)              {}

// count tells the observer what became of the request.
func (c *crossing) count(v holdfast.Verdict, g holdfast.Gate, o ledger.Outcome, e *ledger.Entry) {
	boundary := ""
	if c.j.contract != nil {
		boundary = c.j.contract.Boundary
	}
	c.k.observer.Crossed(Crossed{Boundary: boundary, Verdict: v, Gate: g, Outcome: o, Spoke: c.j.spoke, Entry: e,
		Passive: c.j.req.ReadsOnly || c.j.req.Carries, OverBudget: c.j.overBudget})
}

// Verifier checks a token's signature, issuer, audience and times, and reads
// its claims. An error is a *holdfast.Error of a K2 kind.
type Verifier interface {
	Verify(ctx context.Context, token holdfast.Secret, now time.Time) (holdfast.Identity, error)
}

// Latch says whether anything may be done at all (D34); *halt.Latch is one.
// What it cannot read is halted.
type Latch interface {
	// Halted is asked before every crossing and again at the last instant;
	// it costs one or two lstats.
	Halted() bool
	// Read says who, when and why.
	Read() (latch.State, error)
	// Set sets the latch durably; a second Set keeps the first's reason.
	Set(who, why string, when time.Time) error
	// Reword puts other words into a latch that is set.
	Reword(who, why string) error
	Clear() error
}

// Sealer seals what must be given back (D10): authenticated encryption with a
// key that only the owner of the state holds.
type Sealer interface {
	Seal(plain, bound []byte) ([]byte, error)
	Open(sealed, bound []byte) ([]byte, error)
}
