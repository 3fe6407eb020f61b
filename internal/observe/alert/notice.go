package alert

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Conditions that the kernel finds itself, besides those of watch: people hear of them the same
// way.
const (
	conditionHalted      watch.Name = "halted"
	conditionLatchGone   watch.Name = "halt_latch_removed"
	conditionHookFailed  watch.Name = "halt_hook_failed"
	conditionBlocked     watch.Name = "day_budget_spent"
	conditionGoalsPaused watch.Name = "goals_paused"
	conditionAstray      watch.Name = "counters_astray"
	conditionNotPutBack  watch.Name = "rollback_failed"
	conditionUnverified  watch.Name = "ledger_unverified"
)

// listFindings returns the kernel's notices that are alerts in the specification's sense: the day's
// budget (spec 001, "API Budget Limits"), what is prohibited ("Risk Classification": block and
// alert), what stops everything, and what the kernel answered itself (watch.Condition.Answered).
// A condition that watch finds as well has its name here, so that people hear of it once.
func listFindings() map[string]watch.Finding {
	return map[string]watch.Finding{
		"halted": {Condition: conditionHalted, Severity: watch.Critical, Response: watch.Halt},
		"resumed": {Condition: conditionHalted, Severity: watch.Critical, Response: watch.Record,
			Cleared: true},
		"halt_latch_removed":       {Condition: conditionLatchGone, Severity: watch.Critical, Response: watch.Alert},
		"ledger_failed":            {Condition: watch.LedgerFailed, Severity: watch.Critical, Response: watch.Alert},
		"sandbox_escape_attempted": {Condition: watch.Escape, Severity: watch.High, Response: watch.Pause, Asks: true},
		"prohibited_tried":         {Condition: watch.Prohibited, Severity: watch.High, Response: watch.Alert},
		"tenant_blocked":           {Condition: conditionBlocked, Severity: watch.High, Response: watch.Alert},
		"tenant_unblocked": {Condition: conditionBlocked, Severity: watch.High, Response: watch.Record,
			Cleared: true},
		"halt_hook_failed": {Condition: conditionHookFailed, Severity: watch.High, Response: watch.Alert},
		"goals_paused":     {Condition: conditionGoalsPaused, Severity: watch.High, Response: watch.Alert},
		"goals_resumed": {Condition: conditionGoalsPaused, Severity: watch.High,
			Response: watch.Record, Cleared: true},
		"counters_astray": {Condition: conditionAstray, Severity: watch.High, Response: watch.Alert},
		"rollback_failed": {Condition: conditionNotPutBack, Severity: watch.High, Response: watch.Alert},
		"unverified":      {Condition: conditionUnverified, Severity: watch.Medium, Response: watch.Alert},
	}
}

// TakeNotice notifies people of a notice, whose reason is masked: through the webhook, the
// commands and, if it is an alert, the channels. It waits for none of them.
func (a *Service) TakeNotice(n kernel.Notice) {
	a.Log.Log(context.Background(), logLevel(n.Level), "notice", "notify", n.Level, "event", n.Event, "why", n.Why,
		"review", n.Review, "boundary", n.Boundary)
	for _, destination := range []string{webhookName, upCommandName, reviewCommandName} {
		if a.isConfigured(destination) && isFor(destination, n) {
			a.queue.PutNotice(a.newItem(destination, n), time.Now())
		}
	}
	a.takeAlert(n)
}

// logLevel returns the log's level for a level of D41a.
func logLevel(notify string) slog.Level {
	switch notify {
	case "info":
		return slog.LevelInfo
	case "warning":
		return slog.LevelWarn
	}
	return slog.LevelError // error, critical, and any other
}

// isFor reports whether a destination takes a notice. The webhook takes questions, decisions, and
// what is more than information.
func isFor(destination string, n kernel.Notice) bool {
	switch destination {
	case webhookName:
		return n.Review != "" || n.Level != "info"
	case reviewCommandName:
		return n.Review != ""
	}
	return true
}

// newItem returns a notice to one destination. Those about halts, those about reviews and all
// others each stay in their order.
func (a *Service) newItem(destination string, n kernel.Notice) notify.Item {
	i := notify.Item{Subject: "notice", To: []string{destination}, Notice: &n,
		Message: notify.Message{ID: notify.NewID(), At: time.Now().UTC(), Runtime: a.Runtime, Condition: n.Event}}
	switch n.Event {
	case "halted", "resumed", "halt_latch_removed":
		i.Subject, i.Critical = haltSubject, true
	}
	if n.Review != "" {
		i.Subject = "review"
		if destination == webhookName && kernel.Opens(n.Event) {
			i.Key = notify.ReviewKey(n.Review)
		}
	}
	return i
}

// takeAlert notifies people of a notice that is an alert.
func (a *Service) takeAlert(n kernel.Notice) {
	f, ok := listFindings()[n.Event]
	if n.Event == "agent_paused" && n.Level == "error" { // by a spent budget, not by a person
		f, ok = watch.Finding{Condition: watch.SessionBudget, Severity: watch.High, Response: watch.Pause,
			Asks: true}, true
	}
	if !ok {
		return
	}
	f.Tenant, f.Agent, f.Crossing, f.Why, f.At = n.Tenant, n.Agent, n.Crossing, n.Why, time.Now()
	f.Cause = n.Condition
	name := string(f.Condition)
	switch f.Condition {
	case conditionBlocked, conditionGoalsPaused:
		f.Agent = "" // it is the tenant's, whichever agent was the last
	case watch.LedgerFailed:
		f.Agent, f.Tenant = "", ""
	case conditionLatchGone:
		a.queue.Anew(alertKey(string(conditionHalted), watch.Finding{})) // the next halt is another
		name += " " + f.At.UTC().Format(time.RFC3339Nano)
	case conditionHookFailed: // another hook's, or another halt's, is another alert
		name += " " + f.At.UTC().Format(time.RFC3339Nano)
	}
	a.putFinding(f, name, nil)
}

// putQuestions puts the questions that wait and were never delivered to the webhook: those of
// before a restart, and those that were given up.
func (a *Service) putQuestions(ctx context.Context) {
	if !a.isConfigured(webhookName) {
		return
	}
	var open []review.Review
	for _, state := range []review.State{review.Pending, review.Deferred} {
		rs, err := a.Kernel().Reviews(ctx, "", state)
		if err != nil {
			a.Log.Error("the questions that wait could not be read", "err", err)
			return
		}
		open = append(open, rs...)
	}
	for i := len(open) - 1; i >= 0; i-- { // the oldest first
		if r := &open[i]; r.Waiting(time.Now()) {
			a.queue.PutNoticeOnce(a.newItem(webhookName, kernel.Opened(r)), time.Now())
		}
	}
}

// maxQuestions bounds the file of takeOldQuestions, in bytes.
const maxQuestions = 1 << 20

// takeOldQuestions takes over the reviews whose question was delivered to the webhook from the
// file in which earlier versions kept them (November 2026), and removes it.
func (a *Service) takeOldQuestions() {
	file := filepath.Join(a.Dir, "webhook.told")
	b, err := guard.ReadRegular(file, maxQuestions, guard.CheckPrivate(file))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var ids []string
	if err == nil {
		err = json.Unmarshal(b, &ids)
	}
	for _, id := range ids {
		a.queue.MarkDelivered(notify.ReviewKey(id), webhookName, time.Now())
	}
	if err == nil {
		err = a.queue.Sync()
	}
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		a.Log.Error("what the webhook was told could not be read", "err", err)
	}
}
