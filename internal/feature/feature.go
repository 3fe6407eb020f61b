// Package feature lists the features of Holdfast, in the order in which the kernel
// evaluates them and they receive signals.
package feature

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/feature/modelvalue"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/feature/subagent"
	"github.com/holdfast-dev/holdfast/internal/feature/toolpin"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// All returns the functions that make the features, for kernel.Config. That of modelvalue is the daemon's, which
// has the key of its seal.
func All() []func(kernel.Host) kernel.Feature {
	return []func(kernel.Host) kernel.Feature{judge.New, goal.New, exceed.New, respond.New, spend.New}
}

// Tables returns the tables of all features, for the store.
func Tables() []*table.Def {
	return slices.Concat(judge.Tables(), goal.Tables(), exceed.Tables(), spend.Tables(), subagent.Tables(),
		toolpin.Tables(), erasure.Tables(), modelvalue.Tables())
}
