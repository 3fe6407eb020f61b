package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

const (
	// channelVisible is how long a channel must fail before people are told
	// through the others, and channelLook how often that is looked at.
	channelVisible = time.Minute
	channelLook    = 5 * time.Second
	// alertSettle is how long an alert that is not CRITICAL waits: what the kernel
	// tells of at once, the watch answers a moment later, with a pause.
	alertSettle = time.Second
)

// alerts tells people of what is wrong, through the configured channels.
type alerts struct {
	d       *Daemon
	queue   *notify.Queue
	values  credential.Reader
	visible time.Duration // channelVisible but in tests
	look    time.Duration // channelLook likewise

	mu       sync.Mutex
	answered map[string]bool // guarded by mu; whether a channel's last try told
	halt     watch.Finding   // guarded by mu; the newest halt that people were told of
}

// open reads what waits.
func (a *alerts) open(d *Daemon) (err error) {
	a.d, a.visible, a.look, a.answered = d, channelVisible, channelLook, map[string]bool{}
	a.queue, err = notify.OpenQueue(filepath.Join(d.Paths.Dir, "alerts.waiting"), notify.Options{
		Send: a.send, Route: a.route, Known: a.known, Done: a.done, Log: d.log, Settle: alertSettle})
	if err != nil {
		return usage.HintErrorf(
			"move it away; what waits there to be told is lost with it", "the alerts that wait cannot be read: %v", err,
		)
	}
	return nil
}

func (a *alerts) close() error {
	if a.queue == nil {
		return nil
	}
	return a.queue.Close()
}

// run delivers until ctx ends.
func (a *alerts) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { a.queue.Run(ctx) })
	for _, why := range a.d.config().Alerts.Fallen() {
		a.d.log.Log(ctx, a.loud(), why)
	}
	every(ctx, a.look, func() { a.lookAtChannels(time.Now()) })
}

