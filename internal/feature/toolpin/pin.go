package toolpin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// ofWhole marks a kept pin that is of the whole tool; one without it may be by
// the formula before (holdfast.Contract.PinBefore).
const ofWhole = "2:"

// writtenPin is the pin of a contract as it is written.
func writtenPin(c *holdfast.Contract) string {
	if c.PinBefore != "" {
		return ofWhole + c.Pin
	}
	return c.Pin
}

// bare is a pin without the mark of its formula.
func bare(pin string) string { return strings.TrimPrefix(pin, ofWhole) }

// pinned is what the store knows of a boundary: the accepted pin, and the last
// other one that it was seen with. Each is as it is written, empty for none.
type pinned struct {
	First string `json:"first,omitempty"`
	Told  string `json:"told,omitempty"`
}

// drifted reports whether the boundary was seen changed and no person accepted either text since.
// Its text now does not matter: a server that shows the first one again has not withdrawn the
// other.
func (p pinned) drifted() bool { return p.Told != "" && p.Told != p.First }

func readPinned(tx table.Reader, boundary string) (pinned, error) {
	p, _, err := toolPins.Find(tx, boundary)
	return p, err
}

// putPinned writes what is known of a boundary.
func putPinned(tx kernel.FeatureTx, boundary string, p pinned) error {
	_, version, err := toolPins.Find(tx, boundary)
	if err != nil {
		return err
	}
	return toolPins.Put(tx, boundary, p, version)
}

// putSight writes what a tool said of itself.
func putSight(tx kernel.FeatureTx, of sightKey, s review.Sighting) error {
	_, version, err := toolSights.Find(tx, of)
	if err != nil {
		return err
	}
	return toolSights.Put(tx, of, s, version)
}

// look is the result of seeing a boundary once.
type look struct {
	c *holdfast.Contract
	// now is what is to be kept of it. first, renewed and told say what of
	// that is new: its first sight, the same in the formula of today, another
	// text; begins, that this is where it drifts.
	now                          pinned
	first, renewed, told, begins bool
}

// see compares a boundary with what is kept of it.
func (t *Catalog) see(was pinned, c *holdfast.Contract) look {
	l, pin := look{c: c, now: was}, writtenPin(c)
	switch {
	case was.First == "":
		l.first, l.now.First = true, pin
	case was.First == pin:
	case c.PinBefore != "" && was.First == c.PinBefore:
		l.renewed, l.now.First = true, pin
		if was.Told == was.First {
			l.now.Told = pin
		}
	case was.Told == pin:
	case !was.drifted():
		l.begins, l.told, l.now.Told = true, true, pin
	case t.mayTell(c.Boundary, t.host.Now()):
		l.told, l.now.Told = true, pin
	}
	return l
}

// pin compares each boundary with its first sight, which it keeps. It returns
// which have drifted. The caller has the turn.
func (t *Catalog) pin(ctx context.Context, cs []holdfast.Contract) (map[string]bool, error) {
	known, fresh, count := make(map[string]pinned, len(cs)), map[string]int{}, map[string]int{}
	var looks []look
	err := t.host.View(ctx, func(tx kernel.Reader) (err error) {
		for i := range cs {
			b := cs[i].Boundary
			was, read := known[b]
			if !read {
				if was, err = readPinned(tx, b); err != nil {
					return err
				}
			}
			l := t.see(was, &cs[i])
			known[b] = l.now
			if l.first {
				fresh[serverOf(b)]++
			}
			if l.first || l.renewed || l.told {
				looks = append(looks, l)
			}
		}
		for server := range fresh {
			if count[server], err = pins(tx, server); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for server, n := range fresh {
		if count[server] += n; count[server] > maxPins {
			return nil, tooMuch(server, fmt.Sprintf("has listed more than %d boundaries in all", maxPins),
				"configure the server under another name, or one whose tools keep their names")
		}
	}
	if len(looks) > 0 {
		if err := t.keepLooks(ctx, looks, count); err != nil {
			return nil, err
		}
	}
	drifted := make(map[string]bool, len(cs))
	for b, p := range known {
		drifted[b] = p.drifted()
	}
	return drifted, nil
}

// pins returns the number of first sights that are kept of a server.
func pins(tx table.Reader, server string) (int, error) {
	c, _, err := toolCounts.Find(tx, server)
	if damaged := (*table.DamagedError)(nil); errors.As(err, &damaged) || c.Pins < 0 {
		return maxPins, nil // damaged: nothing more is kept
	}
	return c.Pins, err
}

// keepLooks writes what is new, in one transaction, and notifies people of what drifts.
func (t *Catalog) keepLooks(ctx context.Context, looks []look, count map[string]int) error {
	err := t.host.Commit(ctx, func(tx kernel.FeatureTx) error {
		for i := range looks {
			if err := t.keepLook(tx, &looks[i]); err != nil {
				return err
			}
		}
		for server, n := range count {
			_, version, err := toolCounts.Find(tx, server)
			if err == nil {
				err = toolCounts.Put(tx, server, toolCount{n}, version)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		t.tellDrift(looks)
	}
	return err
}

func (t *Catalog) keepLook(tx kernel.FeatureTx, l *look) error {
	c := l.c
	of := sightKey{c.Boundary, firstSight}
	if l.told {
		of.Seen = changedSight
	}
	if err := putSight(tx, of, t.sighting(c)); err != nil {
		return err
	}
	p, err := readPinned(tx, c.Boundary)
	if err != nil {
		return err
	}
	if l.first || l.renewed {
		p.First = l.now.First
	}
	if l.told || l.renewed && l.now.Told == l.now.First {
		p.Told = l.now.Told
	}
	if err := putPinned(tx, c.Boundary, p); err != nil {
		return err
	}
	if !l.begins {
		return nil
	}
	return tx.Event(kernel.Event{Tenant: holdfast.Local, Name: "tool_changed", Who: c.Source, Subject: c.Boundary,
		Data: map[string]any{"first": bare(l.now.First), "now": c.Pin}})
}

// tellDrift tells people of boundaries that drift: of one server once a minute.
func (t *Catalog) tellDrift(looks []look) {
	more := map[string]int{}
	var begun []*holdfast.Contract
	for i := range looks {
		if !looks[i].begins {
			continue
		}
		server := serverOf(looks[i].c.Boundary)
		if more[server]++; more[server] == 1 {
			begun = append(begun, looks[i].c)
		}
	}
	for _, c := range begun {
		n := t.mayNotice(serverOf(c.Boundary), more[serverOf(c.Boundary)], t.host.Now())
		if n == 0 {
			continue
		}
		why := "it is not what it was at first sight; it is held until a person accepts it"
		if n > 1 {
			why += fmt.Sprintf(", and so are %d more of its server", n-1)
		}
		t.host.Notify(kernel.Notice{Level: "warning", Event: "tool_changed", Boundary: c.Boundary, Why: why})
	}
}

// minuteOver reports whether a minute has passed since then; the clock may have been set back.
func minuteOver(since, now time.Time) bool {
	d := now.Sub(since)
	return d < 0 || d >= time.Minute
}
