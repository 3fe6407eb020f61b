package egress

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/bench/internal/barerows"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/measured"
)

// measureAdded measures one request after another at three sizes of body:
// straight over TLS, through Holdfast, and through goproxy, with bare commits of
// what the ledger wrote of it, in turns.
func measureAdded(b *measure.Run, w *wayOut) (all []measure.Figure, err error) {
	bare, err := barerows.Open(filepath.Join(b.Dir, "egress-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	list := w.routes()
	defer closeIdle(list)
	for i, size := range []int{1, 4, 8} {
		fs, err := measureAddedAt(b, w, list, bare, size)
		if err != nil {
			return nil, err
		}
		if i == 0 && w.goproxy == nil {
			all = append(all, measure.Figure{Name: "goproxy", Note: w.absent})
		}
		all = append(all, fs...)
	}
	return all, nil
}

func measureAddedAt(b *measure.Run, w *wayOut, list []route, bare *barerows.Rows, kilobytes int) ([]measure.Figure, error) {
	body := document(kilobytes << 10)
	for _, y := range list {
		for range measured.PerTurn {
			if err := y.post("/echo", body); err != nil {
				return nil, err
			}
		}
	}
	records, err := w.daemon.Records(b)
	if err != nil {
		return nil, err
	}
	before, err := w.daemon.Told()
	if err != nil {
		return nil, err
	}
	turns := turns{list: list, bare: bare, records: records, body: body}
	added, err := turns.take(b.Rounds(25), measured.PerTurn, 0)
	if err != nil {
		return nil, err
	}
	after, err := w.daemon.Told()
	if err != nil {
		return nil, err
	}
	all := added.figures(kilobytes, measured.StagesBetween(before, after))
	if kilobytes == 4 {
		paused, err := turns.take(b.Rounds(20), 10, measured.Pause)
		if err != nil {
			return nil, err
		}
		all = append(all, paused.pausedFigure())
	}
	return all, nil
}

// turns are requests of one body by each route, and commits, in turns.
type turns struct {
	list    []route
	bare    *barerows.Rows
	records [2][]byte
	body    []byte
}

func (t *turns) take(rounds, each int, pause time.Duration) (addedTimes, error) {
	took := make([][]time.Duration, len(t.list)+1) // the last is commits
	for round := range rounds {
		for i := range took {
			which := (round + i) % len(took)
			for range each {
				time.Sleep(pause)
				from := time.Now()
				var err error
				if which == len(t.list) {
					err = t.bare.Put(1, 1, uuid.Must(uuid.NewV7()).String(), t.records[round%2])
				} else {
					err = t.list[which].post("/echo", t.body)
				}
				if err != nil {
					return addedTimes{}, err
				}
				took[which] = append(took[which], time.Since(from))
			}
		}
	}
	added := addedTimes{took[0], took[1], nil, took[len(t.list)]}
	if len(t.list) > 2 {
		added.goproxy = took[2]
	}
	return added, nil
}

// pausedFigure is what is added where the request before is over: no commit of
// its entry is waited for.
func (t addedTimes) pausedFigure() measure.Figure {
	over := func(v []time.Duration) float64 {
		return measure.Millis(measure.Percentile(v, 50) - measure.Percentile(t.direct, 50))
	}
	f := measure.Figure{Name: "  " + measured.Pause.String() + " after the one before, p50", Measured: over(t.through), Unit: "ms"}
	f.Note = fmt.Sprintf("a bare commit %s ms, with the same pause", measure.Number(measure.Millis(measure.Percentile(t.commit, 50))))
	if t.goproxy == nil {
		return f.RatioTo(2*measure.Millis(measure.Percentile(t.commit, 50)), "two bare commits")
	}
	limit := over(t.goproxy) + 2*measure.Millis(measure.Percentile(t.commit, 50)) + 0.2
	f.Target, f.Met = "<= goproxy + 2 bare commits + 0.2 ms", f.Measured <= limit
	f.Note += fmt.Sprintf("; allowed is %s ms", measure.Number(limit))
	return f.RatioTo(over(t.goproxy), "goproxy")
}

// addedTimes is how long requests took, and bare commits; goproxy is nil where
// it was not there.
type addedTimes struct{ direct, through, goproxy, commit []time.Duration }

// figures hold what Holdfast adds against what goproxy adds and two commits:
// its half, and at the end of the line twice that.
func (t addedTimes) figures(kilobytes int, stages map[string]float64) []measure.Figure {
	over := func(v []time.Duration, percent int) float64 {
		return measure.Millis(measure.Percentile(v, percent) - measure.Percentile(t.direct, percent))
	}
	name := fmt.Sprintf("added to a request of %d KB", kilobytes)
	half := measure.Figure{Name: name + ", p50", Measured: over(t.through, 50), Unit: "ms"}
	tail := measure.Figure{Name: "  p99", Measured: over(t.through, 99), Unit: "ms"}
	commits := 2 * measure.Millis(measure.Percentile(t.commit, 50))
	half.Note = fmt.Sprintf("p50 %s ms through Holdfast, %s straight; a bare commit %s; p99 %s, %s and %s; %d requests each way, in turns",
		measure.Number(measure.Millis(measure.Percentile(t.through, 50))), measure.Number(measure.Millis(measure.Percentile(t.direct, 50))), measure.Number(measure.Millis(measure.Percentile(t.commit, 50))),
		measure.Number(measure.Millis(measure.Percentile(t.through, 99))), measure.Number(measure.Millis(measure.Percentile(t.direct, 99))), measure.Number(measure.Millis(measure.Percentile(t.commit, 99))), len(t.through))
	if t.goproxy == nil {
		half, tail = half.RatioTo(commits, "two bare commits"), tail.RatioTo(2*measure.Millis(measure.Percentile(t.commit, 99)), "two bare commits")
	} else {
		limit := over(t.goproxy, 50) + commits + 0.2
		half, tail = half.RatioTo(over(t.goproxy, 50), "goproxy"), tail.RatioTo(over(t.goproxy, 99), "goproxy")
		half.Target, half.Met = "<= goproxy + 2 bare commits + 0.2 ms", half.Measured <= limit
		tail.Target, tail.Met = fmt.Sprintf("<= 2 x that, %s ms", measure.Number(2*limit)), tail.Measured <= 2*limit
		half.Note += fmt.Sprintf("; through goproxy p50 %s, p99 %s; allowed is %s ms", measure.Number(measure.Millis(measure.Percentile(t.goproxy, 50))), measure.Number(measure.Millis(measure.Percentile(t.goproxy, 99))), measure.Number(limit))
	}
	half.Limits = t.parts(half.Measured, stages)
	return []measure.Figure{half, tail}
}

// parts are what a request spends in each stage, by the proxy's own counters.
// The stage of the answer has the server in it, which a request that goes
// straight has too.
func (t addedTimes) parts(added float64, stages map[string]float64) []measure.Part {
	amounts := map[string]float64{}
	rest := added
	for name, took := range stages {
		said := name
		switch name {
		case "cross":
			said = "the gates and the begin's commit"
		case "stream":
			said, took = "the way to the server and the answer's redaction", took-measure.Millis(measure.Percentile(t.direct, 50))
		case "body":
			said = "reading and redacting the body"
		case "redact":
			said = "redacting URL and header"
		}
		amounts[said] = took
		rest -= max(took, 0)
	}
	if _, known := stages["cross"]; known {
		amounts["the client's side, HTTP and TLS"] = rest
	} else {
		amounts["the gates, the begin's commit, the client's side"] = rest
	}
	return measure.PartsOf("ms", amounts)
}

// measureRate measures how many requests of 4 KB there are in a second over 32
// connections, in turns with goproxy, or with none where that is not there.
func measureRate(b *measure.Run, w *wayOut) ([]measure.Figure, error) {
	const conns = 32
	list := w.routes()
	defer closeIdle(list)
	beside, is := list[0], "straight"
	if w.goproxy != nil {
		beside, is = list[2], "goproxy"
	}
	body := document(4 << 10)
	through := func(int) error { return list[1].post("/echo", body) }
	if _, err := measure.Drive(conns, b.Span(500*time.Millisecond), through); err != nil {
		return nil, err
	}
	r, err := b.Compare(conns, through, func(int) error { return beside.post("/echo", body) })
	if err != nil {
		return nil, err
	}
	f := measure.Figure{Name: "requests of 4 KB, 32 connections", Measured: measure.Middle(r.Ours, measure.Rate), Unit: "/s"}.RatioTo(measure.Middle(r.Theirs, measure.Rate), is)
	f.Ratio = r.MiddleRatio(measure.Rate)
	if w.goproxy != nil {
		f.Target, f.Met = ">= 0.7 x", f.Ratio >= 0.7
	} else {
		f.Note = w.absent
	}
	tail := measure.Figure{Name: "  their p99", Measured: measure.Middle(r.Ours, measure.Slowest), Unit: "ms"}.RatioTo(measure.Middle(r.Theirs, measure.Slowest), is)
	return []measure.Figure{f, tail}, nil
}
