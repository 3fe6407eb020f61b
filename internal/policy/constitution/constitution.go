// Package constitution is rules in CEL: parsed and checked when loaded,
// bounded in cost, judged purely. No other package sees a CEL type (D44).
//
// A rules file is YAML without anchors, aliases and tags:
//
//	rules:
//	  - id: no-etc                      # unique in the set
//	    on: request                     # request, output, goal, subtask, graph or spawn
//	    boundary: mcp/files/*           # exact, or a prefix and one *; absent means every boundary
//	    when: args.path.startsWith("/etc/")  # CEL; true is a violation
//	    severity: block                 # info, warn, hold, block (default) or critical
//	    message: nothing under /etc is written
//	    hint: write under /srv instead
//	    on_error: deny                  # pass only by name, and only on goal, subtask or graph (D3)
//	    mode: enforce                   # observe records and stops nothing
//	    version: 1                      # for people; the true version is a hash
//
// A condition may name
//
//	boundary, operation, risk, tenant, principal, agent, kind, session, intent, chain   string
//	roles          list of string
//	level          string: baseline, medium, high, highest; level_rank int: 0 to 3
//	args           the payload; payload_size int, in bytes
//	now            timestamp
//	facts.NAME     what was fetched; the configuration declares each NAME
//	output         what came out (on: output only); output_size int, exit_code int
//	goal, subtask, graph   what is judged (on: goal, subtask or graph only)
//
// and use CEL's standard functions and macros, and of its extensions the
// functions on strings (but format and quote), sets and lists (but range). A
// number of a payload is an int if it is written as a whole number that fits 64
// bits, else a double. Lengths are in code points (D47). To read a key that is
// not there is an error, and an error denies; has() asks first. Patterns of
// matches (RE2) and time zones are written out in the rule.
//
// A rule may also ask what was done before; see Past.
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
	// Subject is what a rule on goal, subtask or graph judges, as
	// SubjectSchema has it; nil elsewhere.
	Subject any
	// Output and ExitCode are set for OnOutput only.
	Output     any
	OutputSize int
	ExitCode   int
	Now        time.Time
	// Fetched are the facts that rules name as facts.NAME; a rule that names one
	// which is not here fails.
	Fetched map[string]Fetched
	// History answers past functions; without it each of them fails. Sights
	// are what Set.See said of these facts, from a caller that asked before;
	// nil lets Judge ask.
	History History
	Sights  []Sight
}

// Finding is one rule that spoke: a violation, or its own failure.
type Finding struct {
	Rule     string // id
	Version  string // Info.Version
	Where    string // file:line
	Severity string // info, warn, hold, block, critical
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
