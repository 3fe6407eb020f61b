package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ending is what a crossing came to, for its one entry.
type ending struct {
	outcome ledger.Outcome
	err     error
	out     holdfast.Output
	// unstarted says that the hand provably never ran: what was reserved
	// is given back, but for rates and iterations (D9).
	unstarted bool
	deaf      bool
	evaluated *bool // K8 on the output
	// partial says that out is what there was of a run when its caller gave up
	// or its time was over: it failed, and that much is given all the same.
	partial bool
	// answered says that out is what the hand says of what it came to, though it
	// failed: nobody is given it, and it is recorded.
	answered bool
	replayOf string
	// escape is what the code tried to get out with, violation what it was
	// ended for without trying that.
	escape    *posture.Escape
	violation *posture.Violation
	news      *posture.News // the rows of the sandbox's tables that it is
}

// leave judges what came out, waits for the crossing's tasks, writes the
// entry, and moves on. It runs on a context that the caller cannot end (D4).
func (c *crossing) leave(e ended) error {
	c.cut(errActEnded)
	end := c.evaluate(e)
	end.news, end.err = e.news, withPutBack(end.err, e.putBack)
	if e.putBack != "" { // never of a lease, whose outcome its holder has already
		c.out.PutBack = e.putBack
	}
	if end.escape != nil {
		c.breaks(end.escape)
	}
	if !c.awaitTasks() && end.escape == nil {
		end.outcome = ledger.Failed
		end.err = &holdfast.Error{Kind: holdfast.KindTasks, Why: "tasks of the crossing were still running " + edgeTime.String() + " after the act", Err: end.err}
	}
	mv := complete
	if end.err != nil {
		mv = broken
	}
	if err := c.machine.do(mv); err != nil {
		return err
	}
	return c.close(end)
}

var errActEnded = errors.New("the act has ended")

// awaitTasks waits for child crossings and goroutines of the crossing; their
// contexts have ended.
func (c *crossing) awaitTasks() bool {
	idle := c.tasks.close()
	select {
	case <-idle:
		return true
	default:
	}
	t := time.NewTimer(edgeTime)
	defer t.Stop()
	select {
	case <-idle:
		return true
	case <-t.C:
		return false
	}
}

// evaluate turns the end of the act into the crossing's ending and asks K8 of
// the output.
func (c *crossing) evaluate(e ended) *ending {
	escape, violation := posture.FindBreak(e.err)
	if escape != nil {
		return escaped(e, escape, c.j.who.Agent)
	}
	if violation != nil {
		e.err, e.unstarted = nil, false // its output stands
	}
	end := &ending{out: e.out, deaf: e.deaf, unstarted: e.unstarted, outcome: ledger.Done, violation: violation}
	if e.err != nil {
		end.outcome, end.err = c.failure(e)
		end.answered = e.out.Ran == nil
		// What a person halts or pauses gives nothing.
		if end.partial = e.partial && end.outcome == ledger.Canceled; !end.partial {
			return end
		}
	}
	c.j.fetchForOutput(context.WithoutCancel(c.caller))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.caller), gateTime)
	defer cancel()
	asked, err := c.j.evalOutput(ctx, e.out)
	if asked {
		ok := err == nil
		end.evaluated = &ok
	}
	if err != nil {
		end.outcome, end.err, end.partial, end.answered = ledger.Withheld, err, false, false
		return end
	}
	if end.err == nil && c.caller.Err() != nil {
		end.err = &holdfast.Error{Kind: holdfast.KindCanceled, Why: "the caller gave up; the operation was done and is recorded", Err: context.Cause(c.caller)}
	}
	return end
}

// stopped says whether an error's kind is one that people cut a crossing with.
func stopped(kind holdfast.Kind) bool {
	return kind == holdfast.KindHalted || kind == holdfast.KindPaused || kind == holdfast.KindRevokedToken
}

// answers says whether an error is the hand's own word of how somebody else
// answered it, whatever that error wraps: it could not be reached, it answered
// with a fault, it took too long (003 3.1).
func answers(err error) bool {
	e, ok := asError(err)
	return ok && (e.Kind == holdfast.KindForward || e.Kind == holdfast.KindTimeout)
}

