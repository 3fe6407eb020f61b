// Package rules measures rules, and their reload under load.
package rules

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{{Name: "goal", Do: measureGoal}, {Name: "many", Do: measureMany}, {Name: "past", Do: measurePast}, {Name: "reload", Do: measureReload}}
	return &measure.Subject{Name: "rules", About: "rules, and their reload under load", Measurements: list, Help: `
Measure what rules cost on this machine, each figure beside what it is made of or
the same written by hand, in one run: the seven built-in rules on a goal, a
hundred rules, a rule that asks 24 hours of a million crossings; and count what
becomes of the requests of 16 clients while rules are reloaded, whole and half
written. It takes about half a minute, uses a state directory of its own that it
takes away again, and never touches yours. How other engines decide by the same
rules is measured in the repository: cd bench && go test -run '^$' -bench Rules ./peers

    go run -C bench . rules [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such, and the exit code stays 0, but
that of reload: where a request was lost, or answered by no set, it is 1.

    $ go run -C bench . rules --only reload
`}
}

// sideBySide does two things one after the other for a while, and returns the median
// of each.
func sideBySide(b *measure.Run, d time.Duration, ours, theirs func() error) (time.Duration, time.Duration, error) {
	var a, z []time.Duration
	for from := time.Now(); time.Since(from) < b.Span(d); {
		start := time.Now()
		if err := ours(); err != nil {
			return 0, 0, err
		}
		mid := time.Now()
		if err := theirs(); err != nil {
			return 0, 0, err
		}
		a, z = append(a, mid.Sub(start)), append(z, time.Since(mid))
	}
	return measure.Percentile(a, 50), measure.Percentile(z, 50), nil
}

// benchGoal is a goal with a graph of three sub-tasks, as it is submitted.
const benchGoal = `{"goal":{"goal_id":"g","description":"tidy the docs of the project","priority":"normal","goal_type":"maintenance"},
"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":["local:read"]},{"id":"b","required_caps":["local:write"]},{"id":"c","required_caps":["local:read","federation:ask"]}]}}`

// measureGoal measures the seven built-in rules on a goal, beside reading it.
func measureGoal(b *measure.Run) ([]measure.Figure, error) {
	filter, err := goalrule.New(goalrule.Defaults())
	if err != nil {
		return nil, err
	}
	doc, err := payload.Parse([]byte(benchGoal))
	if err != nil {
		return nil, err
	}
	s, err := goalrule.Read(doc.Value())
	if err != nil {
		return nil, err
	}
	who := goalrule.Caller{Facts: constitution.Facts{Now: time.Now()}}
	ours, theirs, err := sideBySide(b, time.Second, func() error {
		for _, v := range filter.Check(b.Ctx, s, who, nil, time.Now) {
			if !v.Allowed {
				return fmt.Errorf("the goal is refused: %+v", v)
			}
		}
		return nil
	}, func() error {
		_, err := payload.Parse([]byte(benchGoal))
		return err
	})
	return []measure.Figure{inTime("7 rules on a goal, p50", 40, ours).RatioTo(measure.Micros(theirs), "reading the goal")}, err
}

// inTime is a figure in microseconds with its target.
func inTime(name string, target float64, took time.Duration) measure.Figure {
	return measure.Figure{Name: name, Measured: measure.Micros(took), Unit: "us", Target: fmt.Sprintf("<= %.0f us", target), Met: measure.Micros(took) <= target}
}

// benchPay is what the measured rules are about, and benchTenant who asks.
const (
	benchPay    = "mcp/bank/pay"
	benchTenant = "local"
)

// paid are the facts of one payment.
func paid(amount int) constitution.Facts {
	f := constitution.Facts{Boundary: benchPay, Now: time.Now(),
		Payload: map[string]any{"amount": json.Number(fmt.Sprint(amount)), "customer": map[string]any{"name": "Ada"}}}
	f.Who.Tenant = benchTenant
	return f
}

// numberedRules are rules of which near are about a payment and the others about
// other boundaries. Rule i objects to an amount of 1001+i.
func numberedRules(near, all int) (*constitution.Set, error) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range all {
		boundary := benchPay
		if i >= near {
			boundary = fmt.Sprint("mcp/other/", i)
		}
		fmt.Fprintf(&text, "  - {id: r%d, on: request, boundary: %s, when: 'args.amount == %d && args.customer.name != \"\"', message: m}\n", i, boundary, 1001+i)
	}
	return constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(text.String())}})
}

