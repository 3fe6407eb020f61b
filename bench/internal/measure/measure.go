// Package measure is what the benchmarks share: figures and how they are shown, what
// every benchmark's command line takes, and runs that are compared in turns.
package measure

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Figure is one thing measured.
type Figure struct {
	Name     string  `json:"name"`
	Measured float64 `json:"measured"`
	Unit     string  `json:"unit"` // empty is not measured; Note says why
	// Beside is the bare thing's figure, in the same unit; 0 is none.
	Beside   float64 `json:"beside,omitempty"`
	BesideIs string  `json:"beside_is,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
	Target   string  `json:"target,omitempty"`
	Met      bool    `json:"met"`
	Note     string  `json:"note,omitempty"`
	// Limits are what it is made of, as far as it was measured in the same run.
	Limits []Part `json:"limited_by,omitempty"`
	// Paths are how many runs came which way, of those that it is of or beside.
	Paths map[string]int `json:"paths,omitempty"`
	// Things are what there was before and after, by name.
	Things map[string]BeforeAfter `json:"things,omitempty"`

	// Halves are the counts of a set that has an unused and a used half.
	Halves *Halves `json:"halves,omitempty"`

	Binding bool `json:"-"` // the command fails where the target is missed
}

// RatioTo completes a figure that stands beside another.
func (f Figure) RatioTo(beside float64, is string) Figure {
	f.Beside, f.BesideIs = beside, is
	if beside != 0 {
		f.Ratio = f.Measured / beside
	}
	return f
}

// Run is one run of all measurements.
type Run struct {
	Ctx   context.Context
	Dir   string // for files, removed after the run
	Short bool
	Say   func(format string, args ...any) // writes a line to standard error
	// Config is the configuration file of whoever measures; "" is the usual place.
	Config string
	// Holdfast is the program to measure; "" builds it from this repository.
	Holdfast string
}

// Measurement is one part of the run, which yields several figures.
type Measurement struct {
	Name string
	Do   func(*Run) ([]Figure, error)
}

// Number is a figure with three digits or so.
func Number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Rounds is how often something is repeated.
func (b *Run) Rounds(n int) int {
	if b.Short {
		return max(3, n/5)
	}
	return n
}

// Span is how long something is repeated.
func (b *Run) Span(d time.Duration) time.Duration {
	if b.Short {
		return d / 5
	}
	return d
}

// Percentile is a percentile, from 0 to 100.
func Percentile[T int64 | float64 | time.Duration](v []T, percent int) T {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(len(v)-1, len(v)*percent/100)]
}

// Millis returns d in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// Micros returns d in microseconds.
func Micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// BeforeAfter is how much of something there was before runs and after them.
type BeforeAfter struct {
	Before int `json:"before"`
	After  int `json:"after"`
}
