package egress

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// measureRecord counts at the server whether each request's begin was committed
// when it came, and measures how long after the answer its entry is.
func measureRecord(b *measure.Run, w *wayOut) (_ []measure.Figure, err error) {
	requests := b.Rounds(300)
	path := filepath.Join(w.daemon.State, "holdfast.db")
	store, err := sqlite.Open(b.Ctx, sqlite.Options{Path: path, ReadOnly: true, Tables: feature.Tables()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	y := w.route(w.doors[0], w.ca)
	defer y.t.CloseIdleConnections()
	body := document(4 << 10)
	if err := y.post("/echo", body); err != nil {
		return nil, err
	}
	seen := &leafCount{b: b, store: store, read: map[string]int64{}}
	if err := seen.until(1, time.Second); err != nil {
		return nil, err
	}
	var failed error
	ahead, sent := 0, 0
	arrived := func() {
		// One request is under way at a time: there is one begin for each.
		err := seen.look()
		if err == nil && seen.begins == sent+2 {
			ahead++
		}
		failed = errors.Join(failed, err)
	}
	w.server.arrived.Store(&arrived)
	defer w.server.arrived.Store(nil)
	var took []time.Duration
	for sent = range requests {
		if err := errors.Join(y.post("/counted", body), failed); err != nil {
			return nil, err
		}
		from := time.Now()
		if err := seen.until(sent+2, 5*time.Second); err != nil {
			return nil, err
		}
		took = append(took, time.Since(from))
	}
	before := measure.Figure{Name: fmt.Sprintf("begins committed when the server got the request, of %d", requests), Measured: float64(ahead), Unit: "begins",
		Target: "all", Met: ahead == requests, Note: "counted by the server in the database, through a connection of its own"}
	after := measure.Figure{Name: "from the answer's last byte to its committed entry, at most", Measured: measure.Millis(measure.Percentile(took, 100)), Unit: "ms", Target: "<= 1000 ms"}
	after.Met = after.Measured <= 1000
	after.Note = fmt.Sprintf("half within %s ms, 99 of 100 within %s ms", measure.Number(measure.Millis(measure.Percentile(took, 50))), measure.Number(measure.Millis(measure.Percentile(took, 99))))
	return []measure.Figure{before, after}, nil
}

// leafCount counts the begins and entries of a store, as far as it was read.
type leafCount struct {
	b               *measure.Run
	store           *sqlite.Store
	read            map[string]int64 // by tenant
	begins, entries int
}

// look reads what was committed since the last look.
func (c *leafCount) look() error {
	return c.store.View(c.b.Ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			err := tx.Leaves(h.Tenant, c.read[h.Tenant], h.Size, func(l ledger.Stored) error {
				if bytes.Contains(l.Record, []byte(`"watch/`)) {
					return nil // Holdfast's own answer to so many of the same
				}
				switch l.Kind {
				case ledger.KindBegin:
					c.begins++
				case ledger.KindEntry:
					c.entries++
				}
				return nil
			})
			if err != nil {
				return err
			}
			c.read[h.Tenant] = h.Size
		}
		return nil
	})
}

// until looks until there are so many entries.
func (c *leafCount) until(entries int, atMost time.Duration) error {
	for from := time.Now(); ; time.Sleep(100 * time.Microsecond) {
		if err := c.look(); err != nil || c.entries >= entries {
			return err
		}
		if time.Since(from) > atMost {
			return fmt.Errorf("%d of %d entries are in the ledger after %v", c.entries, entries, atMost)
		}
	}
}