// failure names why an act failed.
func (c *crossing) failure(e ended) (ledger.Outcome, error) {
	suffix := ""
	if e.deaf {
		suffix = "; the hand behind " + excerpt.Of(c.j.req.Boundary, 128) + " ignored it and was left behind"
		c.k.log.Error("a hand ignored the end of its context", "boundary", c.j.req.Boundary, "crossing", c.j.id)
	}
	if e.unstarted {
		suffix = "; the hand was not started"
		if errors.Is(e.err, holdfast.ErrNotStarted) {
			suffix = "; the hand had not begun"
		}
	}
	kind := holdfast.KindOf(e.err)
	switch {
	case stopped(kind):
		he, _ := asError(e.err)
		return ledger.Halted, &holdfast.Error{Kind: kind, Why: he.Why + suffix, Hint: he.Hint}
	case kind == holdfast.KindAbandoned:
		return ledger.Abandoned, e.err
	case answers(e.err):
		return ledger.Failed, e.err
	case errors.Is(e.err, errTimeout) || errors.Is(e.err, context.DeadlineExceeded):
		return ledger.Canceled, &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the act's time was over" + suffix}
	case c.caller.Err() != nil && (e.deaf || e.unstarted || errors.Is(e.err, context.Cause(c.caller))):
		why := "the caller gave up"
		if he, ok := asError(context.Cause(c.caller)); ok {
			why = he.Why
		}
		return ledger.Canceled, &holdfast.Error{Kind: holdfast.KindCanceled, Why: why + suffix, Err: e.err}
	case kind == holdfast.KindInternal:
		return ledger.Failed, &holdfast.Error{Kind: holdfast.KindOperation, Why: c.k.quote(e.err.Error(), 512), Err: e.err}
	}
	return ledger.Failed, e.err
}

// close writes the entry of a crossing whose begin is durable, settles what it
// used, and moves to IDLE or FAULTED.
//
// A crash before the commit leaves the begin alone, and recovery closes it as
// unknown: of an escape attempt nothing is known then, but that the run is over.
// A crash after it leaves everything.
func (c *crossing) close(end *ending) error {
	k, j := c.k, c.j
	defer func() {
		c.unregister()
		c.tellParent()
	}()
	used := c.settled(end)
	e, leaf, err := c.entryLeaf(end, used)
	var a *attempt
	if err == nil && end.escape != nil {
		a, err = c.attempt(end.escape)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.caller), edgeTime)
		defer cancel()
		update := k.store.Update
		if c.unwaited(end, e, used) {
			update = k.store.UpdateUnhurried
		}
		err = k.runInScopeOf(ctx, update, func(tx *scope) error {
			if err := c.broken(tx, a, end); err != nil {
				return err
			}
			if err := k.appendEntry(tx, e, leaf); err != nil {
				return err
			}
			if err := tx.Settle(j.draws, used); err != nil {
				return err
			}
			if err := k.settledBeyond(tx, j, used); err != nil {
				return err
			}
			if !end.unstarted && !end.deaf && end.outcome != ledger.Abandoned {
				if err := j.human.RecordReturn(tx, end.outcome, exitCode(end)); err != nil {
					return err
				}
			}
			if err := k.keepReplay(tx, c, end); err != nil {
				return err
			}
			return tx.runEntryHooks(j.joinedParts(), e)
		})
		err = walError(err)
	}
	if err == nil && end.unstarted {
		j.ticket.Remove()
	}
	switch {
	case end.escape != nil && err == nil:
		c.caught(a, end.escape)
	case end.escape != nil:
		c.uncaught(end.escape, err)
	}
	c.told(end.news)
	return c.afterClose(end, e, err)
}

// unwaited says that the entry may wait for another's commit: nobody waits for
// it, and nothing stands in its transaction but what it says of an act that went
// well. Nothing is given back by it either, which the next request's gates, that
// look at what is committed, might refuse for.
func (c *crossing) unwaited(end *ending, e *ledger.Entry, used []int64) bool {
	j := c.j
	if !j.req.Unwaited || c.k.mustHurry(e) || end.err != nil || end.violation != nil || end.news != nil ||
		j.scope != "" || j.human.Approved || j.human.Rule != nil || c.parent.child || j.mayStop(used) {
		return false
	}
	for i, d := range j.draws {
		if used[i] < d.Amount {
			return false
		}
	}
	return true
}

// broken writes what the crossing's code did to its walls, or they to it, if
// anything.
func (c *crossing) broken(tx *scope, a *attempt, end *ending) error {
	switch {
	case a != nil:
		return c.k.answer(tx, a, c.j)
	case end.violation != nil:
		return c.k.violated(tx, c.j, end.violation)
	}
	return c.k.ended(tx, c.j, end.news)
}

