package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/sqlite"
)

// egressAdded measures one request after another at three sizes of body:
// straight over TLS, through Holdfast, and through goproxy, with bare commits of
// what the ledger wrote of it, in turns.
func (b *bench) egressAdded(w *wayOut) (all []figure, err error) {
	bare, err := sqlite.OpenBare(filepath.Join(b.dir, "egress-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	list := w.routes()
	defer closeIdle(list)
	for i, size := range []int{1, 4, 8} {
		fs, err := b.addedAt(w, list, bare, size)
		if err != nil {
			return nil, err
		}
		if i == 0 && w.goproxy == nil {
			all = append(all, figure{Name: "goproxy", Note: w.absent})
		}
		all = append(all, fs...)
	}
	return all, nil
}

// perTurn is how many requests go one way before it is another's turn.
const perTurn = 40

func (b *bench) addedAt(w *wayOut, list []route, bare *sqlite.Bare, kilobytes int) ([]figure, error) {
	body := document(kilobytes << 10)
	for _, y := range list {
		for range perTurn {
			if err := y.post("/echo", body); err != nil {
				return nil, err
			}
		}
	}
	records, err := w.records(b)
	if err != nil {
		return nil, err
	}
	before, err := w.told()
	if err != nil {
		return nil, err
	}
	turns := turns{list: list, bare: bare, records: records, body: body}
	added, err := turns.take(b.rounds(25), perTurn, 0)
	if err != nil {
		return nil, err
	}
	after, err := w.told()
	if err != nil {
		return nil, err
	}
	all := added.figures(kilobytes, stagesBetween(before, after))
	if kilobytes == 4 {
		paused, err := turns.take(b.rounds(20), 10, apart)
		if err != nil {
			return nil, err
		}
		all = append(all, paused.pausedFigure())
	}
	return all, nil
}

// apart is the pause before a request whose predecessor's entry is then in the
// ledger.
const apart = 5 * time.Millisecond

// turns are requests of one body by each route, and commits, in turns.
type turns struct {
	list    []route
	bare    *sqlite.Bare
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
func (t addedTimes) pausedFigure() figure {
	over := func(v []time.Duration) float64 { return millis(at(v, 50) - at(t.direct, 50)) }
	f := figure{Name: "  " + apart.String() + " after the one before, p50", Measured: over(t.through), Unit: "ms"}
	f.Note = fmt.Sprintf("a bare commit %s ms, with the same pause", number(millis(at(t.commit, 50))))
	if t.goproxy == nil {
		return f.ratioTo(2*millis(at(t.commit, 50)), "two bare commits")
	}
	limit := over(t.goproxy) + 2*millis(at(t.commit, 50)) + 0.2
	f.Target, f.Met = "<= goproxy + 2 bare commits + 0.2 ms", f.Measured <= limit
	f.Note += fmt.Sprintf("; allowed is %s ms", number(limit))
	return f.ratioTo(over(t.goproxy), "goproxy")
}

// records are a begin and an entry of the daemon's ledger: the entry follows the
// answer.
func (w *wayOut) records(b *bench) (out [2][]byte, err error) {
	for range 100 {
		if out, err = newest(b, filepath.Join(w.state, "holdfast.db")); err == nil {
			return out, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return out, err
}

// addedTimes is how long requests took, and bare commits; goproxy is nil where
// it was not there.
type addedTimes struct{ direct, through, goproxy, commit []time.Duration }

// figures hold what Holdfast adds against what goproxy adds and two commits:
// its half, and at the end of the line twice that.
func (t addedTimes) figures(kilobytes int, stages map[string]float64) []figure {
	over := func(v []time.Duration, percent int) float64 {
		return millis(at(v, percent) - at(t.direct, percent))
	}
	name := fmt.Sprintf("added to a request of %d KB", kilobytes)
	half := figure{Name: name + ", p50", Measured: over(t.through, 50), Unit: "ms"}
	tail := figure{Name: "  p99", Measured: over(t.through, 99), Unit: "ms"}
	commits := 2 * millis(at(t.commit, 50))
	half.Note = fmt.Sprintf("p50 %s ms through Holdfast, %s straight; a bare commit %s; p99 %s, %s and %s; %d requests each way, in turns",
		number(millis(at(t.through, 50))), number(millis(at(t.direct, 50))), number(millis(at(t.commit, 50))),
		number(millis(at(t.through, 99))), number(millis(at(t.direct, 99))), number(millis(at(t.commit, 99))), len(t.through))
	if t.goproxy == nil {
		half, tail = half.ratioTo(commits, "two bare commits"), tail.ratioTo(2*millis(at(t.commit, 99)), "two bare commits")
	} else {
		limit := over(t.goproxy, 50) + commits + 0.2
		half, tail = half.ratioTo(over(t.goproxy, 50), "goproxy"), tail.ratioTo(over(t.goproxy, 99), "goproxy")
		half.Target, half.Met = "<= goproxy + 2 bare commits + 0.2 ms", half.Measured <= limit
		tail.Target, tail.Met = fmt.Sprintf("<= 2 x that, %s ms", number(2*limit)), tail.Measured <= 2*limit
		half.Note += fmt.Sprintf("; through goproxy p50 %s, p99 %s; allowed is %s ms", number(millis(at(t.goproxy, 50))), number(millis(at(t.goproxy, 99))), number(limit))
	}
	half.Limits = t.parts(half.Measured, stages)
	return []figure{half, tail}
}

// parts are what a request spends in each stage, by the proxy's own counters.
// The stage of the answer has the server in it, which a request that goes
// straight has too.
func (t addedTimes) parts(added float64, stages map[string]float64) []part {
	amounts := map[string]float64{}
	rest := added
	for name, took := range stages {
		said := name
		switch name {
		case "cross":
			said = "the gates and the begin's commit"
		case "stream":
			said, took = "the way to the server and the answer's redaction", took-millis(at(t.direct, 50))
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
	return partsOf("ms", amounts)
}

// stagesBetween is the mean of each stage between two looks, in milliseconds.
func stagesBetween(before, after *api.EgressStatus) map[string]float64 {
	out := map[string]float64{}
	for _, s := range after.Stages {
		count, sum := s.Count, s.SumUS
		for _, was := range before.Stages {
			if was.Name == s.Name {
				count, sum = count-was.Count, sum-was.SumUS
			}
		}
		if count > 0 {
			out[s.Name] = float64(sum) / float64(count) / 1e3
		}
	}
	return out
}

// egressRate measures how many requests of 4 KB there are in a second over 32
// connections, in turns with goproxy, or with none where that is not there.
func (b *bench) egressRate(w *wayOut) ([]figure, error) {
	const conns = 32
	list := w.routes()
	defer closeIdle(list)
	beside, is := list[0], "straight"
	if w.goproxy != nil {
		beside, is = list[2], "goproxy"
	}
	body := document(4 << 10)
	through := func(int) error { return list[1].post("/echo", body) }
	if _, err := drive(conns, b.span(500*time.Millisecond), through); err != nil {
		return nil, err
	}
	r, err := b.compare(conns, through, func(int) error { return beside.post("/echo", body) })
	if err != nil {
		return nil, err
	}
	f := figure{Name: "requests of 4 KB, 32 connections", Measured: middle(r.ours, rate), Unit: "/s"}.ratioTo(middle(r.theirs, rate), is)
	f.Ratio = r.middleRatio(rate)
	if w.goproxy != nil {
		f.Target, f.Met = ">= 0.7 x", f.Ratio >= 0.7
	} else {
		f.Note = w.absent
	}
	tail := figure{Name: "  their p99", Measured: middle(r.ours, slowest), Unit: "ms"}.ratioTo(middle(r.theirs, slowest), is)
	return []figure{f, tail}, nil
}