// measureDecide measures the decision alone: the allowlist, of a hundred rows of
// which each has a rate, and the rates and budgets of the row, with the store's
// own counters.
func measureDecide(b *measure.Run) (_ []measure.Figure, err error) {
	rows := "egress:\n  domains:\n"
	var list []domain.Domain
	for i := range 100 {
		name := fmt.Sprintf("api-%d.example.com", i)
		rows += fmt.Sprintf("    %s: {rate_limit: 1000, budget: calls, methods: [GET, POST], paths: [\"/v1/**\"]}\n", name)
		p, err := domain.ParsePath("/v1/**")
		if err != nil {
			return nil, err
		}
		list = append(list, domain.Domain{Name: name, Rate: 1000, Unit: domain.Calls, Methods: []string{"GET", "POST"}, Paths: []domain.PathPattern{p}})
	}
	table, err := domain.NewTable(list)
	if err != nil {
		return nil, err
	}
	s, err := fixture.OpenStateWith(b, "decide", "version: 1\nlisten: {pages: none}\n"+fixture.Repeats+"\n"+rows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Daemon.Close()) }()
	host, err := domain.ParseHost("api-50.example.com")
	if err != nil {
		return nil, err
	}
	d := decision{table: table, policy: s.Daemon.Kernel.Policy(), ask: domain.Ask{Origin: domain.Origin{TLS: true, Host: host, Port: 443}, Method: "POST", Target: "/v1/messages"}}
	names := [...]string{"domain", "plan of rate and budget", "their counters"}
	var took [len(names)][]time.Duration
	// A first request has been, so that its counters are in memory.
	if err := s.Daemon.Store().Update(b.Ctx, d.first); err != nil {
		return nil, err
	}
	err = s.Daemon.Store().View(b.Ctx, func(tx kernel.Tx) error {
		for from := time.Now(); time.Since(from) < b.Span(time.Second); {
			spent, err := d.times(tx, 200)
			if err != nil {
				return err
			}
			for i, t := range spent {
				took[i] = append(took[i], t)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	amounts, sum := map[string]float64{}, 0.0
	for i, name := range names {
		amounts[name] = measure.Micros(measure.Percentile(took[i], 50)) / 200
		sum += amounts[name]
	}
	f := measure.Figure{Name: "one decision: domain, rate, budget; 100 rows", Measured: sum, Unit: "us", Target: "<= 3 us", Met: sum <= 3}
	f.Note = fmt.Sprintf("of %d rates and %d budgets in force; without token, rules and commit", len(d.policy.Rates), len(d.policy.Limits))
	f.Limits = measure.PartsOf("us", amounts)
	return []measure.Figure{f}, nil
}

// decision is what is decided of one request.
type decision struct {
	table  *domain.Table
	policy *kernel.Policy
	ask    domain.Ask
}

// plan is which rates and budgets a request at the boundary draws on.
func (d *decision) plan(boundary string, now time.Time) ([]budget.Draw, []budget.Rate, error) {
	draws, rates, no := budget.Plan(d.policy.Limits, d.policy.Rates, budget.Ask{Who: holdfast.Identity{Tenant: "local", Agent: "bench", Session: "bench-1"},
		Boundary: boundary, Consumes: map[holdfast.Resource]int64{holdfast.HTTPRequests: 1}, Now: now})
	if no != nil || len(draws) == 0 || len(rates) == 0 {
		return nil, nil, errors.New("the request draws on no rate or no budget")
	}
	return draws, rates, nil
}

// first takes what one request takes.
func (d *decision) first(tx kernel.Tx) error {
	row, no := d.table.Decide(d.ask)
	if no != nil {
		return no
	}
	draws, rates, err := d.plan(row.Boundary(), time.Now())
	if err != nil {
		return err
	}
	if no, err := tx.Rate(rates, time.Now()); no != nil || err != nil {
		return errors.Join(errors.New("the rate is refused"), err)
	}
	if no, err := tx.Draw(draws); no != nil || err != nil {
		return errors.Join(errors.New("the budget is refused"), err)
	}
	return nil
}

// times carries it out n times, each part for itself, and says how long each
// part took of all of them.
func (d *decision) times(tx kernel.Tx, n int) (spent [3]time.Duration, err error) {
	now := time.Now()
	var row *domain.Domain
	for range n {
		var no *holdfast.Error
		if row, no = d.table.Decide(d.ask); no != nil {
			return spent, no
		}
	}
	spent[0] = time.Since(now)
	var draws []budget.Draw
	var rates []budget.Rate
	start := time.Now()
	for range n {
		if draws, rates, err = d.plan(row.Boundary(), now); err != nil {
			return spent, err
		}
	}
	spent[1] = time.Since(start)
	start = time.Now()
	for range n {
		if no, err := tx.PeekRate(rates, now); no != nil || err != nil {
			return spent, errors.Join(errors.New("the rate is refused"), err)
		}
		for _, draw := range draws {
			c, err := tx.Counter(draw)
			if err != nil || budget.Fits(draw, c) != nil {
				return spent, errors.Join(errors.New("the budget is refused"), err)
			}
		}
	}
	spent[2] = time.Since(start)
	return spent, nil
}
