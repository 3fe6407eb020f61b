package alert

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// haltSubject orders the messages about halts: a halt, its end and the removal of its latch.
const haltSubject = "halt"

// TakeFinding notifies people of a condition, or of its end. It returns once the alert cannot be
// lost, and waits for no channel. Findings that are only recorded are left out, and so are those
// that people heard of within the hour.
func (a *Service) TakeFinding(f watch.Finding) {
	if f.Condition == watch.ChannelFailed {
		return // CheckChannels reports each channel, through the others
	}
	a.putFinding(f, string(f.Condition), nil)
}

// putFinding is TakeFinding of a condition with a separate name, to all its channels except some.
func (a *Service) putFinding(f watch.Finding, name string, except []string) {
	s := a.config()
	if len(s.Kinds) == 0 || !f.Cleared && f.Response < watch.Alert {
		return
	}
	i := notify.Item{Key: alertKey(name, f), Message: a.newMessage(f)}
	if f.Condition == conditionHalted || f.Condition == conditionLatchGone {
		i.Subject = haltSubject
	}
	if f.Cleared {
		if !isBrief(f.Condition) { // else it was an event, which does not end
			a.queue.Clear(i.Key, i.Subject, i.Message, isEndedByPerson(f.Condition), time.Now())
		}
		if f.Forgiven {
			a.queue.Anew(i.Key)
		}
		return
	}
	isExcepted := func(c string) bool { return slices.Contains(except, c) }
	i.To = slices.DeleteFunc(slices.Clone(s.Routes[f.Severity]), isExcepted)
	if len(i.To) == 0 && len(except) > 0 {
		i.To = slices.DeleteFunc(slices.Sorted(maps.Keys(s.Kinds)), isExcepted)
	}
	i.Critical, i.Rank = f.Severity == watch.Critical, int(f.Response)
	switch {
	case f.Response == watch.Halt && a.hasReportedHalt(f):
		a.queue.Note(i, time.Now())
	case a.queue.Put(i, time.Now()) && f.Condition == conditionHalted:
		a.mu.Lock()
		a.halt = f
		a.mu.Unlock()
	}
}

// isEndedByPerson reports whether only a person ends a condition, so that no agent can make it
// come and go: people hear of it each time.
func isEndedByPerson(name watch.Name) bool {
	return name == conditionHalted || name == conditionBlocked || name == conditionGoalsPaused
}

// alertKey tells the subject of one alert from that of any other. Issuers of tokens choose the
// names.
func alertKey(name string, f watch.Finding) string {
	plain := strings.NewReplacer("%", "%25", "|", "%7C").Replace
	return name + "|" + plain(f.Tenant) + "|" + plain(f.Agent)
}

// isBrief reports whether a condition is an event, that holds for an hour and then has passed.
func isBrief(name watch.Name) bool {
	return slices.ContainsFunc(watch.Conditions(), func(c watch.Condition) bool { return c.Name == name && c.Brief })
}

// hasReportedHalt reports whether people heard of the halt that a condition brought about: the
// kernel reports it first.
func (a *Service) hasReportedHalt(f watch.Finding) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.Condition != conditionHalted && time.Since(a.halt.At).Abs() < time.Minute && a.halt.Cause == f.Condition
}

// newMessage returns what people read: redacted, and of one line each.
func (a *Service) newMessage(f watch.Finding) notify.Message {
	clean := func(s string, most int) string { return a.Mask(notify.Line(s, most)) }
	m := notify.Message{ID: notify.NewID(), At: f.At.UTC(), Runtime: a.Runtime, Severity: f.Severity.String(),
		Condition: string(f.Condition), Tenant: clean(f.Tenant, notify.MaxTitle), Agent: clean(f.Agent,
			notify.MaxTitle),
		Crossing: clean(f.Crossing, notify.MaxTitle), Cleared: f.Cleared}
	if f.At.IsZero() {
		m.At = time.Now().UTC()
	}
	m.Title = m.Severity + ": " + strings.ReplaceAll(m.Condition, "_", " ")
	if f.Cleared {
		m.Title = "over: " + strings.ReplaceAll(m.Condition, "_", " ") + " (" + m.Severity + ")"
	}
	switch {
	case m.Agent != "":
		m.Title += ", agent " + m.Agent
	case m.Tenant != "" && m.Tenant != holdfast.Local:
		m.Title += ", tenant " + m.Tenant
	}
	m.Text = clean(f.Why, notify.MaxText) + "\n" + m.At.Format("2006-01-02 15:04:05 MST")
	if did := describeResponse(f); did != "" {
		m.Text += "\n" + did
	}
	return m
}

// describeResponse returns what was done besides notifying people.
func describeResponse(f watch.Finding) string {
	switch {
	case f.Cleared:
		return ""
	case f.Response == watch.Halt:
		return "everything is halted; a person lifts it with `holdfast resume`"
	case f.Response == watch.Pause && f.Asks:
		return "the agent is paused and a review waits: `holdfast review ls`"
	case f.Response == watch.Pause:
		return "the agent is paused; a person lifts it with `holdfast agent unpause`"
	case f.Asks:
		return "a review waits: `holdfast review ls`"
	}
	return ""
}
