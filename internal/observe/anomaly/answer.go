package anomaly

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// answer carries a finding to the kernel, and tells people once it is written.
func (w *Watcher) answer(ctx context.Context, f *waitingFinding) {
	token, err := w.Token()
	var done respond.Responded
	if err == nil {
		done, err = w.Kernel().Respond(ctx, token, f.Finding, f.times)
	}
	w.Answered(&f.Finding, f.times, err)
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
func (w *Watcher) unanswered(f *waitingFinding, err error) {
	w.Log.Error("what is out of the ordinary could not be answered", "condition", f.Condition, "agent", f.Agent, "response", f.Response.String(), "err", err)
	what := "what was to be done about " + string(f.Condition)
	if f.Condition == watch.LedgerFailed {
		what = "what was to be done about it"
	}
	text, _ := usage.Explain(err)
	why := w.Mask(what + " could not be carried out (" + excerpt.Word(text) + ")")
	w.mu.Lock()
	w.failed = why
	w.mu.Unlock()
	w.Take(w.Watch.Set("", "", watch.LedgerFailed, true, time.Now(), why))
	if f.Condition == watch.LedgerFailed {
		w.halt(why)
	}
}

// tell tells people of what was answered, once: a review that it opened, and a
// halt, the kernel tells of.
func (w *Watcher) tell(f *waitingFinding, done respond.Responded) {
	told := f.Finding
	told.Asks = done.Review != ""
	w.Alert(told)
	if f.Cleared || f.Response < watch.Alert || f.Response == watch.Halt || done.Review != "" {
		return
	}
	w.Notify(kernel.Notice{Level: levelOf(f.Severity),
		Event: "anomaly", Tenant: f.Tenant, Agent: f.Agent, Crossing: f.Crossing,
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

// Start begins to answer, and returns what ends it: findings that wait are
// answered first, as far as that is possible within watchEnd.
func (w *Watcher) Start(ctx context.Context) (end func()) {
	todo := w.relive(ctx)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended, learned := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(learned)
		if err := w.Guard(func() { w.learn(ctx, todo) }); err != nil {
			w.NoteLearned(err)
		}
	}()
	go func() {
		defer close(ended)
		if err := w.Guard(func() { w.run(ctx) }); err != nil {
			w.halt("the watch has failed: " + excerpt.Word(err.Error()))
		}
	}()
	return func() {
		late := time.AfterFunc(watchEnd, stop)
		w.Settle(ctx)
		late.Stop()
		stop()
		<-ended
		<-learned
	}
}

// Settle waits until nothing waits for its answer, or ctx ends.
func (w *Watcher) Settle(ctx context.Context) {
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
