package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
)

// measureStart measures commands that must start fast, from their start to their end,
// beside a program that does nothing, in turns.
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
	commands := []struct {
		name string
		line []string
	}{
		{"start-up of a filter (key FILE)", []string{program, "key", doc}},
		{"start-up of help", []string{program, "help"}},
		{"start-up of version", []string{program, "version"}},
	}
	ours, theirs := make([][]time.Duration, len(commands)), []time.Duration(nil)
	for range b.Rounds(30) {
		for i, c := range commands {
			d, err := timeProgram(b, c.line[0], c.line[1:]...)
			if err != nil {
				return nil, err
			}
			ours[i] = append(ours[i], d)
		}
		if empty == "" {
			continue
		}
		d, err := timeProgram(b, empty)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, d)
	}
	var all []measure.Figure
	for i, c := range commands {
		f := measure.Figure{Name: c.name, Measured: measure.Millis(measure.Percentile(ours[i], 50)), Unit: "ms", Target: "<= 3 x"}
		f = f.RatioTo(measure.Millis(measure.Percentile(theirs, 50)), "empty program")
		f.Met = f.Ratio > 0 && f.Ratio <= 3
		if empty == "" {
			f.Note = "no Go tool chain was found to make an empty program"
		}
		all = append(all, f)
	}
	return all, nil
}

func timeProgram(b *measure.Run, program string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.Ctx, program, args...)
	from := time.Now()
	err := cmd.Run()
	return time.Since(from), err
}
