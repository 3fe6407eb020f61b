package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// answer carries a finding to the kernel, and tells people once it is written.
func (w *watching) answer(ctx context.Context, f *waitingFinding) {
	token, _, err := w.d.mint(holdfast.Identity{Agent: watchAgent, Kind: "watch", Principal: "holdfast"}, localTTL)
	var done kernel.Responded
	if err == nil {
		done, err = w.d.Kernel.Respond(ctx, token, f.Finding, f.times)
	}
	w.d.metrics.anomalies.count(f, err)
	if err != nil {
		w.unanswered(f, err)
		return
	}
	w.mu.Lock()
	w.failed = "" // the ledger takes what is written again
	w.mu.Unlock()
	w.tell(f, done)
}

// unanswered is of an answer that could not be carried out: that is a failure of
// the ledger, and everything is halted for it (D41a).
func (w *watching) unanswered(f *waitingFinding, err error) {
	w.d.log.Error("what is out of the ordinary could not be answered", "condition", f.Condition, "agent", f.Agent, "response", f.Response.String(), "err", err)
	what := "what was to be done about " + string(f.Condition)
	if f.Condition == watch.LedgerFailed {
		what = "what was to be done about it"
	}
	text, _ := usage.Explain(err)
	why := w.d.maskText(what + " could not be carried out (" + excerpt.Word(text) + ")")
	w.mu.Lock()
	w.failed = why
	w.mu.Unlock()
	w.take(w.watch.Set("", "", watch.LedgerFailed, true, time.Now(), why))
	if f.Condition == watch.LedgerFailed {
		w.halt(why)
	}
}

// tell tells people of what was answered, once: a review that it opened, and a
// halt, the kernel tells of.
func (w *watching) tell(f *waitingFinding, done kernel.Responded) {
	told := f.Finding
	told.Asks = done.Review != ""
	w.d.tellAlert(told)
	if f.Cleared || f.Response < watch.Alert || f.Response == watch.Halt || done.Review != "" {
		return
	}
	w.d.notice(kernel.Notice{Level: levelOf(f.Severity), Event: "anomaly", Tenant: f.Tenant, Agent: f.Agent, Crossing: f.Crossing,
		Why: f.String()})
}

// levelOf is the notify level of a severity; the two scales are kept apart (D41a).
func levelOf(s watch.Severity) string {
	switch s {
	case watch.Critical:
		return "critical"
	case watch.High:
		return "error"
	case watch.Medium:
		return "warning"
	}
	return "info"
}

// start begins to answer, and returns what ends it: findings that wait are
// answered first, as far as that is possible within watchEnd.
func (w *watching) start(ctx context.Context) (end func()) {
	todo := w.relive(ctx)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended, learned := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(learned)
		if err := w.d.guarded(func() { w.learn(ctx, todo) }); err != nil {
			w.learning(err)
		}
	}()
	go func() {
		defer close(ended)
		if err := w.d.guarded(func() { w.run(ctx) }); err != nil {
			w.halt("the watch has failed: " + excerpt.Word(err.Error()))
		}
	}()
	return func() {
		late := time.AfterFunc(watchEnd, stop)
		w.settle(ctx)
		late.Stop()
		stop()
		<-ended
		<-learned
	}
}

// settle waits until nothing waits for its answer, or ctx ends.
func (w *watching) settle(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.idle.Broadcast()
	})()
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.order) > 0 || w.busy) && ctx.Err() == nil {
		w.idle.Wait()
	}
}

// observers are those that the kernel tells.
type observers []kernel.Observer

// GoalsJudged implements kernel.Observer.
func (os observers) GoalsJudged(verdicts []goalrule.Verdict, admitted bool) {
	for _, o := range os {
		o.GoalsJudged(verdicts, admitted)
	}
}

// Crossed implements kernel.Observer.
func (os observers) Crossed(c kernel.Crossed) {
	for _, o := range os {
		o.Crossed(c)
	}
}

// Escaped implements kernel.Observer.
func (os observers) Escaped(tenant, agent, crossing string) {
	for _, o := range os {
		o.Escaped(tenant, agent, crossing)
	}
}

// Attended implements kernel.Observer.
func (os observers) Attended(tenant, agent string) {
	for _, o := range os {
		o.Attended(tenant, agent)
	}
}
