package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// channels are the configured channels and how it stands with each, by name.
func (a *alerts) channels() []api.AlertChannel {
	out := listChannels(&a.d.config().Alerts)
	for _, s := range a.queue.States() {
		for i := range out {
			if c := &out[i]; c.Channel == s.Channel {
				c.Failing, c.Why, c.Waiting, c.Sent, c.Failed = s.Since.UTC(), s.Why, s.Waiting, s.Sent, s.Failed
				if s.Since.IsZero() {
					c.Failing = time.Time{}
				}
			}
		}
	}
	return out
}

// listChannels returns the configured channels and what each is for, by name.
func listChannels(c *config.AlertsConfig) []api.AlertChannel {
	var out []api.AlertChannel
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		one := api.AlertChannel{Channel: name, Kind: c.Channels[name].Kind}
		for s := watch.Critical; s >= watch.Low; s-- {
			if slices.Contains(c.Route(s), name) {
				one.For = append(one.For, s.String())
			}
		}
		if slices.Contains(c.Report.To, name) {
			one.For = append(one.For, report.Condition)
		}
		out = append(out, one)
	}
	return out
}

// test sends a marked test through a channel, or through all at once, past what
// waits. It is recorded like an alert.
func (a *alerts) test(ctx context.Context, channel string) ([]api.AlertTried, error) {
	config := a.d.config()
	names := slices.Sorted(maps.Keys(config.Alerts.Channels))
	if channel != "" {
		if !slices.Contains(names, channel) {
			return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Why: fmt.Sprintf("there is no channel %q",
				excerpt.Word(channel)), Hint: "`holdfast alerts ls` lists them; they stand under alerts: channels:"}
		}
		names = []string{channel}
	}
	out := make([]api.AlertTried, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { out[i] = a.testOne(ctx, name, config.Alerts.Channels[name]) })
	}
	all.Wait()
	return out, nil
}

func (a *alerts) testOne(ctx context.Context, name string, c config.ChannelConfig) api.AlertTried {
	start := time.Now()
	t := api.AlertTried{Channel: name, Kind: c.Kind}
	m := notify.Message{ID: notify.NewID(), At: start.UTC(), Runtime: a.d.runtime, Severity: watch.Low.String(), Condition: "test", Test: true,
		Title: "TEST: nothing is wrong", Text: "This is a test of the channel " + name + ", sent by a person.\n" + start.UTC().Format("2006-01-02 15:04:05 MST")}
	ch, err := openChannel(ctx, &a.values, c)
	if err == nil {
		t.Service = ch.Service()
		err = ch.Send(ctx, m)
	}
	t.Told, t.Millis = err == nil, time.Since(start).Milliseconds()
	if err != nil {
		t.Why, t.Hint = usage.Explain(err)
		err = &notify.Failure{Why: t.Why}
	}
	a.record(notify.Result{Channel: name, Message: m, Err: err, Tries: 1})
	return t
}

// AlertTroubles are the channels of l that a daemon that starts here could not
// open, and the severities that go another way than the document's, one sentence
// each. With ask commands run for their addresses, within 5 s. Nothing is sent.
func AlertTroubles(ctx context.Context, l *config.Loaded, ask bool) []string {
	c := &l.Config.Alerts
	if len(c.Channels) == 0 {
		return nil
	}
	out := c.Fallen()
	ctx, cancel := context.WithTimeout(ctx, credential.CommandTimeout)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if of := c.Channels[name]; of.Command == nil || ask {
			if _, err := openChannel(ctx, new(credential.Reader), of); err != nil {
				why, _ := usage.Explain(err)
				out = append(out, "the channel "+name+" cannot be used: "+why)
			}
		}
	}
	return out
}

// AlertChannels are the channels of l, which nothing was sent through.
func AlertChannels(l *config.Loaded) []api.AlertChannel { return listChannels(&l.Config.Alerts) }

// channel opens a channel. The error names the place of the address, and never
// the address.
func openChannel(ctx context.Context, values *credential.Reader, of config.ChannelConfig) (*notify.Channel, error) {
	address, err := values.Value(ctx, of.Source())
	if err != nil {
		return nil, err
	}
	ch, err := notify.Open(notify.Kind(of.Kind), address)
	if err != nil {
		return nil, usage.HintErrorf(
			"doc/alerts.md shows one of each service", "%s: %v", credential.DescribeSource(of.Source()), err,
		)
	}
	return ch, nil
}
