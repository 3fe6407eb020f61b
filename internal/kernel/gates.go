package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
)

// gate is one of the eight questions. It reads the judgement, writes only its
// own findings into it, and touches nothing else. An error, a panic or a late
// answer is a denial; that is decided in ask and nowhere else (D3, D6a).
type gate struct {
	name  holdfast.Gate
	judge func(context.Context, *judgement) holdfast.Opinion
}

// gateCount is how many gates there are.
const gateCount = 8

// gates is the list, in the order in which they are asked.
func gates() [gateCount]gate {
	return [gateCount]gate{
		{holdfast.K1, k1Schema},
		{holdfast.K2, k2Permission},
		{holdfast.K3, k3Bounds},
		{holdfast.K4, k4Trace},
		{holdfast.K5, k5Idempotency},
		{holdfast.K6, k6Ledger},
		{holdfast.K7, k7Human},
		{holdfast.K8, k8Eval},
	}
}

// gateTime bounds every gate but K7, which asks no I/O here either: a person's
// time is the hold's, not the gate's (D6a).
const gateTime = 5 * time.Second

// judgeAll asks the gates in order and stops at the first denial unless all
// eight opinions are wanted. Halt has been asked by the caller.
func judgeAll(ctx context.Context, j *judgement, all bool) {
	list := gates()
	j.opinions = slices.Grow(j.opinions, len(list))
	for _, g := range list {
		if op, no := j.atDoor(holdfast.K6); no && g.name == holdfast.K3 && !all {
			j.opinions = append(j.opinions, op) // the document redacts before it counts
			return
		}
		if g.name == holdfast.K8 {
			j.fetchFacts(ctx)
		}
		j.fetchParts(ctx, g.name)
		op := ask(ctx, g, j)
		if no, denied := j.atDoor(g.name); denied && op.Verdict != holdfast.Deny {
			op = no
		}
		j.opinions = append(j.opinions, op)
		if op.Verdict == holdfast.Deny && !all {
			return
		}
	}
}

// ask is the one place where a gate's failure becomes a denial.
func ask(ctx context.Context, g gate, j *judgement) (op holdfast.Opinion) {
	start := j.k.now()
	ctx, cancel := deadline.After(ctx, gateTime)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			j.k.log.Error("a gate panicked", "gate", g.name.String(), "panic", fmt.Sprint(r))
			op = deny(g.name, holdfast.KindInternal, "the gate failed", "the log names the fault; nothing was done")
		}
		op.Gate = g.name
		if op.Verdict == holdfast.Deny && op.Kind == "" {
			op.Kind = holdfast.KindInternal
		}
	}()
	j.reason = ""
	op = j.joinOpinions(ctx, g.name, g.judge(ctx, j))
	if op.Verdict != holdfast.Deny && j.k.now().Sub(start) > gateTime {
		return deny(g.name, holdfast.KindTimeout, "the gate took longer than "+gateTime.String(), "")
	}
	return j.resolveHold(g.name, op)
}

func deny(g holdfast.Gate, kind holdfast.Kind, why, hint string) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Verdict: holdfast.Deny, Kind: kind, Why: why, Hint: hint}
}

// nameDenial gives a denial the name by which people and scripts know it.
func nameDenial(rule string, op holdfast.Opinion) holdfast.Opinion {
	op.Rule = rule
	return op
}

func allow(g holdfast.Gate, state, rule, why string) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Verdict: holdfast.Allow, State: state, Rule: rule, Why: why}
}

// askPerson puts a question to a person, which resolveHold resolves.
func askPerson(g holdfast.Gate, rule, why string) holdfast.Opinion {
	return holdfast.Opinion{Gate: g, Verdict: holdfast.Hold, Rule: rule, Why: why}
}

// refusal turns an error of a lower floor into a gate's denial, keeping its
// kind where it has one.
func refusal(g holdfast.Gate, state string, err error) holdfast.Opinion {
	op := deny(g, holdfast.KindOf(err), "", "")
	op.State = state
	e, ok := asError(err)
	if !ok {
		op.Why = "the check failed"
		op.Hint = "the log has the cause"
		return op
	}
	op.Why, op.Hint, op.Rule = e.Why, e.Hint, e.Rule
	return op
}

// noneDeclared is the rule of an Allow where the contract asks nothing (D3).
const noneDeclared = "none declared"
