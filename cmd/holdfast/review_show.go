package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// shown is a review with its life, as JSON.
type shown struct {
	listed
	Life []review.Step `json:"life"`
}

func reviewShowCommand() command {
	return command{name: "show", about: "show one review and what became of it", run: reviewShow, help: `
Show what an agent wants to do, redacted, why a person is asked, and what has
become of it: proposed, decided, executed, returned.

    holdfast review show ID [--json]

    $ holdfast review show rv_eeab167e3f
`}
}

func reviewShow(a *app, args []string) error {
	rest, err := a.parse(a.flags("review show"), args, 1, 1)
	if err != nil {
		return err
	}
	var out shown
	err = a.read(func(_ daemon.Paths, s kernel.Store) error {
		return a.view(s, func(tx kernel.Tx) error {
			r, err := tx.Review(rest[0])
			if err == nil {
				out.listed, err = withFate(tx, &r)
			}
			if err == nil {
				out.Life, err = approval.LifeOf(tx, &r)
			}
			return err
		})
	})
	if err != nil {
		return notThere(err, "review", rest[0], "holdfast review ls --all")
	}
	if a.json {
		return a.printJSON(out)
	}
	showReview(a.out, &out.Review)
	fmt.Fprintln(a.out)
	showLife(a.out, a.look(), &out)
	return nil
}

// showReview writes what a reviewer must see: the preview and both hashes.
func showReview(w io.Writer, r *review.Review) {
	rows := [][]string{
		{"review", r.ID + " (" + string(r.State) + ")"},
		{"boundary", r.Boundary},
		{"agent", r.Asks() + prefix(", session ", r.Session) + prefix(", asked by ", r.Principal)},
		{"risk", r.Risk.String()},
		{"why", r.Why},
		{"asked", r.Created.UTC().Format(time.RFC3339) + ", " + ends(r)},
		{"crossing", r.Crossing},
		{"preview", r.PreviewHash},
		{"exact", r.Exact},
	}
	if r.Confidence != nil && r.Threshold != nil {
		rows = append(rows, []string{"confidence", fmt.Sprintf("%.2f, threshold %.2f", *r.Confidence, *r.Threshold)})
	}
	if r.Reviewer != "" {
		rows = append(rows, []string{"decided", r.Decided.UTC().Format(time.RFC3339) + " by " + r.Reviewer + prefix(": ", r.Reason)})
	}
	table(w, rows)
	if words := story.Overspent(r); words != "" {
		fmt.Fprintln(w)
		for line := range strings.Lines(words) {
			fmt.Fprintln(w, clean(strings.TrimRight(line, "\n")))
		}
	}
	fmt.Fprintln(w)
	for line := range strings.Lines(r.Preview) {
		fmt.Fprintln(w, "    "+clean(strings.TrimRight(line, "\n")))
	}
}

// ends says until when a review waits, or its answer holds.
func ends(r *review.Review) string {
	if r.Expires.IsZero() {
		return "waits until it is answered"
	}
	return "ends " + r.Expires.UTC().Format(time.RFC3339)
}

// showLife draws what became of a review: four stations, and when each was
// reached.
func showLife(w io.Writer, l look, s *shown) {
	reached := map[string]*review.Step{}
	for i := range s.Life {
		reached[s.Life[i].Event] = &s.Life[i] // of several decisions the last: it may have been deferred
	}
	full, empty, line := "*", "o", "|"
	if l.utf8 {
		full, empty, line = "●", "○", "│"
	}
	stations := []string{"proposed", "decided", "executed", "returned"}
	if s.About != "" {
		stations = stations[:2] // nothing waits to be carried out
	}
	for i, name := range stations {
		step := reached[name]
		if step == nil {
			fmt.Fprintf(w, "    %s %s\n", l.dim(empty), l.dim(name))
		} else {
			fmt.Fprintf(w, "    %s %-9s %s  %s%s\n", l.bold(full), name, stamp(step.At), clean(step.Who), clean(prefix(": ", strings.ReplaceAll(step.How, "_", " "))))
		}
		if i < len(stations)-1 {
			fmt.Fprintf(w, "    %s\n", l.dim(line))
		}
	}
	for _, name := range []string{"expired", "voided"} {
		if step := reached[name]; step != nil {
			fmt.Fprintf(w, "    %s %-9s %s\n", l.bold("x"), name, stamp(step.At))
		}
	}
	fmt.Fprintf(w, "\n    %s\n", clean(s.Fate))
}
