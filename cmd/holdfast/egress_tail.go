package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

func egressTailCommand() command {
	return command{name: "tail", about: "print the newest exchanges with the world, one a line; -f follows", run: egressTail, help: `
Print the newest records of what went out, or was refused or held, one a line:
when, how it came out, method, host and path as they are recorded, redacted, what
the host answered, the bytes sent and received, how long it took, which agent, and
why not. With --json each line is one exchange, with how long redacting, the gates
and the wait for the first byte took of its duration, in microseconds. A request
that a person is asked about stands here when it is asked, with its review, and
again when it ended.

    holdfast egress tail [-n N] [-f] [--agent NAME] [--json]

    -n N           how many; 20 if absent
    -f             go on with what comes
    --agent NAME   only that agent's, with those within it; AGENT/ID is one of those

    $ holdfast egress tail -n 5
`}
}

func egressTail(a *app, args []string) error {
	fs := a.flags("egress tail")
	n := fs.Int64("n", 20, "")
	follow := fs.Bool("f", false, "")
	agent := fs.String("agent", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if *n < 0 {
		return usage("", "-n must not be negative")
	}
	return (&tailing{a: a, look: a.look(), egress: true, agent: *agent}).run(*n, *follow)
}

// exchanged is one exchange as --json prints it.
type exchanged struct {
	At       time.Time      `json:"at"`
	Crossing string         `json:"crossing"`
	Agent    string         `json:"agent,omitempty"`
	Boundary string         `json:"boundary"`
	Outcome  ledger.Outcome `json:"outcome"`
	Kind     holdfast.Kind  `json:"error_kind,omitempty"`
	Why      string         `json:"why,omitempty"`
	// Review is the question of one that is held.
	Review string `json:"review,omitempty"`
	Micros int64  `json:"duration_us"`
	// Erased says that the parts which the rest stood in are erased.
	Erased bool `json:"erased,omitempty"`
	holdfast.Exchange
}

// outcomeHeld is the outcome of what waits for a person: no entry has it.
const outcomeHeld ledger.Outcome = "held"

// isHeldExchange says whether a leaf is the question about a request that would
// leave.
func isHeldExchange(s ledger.Stored) bool {
	return s.Kind == ledger.KindEvent && bytes.Contains(s.Record, []byte(`"review_proposed"`)) && bytes.Contains(s.Record, []byte(`"boundary":"egress/`))
}

// heldExchange is the exchange that a question is about, as the reviewer sees it.
func heldExchange(s ledger.Stored) (exchanged, error) {
	e, err := ledger.ParseEvent(s.Record)
	if err != nil {
		return exchanged{}, err
	}
	var of struct{ Agent, Asker, Boundary, Why string }
	if err := json.Unmarshal(e.Data, &of); err != nil {
		return exchanged{}, err
	}
	x := exchanged{At: e.Timestamp, Crossing: e.Crossing, Agent: or(of.Asker, of.Agent), Boundary: of.Boundary, Outcome: outcomeHeld, Kind: holdfast.KindHeld, Why: of.Why, Review: e.Subject}
	text := kept(s, e.PartHash)
	if x.Erased = text == "erased"; x.Erased {
		return x, nil
	}
	x.Exchange = story.Exchanged([]byte(text)) // cut at 4 KiB, it may have lost its end
	var asked struct{ Query string }
	if json.Unmarshal([]byte(text), &asked) == nil {
		x.Path += prefix("?", asked.Query)
	}
	x.Path = excerpt.Of(x.Path, 512)
	return x, nil
}

// printExchange writes one entry of egress, or one question about it.
func (t *tailing) printExchange(s ledger.Stored) error {
	read := settled
	if isHeldExchange(s) {
		read = heldExchange
	}
	x, err := read(s)
	if err != nil {
		return err
	}
	if t.a.json {
		b, err := json.Marshal(x)
		if err == nil {
			_, err = fmt.Fprintf(t.a.out, "%s\n", b)
		}
		return err
	}
	_, err = fmt.Fprintln(t.a.out, t.exchange(x))
	return err
}

// settled is the exchange that an entry is of.
func settled(s ledger.Stored) (exchanged, error) {
	e, err := ledger.ParseEntry(s.Record)
	if err != nil {
		return exchanged{}, err
	}
	x := exchanged{At: e.Timestamp, Crossing: e.ID, Agent: e.Agent, Boundary: e.Boundary, Outcome: e.Outcome, Kind: e.ErrorKind, Why: e.Why, Micros: e.DurationUS}
	if text := kept(s, story.Text(e.ResultHash)); text == "erased" {
		x.Erased = true
	} else if text != "" {
		// What is no exchange stays what the record's own columns say.
		x.Exchange = story.Exchanged([]byte(text))
	}
	return x, nil
}

func (t *tailing) exchange(x exchanged) string {
	where := clean(x.Boundary)
	if x.Host != "" {
		where = clean(x.Host)
		if x.Port != 0 && x.Port != 443 {
			where += fmt.Sprintf(":%d", x.Port)
		}
		where += clean(x.Path)
	}
	mark := t.look.outcome(x.Outcome)
	if x.Outcome == outcomeHeld {
		mark = t.look.mark(holdfast.Hold)
	}
	line := fmt.Sprintf("%s  %s %-7s %s", stamp(x.At), mark, clean(or(x.Method, "-")), where)
	if x.Outcome != ledger.Done {
		line += "  " + clean(string(x.Outcome)) + clean(prefix(": ", x.Review))
	}
	if x.Status != 0 {
		line += fmt.Sprintf("  %d", x.Status)
	}
	if x.Sent+x.Received > 0 {
		line += fmt.Sprintf("  %s out, %s in", bytesOf(x.Sent), bytesOf(x.Received))
	}
	if x.Opaque {
		line += "  not inspected"
	}
	if x.Outcome != outcomeHeld {
		line += "  " + tookOf(x.Micros)
	}
	line += "  " + clean(or(x.Agent, "-")) + "  " + t.look.dim(x.Crossing)
	if x.Kind != "" || x.Why != "" {
		line += "  " + clean(string(x.Kind)) + prefix(": ", clean(x.Why))
	}
	return line
}

// tookOf is a duration in microseconds, as far as people read it.
func tookOf(us int64) string {
	d := time.Duration(us) * time.Microsecond
	if d >= time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
