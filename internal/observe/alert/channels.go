package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Destinations of notices. No channel has such a name.
const (
	webhookName       = "review:webhook"
	reviewCommandName = "review:notify"
	upCommandName     = "up:notify"
)

// Channel is the status of one channel.
type Channel struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	// For are the severities that go through it, the worst first, and daily_report if the
	// day's report does.
	For []string `json:"for,omitempty"`
	// Failing is since when each try fails, and Why why the last did.
	Failing time.Time `json:"failing_since,omitzero"`
	Why     string    `json:"why,omitempty"`
	Waiting int       `json:"waiting"`
	// Sent and Failed are tries since the start.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
}

// Tried is the result of a test through one channel. Nothing in it is an address.
type Tried struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"` // sms, mail or chat
	// Service is what it speaks to, such as smtp; empty if its address cannot be had.
	Service string `json:"service,omitempty"`
	Told    bool   `json:"told"`
	Why     string `json:"why,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Millis  int64  `json:"ms"`
}

// ListChannels returns the configured channels and what each is for, by name.
func (s *Settings) ListChannels() []Channel {
	var out []Channel
	for _, name := range slices.Sorted(maps.Keys(s.Kinds)) {
		one := Channel{Channel: name, Kind: s.Kinds[name]}
		for severity := watch.Critical; severity >= watch.Low; severity-- {
			if slices.Contains(s.Routes[severity], name) {
				one.For = append(one.For, severity.String())
			}
		}
		if slices.Contains(s.Report, name) {
			one.For = append(one.For, notify.ReportCondition)
		}
		out = append(out, one)
	}
	return out
}

// ListChannels returns the configured channels and the status of each, by name.
func (a *Service) ListChannels() []Channel {
	s := a.config()
	out := s.ListChannels()
	for _, s := range a.queue.States() {
		for i := range out {
			if c := &out[i]; c.Channel == s.Channel {
				c.Why, c.Waiting, c.Sent, c.Failed = s.Why, s.Waiting, s.Sent, s.Failed
				if !s.Since.IsZero() {
					c.Failing = s.Since.UTC()
				}
			}
		}
	}
	return out
}

// isConfigured reports whether a destination is configured.
func (a *Service) isConfigured(destination string) bool {
	s := a.config()
	switch destination {
	case webhookName:
		return s.WebhookURL != ""
	case reviewCommandName:
		return len(s.ReviewCommand) > 0
	case upCommandName:
		return a.Command != ""
	}
	return s.Kinds[destination] != ""
}

// openTransport returns what delivers to a destination.
func (a *Service) openTransport(ctx context.Context, destination string) (notify.Transport, error) {
	s := a.config()
	switch destination {
	case webhookName:
		return &notify.Signed{URL: s.WebhookURL, Secret: s.WebhookSecret, Plain: s.Plain,
			UserAgent: "holdfast/" + a.Version, Review: a.Kernel().Review, Page: a.Page}, nil
	case reviewCommandName:
		return &notify.Program{Name: "review.notify", Argv: s.ReviewCommand, Runner: a.Runner}, nil
	case upCommandName:
		return &notify.Program{Name: "notify", Argv: []string{"/bin/sh", "-c", a.Command}, Runner: a.Runner}, nil
	}
	ch, err := a.Channel(ctx, destination)
	if err != nil {
		why, _ := usage.Explain(err)
		return nil, &notify.Failure{Why: why}
	}
	return ch, nil
}

// findRoute returns where an alert goes whose channels are no longer configured. One about a channel
// does not go to it.
func (a *Service) findRoute(i notify.Item) []string {
	s := a.config()
	about, channel, _ := strings.Cut(i.Key, "|")
	if about == notify.ReportCondition {
		return slices.Clone(s.Report)
	}
	if name, ok := strings.CutPrefix(about, channelKey("")); ok {
		channel = name
	}
	severity := watch.Medium
	for one := watch.Low; one <= watch.Critical; one++ {
		if one.String() == i.Message.Severity {
			severity = one
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Routes[severity]), func(name string) bool { return name == channel })
}

// recordResult records how a try ended: each delivery, and of those that failed the first and the last.
func (a *Service) recordResult(r notify.Result) {
	if r.Tries == 0 { // nothing that it goes to is configured
		a.Journal.WriteResult(r)
		return
	}
	a.mu.Lock()
	before, tried := a.answered[r.Channel]
	a.answered[r.Channel] = r.Err == nil
	a.mu.Unlock()
	switch {
	case r.Err != nil && (before || !tried):
		a.Log.Error("a channel of alerts fails", "channel", r.Channel, "why", r.Err)
	case r.Err == nil && tried && !before:
		a.Log.Info("a channel of alerts works again", "channel", r.Channel)
	}
	if r.Err == nil || r.Tries <= 1 || r.GivenUp {
		a.Journal.WriteResult(r)
	}
}

func channelKey(name string) string { return string(watch.ChannelFailed) + "/" + name }

// CheckChannels reports, through the others, channels that have failed for a while, and those that
// work again.
func (a *Service) CheckChannels(now time.Time) {
	channels := a.ListChannels()
	var failing []string
	for _, c := range channels {
		if !c.Failing.IsZero() {
			failing = append(failing, c.Channel)
		}
	}
	why := ""
	if len(failing) > 0 {
		why = "alerts cannot be told through " + strings.Join(failing, ", ")
	}
	a.Failing(why)
	for _, c := range channels {
		f := watch.Finding{Condition: watch.ChannelFailed, Severity: watch.Medium, Response: watch.Alert, At: now.UTC()}
		switch {
		case c.Failing.IsZero() && c.Sent > 0:
			f.Cleared, f.Response, f.Why = true, watch.Record, "the channel "+c.Channel+" works again"
			a.putFinding(f, channelKey(c.Channel), nil)
		case !c.Failing.IsZero() && now.Sub(c.Failing) >= failingTime:
			f.Why = fmt.Sprintf("alerts through the channel %s fail since %s, %d wait: %s",
				c.Channel, c.Failing.Format(time.RFC3339), c.Waiting, c.Why)
			a.putFinding(f, channelKey(c.Channel), failing)
		}
	}
}

// ListProblems returns what is wrong with the queue, the channels, the webhook and the commands, one
// sentence each.
func (a *Service) ListProblems() (out []string) {
	if err := a.queue.Fault(); err != nil {
		out = append(out, "alerts that wait cannot be kept over a restart: "+excerpt.Word(err.Error()))
	}
	for _, s := range a.queue.States() {
		if s.Since.IsZero() {
			continue
		}
		rest := fmt.Sprintf(" cannot be told since %s (%d wait): %s", s.Since.UTC().Format(time.RFC3339),
			s.Waiting, s.Why)
		switch s.Channel {
		case webhookName:
			out = append(out, "the webhook"+rest)
		case reviewCommandName:
			out = append(out, "the command of review: notify"+rest)
		case upCommandName:
			out = append(out, "the command of --notify"+rest)
		default:
			out = append(out, "alert_channel_failed: the channel "+s.Channel+rest)
		}
	}
	return out
}

// Test sends a marked test through a channel, or through all concurrently, past what waits. It is
// recorded like an alert.
func (a *Service) Test(ctx context.Context, channel string) ([]Tried, error) {
	kinds := a.config().Kinds
	names := slices.Sorted(maps.Keys(kinds))
	if channel != "" {
		if !slices.Contains(names, channel) {
			return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no channel %q",
				excerpt.Word(channel)), Hint: "`holdfast alerts ls` lists them; they stand under alerts: channels:"}
		}
		names = []string{channel}
	}
	out := make([]Tried, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { out[i] = a.testOne(ctx, name, kinds[name]) })
	}
	all.Wait()
	return out, nil
}

func (a *Service) testOne(ctx context.Context, name, kind string) Tried {
	start := time.Now()
	t := Tried{Channel: name, Kind: kind}
	m := notify.Message{ID: notify.NewID(), At: start.UTC(), Runtime: a.Runtime, Severity: watch.Low.String(),
		Condition: "test", Test: true, Title: "TEST: nothing is wrong", Text: "This is a test of the channel " + name +
			", sent by a person.\n" + start.UTC().Format("2006-01-02 15:04:05 MST")}
	ch, err := a.Channel(ctx, name)
	if err == nil {
		t.Service = ch.Service()
		err = ch.Send(ctx, notify.Item{Message: m})
	}
	t.Told, t.Millis = err == nil, time.Since(start).Milliseconds()
	if err != nil {
		t.Why, t.Hint = usage.Explain(err)
		err = errors.New(t.Why)
	}
	a.Journal.WriteResult(notify.Result{Channel: name, Message: m, Err: err, Tries: 1})
	return t
}
