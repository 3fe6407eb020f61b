package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

func showCommand() command {
	return command{name: "show", about: "tell the story of one crossing", run: ledgerShow, help: `
Tell the story of one crossing: when it began, what the gates thought, what
happened around it, how it ended, and what is kept of its texts, redacted: the
arguments of a call that was held, and what came back. With --json the records
themselves. CROSSING is its id, or as much of its beginning as no other has, six
characters at least.

    holdfast ledger show CROSSING [--json]

    $ holdfast ledger show $(holdfast ledger tail -n 1 --json | jq -r .id)
`}
}

func ledgerShow(a *app, args []string) error {
	rest, err := a.parse(a.flags("ledger show"), args, 1, 1)
	if err != nil {
		return err
	}
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		id, err := a.named(s, rest[0])
		if err != nil {
			return err
		}
		found, err := a.story(s, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "the ledger of " + clean(a.tenant) + " has no crossing " + clean(id), Hint: "`holdfast ledger tail` lists them"}
		}
		if a.json {
			records := []json.RawMessage{}
			for _, l := range found {
				records = append(records, l.Record)
			}
			return a.printJSON(map[string]any{"crossing": id, "records": records})
		}
		if id != rest[0] {
			fmt.Fprintf(a.out, "crossing %s\n", id)
		}
		for _, l := range found {
			if err := a.tell(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// story is every leaf that belongs to a crossing, in order. Its begin, its
// entry and its events come after the moment that its UUIDv7 names.
func (a *app) story(s kernel.Store, id string) (found []ledger.Stored, err error) {
	first, _, _ := born(id)
	size, err := a.size(s)
	if err != nil {
		return nil, err
	}
	from, err := a.since(s, size, first.Add(-bornWithin))
	if err != nil {
		return nil, err
	}
	err = a.leaves(s, a.tenant, from, size, func(l ledger.Stored) error {
		if l.Crossing == id {
			found = append(found, l)
		}
		return nil
	})
	return found, err
}

// since is the first leaf that is not older than t, found by halving.
func (a *app) since(s kernel.Store, size int64, t time.Time) (int64, error) {
	lo, hi := int64(0), size
	for lo < hi {
		mid := (lo + hi) / 2
		var at time.Time
		if err := a.view(s, func(tx kernel.Tx) error {
			l, err := tx.Leaf(a.tenant, mid)
			at = l.At
			return err
		}); err != nil {
			return 0, err
		}
		if at.Before(t) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// tell writes one leaf for people.
func (a *app) tell(s ledger.Stored) error {
	l := a.look()
	switch s.Kind {
	case ledger.KindBegin:
		b, err := ledger.ParseBegin(s.Record)
		if err != nil {
			return err
		}
		a.paragraph(s, b.Timestamp, l.bold("begin")+"  "+clean(b.Boundary), [][]string{
			{"agent", b.Agent + prefix(", kind ", b.AgentKind) + prefix(", session ", b.Session)}, {"its host", story.Host(b.Sub)},
			{"caller", b.Caller + prefix(" as ", strings.Join(b.Roles, ", "))},
			{"risk", b.Risk}, {"key", b.Key}, {"exact", b.ExactHash}, {"policy", b.Policy},
			{"review", b.Review + prefix(", by ", b.Reviewer)}, {"reserved", story.Draws(b.Draws)},
			{"parent", b.Parent}, {"asked", kept(s, b.PartHash)},
		})
		return nil
	case ledger.KindEvent:
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			return err
		}
		a.paragraph(s, e.Timestamp, l.bold("event")+"  "+clean(e.Name), [][]string{
			{"in words", story.Event(e)}, {"who", e.Who}, {"about", e.Subject}, {"data", plain(e.Data)}, {"asked", kept(s, e.PartHash)},
		})
		return nil
	}
	e, err := ledger.ParseEntry(s.Record)
	if err != nil {
		return err
	}
	a.paragraph(s, e.Timestamp, l.outcome(e.Outcome)+" "+l.bold(string(e.Outcome))+"  "+clean(e.Boundary), [][]string{
		{"in words", story.Exchange(e, s.Part)},
		{"agent", e.Agent + prefix(", kind ", e.AgentKind) + prefix(", session ", e.Session)}, {"its host", story.Host(e.Sub)},
		{"caller", e.Caller + prefix(" as ", strings.Join(e.Roles, ", "))},
		{"state", e.State.String() + fmt.Sprintf(", exit code %d, %s", e.ExitCode, time.Duration(e.DurationUS)*time.Microsecond)},
		{"run", e.Run}, {"walls", strings.Join(e.Walls, ", ")}, {"sandbox", e.Sandbox}, {"kind", string(e.ErrorKind)}, {"why", e.Why}, {"rule", e.Rule},
		{"risk", e.Risk}, {"key", story.Text(e.Key)}, {"exact", e.ExactHash}, {"policy", e.Policy},
		{"review", e.Review + prefix(", by ", e.Reviewer)}, {"used", story.Uses(e.Uses)},
		{"replay of", e.ReplayOf}, {"redacted", strings.Join(e.Applied, ", ")},
		{"result", story.Text(e.Result) + prefix("sha256 ", story.Text(e.ResultHash))},
		{"came back", kept(s, story.Text(e.ResultHash))},
		{"weakened", strings.Join(e.Weakened, "; ")}, {"rules", story.Spoken(e)},
	})
	var ops []holdfast.Opinion
	for _, o := range e.Opinions {
		ops = append(ops, holdfast.Opinion{Gate: o.Gate, Verdict: o.Verdict, State: o.State, Kind: o.Kind, Rule: o.Rule, Why: or(o.Why, story.Grounds(e, o))})
	}
	if len(ops) > 0 {
		fmt.Fprintln(a.out)
		opinions(a.out, l, ops)
	}
	return nil
}

// paragraph writes a heading and the rows that hold something.
func (a *app) paragraph(s ledger.Stored, at time.Time, head string, rows [][]string) {
	fmt.Fprintf(a.out, "%s  %s  %s\n", at.UTC().Format("2006-01-02 15:04:05.000000"), head, a.look().dim(fmt.Sprintf("leaf %d", s.Seq)))
	var full [][]string
	for _, r := range rows {
		if r[1] != "" {
			full = append(full, []string{"    " + r[0], r[1]})
		}
	}
	table(a.out, full)
}

// plain is what an event says, without the statement that a person signed: it
// says the same again, for machines.
func plain(data []byte) string {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(data, &members) != nil || members["statement"] == nil {
		return string(data)
	}
	delete(members, "statement")
	delete(members, "signature")
	b, err := json.Marshal(members)
	if err != nil {
		return string(data)
	}
	return string(b)
}

// kept is the text that stands beside a record, or that it was erased.
func kept(s ledger.Stored, hash string) string {
	b, err := ledger.PartContent(s.Part)
	switch {
	case err == nil:
		return string(b)
	case hash != "":
		return "erased"
	}
	return ""
}
