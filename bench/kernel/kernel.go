// Package kernel measures the kernel, its ledger, its halt, its memory and its watch.
package kernel

import (
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	list := []measure.Measurement{
		{Name: "start", Do: measureStart},
		{Name: "gates", Do: measureGates},
		{Name: "crossings", Do: measureCrossings},
		{Name: "verify", Do: measureVerify},
		{Name: "halt", Do: measureHalt},
		{Name: "memory", Do: measureMemory},
		{Name: "watch", Do: measureWatch},
	}
	return &measure.Subject{Name: "kernel", About: "the kernel, its ledger, its halt, its memory and its watch", Measurements: list, Help: `
Measure the kernel on this machine, each figure beside the bare thing it is
made of, in one run. It takes about a minute, uses a state directory of its own
that it takes away again, and never touches yours.

    go run -C bench . kernel [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --dir DIR       where its files stand; put it on the disk in question
    --short         a fifth of the time, for a first look

A figure that misses its target is shown as such; the exit code stays 0.

    $ go run -C bench . kernel --only crossings
`}
}