func (c *crossing) afterClose(end *ending, e *ledger.Entry, err error) error {
	if err != nil {
		err = c.j.unrecorded(err)
		c.machine.do(lost)
		c.k.log.Error("the entry could not be written", "crossing", c.j.id, "err", err)
		c.k.signal(c.j, refusal(holdfast.K6, "WRITE_FAILED", err))
		c.k.notify(Notice{Level: "critical", Event: "ledger_failed", Tenant: c.j.tenant(), Crossing: c.j.id, Why: "what a crossing came to cannot be written down, and everything is refused until a restart"})
		c.out.Verdict = holdfast.Deny
		err = withCrossing(err, c.j.id)
		c.finish(err)
		c.machine.do(consumed)
		return err
	}
	c.machine.do(left)
	if c.j.human.Approved {
		c.k.Wake(c.j.reviewIDs()...) // it has returned
	}
	c.count(holdfast.Allow, holdfast.GateHalt, end.outcome, e)
	c.tellVersions(end)
	if end.err == nil {
		c.out.Output = &end.out
		c.finish(nil)
		return nil
	}
	if end.partial {
		c.out.Output = &end.out
	}
	switch kind := holdfast.KindOf(end.err); {
	case end.outcome == ledger.Withheld:
		c.k.signal(c.j, refusal(holdfast.K8, "FAIL", end.err))
	case kind == holdfast.KindForward || kind == holdfast.KindTimeout:
		c.k.failed(c.j, kind, end.err)
	}
	err = withCrossing(end.err, c.j.id)
	c.finish(err)
	c.machine.do(consumed)
	return err
}

// settled is what each draw is settled at (D9): what was measured, else what
// was reserved; nothing where the hand never ran. Iterations never go down.
func (c *crossing) settled(end *ending) []int64 {
	used := make([]int64, len(c.j.draws))
	for i, d := range c.j.draws {
		used[i] = d.Amount
		measured, ok := end.out.Used[d.Resource]
		if !ok && d.Resource == holdfast.WallMillis && !end.deaf {
			measured, ok = c.k.now().Sub(c.start).Milliseconds(), true
		}
		switch {
		case d.Resource == holdfast.Iterations:
		case end.unstarted:
			used[i] = 0
		case d.Resource == holdfast.MoneyMicro:
			if _, micro, ok := c.j.spentModel(end); ok {
				used[i] = micro
			} else if n, ok := c.j.price.Measured(end.out.Used, c.j.flatMoney()); ok {
				used[i] = n
			}
		case ok && measured >= 0:
			used[i] = measured
		}
	}
	return used
}

// refuse records a denial and ends the crossing.
func (c *crossing) refuse(op holdfast.Opinion) error {
	k, j := c.k, c.j
	c.out.Verdict = holdfast.Deny
	err := withCrossing(op.Err(), j.id)
	k.signal(j, op)
	if werr := k.recordDenial(c, op); werr != nil {
		if k.store.Poisoned() != nil {
			k.onRefuse(k.refused.Add(1))
		}
		err = withCrossing(j.unrecorded(werr), j.id)
	}
	c.machine.do(refused)
	c.finish(err)
	c.machine.do(consumed)
	return err
}

// refuseKind refuses because a step of the kernel itself failed.
func (c *crossing) refuseKind(g holdfast.Gate, err error) error {
	op := refusal(g, "WRITE_FAILED", c.j.unrecorded(err))
	c.j.opinions = replaceOpinion(c.j.opinions, op)
	c.k.log.Error("a crossing could not begin", "crossing", c.j.id, "err", err)
	return c.refuse(op)
}

// recordDenial writes the entry of a request that never began.
func (k *Kernel) recordDenial(c *crossing, op holdfast.Opinion) error {
	j := c.j
	if k.store.Poisoned() != nil {
		return walError(ErrPoisoned)
	}
	end := &ending{outcome: ledger.Denied, err: op.Err(), unstarted: true}
	e, leaf, err := c.entryLeaf(end, make([]int64, len(j.draws)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.caller), edgeTime)
	defer cancel()
	err = k.runInScope(ctx, func(tx *scope) error {
		if j.whoErr == nil {
			if _, err := ownAgent(tx, j.who.Tenant, j.who.Agent); errors.Is(err, ErrNotFound) {
				if err := k.meet(tx, j); err != nil {
					return err
				}
			}
		}
		if op.Kind == holdfast.KindApprovalTimeout && j.human.Review != nil {
			if err := approval.Expire(tx, j.human.Review, true); err != nil {
				return err
			}
		}
		if err := tx.runEntryHooks(j.joinedParts(), e); err != nil {
			return err
		}
		if err := k.refusedBy(tx, j, op); err != nil {
			return err
		}
		return k.appendEntry(tx, e, leaf)
	})
	if err == nil {
		c.count(holdfast.Deny, op.Gate, ledger.Denied, e)
	}
	if err == nil && op.Kind == holdfast.KindApprovalTimeout {
		k.Wake(j.reviewIDs()...)
	}
	if err == nil {
		k.flood.CountDenied(j.tenant(), j.who.Agent, j.now)
	}
	return walError(err)
}
