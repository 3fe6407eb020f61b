package console

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// healthView is how a day went.
type healthView struct {
	health.Report
	// Shown are the sections: of everything, and, where there are several tenants, of
	// each.
	Shown []healthSection
	// Before and After are the days beside it, empty where there is none to show.
	Before, After string
}

// healthSection is one section, with its level as a class.
type healthSection struct {
	*health.Section
	Class string
}

// Left is how much of the day's budget remains, in hundredths; below zero where
// nobody knows.
func (s healthSection) Left() float64 {
	if s.Percent == nil {
		return -1
	}
	return *s.Percent
}

// levelClass is a level as the pages draw it.
func levelClass(l health.Level) string {
	switch l {
	case health.Green:
		return "lit"
	case health.Yellow:
		return "held"
	}
	return "dark"
}

// health shows how a day went: today, or the one that the address names.
func (s *Console) health(v *visit) {
	day := v.now.UTC()
	if date := v.r.URL.Query().Get("date"); date != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, date); err != nil || day.After(v.now) {
			v.fail(&holdfast.Error{Kind: holdfast.KindUsage, Why: "that is no day that has begun", Hint: "as in ?date=" + v.now.UTC().Format(time.DateOnly)})
			return
		}
	}
	r, err := s.c.Health(v.r.Context(), day)
	if err != nil {
		v.fail(err)
		return
	}
	view := healthView{Report: r, Shown: []healthSection{{&r.Section, levelClass(r.Health)}}, Before: day.AddDate(0, 0, -1).Format(time.DateOnly)}
	if r.Over {
		view.After = day.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	if len(r.Tenants)+r.More > 1 {
		for i := range r.Tenants {
			view.Shown = append(view.Shown, healthSection{&r.Tenants[i], levelClass(r.Tenants[i].Health)})
		}
	}
	v.show(r.Health.String()+" "+r.Date, "health", view)
}