// loud is the level of a route that is not the document's: who configured none
// may not want any.
func (a *alerts) loud() slog.Level {
	if len(a.d.config().Alerts.Channels) == 0 {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// reloaded is called once another configuration is in force.
func (a *alerts) reloaded() {
	a.queue.Reroute()
	for _, why := range a.d.config().Alerts.Fallen() {
		a.d.log.Log(context.Background(), a.loud(), why)
	}
}

// tellAlert tells people of a condition, or that one holds no more. It returns
// once the alert cannot be lost, and waits for no channel. What is only recorded
// is left out, and so is what they were told of within the hour.
func (d *Daemon) tellAlert(f watch.Finding) {
	if f.Condition == watch.ChannelFailed {
		return // lookAtChannels tells of each channel, through the others
	}
	d.alerts.tell(f, string(f.Condition), nil)
}

// tell is tellAlert of a condition with a name of its own, to all its channels
// but some.
func (a *alerts) tell(f watch.Finding, name string, but []string) {
	if a.queue == nil || len(a.d.config().Alerts.Channels) == 0 || !f.Cleared && f.Response < watch.Alert {
		return
	}
	key, m := alertKey(name, f), a.message(f)
	if f.Cleared {
		if !brief(f.Condition) { // else it was an event, and is none that ends
			a.queue.Clear(key, m, endsByPerson(f.Condition), time.Now())
		}
		if f.Forgiven {
			a.queue.Anew(key)
		}
		return
	}
	to := slices.DeleteFunc(a.d.config().Alerts.Route(f.Severity),
		func(c string) bool { return slices.Contains(but, c) })
	if len(to) == 0 && len(but) > 0 {
		to = slices.DeleteFunc(slices.Sorted(maps.Keys(a.d.config().Alerts.Channels)),
			func(c string) bool { return slices.Contains(but, c) })
	}
	al := notify.Item{Key: key, Critical: f.Severity == watch.Critical, Rank: int(f.Response), To: to, Message: m}
	switch {
	case f.Response == watch.Halt && a.toldOfHalt(f):
		a.queue.Note(al, time.Now())
	case a.queue.Put(al, time.Now()) && f.Condition == conditionHalted:
		a.mu.Lock()
		a.halt = f
		a.mu.Unlock()
	}
}

// endsByPerson says whether a condition ends by a person's word alone, so that no
// agent can make it come and go: it is told each time.
func endsByPerson(name watch.Name) bool {
	return name == conditionHalted || name == conditionBlocked || name == conditionGoalsPaused
}

// alertKey tells what one alert is about from what any other is. Whoever issues tokens
// chooses the names.
func alertKey(name string, f watch.Finding) string {
	plain := strings.NewReplacer("%", "%25", "|", "%7C").Replace
	return name + "|" + plain(f.Tenant) + "|" + plain(f.Agent)
}

// brief says whether a condition is an event, that holds for an hour and then has
// passed.
func brief(name watch.Name) bool {
	return slices.ContainsFunc(watch.Conditions(), func(c watch.Condition) bool { return c.Name == name && c.Brief })
}

// toldOfHalt says whether people were told of the halt that a condition brought
// about: the kernel tells of it first.
func (a *alerts) toldOfHalt(f watch.Finding) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.Condition != conditionHalted && time.Since(a.halt.At).Abs() < time.Minute && a.halt.Cause == f.Condition
}

// message is what people are told: redacted, and of one line each.
func (a *alerts) message(f watch.Finding) notify.Message {
	clean := func(s string, most int) string { return a.d.maskText(notify.Line(s, most)) }
	m := notify.Message{ID: notify.NewID(), At: f.At.UTC(), Runtime: a.d.runtime, Severity: f.Severity.String(), Condition: string(f.Condition),
		Tenant: clean(f.Tenant, notify.MaxTitle), Agent: clean(f.Agent, notify.MaxTitle), Crossing: clean(f.Crossing, notify.MaxTitle), Cleared: f.Cleared}
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
	if did := whatWasDone(f); did != "" {
		m.Text += "\n" + did
	}
	return m
}

// whatWasDone says what the response did beside telling.
func whatWasDone(f watch.Finding) string {
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

func (a *alerts) known(channel string) bool {
	_, ok := a.d.config().Alerts.Channels[channel]
	return ok
}

// route is where an alert goes whose channels are configured no more. One about a
// channel does not go to it.
func (a *alerts) route(al notify.Item) []string {
	about, of, _ := strings.Cut(al.Key, "|")
	if name, ok := strings.CutPrefix(about, channelKey("")); ok {
		of = name
	}
	severity := watch.Medium
	for s := watch.Low; s <= watch.Critical; s++ {
		if s.String() == al.Message.Severity {
			severity = s
		}
	}
	c := a.d.config()
	if about == report.Condition {
		return slices.Clone(c.Alerts.Report.To)
	}
	return slices.DeleteFunc(c.Alerts.Route(severity), func(name string) bool { return name == of })
}

// send tells one message through a channel.
func (a *alerts) send(ctx context.Context, name string, m notify.Message) error {
	c, ok := a.d.config().Alerts.Channels[name]
	if !ok {
		return &notify.Failure{Why: "it is configured no more"}
	}
	ch, err := openChannel(ctx, &a.values, c)
	if err != nil {
		why, _ := usage.Explain(err)
		return &notify.Failure{Why: why}
	}
	return ch.Send(ctx, m)
}

// done records how a try ended: each alert that was told, and of those that were
// not the first try and the last.
func (a *alerts) done(r notify.Result) {
	a.mu.Lock()
	before, tried := a.answered[r.Channel]
	a.answered[r.Channel] = r.Err == nil
	a.mu.Unlock()
	switch {
	case r.Err != nil && (before || !tried):
		a.d.log.Error("a channel of alerts fails", "channel", r.Channel, "why", r.Err)
	case r.Err == nil && tried && !before:
		a.d.log.Info("a channel of alerts works again", "channel", r.Channel)
	}
	if r.Err != nil && r.Tries > 1 && !r.GivenUp {
		return
	}
	a.record(r)
}

func (a *alerts) record(r notify.Result) {
	e := kernel.Event{Tenant: holdfast.Local, Name: "alert_sent", Who: "holdfast", Subject: r.Channel,
		Data: map[string]any{"condition": r.Message.Condition, "severity": r.Message.Severity, "message": r.Message.ID, "tries": r.Tries}}
	for name, is := range map[string]bool{"cleared": r.Message.Cleared, "test": r.Message.Test, "given_up": r.GivenUp} {
		if is {
			e.Data[name] = true
		}
	}
	for name, value := range map[string]string{"agent": r.Message.Agent, "tenant": r.Message.Tenant, "crossing": r.Message.Crossing} {
		if value != "" {
			e.Data[name] = value
		}
	}
	if r.Err != nil {
		e.Name, e.Data["error"] = "alert_failed", excerpt.Word(r.Err.Error())
		if r.GivenUp {
			a.d.log.Error("an alert was given up", "channel", r.Channel, "condition", r.Message.Condition, "why", r.Err)
		}
	}
	if err := a.d.Kernel.Record(e); err != nil {
		a.d.log.Error("an alert could not be recorded", "event", e.Name, "channel", r.Channel, "err", err)
	}
}

func channelKey(name string) string { return string(watch.ChannelFailed) + "/" + name }

// lookAtChannels tells, through the others, of channels that have failed for a
// while, and of those that work again.
func (a *alerts) lookAtChannels(now time.Time) {
	var failing []string
	states := a.queue.States()
	for _, s := range states {
		if !s.Since.IsZero() {
			failing = append(failing, s.Channel)
		}
	}
	if len(failing) == 0 {
		a.d.condition("", "", watch.ChannelFailed, false, "")
	} else {
		a.d.condition("", "", watch.ChannelFailed, true, "alerts cannot be told through "+strings.Join(failing, ", "))
	}
	for _, s := range states {
		f := watch.Finding{Condition: watch.ChannelFailed, Severity: watch.Medium, Response: watch.Alert, At: now.UTC()}
		switch {
		case s.Since.IsZero() && s.Sent > 0:
			f.Cleared, f.Response, f.Why = true, watch.Record, "the channel "+s.Channel+" works again"
			a.tell(f, channelKey(s.Channel), nil)
		case !s.Since.IsZero() && now.Sub(s.Since) >= a.visible:
			f.Why = fmt.Sprintf("alerts through the channel %s fail since %s, %d wait: %s", s.Channel, s.Since.UTC().Format(time.RFC3339), s.Waiting, s.Why)
			a.tell(f, channelKey(s.Channel), failing)
		}
	}
}

// troubles is what status says of it.
func (a *alerts) troubles() []string {
	var out []string
	if err := a.queue.Fault(); err != nil {
		out = append(out, "alerts that wait cannot be kept over a restart: "+excerpt.Word(err.Error()))
	}
	for _, s := range a.queue.States() {
		if !s.Since.IsZero() {
			out = append(out, fmt.Sprintf("alert_channel_failed: the channel %s cannot be told since %s (%d wait): %s", s.Channel, s.Since.UTC().Format(time.RFC3339), s.Waiting, s.Why))
		}
	}
	return out
}
