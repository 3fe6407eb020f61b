package daemon

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Conditions that the kernel finds itself, beside those of watch: people are told
// of them the same way.
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

// alarming are the kernel's notices that are alerts in the document's sense: the
// day's budget (spec 001, "API Budget Limits"), what is prohibited ("Risk
// Classification": block and alert), what stops everything, and what the kernel
// answered itself (watch.Condition.Answered). A condition that watch finds as well
// has its name here, so that it is told once.
func alarming() map[string]watch.Finding {
	return map[string]watch.Finding{
		"halted":                   {Condition: conditionHalted, Severity: watch.Critical, Response: watch.Halt},
		"resumed":                  {Condition: conditionHalted, Severity: watch.Critical, Response: watch.Record, Cleared: true},
		"halt_latch_removed":       {Condition: conditionLatchGone, Severity: watch.Critical, Response: watch.Alert},
		"ledger_failed":            {Condition: watch.LedgerFailed, Severity: watch.Critical, Response: watch.Alert},
		"sandbox_escape_attempted": {Condition: watch.Escape, Severity: watch.High, Response: watch.Pause, Asks: true},
		"prohibited_tried":         {Condition: watch.Prohibited, Severity: watch.High, Response: watch.Alert},
		"tenant_blocked":           {Condition: conditionBlocked, Severity: watch.High, Response: watch.Alert},
		"tenant_unblocked":         {Condition: conditionBlocked, Severity: watch.High, Response: watch.Record, Cleared: true},
		"halt_hook_failed":         {Condition: conditionHookFailed, Severity: watch.High, Response: watch.Alert},
		"goals_paused":             {Condition: conditionGoalsPaused, Severity: watch.High, Response: watch.Alert},
		"goals_resumed":            {Condition: conditionGoalsPaused, Severity: watch.High, Response: watch.Record, Cleared: true},
		"counters_astray":          {Condition: conditionAstray, Severity: watch.High, Response: watch.Alert},
		"rollback_failed":          {Condition: conditionNotPutBack, Severity: watch.High, Response: watch.Alert},
		"unverified":               {Condition: conditionUnverified, Severity: watch.Medium, Response: watch.Alert},
	}
}

// tellNotice tells people of a notice that is an alert.
func (a *alerts) tellNotice(n kernel.Notice) {
	f, ok := alarming()[n.Event]
	if n.Event == "agent_paused" && n.Level == "error" { // by a spent budget, not by a person
		f, ok = watch.Finding{Condition: watch.SessionBudget, Severity: watch.High, Response: watch.Pause, Asks: true}, true
	}
	if !ok || a.queue == nil {
		return
	}
	f.Tenant, f.Agent, f.Crossing, f.Why, f.At = n.Tenant, n.Agent, n.Crossing, n.Why, time.Now()
	f.Cause = n.Condition
	switch f.Condition {
	case conditionBlocked, conditionGoalsPaused, watch.LedgerFailed:
		f.Agent = "" // it is the tenant's, whoever was the last
	}
	if f.Condition == watch.LedgerFailed {
		f.Tenant = ""
	}
	name := string(f.Condition)
	switch f.Condition {
	case conditionLatchGone:
		a.queue.Anew(alertKey(string(conditionHalted), watch.Finding{})) // the next halt is another
		fallthrough
	case conditionHookFailed: // another hook's, or another halt's, is another alert
		name += " " + f.At.UTC().Format(time.RFC3339Nano)
	}
	a.tell(f, name, nil)
}
