package notify

import (
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Journal writes to the ledger what was delivered, what was not, and which halt hooks ran.
// Nothing in it is an address.
type Journal struct {
	record func(kernel.Event) error
	log    *slog.Logger
}

// NewJournal returns a journal that writes events with record.
func NewJournal(record func(kernel.Event) error, log *slog.Logger) *Journal {
	return &Journal{record, log}
}

// WriteResult writes how a try ended: alert_sent and alert_failed of a message, notice_sent and
// notice_failed of a notice.
func (j *Journal) WriteResult(r Result) {
	e := kernel.Event{Tenant: holdfast.Local, Who: "holdfast", Subject: r.Channel, Name: "alert_sent",
		Data: map[string]any{"condition": r.Message.Condition, "severity": r.Message.Severity,
			"message": r.Message.ID, "tries": r.Tries}}
	words := map[string]string{"agent": r.Message.Agent, "tenant": r.Message.Tenant, "crossing": r.Message.Crossing}
	if n := r.Notice; n != nil {
		e.Name, e.Data = "notice_sent", map[string]any{"event": n.Event, "message": r.Message.ID, "tries": r.Tries}
		words = map[string]string{"agent": n.Agent, "tenant": n.Tenant, "crossing": n.Crossing, "review": n.Review}
	}
	for name, is := range map[string]bool{"cleared": r.Message.Cleared, "test": r.Message.Test, "given_up": r.GivenUp} {
		if is {
			e.Data[name] = true
		}
	}
	for name, value := range words {
		if value != "" {
			e.Data[name] = value
		}
	}
	if r.Err != nil {
		e.Name, e.Data["error"] = "alert_failed", excerpt.Word(r.Err.Error())
		if r.Notice != nil {
			e.Name = "notice_failed"
		}
	}
	if r.GivenUp {
		j.log.Error("an alert was given up", "channel", r.Channel, "condition", r.Message.Condition, "why", r.Err)
	}
	if err := j.record(e); err != nil {
		j.log.Error("an alert could not be recorded", "event", e.Name, "channel", r.Channel, "err", err)
	}
}

// WriteLost writes that n notices to a destination were dropped, because too many waited.
func (j *Journal) WriteLost(destination string, n int) error {
	const why = "more notices waited than it could be told"
	j.log.Error("notices were dropped", "channel", destination, "count", n, "why", why)
	err := j.record(kernel.Event{Tenant: holdfast.Local, Name: "notice_failed", Who: "holdfast", Subject: destination,
		Data: map[string]any{"lost": n, "given_up": true, "error": why}})
	if err != nil {
		j.log.Error("an alert could not be recorded", "event", "notice_failed", "channel", destination, "err", err)
	}
	return err
}

// WriteHook writes how a halt hook ended: what it said, and its error, masked, or nil.
func (j *Journal) WriteHook(name string, took time.Duration, said string, failure error) {
	data := map[string]any{"ok": failure == nil, "ms": took.Milliseconds()}
	if said != "" {
		data["said"] = excerpt.Of(said, 512)
	}
	if failure != nil {
		data["error"] = excerpt.Of(failure.Error(), 256)
	}
	err := j.record(kernel.Event{Tenant: holdfast.Local, Name: "halt_hook", Who: "holdfast", Subject: name, Data: data})
	if err != nil {
		j.log.Error("a halt hook could not be recorded", "hook", name, "err", err)
	}
}
