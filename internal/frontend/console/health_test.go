package console

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/health"
)

// Test001_Dashboard_Page: the page of a day's health has the document's layers and
// lines, levels as words and as colours, what is unknown by that word, and each
// tenant where there are several; names are text there.
func Test001_Dashboard_Page(t *testing.T) {
	w := newWorld(t)
	w.day = func(at time.Time) (health.Report, error) {
		d := health.NewDay(at)
		d.Begins()
		d.Before(health.Event{Settings: &health.Settings{Budgets: map[string]int64{"": 50_000_000}, Watched: true, Snapshots: true}})
		for _, tenant := range []string{"local", "<b>acme"} {
			d.Crossed(health.Crossing{Tenant: tenant, Boundary: "snapshot/take", Began: true, Done: true})
		}
		d.Crossed(health.Crossing{Tenant: "local", Boundary: "agent/step", Began: true, Cost: 10_000_000, Drew: true, Limit: 40_000_000, Used: 10_000_000})
		d.Happened(health.Event{Tenant: "<b>acme", Name: "anomaly_found", Condition: "loop", Severity: "HIGH"})
		return d.Report(w.now()), nil
	}
	b := w.signedIn().get("/health")
	b.wants(200, ">Health</a>", "so far</h1>", "Layer 1: Cooldowns &amp; Limits", "Total iterations today</dt><dd>1</dd>", "API cost today</dt><dd>$10.00</dd>",
		"Budget remaining</dt><dd>$80.00 (88%)</dd>", `<meter min="0" max="100" low="10" high="25" optimum="100" value="88.9"`, "Layer 5: Anomaly Detection",
		`<strong class="word held">YELLOW</strong>`, `<strong class="word lit">GREEN</strong>`, "HIGH anomalies: 1", `<span class="meta">&lt;b&gt;acme</span>`,
		"CRITICAL(0) HIGH(1) MEDIUM(0) LOW(0)", "Patterns observed</dt><dd>loop</dd>").lacks("<b>acme").lacks("style=")
	today := w.now().UTC()
	w.signedIn().get("/health?date="+today.AddDate(0, 0, -1).Format(time.DateOnly)).wants(200, "GREEN", "?date="+today.Format(time.DateOnly)).lacks("so far</h1>")

	w.day = nil
	w.signedIn().get("/health").wants(200, `<strong class="word held">YELLOW</strong>`, "Total iterations today</dt><dd>unknown</dd>").lacks("<meter")
	w.day = func(at time.Time) (health.Report, error) {
		d := health.NewDay(at)
		d.Unread("the disk is gone")
		return d.Report(w.now()), nil
	}
	w.signedIn().get("/health").wants(200, `<strong class="word dark">RED</strong>`, "the ledger cannot be read: the disk is gone")
}

// TestHealthPage_BadInput: dates that are none, days that have not begun, and a
// reading that fails, are answered by name.
func TestHealthPage_BadInput(t *testing.T) {
	w := newWorld(t)
	for _, date := range []string{"yesterday", "2026-13-01", "9999-12-31", "<b>", "2026-01-01T00:00:00Z"} {
		w.signedIn().get("/health?date="+date).wants(400, "that is no day that has begun").lacks("<b>")
	}
	w.day = func(time.Time) (health.Report, error) { return health.Report{}, errors.New("secret cause") }
	w.signedIn().get("/health").wants(500, "internal error").lacks("secret cause")
}