// measureMany measures a hundred rules with their limits of cost, all judged and behind
// boundaries that leave ten, beside the same conditions written in Go.
func measureMany(b *measure.Run) ([]measure.Figure, error) {
	var out []measure.Figure
	for _, c := range []struct {
		near   int
		target float64
	}{{100, 500}, {10, 60}} {
		set, err := numberedRules(c.near, 100)
		if err != nil {
			return nil, err
		}
		f, last := paid(42), paid(1000+c.near)
		if n := len(set.Judge(b.Ctx, constitution.OnRequest, last)); n != 1 {
			return nil, fmt.Errorf("%d rules object where the last must", n)
		}
		ours, theirs, err := sideBySide(b, 2*time.Second, func() error {
			if found := set.Judge(b.Ctx, constitution.OnRequest, f); len(found) != 0 {
				return fmt.Errorf("a rule objects: %v", found)
			}
			return nil
		}, func() error { return inGo(f.Payload, c.near) })
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("100 rules of which boundaries leave %d, p50", c.near)
		if c.near == 100 {
			name = "100 rules, all judged, p50"
		}
		out = append(out, inTime(name, c.target, ours).RatioTo(measure.Micros(theirs), "the same in Go"))
	}
	out[len(out)-1].Note = "OPA and cedar-go decide the same in `cd bench && go test -run '^$' -bench Rules ./peers`, in turns with this"
	return out, nil
}

// inGo is the numbered rules as somebody would write them by hand.
func inGo(tree any, near int) error {
	for i := range near {
		args, _ := tree.(map[string]any)
		n, _ := args["amount"].(json.Number)
		amount, err := n.Float64()
		if err != nil {
			return err
		}
		customer, _ := args["customer"].(map[string]any)
		if name, _ := customer["name"].(string); amount == float64(1001+i) && name != "" {
			return fmt.Errorf("rule %d objects", i)
		}
	}
	return nil
}

// remembered is how many crossings the measured rule asks of.
const remembered = 1_000_000

// measurePast measures a rule that asks 24 hours with a million crossings, from what it
// sees of the request to its answer with the request in flight, beside the same
// rule without the question; and what the million take of memory.
func measurePast(b *measure.Run) ([]measure.Figure, error) {
	load := func(when string) (*constitution.Set, error) {
		return constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: fmt.Appendf(nil, "rules:\n  - {id: few, on: request, boundary: %s, when: %q, message: m}\n", benchPay, when)}})
	}
	asks, err := load(fmt.Sprintf("args.amount > 100 && past('%s', '24h').where(args.amount > 100).count() > 2 * %d", benchPay, remembered))
	if err != nil {
		return nil, err
	}
	plain, err := load(fmt.Sprintf("args.amount > 100 && args.amount > 2 * %d", remembered))
	if err != nil {
		return nil, err
	}
	now, before := time.Now(), inUse()
	h := history.New(history.MaxEntries)
	if err := fillHistory(h, asks, now); err != nil {
		return nil, err
	}
	held := float64(inUse()-before) / remembered
	f := paid(150)
	judge := func(set *constitution.Set) error {
		own := f
		own.Sights = set.See(b.Ctx, own)
		t := h.Add(now, benchTenant, "asked", own.Sights)
		defer t.Drop()
		own.History = t
		if found := set.Judge(b.Ctx, constitution.OnRequest, own); len(found) != 0 {
			return fmt.Errorf("the rule objects: %v", found)
		}
		return nil
	}
	ours, theirs, err := sideBySide(b, 2*time.Second, func() error { return judge(asks) }, func() error { return judge(plain) })
	rule := inTime("a rule that asks 24 h of 1,000,000 crossings, p50", 50, ours).RatioTo(measure.Micros(theirs), "the same without the question")
	rule.Note = "how long the million take to be read from a ledger: `go test -run '^$' -bench PastRebuild -benchtime 1x ./internal/kernel`"
	return []measure.Figure{rule, {Name: "  memory of one crossing that is remembered", Measured: held, Unit: "bytes"}}, err
}

// fillHistory lets a history know a million crossings of the last day.
func fillHistory(h *history.History, set *constitution.Set, now time.Time) error {
	pasts, _ := h.Use(now, set.Pasts())
	if len(pasts) != 1 {
		return fmt.Errorf("%d past functions", len(pasts))
	}
	for i := range remembered {
		h.Load(pasts[0].ID, benchTenant, fmt.Sprint(i), now.Add(-time.Duration(i)*80*time.Millisecond), constitution.Seen{Matches: true}, nil)
	}
	h.Ready(pasts[0].ID)
	for _, s := range h.Status(now) {
		if s.Entries != remembered {
			return fmt.Errorf("%d are remembered", s.Entries)
		}
	}
	return nil
}

// inUse is the heap after what is not used was collected, in bytes.
func inUse() uint64 {
	runtime.GC()
	return measure.HeapInUse()
}
