package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

func tailCommand() command {
	return command{name: "tail", about: "print the newest records, one a line; -f follows", run: ledgerTail, help: `
Print the newest records of the ledger, one a line: when, how it came out,
which boundary, which agent, and why. With --json each line is the record
itself, byte for byte.

    holdfast ledger tail [-n N] [-f] [--events] [--agent NAME] [--json]

    -n N           how many; 20 if absent
    -f             go on with what comes
    --events       also what is no crossing: reviews, halts, policy, trust
    --agent NAME   only that agent's, with those within it; AGENT/ID is one of those

    $ holdfast ledger tail -n 5
`}
}

func ledgerTail(a *app, args []string) error {
	fs := a.flags("ledger tail")
	n := fs.Int64("n", 20, "")
	follow := fs.Bool("f", false, "")
	events := fs.Bool("events", false, "")
	agent := fs.String("agent", "", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if *n < 0 {
		return usage("", "-n must not be negative")
	}
	t := &tailing{a: a, look: a.look(), events: *events, agent: *agent}
	return t.run(*n, *follow)
}

// run prints the newest n records that are wanted and, to follow, what comes.
func (t *tailing) run(n int64, follow bool) error {
	a := t.a
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		size, err := a.size(s)
		if err != nil {
			return err
		}
		from, err := t.back(s, size, n)
		if err != nil {
			return err
		}
		for {
			if err := a.leaves(s, a.tenant, from, size, t.print); err != nil {
				return err
			}
			if !follow {
				return nil
			}
			from = size
			a.hangUp() // who only watches does not keep a lingering daemon
			select {
			case <-a.ctx.Done():
				return nil
			case <-time.After(300 * time.Millisecond):
			}
			if size, err = a.size(s); err != nil {
				return err
			}
		}
	})
}

// size is how many leaves the tenant has.
func (a *app) size(s kernel.Store) (int64, error) {
	trees, err := a.trees(s)
	if err != nil {
		return 0, err
	}
	var known []string
	for _, t := range trees {
		if t.Head.Tenant == a.tenant {
			return t.Head.Size, nil
		}
		known = append(known, clean(t.Head.Tenant))
	}
	if a.tenant == holdfast.Local {
		return 0, nil // nothing has been done yet
	}
	return 0, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "the ledger has no tenant " + clean(a.tenant), Hint: "it has " + or(strings.Join(known, ", "), "none")}
}

type tailing struct {
	a      *app
	look   look
	events bool
	// egress wants only what went out, or was to, or waits for a person.
	egress bool
	// agent is whose records are wanted, with those within it; empty wants all.
	agent string
}

func (t *tailing) wants(s ledger.Stored) bool {
	if t.egress {
		return (s.Kind == ledger.KindEntry && bytes.Contains(s.Record, []byte(`"boundary_crossing":"egress/`)) || isHeldExchange(s)) && t.isOf(s)
	}
	return (s.Kind == ledger.KindEntry || t.events && s.Kind == ledger.KindEvent) && t.isOf(s)
}

// isOf says whether a record is the wanted agent's, or of one within it.
func (t *tailing) isOf(s ledger.Stored) bool {
	if t.agent == "" {
		return true
	}
	var of struct {
		Agent, Owner, Event, Subject string
		Data                         struct{ Agent, Asker, Owner string }
	}
	_ = json.Unmarshal(s.Record, &of) // of what is no text there is nothing to compare
	return slices.Contains([]string{of.Agent, of.Owner, of.Subject, of.Data.Agent, of.Data.Asker, of.Data.Owner}, t.agent) ||
		strings.HasPrefix(of.Event, "agent_") && strings.HasPrefix(of.Subject, t.agent+"/")
}

// back finds where the last n records begin that are wanted.
func (t *tailing) back(s kernel.Store, size, n int64) (int64, error) {
	var places []int64
	for to := size; to > 0 && int64(len(places)) < n; to -= min(to, chunk) {
		var here []int64
		if err := t.a.leaves(s, t.a.tenant, max(0, to-chunk), to, func(l ledger.Stored) error {
			if t.wants(l) {
				here = append(here, l.Seq)
			}
			return nil
		}); err != nil {
			return 0, err
		}
		places = append(here, places...)
	}
	switch {
	case n == 0 || len(places) == 0:
		return size, nil
	case int64(len(places)) > n:
		places = places[int64(len(places))-n:]
	}
	return places[0], nil
}

func (t *tailing) print(s ledger.Stored) error {
	if !t.wants(s) {
		return nil
	}
	if t.egress {
		return t.printExchange(s)
	}
	if t.a.json {
		_, err := fmt.Fprintf(t.a.out, "%s\n", s.Record)
		return err
	}
	line, err := t.line(s)
	if err == nil {
		_, err = fmt.Fprintln(t.a.out, line)
	}
	return err
}

func (t *tailing) line(s ledger.Stored) (string, error) {
	if s.Kind == ledger.KindEvent {
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s  %s %-10s %s  %s%s%s", stamp(e.Timestamp), t.look.dim("*"), "event", clean(e.Name), clean(e.Subject), clean(prefix(" by ", e.Who)), clean(prefix(": ", how(e)))), nil
	}
	e, err := ledger.ParseEntry(s.Record)
	if err != nil {
		return "", err
	}
	why := prefix("  ", story.Run(e)) + clean(prefix("  ", story.Exchange(e, s.Part)))
	if e.Gate != nil {
		why += "  " + e.Gate.String() + prefix(" ", clean(e.Why))
	} else if e.Why != "" {
		why += "  " + clean(e.Why)
	}
	return fmt.Sprintf("%s  %s %-10s %s  %s  %s%s", stamp(e.Timestamp), t.look.outcome(e.Outcome), e.Outcome, clean(e.Boundary), clean(or(e.Agent, "-")), t.look.dim(e.ID), why), nil
}

// how is what an event of the sandbox tells, in words; the decision, or the outcome, that an event of a review tells; which
// token was given, or why one was revoked.
func how(e *ledger.Event) string {
	if words := story.Event(e); words != "" {
		return words
	}
	var data struct{ Decision, Outcome, JTI, Why string }
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	switch {
	case e.Name == "agent_token_given":
		return data.JTI
	case e.Name == "token_revoked":
		return data.Why
	case !strings.HasPrefix(e.Name, "review_"):
		return ""
	}
	return strings.ReplaceAll(data.Decision+data.Outcome, "_", " ")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// outcome is how a crossing ended as one sign.
func (l look) outcome(o ledger.Outcome) string {
	return l.mark(story.Came(o))
}
