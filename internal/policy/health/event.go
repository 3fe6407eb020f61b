package health

import (
	"slices"
	"strings"
)

// Names of events that a report reads; the kernel's own.
const (
	eventHalted      = "halted"
	eventResumed     = "resumed"
	eventLifted      = "halt_latch_removed"
	eventPoisoned    = "refused_while_poisoned"
	eventProposed    = "review_proposed"
	eventDecided     = "review_decided"
	eventExpired     = "review_expired"
	eventVoided      = "review_voided"
	eventFound       = "anomaly_found"
	eventBlocked     = "tenant_blocked"
	eventPaused      = "agent_paused"
	eventRevoked     = "token_revoked"
	conditionMissing = "snapshot_missing"
)

// Severities are the document's, the worst first (D41a).
func Severities() []string { return []string{"CRITICAL", "HIGH", "MEDIUM", "LOW"} }

// Before takes an event from before the day, in the ledger's order: what it left
// for the day to begin with.
func (d *Day) Before(e Event) {
	if e.Settings != nil {
		d.settings = e.Settings
	}
	if is := halts(&e); is != nil {
		d.all.halted, d.all.was, d.all.unknown = *is, *is, false
	}
	if asks(&e) {
		d.of(e.Tenant).queued(&e)
	}
}

// Begins says that there is nothing older than what the day was told: without a
// word of a halt nothing was halted.
func (d *Day) Begins() { d.all.unknown = false }

// State is whether everything is halted from the event on; nil where it does not
// say.
func (e Event) State() *bool { return halts(&e) }

// halts is whether everything is halted from an event on; nil where it does not
// say.
func halts(e *Event) *bool {
	yes, no := true, false
	switch {
	case e.Halted != nil:
		return e.Halted
	case e.Name == eventHalted:
		return &yes
	case e.Name == eventResumed && e.Subject == Everything, e.Name == eventLifted:
		return &no
	}
	return nil
}

// Happened counts an event of the day:
//
//   - an action that was escalated is one question put to a person:
//     review_proposed; the queue is of those that no review_decided (but for one
//     that defers), review_expired or review_voided has ended;
//   - an emergency stop is one of halted, whoever or whatever asked for it;
//   - a manual intervention is one statement that a person signed (a decision, a
//     resume, a rollback, trust, a budget), however many events it makes; and
//     agent_paused and token_revoked by anybody but Holdfast;
//   - a commit, a rollback and a snapshot that are done while everything is halted
//     are told by their event alone;
//   - an anomaly is one of anomaly_found that is no consequence of another, as often
//     as it was found.
func (d *Day) Happened(e Event) {
	t := d.of(e.Tenant)
	if e.Settings != nil {
		d.settings = e.Settings
	}
	d.happenedToAll(&e)
	switch {
	case e.Signature != "":
		t.said[e.Signature] = true
	case (e.Name == eventPaused || e.Name == eventRevoked) && !e.Own:
		t.acts++
	}
	t.snapshots(&Crossing{Boundary: e.Did, Began: true, Done: true})
	switch e.Name {
	case eventProposed:
		t.escalated++
	case eventBlocked:
		t.blocked = true
	case eventFound:
		t.find(&e)
	}
	if asks(&e) {
		t.queued(&e)
	}
}

func (d *Day) happenedToAll(e *Event) {
	if is := halts(e); is != nil {
		d.all.halted, d.all.unknown = *is, false
		d.all.was = d.all.was || *is
	}
	d.all.was = d.all.was || e.Disabled
	switch e.Name {
	case eventHalted:
		d.all.stops++
	case eventLifted:
		d.all.critical = append(d.all.critical, "the halt latch was removed without a resume")
	case eventPoisoned:
		d.all.critical = append(d.all.critical, "the ledger failed to write")
	}
	d.all.critical = d.all.critical[:min(len(d.all.critical), maxReasons)]
}

// asks says whether an event is about the queue.
func asks(e *Event) bool { return strings.HasPrefix(e.Name, "review_") }

func (t *tally) queued(e *Event) {
	switch e.Name {
	case eventProposed:
		t.queue[e.Subject] = true
	case eventDecided:
		if e.Decision != "deferred" {
			delete(t.queue, e.Subject)
		}
	case eventExpired, eventVoided:
		delete(t.queue, e.Subject)
	}
}

// find counts an anomaly. One of a severity that nobody knows counts as the worst.
func (t *tally) find(e *Event) {
	if e.Condition == conditionMissing {
		t.missing = true
	}
	if e.Cause != "" {
		return
	}
	p := pattern{e.Severity, e.Condition}
	if !slices.Contains(Severities(), p.severity) {
		p.severity = "CRITICAL"
	}
	if _, known := t.found[p]; !known && len(t.found) >= maxKinds {
		p.condition = "other"
	}
	t.found[p] = sum(t.found[p], max(e.Times, 1))
}
