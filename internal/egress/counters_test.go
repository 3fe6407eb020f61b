package egress

import (
	"io"
	"net/http"
	"testing"
	"time"
)

func TestEgress_EachStageIsMeasuredByItself(t *testing.T) {
	const thinks = 300 * time.Millisecond
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(thinks)
		io.WriteString(rw, "hello")
	})
	w.passed(w.send("GET", w.url("good.test"), ""))
	w.entries(1)
	s := w.p.Snapshot()
	for _, stage := range []Stage{Cross, Connect, FirstByte, Stream} {
		if s.Stages[stage].Count != 1 {
			t.Errorf("%s was measured %d times", stage, s.Stages[stage].Count)
		}
	}
	if first, rest := s.Stages[FirstByte].Sum, s.Stages[Stream].Sum; first < thinks || rest > first {
		t.Errorf("a server that thinks %s before it answers: %s to the first byte, %s from there to the last", thinks, first, rest)
	}
	// What nobody answers has neither.
	w.up.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	w.refused(w.send("POST", w.url("good.test"), "x"), 502)
	w.entries(2)
	if s := w.p.Snapshot(); s.Stages[FirstByte].Count != 1 || s.Stages[Stream].Count != 1 {
		t.Errorf("counted %d first bytes and %d streams of one answer", s.Stages[FirstByte].Count, s.Stages[Stream].Count)
	}
}
