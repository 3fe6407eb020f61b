package main

import (
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// maxAnomalies is how many conditions status prints.
const maxAnomalies = 20

// rowsOfWatch prints what is out of the ordinary, the worst first.
func (a *app) rowsOfWatch(row func(name, format string, args ...any), w *api.Watched) {
	if w == nil {
		return
	}
	if w.Unknown != "" {
		row("watch", "what is usual is not known: %s", clean(w.Unknown))
	}
	for i := range w.Holds[:min(len(w.Holds), maxAnomalies)] {
		h := &w.Holds[i]
		whose := h.Agent
		switch {
		case h.Agent == "" && h.Tenant == "":
			whose = "everything"
		case h.Agent == "":
			whose = "tenant " + h.Tenant
		case h.Tenant != holdfast.Local:
			whose += " of tenant " + h.Tenant
		}
		row("watch", "%s %s, %s, since %s: %s; %s", h.Severity, h.Condition, clean(whose), h.Since.Format(time.RFC3339), h.Done, clean(h.Lift))
	}
	if more := len(w.Holds) - maxAnomalies + w.More; more > 0 {
		row("watch", "%d more: `%s` has them", more, a.forState("holdfast status --json"))
	}
	if w.Lost > 0 {
		row("watch", "%d findings found no room to wait for their answer", w.Lost)
	}
}
