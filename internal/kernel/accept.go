package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// sightLimit bounds what is kept of each text that a tool says of itself, in
// bytes; of a longer one only its hash is kept.
const sightLimit = 4 << 10

// sighting is what a tool says of itself, redacted, so that a person can see
// what has changed.
func (k *Kernel) sighting(c *holdfast.Contract) review.Sighting {
	out := review.Sighting{Pin: c.Pin, At: k.now().UTC(), Says: map[string]review.Said{}}
	var about map[string]json.RawMessage
	_ = json.Unmarshal(c.About, &about)
	for name, text := range map[string]json.RawMessage{"description": about["description"], "hints": about["hints"],
		"the rest": about["rest"], "input schema": c.Schema, "output schema": c.OutputSchema} {
		if len(text) == 0 {
			continue
		}
		v := jsontext.Value(text).Clone()
		if v.Format(jsontext.ReorderRawObjects(true)) != nil {
			continue
		}
		said := review.Said{Hash: sha(v)}
		if len(v) <= sightLimit {
			if res, err := k.redact.JSON(v); err == nil {
				said.Text = string(res.Out)
			}
		}
		out.Says[name] = said
	}
	return out
}

// Changed tells what is known of a tool that was seen to be another than at
// first sight: the pins, and what each said. Errors are NotFoundError where
// nothing of it has changed since a person accepted it, or it was never seen.
func (k *Kernel) Changed(ctx context.Context, boundary string) (review.Change, error) {
	var out review.Change
	err := k.store.View(ctx, func(tx Tx) (err error) {
		out, err = k.changeOf(tx, boundary)
		return err
	})
	return out, err
}

// Drifted names the boundaries that this process saw changed and that nobody
// accepted since, in order. Of those that were not seen since the start it knows
// nothing; Changed does.
func (k *Kernel) Drifted() []string {
	k.seen.mu.RLock()
	defer k.seen.mu.RUnlock()
	var out []string
	for name, s := range k.seen.seen {
		if s.drifted {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (k *Kernel) changeOf(tx Tx, boundary string) (review.Change, error) {
	out := review.Change{Boundary: boundary}
	p, err := readPinned(tx, boundary)
	if err != nil {
		return out, err
	}
	if !p.drifted() {
		return out, &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "tool/not_changed", Why: fmt.Sprintf("no changed tool is known as %q", excerpt.Of(boundary, 128)),
			Hint: "`holdfast ledger tail --events` shows which tools changed"}
	}
	out.First.Pin, out.Now.Pin = bare(p.First), bare(p.Told)
	out.Shows, _ = k.seen.pinOf(boundary)
	for _, s := range []struct {
		seen string
		to   *review.Sighting
	}{{firstSight, &out.First}, {changedSight, &out.Now}} {
		was, _, err := toolSights.Find(tx, sightKey{boundary, s.seen})
		if err != nil {
			return out, err
		}
		if was.Pin == s.to.Pin {
			*s.to = was
		}
	}
	out.What = out.Differs()
	return out, nil
}

// Accept takes a changed tool for one of its two texts, on a person's word: the
// statement's Subject is the boundary, its PreviewHash the pin of first sight,
// its Exact the pin that is accepted, which is that of the change or that of
// first sight again. From then on that is its first sight. Errors:
// NotFoundError where it has not changed, ConflictError where it changed again.
func (k *Kernel) Accept(signed operator.Signed) (review.Change, error) {
	k.seen.turn.Lock()
	defer k.seen.turn.Unlock()
	var change review.Change
	var took string
	s, err := k.runSigned(signed, operator.Accept, func(tx *scope, s operator.Statement, _ operator.Public) error {
		var err error
		if change, err = k.changeOf(tx, s.Subject); err != nil {
			return err
		}
		taken := change.Now
		if s.Exact == change.First.Pin {
			taken = change.First
		}
		if s.Exact != taken.Pin || s.PreviewHash != change.First.Pin {
			return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tool/changed_again", Why: "the tool is not what the statement says it is now",
				Hint: "look at it again with `holdfast review accept`"}
		}
		if err := settle(tx, s.Subject, taken); err != nil {
			return err
		}
		took = taken.Pin
		data := said(s, signed)
		data["from"], data["to"], data["changed"] = change.First.Pin, took, change.What
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "policy_tool_accepted", Who: s.Reviewer, Subject: s.Subject, Data: data})
	})
	if err != nil {
		return review.Change{}, err
	}
	k.seen.accept(k.policy.Load(), s.Subject, took)
	k.stirAll()
	k.notify(Notice{Level: "warning", Event: "policy_tool_accepted", Boundary: s.Subject, Why: s.Reviewer + " accepted the tool as it was shown"})
	return change, nil
}

// settle makes a text of a drifted boundary its first sight.
func settle(tx Tx, boundary string, taken review.Sighting) error {
	p, err := readPinned(tx, boundary)
	if err != nil {
		return err
	}
	pin := p.Told
	if bare(p.First) == taken.Pin {
		pin = p.First
	}
	if err := putPinned(tx, boundary, pinned{pin, pin}); err != nil {
		return err
	}
	return putSight(tx, sightKey{boundary, firstSight}, taken)
}

// pinOf is the pin that the boundary was last seen with by this process.
func (o *observed) pinOf(boundary string) (string, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	s := o.seen[boundary]
	if s == nil {
		return "", false
	}
	return s.as.Pin, true
}

// accept lets the boundary be what it is, if it still is that.
func (o *observed) accept(pol *policy, boundary, pin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.seen[boundary]; s != nil && s.as.Pin == pin {
		s.drifted = false
		s.compile(pol)
	}
}
