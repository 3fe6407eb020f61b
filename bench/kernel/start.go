package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
)

// measureStart measures a filter from its start to its end beside a program that does
// nothing, the two in turns.
func measureStart(b *measure.Run) ([]measure.Figure, error) {
	program, err := programs.FindHoldfast(b)
	if err != nil {
		return nil, err
	}
	doc := filepath.Join(b.Dir, "tiny.json")
	if err := os.WriteFile(doc, []byte(`{"a":1}`), 0o600); err != nil {
		return nil, err
	}
	empty, err := programs.BuildEmpty(b)
	if err != nil {
		b.Say("no program to compare with: %v", err)
	}
	var ours, theirs []time.Duration
	for range b.Rounds(30) {
		d, err := timeProgram(b, program, "key", doc)
		if err != nil {
			return nil, err
		}
		ours = append(ours, d)
		if empty == "" {
			continue
		}
		if d, err = timeProgram(b, empty); err != nil {
			return nil, err
		}
		theirs = append(theirs, d)
	}
	f := measure.Figure{Name: "filter start-up", Measured: measure.Millis(measure.Percentile(ours, 50)), Unit: "ms", Target: "<= 12 x"}
	f = f.RatioTo(measure.Millis(measure.Percentile(theirs, 50)), "empty program")
	f.Met = f.Ratio > 0 && f.Ratio <= 12
	if empty == "" {
		f.Note = "no Go tool chain was found to make an empty program"
	}
	return []measure.Figure{f}, nil
}

func timeProgram(b *measure.Run, program string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.Ctx, program, args...)
	from := time.Now()
	err := cmd.Run()
	return time.Since(from), err
}
