// Package ruletest carries out tests of rules that are written down: an archive
// of rules, of requests with what came before them, and of the opinions that are
// expected (`holdfast rules test`). What is asked is what the kernel asks: the
// payload is parsed as at K1, history is kept by internal/policy/history, and goals go
// through the SafetyFilter. No clock, no file and no daemon has a part in it.
//
// An archive is text in the txtar form. Its files are
//
//	rules.yaml        any file *.yaml but those below holds rules
//	boundaries.yaml   the boundaries that are listed, with the JSON Schema of
//	                  their arguments; rules are typed by them
//	NAME.facts.json   facts that a case takes over with `facts: NAME`
//	cases.yaml        what is asked and expected
//
// and cases.yaml is
//
//	now: 2026-11-22T12:00:00Z      # of every case; this if absent
//	sequence: true                 # a case that passes is history for the next
//	facts: {agent: a1}             # of every case, and of all history
//	history:                       # what began before, the oldest first
//	  - {ago: 2h, boundary: mcp/bank/pay, args: {amount: 150}}
//	cases:
//	  - name: the fourth is too many
//	    on: request                # or output; request if absent
//	    boundary: mcp/bank/pay
//	    args: {"amount": 150}      # or json: '...', the very bytes
//	    want: deny                 # allow, hold, deny, or malformed
//	    rules: [few-payments]      # those that speak, in their order
//	    says: three are enough     # part of what one of them says
//
// A fact is boundary, operation, risk, tenant, principal, roles, agent, subagent, kind,
// session, intent, chain, level, args, output, exit_code or fetched, which has
// what the rules name as facts.NAME: fetched: {peers: ["a"]}. What a case does not
// give could not be fetched. at is how much later
// than now a case is asked, ago how much earlier something began. A case at
// goal/admit is a submission: want and rules tell of the filter's own rules too.
package ruletest

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// Bounds of one archive.
const (
	MaxArchive = 4 << 20 // bytes
	maxParts   = 100     // files
	maxLines   = 500_000 // each file is read behind as many empty lines as stand before it
	maxCases   = 10_000
	maxHistory = 100_000
)

// Result is one case that was asked.
type Result struct {
	Name string `json:"name"`
	// Where is "archive:line" of the case.
	Where  string `json:"where"`
	Passed bool   `json:"passed"`
	// Expected and Got are what was to be and what was, in words.
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Report is what became of an archive.
type Report struct {
	File    string   `json:"file"`
	Results []Result `json:"results"`
	Failed  int      `json:"failed"`
}

// Run carries out an archive. extra are rules that are judged as well, such as
// those in force; known has boundaries that the archive does not list itself, and
// facts beside those that its cases give. An error says that the archive or its rules cannot be read; it names the line.
func Run(ctx context.Context, name string, text []byte, extra []constitution.Source, known constitution.Setting) (*Report, error) {
	doc, err := read(name, text)
	if err != nil {
		return nil, err
	}
	if len(doc.rules)+len(extra) == 0 {
		return nil, doc.wrong(1, "there are no rules", "put them into the archive as rules.yaml, or name a file with --rules")
	}
	set, err := doc.setting(known).Load(append(doc.rules, extra...))
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, set, doc)
	if err != nil {
		return nil, err
	}
	out := &Report{File: name, Results: []Result{}}
	for i := range doc.cases {
		c := &doc.cases[i]
		got, err := w.ask(ctx, c)
		if err != nil {
			return nil, err
		}
		r := Result{Name: c.name, Where: fmt.Sprintf("%s:%d", name, c.line), Expected: c.want.String(), Got: got.String(), Passed: c.want.met(got)}
		if !r.Passed {
			out.Failed++
		}
		out.Results = append(out.Results, r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// noon is when cases are asked that say nothing else.
func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
