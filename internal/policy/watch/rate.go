package watch

import "fmt"

// rates looks at what an agent and those beneath it do in an hour.
func (w *Watch) rates(a *agent, o owner, at int64) {
	cost, steps := a.now.hourly(at)
	rate, of, known := a.errorRate()
	if !known {
		rate = 0
	}
	w.holds(a, o, atErrorRate, beyond(rate, w.limits.ErrorRate), at, func() string {
		return fmt.Sprintf("%.1f%% of the last %d actions failed, where %.1f%% is the limit", 100*rate, of, 100*w.limits.ErrorRate)
	})
	w.holds(a, o, atCostPerHour, beyond(float64(cost), float64(w.limits.CostPerHour)), at, func() string {
		return fmt.Sprintf("$%.2f within an hour, where $%.2f is the limit", dollars(cost), dollars(w.limits.CostPerHour))
	})
	w.holds(a, o, atStepsPerHour, beyond(steps, w.limits.StepsPerHour), at, func() string {
		return fmt.Sprintf("%.0f iterations within an hour, where %.0f is the limit", steps, w.limits.StepsPerHour)
	})
	w.holds(a, o, atUnusual, is(a.unusual(cost, steps, at)), at, func() string {
		return fmt.Sprintf("%d actions this hour, within an hour %.0f iterations and $%.2f; its own past makes up to %s usual", a.thisHour(at), steps, dollars(cost), a.bounds())
	})
}

// unusual says whether the last hour lies above what the agent's past makes
// usual, where that is known. Actions are the clock's hour's.
func (a *agent) unusual(cost int64, steps float64, at int64) bool {
	return a.span[0].known && float64(a.thisHour(at)) > a.span[0].high ||
		a.span[1].known && steps > a.span[1].high || a.span[2].known && float64(cost) > a.span[2].high
}

func (a *agent) bounds() string {
	return fmt.Sprintf("%.0f, %.0f and $%.2f", a.span[0].high, a.span[1].high, a.span[2].high/1e6)
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

// hourEnded judges an hour that ended against those before it, once.
func (w *Watch) hourEnded(a *agent, o owner, ended bucket, at int64) {
	if ended.hour <= a.closed {
		return
	}
	a.closed = ended.hour
	var odd []string
	for i, m := range measures() {
		if v := m.of(ended); a.span[i].known && !a.span[i].has(v) {
			odd = append(odd, fmt.Sprintf("%.0f %s", v, m.name))
		}
	}
	if odd != nil {
		o.crossing = ""
		w.holds(a, o, atOutlier, 1, at, func() string {
			return fmt.Sprintf("the hour of %s is unlike those before it, with %s", w.when(int64(ended.hour)*hour).Format("2006-01-02 15:04"), list(odd))
		})
	}
}

func list(words []string) string {
	s := words[0]
	for _, w := range words[1:] {
		s += ", " + w
	}
	return s
}
