package daemon

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestOnlyMCPAndRunsKeepLingering: a plain call counts while it lasts, and leaves
// the clock as it was.
func TestOnlyMCPAndRunsKeepLingering(t *testing.T) {
	var c clients
	during := 0
	h := c.counting(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = c.count() }))
	call := func(path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil))
		if during != 1 || c.count() != 0 {
			t.Fatalf("%s: %d clients during the call, %d after", path, during, c.count())
		}
	}
	call("/v1/cross")
	if c.seen || !c.last.IsZero() {
		t.Error("a plain call started the clock")
	}
	call("/v1/mcp")
	before := c.last
	if !c.seen || before.IsZero() {
		t.Error("an MCP connection did not start the clock")
	}
	time.Sleep(time.Millisecond)
	call("/v1/status")
	if c.last != before {
		t.Error("a plain call restarted the clock")
	}
	call("/v1/exec")
	if c.last == before {
		t.Error("a run did not restart the clock")
	}
}
