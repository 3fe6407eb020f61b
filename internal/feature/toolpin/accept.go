package toolpin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// sightLimit bounds what is kept of each text that a tool says of itself, in
// bytes; of a longer one only its hash is kept.
const sightLimit = 4 << 10

// sighting is what a tool says of itself, redacted, so that a person can see
// what has changed.
func (t *Catalog) sighting(c *holdfast.Contract) review.Sighting {
	out := review.Sighting{Pin: c.Pin, At: t.host.Now().UTC(), Says: map[string]review.Said{}}
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
		sum := sha256.Sum256(v)
		said := review.Said{Hash: hex.EncodeToString(sum[:])}
		if len(v) <= sightLimit {
			if res, err := t.redact.JSON(v); err == nil {
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
func (t *Catalog) Changed(ctx context.Context, boundary string) (review.Change, error) {
	var out review.Change
	err := t.host.View(ctx, func(tx kernel.Reader) (err error) {
		out, err = t.changeOf(tx, boundary)
		return err
	})
	return out, err
}

// Drifted names the boundaries that this process saw changed and that nobody
// accepted since, in order. Of those that were not seen since the start it knows
// nothing; Changed does.
func (t *Catalog) Drifted() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []string
	for name, s := range t.seen {
		if s.drifted {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (t *Catalog) changeOf(tx table.Reader, boundary string) (review.Change, error) {
	out := review.Change{Boundary: boundary}
	p, err := readPinned(tx, boundary)
	if err != nil {
		return out, err
	}
	if !p.drifted() {
		return out, &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "tool/not_changed",
			Why:  fmt.Sprintf("no changed tool is known as %q", excerpt.Of(boundary, 128)),
			Hint: "`holdfast ledger tail --events` shows which tools changed"}
	}
	out.First.Pin, out.Now.Pin = bare(p.First), bare(p.Told)
	out.Shows, _ = t.pinOf(boundary)
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
func (t *Catalog) Accept(signed operator.Signed) (review.Change, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	var change review.Change
	var took string
	var s operator.Statement
	err := t.host.CommitSigned(signed, operator.Accept, func(tx kernel.FeatureTx, w *kernel.Word) error {
		var err error
		s = w.Statement
		if change, err = t.changeOf(tx, s.Subject); err != nil {
			return err
		}
		taken := change.Now
		if s.Exact == change.First.Pin {
			taken = change.First
		}
		if s.Exact != taken.Pin || s.PreviewHash != change.First.Pin {
			return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tool/changed_again",
				Why:  "the tool is not what the statement says it is now",
				Hint: "look at it again with `holdfast review accept`"}
		}
		if err := settle(tx, s.Subject, taken); err != nil {
			return err
		}
		took = taken.Pin
		data := w.Data()
		data["from"], data["to"], data["changed"] = change.First.Pin, took, change.What
		return tx.Event(kernel.Event{Tenant: holdfast.Local, Name: "policy_tool_accepted", Who: s.Reviewer,
			Subject: s.Subject, Data: data})
	})
	if err != nil {
		return review.Change{}, err
	}
	t.accept(t.host.Contracts(), s.Subject, took)
	t.host.WakeAll()
	t.host.Notify(kernel.Notice{Level: "warning", Event: "policy_tool_accepted", Boundary: s.Subject,
		Why: s.Reviewer + " accepted the tool as it was shown"})
	return change, nil
}

// settle makes a text of a drifted boundary its first sight.
func settle(tx kernel.FeatureTx, boundary string, taken review.Sighting) error {
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
func (t *Catalog) pinOf(boundary string) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.seen[boundary]
	if s == nil {
		return "", false
	}
	return s.as.Pin, true
}

// accept lets the boundary be what it is, if it still is that.
func (t *Catalog) accept(set *contract.Set, boundary, pin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.seen[boundary]; s != nil && s.as.Pin == pin {
		s.drifted = false
		s.compile(set)
	}
}
