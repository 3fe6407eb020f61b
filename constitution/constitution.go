// Package constitution is rules in CEL: parsed and checked when loaded,
// bounded in cost, judged purely. No other package sees a CEL type (D44).
package constitution

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// On says what a rule judges.
type On string

// What a rule may judge. Request rules are asked before the act, output rules
// after it (D2).
const (
	OnRequest On = "request"
	OnOutput  On = "output"
	OnGoal    On = "goal"
	OnSubtask On = "subtask"
	OnGraph   On = "graph"
	OnSpawn   On = "spawn"
)

// Facts is what a rule may see. Values are read, never changed. Payload and
// Output are JSON trees: map[string]any, []any, string, bool, nil, and numbers
// as json.Number.
type Facts struct {
	Boundary  string
	Operation string
	Risk      holdfast.Risk
	Who       holdfast.Identity
	Level     holdfast.Level
	Payload   any
	// PayloadSize is in bytes; lengths in rules are in code points (D47).
	PayloadSize int
	// Output and ExitCode are set for OnOutput only.
	Output     any
	OutputSize int
	ExitCode   int
	Now        time.Time
}

// Finding is one rule that spoke: a violation, or its own failure.
type Finding struct {
	Rule     string // id
	Where    string // file:line
	Severity string // info, warn, block, critical
	// Verdict is Deny for block, critical and errors; Allow for info, warn
	// and rules in observe mode. A Hold is asked for with severity "hold".
	Verdict  holdfast.Verdict
	Message  string
	Hint     string
	Observed bool // mode: observe would have denied
	// Err is set when the rule failed; Passed when on_error: pass let it.
	Err    error
	Passed bool
}
