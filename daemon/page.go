package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/frontend/console"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// pages is what the daemon knows of its pages.
type pages struct {
	console *console.Console // nil while they are not served
	address string
	off     string // why they are not served, "" where that is wanted
	// behind is the newest answer of unapplied, which reads files.
	behind string
	asked  time.Time
}

// listenPages listens for people's browsers. Somebody who starts a daemon is
// told that its address is taken; one that another command started, and that
// shares a machine with others, goes on without pages and says so.
func (d *Daemon) listenPages(linger bool) (net.Listener, error) {
	addr := d.config().Listen.Pages
	if addr == "none" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return l, nil
	}
	if !linger {
		return nil, usage.HintErrorf("end what listens there, or set listen.pages in the configuration to another address, or to none", "the pages cannot be served on %s: %v", addr, err)
	}
	d.log.Warn("the pages are not served", "address", addr, "err", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page.off = fmt.Sprintf("the pages are not served on %s: %s", addr, excerpt.Word(err.Error()))
	return nil, nil
}

// openPages makes the server of the pages, which the caller serves on l and
// closes. Without a listener there is a server, and no pages.
func (d *Daemon) openPages(l net.Listener) (*http.Server, error) {
	site := &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: d.errorLog()}
	if l == nil {
		return site, nil
	}
	host, _, _ := net.SplitHostPort(d.config().Listen.Pages)
	c, err := console.New(console.Config{Kernel: d.frontKernel(), View: d.store.View, State: d.pageState,
		Open:    d.openOperator,
		Runtime: d.runtime, Version: d.opt.Version, Address: l.Addr().String(), Host: host, Who: person() + ", on the pages", Log: d.log,
		Anomalies: d.watching.Holds, Budgets: d.liveBudgets,
		Attended: func() { d.watching.Attended("", "") }, Metrics: d.metrics.Handler(), Health: d.days.Report})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.page.console, d.page.address = c, "http://"+l.Addr().String()
	d.mu.Unlock()
	site.Handler = d.site(c.Handler())
	return site, nil
}

// closePages ends streams and forgets sessions and opened keys. A second time
// is nothing.
func (d *Daemon) closePages() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.page.console != nil {
		d.page.console.Close()
		d.page.console, d.page.address = nil, ""
	}
}

// site is what the pages' address serves: whether Holdfast is up, to anybody,
// and the pages.
func (d *Daemon) site(people http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := d.store.Poisoned(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "the ledger failed to write")
			return
		}
		fmt.Fprintln(w, "ok")
	})
	d.mcp.Mount(mux, d.config().Listen.Pages)
	d.mountModels(mux)
	mux.Handle("/", people)
	return mux
}

// PageLink makes a one-time link that signs a browser in to the pages: to a
// review, or to the queue where it is empty.
func (d *Daemon) PageLink(review string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.page.console != nil {
		return d.page.console.Link(review)
	}
	e := &holdfast.Error{Kind: holdfast.KindNotFound, Why: "the pages are not served", Hint: "listen.pages in the configuration says where they would be"}
	if d.page.off != "" {
		e.Why = d.page.off
	}
	return "", e
}

// pageURL is where a review's page is, "" where no pages are served.
func (d *Daemon) pageURL(review string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.page.console == nil {
		return ""
	}
	return d.page.console.ReviewURL(review)
}

// pagesAt is where the pages are, or why they are not where they should be.
func (d *Daemon) pagesAt() (address, off string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.page.address, d.page.off
}

// openOperator opens the operator's key for the pages.
func (d *Daemon) openOperator(pass holdfast.Secret) (operator.Key, error) {
	sealed, err := guard.ReadRegular(d.Paths.OperatorKey, operator.MaxSealed, guard.CheckPrivate(d.Paths.OperatorKey))
	if missing(err) {
		return operator.Key{}, console.NoKey()
	}
	if err != nil {
		return operator.Key{}, &holdfast.Error{Kind: holdfast.KindInternal, Why: "the operator key cannot be read", Hint: "see `holdfast doctor`", Err: err}
	}
	return operator.Open(sealed, pass)
}

// pageState is how Holdfast is, as the pages say it.
func (d *Daemon) pageState(ctx context.Context, whole bool) console.State {
	var s console.State
	if h, err := d.latch.Read(); h.Halted || err != nil {
		s.Halted, s.HaltWho, s.HaltWhy, s.HaltWhen = true, d.maskText(h.Who), d.maskText(h.Why), h.When
	}
	if why := d.disabled(); why != "" {
		s.Halted, s.HaltWhy = true, why
	}
	if !whole {
		return s
	}
	s.Weakened = d.Kernel.Policy().Weakened
	if d.store.Poisoned() != nil {
		s.Problems = append(s.Problems, "the ledger failed to write: everything is refused until a restart")
	}
	if why := d.unappliedLately(); why != "" {
		s.Problems = append(s.Problems, why)
	}
	s.Problems = append(append(s.Problems, config.ListUntaken(d.began, d.config())...), d.alerts.ListProblems()...)
	if why := d.witness.Trouble(); why != "" {
		s.Problems = append(s.Problems, why)
	}
	if len(d.operators()) == 0 {
		s.Problems = append(s.Problems, "there is no operator key: nobody can approve or resume; make one with `holdfast init`")
	}
	err := d.store.View(ctx, func(tx kernel.Tx) error {
		paused, err := goal.ListPaused(tx)
		if err != nil {
			return err
		}
		for i := range paused {
			s.Problems = append(s.Problems, pausedGoals(&paused[i]))
		}
		as, err := tx.Agents("")
		for _, a := range as {
			if a.State != holdfast.AgentRunning {
				s.Paused = append(s.Paused, a.Name+prefixed(": ", a.Why))
			}
		}
		return err
	})
	if err != nil {
		s.Problems = append(s.Problems, "the agents and the goals' pause cannot be read")
		d.log.Error("the pages could not read the agents and the goals' pause", "err", err)
	}
	return s
}

// pausedGoals is a pause in one line.
func pausedGoals(p *goal.Paused) string {
	of := ""
	if p.Tenant != holdfast.Local {
		of = " of " + p.Tenant
	}
	if p.Unread {
		return "whether goals" + of + " are paused cannot be read: they are refused"
	}
	return fmt.Sprintf("goals%s are paused since %s; critical violations that wait to be acknowledged: %d", of, p.Since.Format(time.RFC3339), p.Waiting)
}

func prefixed(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// unappliedLately is unapplied as of at most ten seconds ago.
func (d *Daemon) unappliedLately() string {
	d.mu.Lock()
	why, fresh := d.page.behind, time.Since(d.page.asked) < 10*time.Second && !d.page.asked.IsZero()
	d.mu.Unlock()
	if fresh {
		return why
	}
	why, _ = d.unapplied()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page.behind, d.page.asked = why, time.Now()
	return why
}
