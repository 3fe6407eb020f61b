package kernel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func pinName(boundary string) string  { return "pin/" + boundary }
func toldName(boundary string) string { return "changed/" + boundary }
func pinsName(server string) string   { return "pins/" + server }

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
type pinned struct{ first, told string }

// drifted says whether the boundary was seen changed and nobody accepted it
// since, as it was or as it is. What it says now is no part of this: a server
// that shows the first text again has not unsaid the other one.
func (p pinned) drifted() bool { return p.told != "" && p.told != p.first }

func readPinned(tx Tx, boundary string) (pinned, error) {
	var out pinned
	for _, part := range []struct {
		name string
		to   *string
	}{{pinName(boundary), &out.first}, {toldName(boundary), &out.told}} {
		b, err := tx.Meta(part.name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return out, err
		}
		*part.to = string(b)
	}
	return out, nil
}

// look is what comes of seeing a boundary once.
type look struct {
	c *holdfast.Contract
	// now is what is to be kept of it. first, renewed and told say what of
	// that is new: its first sight, the same in the formula of today, another
	// text; begins, that this is where it drifts.
	now                          pinned
	first, renewed, told, begins bool
}

// see compares a boundary with what is kept of it.
func (k *Kernel) see(was pinned, c *holdfast.Contract) look {
	l, pin := look{c: c, now: was}, writtenPin(c)
	switch {
	case was.first == "":
		l.first, l.now.first = true, pin
	case was.first == pin:
	case c.PinBefore != "" && was.first == c.PinBefore:
		l.renewed, l.now.first = true, pin
		if was.told == was.first {
			l.now.told = pin
		}
	case was.told == pin:
	case !was.drifted():
		l.begins, l.told, l.now.told = true, true, pin
	case k.seen.mayTell(c.Boundary, k.now()):
		l.told, l.now.told = true, pin
	}
	return l
}

// pin compares each boundary with its first sight, which it keeps. It returns
// which have drifted. The caller has the turn.
func (k *Kernel) pin(ctx context.Context, cs []holdfast.Contract) (map[string]bool, error) {
	known, fresh, count := make(map[string]pinned, len(cs)), map[string]int{}, map[string]int{}
	var looks []look
	err := k.store.View(ctx, func(tx Tx) (err error) {
		for i := range cs {
			b := cs[i].Boundary
			was, read := known[b]
			if !read {
				if was, err = readPinned(tx, b); err != nil {
					return err
				}
			}
			l := k.see(was, &cs[i])
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
			return nil, tooMuch(server, fmt.Sprintf("has listed more than %d boundaries in all", maxPins), "configure the server under another name, or one whose tools keep their names")
		}
	}
	if len(looks) > 0 {
		if err := k.keepLooks(ctx, looks, count); err != nil {
			return nil, err
		}
	}
	drifted := make(map[string]bool, len(cs))
	for b, p := range known {
		drifted[b] = p.drifted()
	}
	return drifted, nil
}

// pins is how many first sights were kept of a server.
func pins(tx Tx, server string) (int, error) {
	b, err := tx.Meta(pinsName(server))
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 0 {
		return maxPins, nil // what somebody wrote there is no room
	}
	return n, nil
}

// keepLooks writes what is new, in one transaction, and tells of what drifts.
func (k *Kernel) keepLooks(ctx context.Context, looks []look, count map[string]int) error {
	err := walError(k.store.Update(ctx, func(tx Tx) error {
		for i := range looks {
			if err := k.keepLook(tx, &looks[i]); err != nil {
				return err
			}
		}
		for server, n := range count {
			if err := tx.PutMeta(pinsName(server), []byte(strconv.Itoa(n))); err != nil {
				return err
			}
		}
		return nil
	}))
	if err == nil {
		k.tellDrift(looks)
	}
	return err
}

func (k *Kernel) keepLook(tx Tx, l *look) error {
	c := l.c
	name := sightName(c.Boundary)
	if l.told {
		name = nowName(c.Boundary)
	}
	if err := putMetaJSON(tx, name, k.sighting(c)); err != nil {
		return err
	}
	if l.first || l.renewed {
		if err := tx.PutMeta(pinName(c.Boundary), []byte(l.now.first)); err != nil {
			return err
		}
	}
	if l.told || l.renewed && l.now.told == l.now.first {
		if err := tx.PutMeta(toldName(c.Boundary), []byte(l.now.told)); err != nil {
			return err
		}
	}
	if !l.begins {
		return nil
	}
	return k.event(tx, Event{Tenant: holdfast.Local, Name: "tool_changed", Who: c.Source, Subject: c.Boundary,
		Data: map[string]any{"first": bare(l.now.first), "now": c.Pin}})
}

// tellDrift tells people of boundaries that drift: of one server once a minute.
func (k *Kernel) tellDrift(looks []look) {
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
		n := k.seen.mayNotice(serverOf(c.Boundary), more[serverOf(c.Boundary)], k.now())
		if n == 0 {
			continue
		}
		why := "it is not what it was at first sight; it is held until a person accepts it"
		if n > 1 {
			why += fmt.Sprintf(", and so are %d more of its server", n-1)
		}
		k.notify(Notice{Level: "warning", Event: "tool_changed", Boundary: c.Boundary, Why: why})
	}
}

// minuteOver says whether a minute has passed since then; the clock may have been
// set back.
func minuteOver(since, now time.Time) bool {
	d := now.Sub(since)
	return d < 0 || d >= time.Minute
}
