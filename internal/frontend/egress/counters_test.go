package egress

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
)

func TestEgress_EachStageIsMeasuredByItself(t *testing.T) {
	const thinks = 300 * time.Millisecond
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(thinks)
		io.WriteString(rw, "hello")
	})
	start := time.Now()
	w.passed(w.send("GET", w.url("good.test"), ""))
	took := time.Since(start)
	w.entries(1)
	s := w.p.Snapshot()
	for _, stage := range []counters.Stage{counters.Cross, counters.Connect, counters.FirstByte, counters.Stream} {
		if s.Stages[stage].Count != 1 {
			t.Errorf("%s was measured %d times", stage, s.Stages[stage].Count)
		}
	}
	if first, rest := s.Stages[counters.FirstByte].Sum, s.Stages[counters.Stream].Sum; first < thinks || first+rest > took {
		t.Errorf("a server that thinks %s before it answers, %s in all: %s to the first byte, %s from there to the last", thinks, took, first, rest)
	}
	// What nobody answers has neither.
	w.up.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.refused(w.send("POST", w.url("good.test"), "x"), 502)
	w.entries(2)
	if s := w.p.Snapshot(); s.Stages[counters.FirstByte].Count != 1 || s.Stages[counters.Stream].Count != 1 {
		t.Errorf("counted %d first bytes and %d streams of one answer", s.Stages[counters.FirstByte].Count, s.Stages[counters.Stream].Count)
	}
}

// What models are asked through the gateway is measured as what goes through the
// proxy is: how long it took to read, and to decide.
func TestEgress_modelsAreMeasured(t *testing.T) {
	w := newModels(t, setup{})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	gate := w.gatewayFor()
	for _, path := range []string{"/llm/anthropic/v1/messages", "/llm/anthropic/v1/files"} { // the second is known to nobody
		_, _ = posted(t, http.DefaultClient, gate+path, anthropicAsk)
	}
	w.entries(2)
	s := w.p.Snapshot()
	if s.Stages[counters.Parse].Count != 2 || s.Stages[counters.Decide].Count != 1 || s.Stages[counters.Cross].Count != 1 || s.Stages[counters.Stream].Count != 1 {
		t.Errorf("measured %d, %d, %d and %d", s.Stages[counters.Parse].Count, s.Stages[counters.Decide].Count, s.Stages[counters.Cross].Count, s.Stages[counters.Stream].Count)
	}
}
