package llm

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

// measureCalls measures what a call costs of which the provider sends all at once, so
// that whatever is added is the gateway's: answered by a document, and by events.
func measureCalls(b *measure.Run, w *modelWays) (all []measure.Figure, err error) {
	bare, err := barerows.Open(filepath.Join(b.Dir, "llm-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	w.provider.answers(llmAnswered, 0)
	for _, events := range []int{0, llmAnswered} {
		fs, err := measureCall(b, w, bare, events)
		if err != nil {
			return nil, err
		}
		all = append(all, fs...)
	}
	return all, nil
}

// measureCall measures calls in turns by each way, and bare commits of what the ledger
// wrote, each after a pause in which the entry of the call before is committed.
// events is how many of text the answer has, 0 for a document.
func measureCall(b *measure.Run, w *modelWays, bare *barerows.Rows, events int) ([]measure.Figure, error) {
	body := question(llmAsked, events > 0)
	for _, y := range w.list {
		for range measured.PerTurn {
			if _, err := w.ask(y, body); err != nil {
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
	var took [3][]time.Duration
	var commits []time.Duration
	for round := range b.Rounds(200) {
		for i := range w.list {
			time.Sleep(measured.Pause)
			which := (round + i) % len(w.list)
			h, err := w.ask(w.list[which], body)
			if err != nil {
				return nil, err
			}
			if len(h.late) != events {
				return nil, fmt.Errorf("%d events came of %d", len(h.late), events)
			}
			took[which] = append(took[which], h.whole)
		}
		time.Sleep(measured.Pause)
		from := time.Now()
		if err := bare.Put(1, 1, uuid.Must(uuid.NewV7()).String(), records[0]); err != nil {
			return nil, err
		}
		commits = append(commits, time.Since(from))
	}
	after, err := w.daemon.Told()
	if err != nil {
		return nil, err
	}
	return modelCallFigures(events, took, commits, measured.StagesBetween(before, after)), nil
}

// llmAnswered is how many events of text each of these answers has.
const llmAnswered = 40

// modelCallFigures hold what the gateway adds, but for the commit that is waited for,
// against a millisecond. The entry's commit follows the answer, and nobody waits for
// it here; it is not taken off.
func modelCallFigures(events int, took [3][]time.Duration, commits []time.Duration, stages map[string]float64) []measure.Figure {
	over := func(way int) float64 {
		return measure.Millis(measure.Percentile(took[way], 50) - measure.Percentile(took[wayStraight], 50))
	}
	commit := measure.Millis(measure.Percentile(commits, 50))
	by := "a document"
	if events > 0 {
		by = fmt.Sprintf("%d events at once", events)
	}
	added := measure.Figure{Name: "added to a call answered by " + by + ", p50", Measured: over(wayGateway), Unit: "ms",
		Note: fmt.Sprintf("%s ms through the gateway, %s through the bare proxy, %s straight; a bare commit of its begin %s; %d calls each way, %s apart",
			measure.Number(measure.Millis(measure.Percentile(took[wayGateway], 50))), measure.Number(measure.Millis(measure.Percentile(took[wayBare], 50))), measure.Number(measure.Millis(measure.Percentile(took[wayStraight], 50))), measure.Number(commit), len(commits), measured.Pause)}
	amounts := map[string]float64{
		"reading and redacting what is asked": stages["body"] + stages["redact"],
		"the gates and the begin's commit":    stages["cross"],
		"the answer's redaction and meter":    stages["stream"],
	}
	rest := over(wayGateway)
	for _, v := range amounts {
		rest -= v
	}
	amounts["the hop: HTTP on both sides"] = rest
	added.Limits = measure.PartsOf("ms", amounts)
	own := measure.Figure{Name: "  of it the gateway's own, without the commit", Measured: over(wayGateway) - commit, Unit: "ms", Target: "<= 1 ms"}
	own.Met = own.Measured <= 1
	own.Note = fmt.Sprintf("with the hop, which the bare proxy has too; its stages by its own counters, less the commit, are %s ms on average", measure.Number(stages["body"]+stages["redact"]+stages["cross"]+stages["stream"]-commit))
	return []measure.Figure{added.RatioTo(over(wayBare), "bare proxy"), own.RatioTo(over(wayBare), "bare proxy")}
}
