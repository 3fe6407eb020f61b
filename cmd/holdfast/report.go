package main

import (
	"errors"
	"flag"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

func reportCommand() command {
	return command{name: "report", about: "how a day went: the daily health report", help: `
How a day went, from the ledger.

    $ holdfast report daily
`, sub: []command{
		{name: "daily", about: "the Safety Net's daily report: GREEN, YELLOW or RED", run: reportDaily, help: `
Print the daily report, as markdown: what agents did and spent, what people were
asked and did, snapshots, anomalies, and the health of the day. It is GREEN,
YELLOW or RED, and says why where it is not GREEN; what is not known is called
unknown, and makes it YELLOW.

A day is one of UTC. What has passed is read from the ledger alone, so that the
same day has the same report whenever it is asked for; today's is of what was so
far. With --tenant it is of that tenant alone, else of all together, and of each
where there are several.

    holdfast report daily [--date YYYY-MM-DD] [--tenant NAME] [--json]

    $ holdfast report daily
`},
	}}
}

func reportDaily(a *app, args []string) error {
	fs := a.flags("report daily")
	date := fs.String("date", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	now := time.Now()
	day := now
	if *date != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, *date); err != nil {
			return usage("as in --date "+now.UTC().Format(time.DateOnly), "%s is no date", clean(*date))
		}
		if day.After(now) {
			return usage("today is "+now.UTC().Format(time.DateOnly)+" (UTC)", "the day %s has not begun", clean(*date))
		}
	}
	r, err := a.readDay(day, now)
	if err != nil && r == nil {
		return err
	}
	if tenant := a.oneTenant(fs); tenant != "" {
		var there bool
		if *r, there = r.Of(tenant); !there {
			return errors.Join(err, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "nothing is recorded of tenant " + clean(tenant) + " by the end of that day"})
		}
	}
	if a.json {
		return errors.Join(a.printJSON(r), err)
	}
	return errors.Join(r.Markdown(a.out, clean), err)
}

// oneTenant is the tenant that --tenant names, in flags that were parsed; empty where
// it was not given.
func (a *app) oneTenant(fs *flag.FlagSet) string {
	one := a.tenant != holdfast.Local // given before the subcommand
	fs.Visit(func(f *flag.Flag) { one = one || f.Name == "tenant" })
	if !one {
		return ""
	}
	return a.tenant
}

// readDay reads a day's report. Of a state that cannot be read there is one too,
// which says so, beside the error.
func (a *app) readDay(day, now time.Time) (*health.Report, error) {
	var r health.Report
	err := a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
		r, err = report.ReadDay(a.ctx, s, day, now)
		return err
	})
	switch {
	case err == nil && r.Unread:
		return &r, &holdfast.Error{Kind: holdfast.KindInternal, Why: "the ledger cannot be read", Hint: "`holdfast ledger verify` says where"}
	case err == nil:
		return &r, nil
	case isNoState(err), holdfast.KindOf(err) == holdfast.KindUsage, a.ctx.Err() != nil:
		return nil, err
	}
	d := health.NewDay(day)
	why := err.Error()
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		why = e.Why
	}
	d.Unread(why)
	r = d.Report(now)
	return &r, err
}
