package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

const paidSteps = quiet + `boundaries: [{boundary: test/paid, risk: LOW, consumes: {money_micro: 1000}}]
budgets: [{scope: session, resource: money_micro, amount: 9000000}, {scope: tenant, resource: money_micro, amount: 40000000}]
unsafe: {watch_looser: true}
watch: {responses: {loop: record, rapid_actions: record}}
`

// payOnce makes one paid crossing of an agent's.
func payOnce(d *Daemon, agent string, act kernel.Act) error {
	tok, err := d.Mint(holdfast.Identity{Agent: agent, Session: agent + "-s"})
	if err == nil {
		_, err = d.Kernel.Cross(context.Background(), holdfast.Request{Boundary: "test/paid", Payload: []byte(`{}`), Token: tok}, act)
	}
	return err
}

func paidFor(context.Context) (holdfast.Output, error) {
	return holdfast.Output{Body: []byte(`{}`)}, nil
}

// sums are what the tenant and all its sessions have taken of money, and what of that
// is reserved.
func sums(t *testing.T, s *survey.Standings) (all, sessions, reserved int64) {
	t.Helper()
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Resource != holdfast.MoneyMicro {
			continue
		}
		if r.Unknown != "" || r.Left == nil || *r.Used+*r.Reserved+*r.Left != r.Limit {
			t.Errorf("%+v", r)
			continue
		}
		switch r.Scope {
		case budget.Tenant:
			if !r.Ends.IsZero() {
				continue // its day may end meanwhile
			}
			all += *r.Used + *r.Reserved
			reserved = *r.Reserved
		case budget.Session:
			sessions += *r.Used + *r.Reserved
		}
	}
	return all, sessions, reserved
}

// D9: the daemon says what is left of budgets, with what is in flight, and whoever
// reads the state beside it says the same.
func TestD9_budgetsStand(t *testing.T) {
	d, c, down := up(t, paidSteps)
	defer down()
	if err := payOnce(d, "ada", paidFor); err != nil {
		t.Fatal(err)
	}
	began, end, gone := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		gone <- payOnce(d, "bea", func(context.Context) (holdfast.Output, error) {
			close(began)
			<-end
			return paidFor(context.Background())
		})
	}()
	<-began
	ask := survey.Ask{Tenant: holdfast.Local}
	s, err := c.Budgets(t.Context(), ask)
	if err != nil || s.Policy != d.Kernel.Policy().Version {
		t.Fatalf("%+v, %v", s, err)
	}
	if all, sessions, reserved := sums(t, s); all != 2000 || sessions != 2000 || reserved != 1000 {
		t.Errorf("the tenant took %d, %d of it reserved, and sessions %d", all, reserved, sessions)
	}
	beside, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(d.Paths.Dir, "holdfast.db"),
		ReadOnly: true, Tables: feature.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	other, err := readBudgets(t.Context(), beside, d.Kernel.Policy(), ask)
	if err != nil || len(other.Rows) != len(s.Rows) {
		t.Fatalf("%+v, %v", other, err)
	}
	for i := range s.Rows {
		if a, b := stood(&s.Rows[i]), stood(&other.Rows[i]); a != b {
			t.Errorf("the daemon says %s, and the state %s", a, b)
		}
	}
	close(end)
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if s, err = c.Budgets(t.Context(), survey.Ask{Agent: "bea"}); err != nil {
		t.Fatal(err)
	}
	if all, sessions, reserved := sums(t, s); all != 2000 || sessions != 1000 || reserved != 0 {
		t.Errorf("the tenant took %d, %d of it reserved, and bea %d", all, reserved, sessions)
	}
	if _, err := c.Budgets(t.Context(), survey.Ask{Agent: "nobody"}); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%v", err)
	}
}

func stood(r *survey.Standing) string {
	n := func(v *int64) string {
		if v == nil {
			return "?"
		}
		return fmt.Sprint(*v)
	}
	return r.Whose() + " " + string(r.Resource) + " " + n(r.Used) + " " + n(r.Reserved) + " " + n(r.Left)
}

// What is said is of one moment: while crossings begin and end, the sessions have
// taken what their tenant has, and what is reserved is no more than could be.
func TestD9_budgetsStandAtOneMoment(t *testing.T) {
	d, c, down := up(t, paidSteps)
	defer down()
	const agents, each = 4, 25
	var wg sync.WaitGroup
	ended := make(chan struct{})
	for i := range agents {
		wg.Go(func() {
			for range each {
				if err := payOnce(d, fmt.Sprint("agent-", i), paidFor); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(ended) }()
	for more := true; more; {
		select {
		case <-ended:
			more = false
		default:
		}
		s, err := c.Budgets(t.Context(), survey.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if all, sessions, reserved := sums(t, s); all != sessions || reserved > agents*1000 {
			t.Fatalf("the tenant took %d, %d of it reserved, and sessions %d", all, reserved, sessions)
		}
	}
	s, err := c.Budgets(t.Context(), survey.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	if all, _, reserved := sums(t, s); all != agents*each*1000 || reserved != 0 {
		t.Errorf("%d, %d reserved", all, reserved)
	}
}
