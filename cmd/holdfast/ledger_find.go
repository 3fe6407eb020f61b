package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// leastID is with how many characters an id may be named.
const leastID = 6

// bornWithin is how long before or after the moment that its id names the first
// record of a crossing stands: gates have 30 s, and clocks are set.
const bornWithin = time.Minute

// named is the id of the crossing that a person names by the whole of it or by its
// beginning. A beginning that several have is a ConflictError which lists them.
func (a *app) named(s kernel.Store, name string) (string, error) {
	name = strings.ToLower(name)
	if u, err := uuid.Parse(name); err == nil && u.Version() == 7 {
		return u.String(), nil
	}
	first, last, ok := born(name)
	if !ok {
		return "", usage(fmt.Sprintf("it is a UUID, as `holdfast ledger tail` prints it, or %d or more characters that it begins with", leastID), "%s is no crossing's id", clean(name))
	}
	ids, err := a.beginningWith(s, name, first, last)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", &holdfast.Error{Kind: holdfast.KindNotFound, Why: "the ledger of " + clean(a.tenant) + " has no crossing whose id begins with " + clean(name), Hint: "`holdfast ledger tail` lists them"}
	case len(ids) == 1:
		return ids[0], nil
	}
	more := ""
	if len(ids) > maxNamed {
		ids, more = ids[:maxNamed], "\nand more"
	}
	return "", &holdfast.Error{Kind: holdfast.KindConflict, Why: "the ids of several crossings begin with " + clean(name) + ":\n" + strings.Join(ids, "\n") + more, Hint: "give more of the one that is meant"}
}

// born is between which moments a crossing came to be whose UUIDv7 begins so; not
// ok where none can.
func born(begin string) (first, last time.Time, ok bool) {
	const shape = "00000000-0000-7000-8000-000000000000"
	if len(begin) < leastID || len(begin) > len(shape) {
		return first, last, false
	}
	for i, c := range begin {
		if (c == '-') != (shape[i] == '-') || c != '-' && !strings.ContainsRune("0123456789abcdef", c) {
			return first, last, false
		}
	}
	const digits = 12 // of the milliseconds since 1970
	known := strings.ReplaceAll(begin, "-", "")
	known = known[:min(len(known), digits)]
	ms, err := strconv.ParseInt(known, 16, 64)
	if err != nil {
		return first, last, false
	}
	unknown := 4 * (digits - len(known))
	return time.UnixMilli(ms << unknown), time.UnixMilli((ms + 1) << unknown), true
}

// errEnough ends a search.
var errEnough = errors.New("enough")

// beginningWith lists the ids that begin so, of crossings that came to be between
// two moments, and at most one more of them than are named.
func (a *app) beginningWith(s kernel.Store, begin string, first, last time.Time) (ids []string, err error) {
	size, err := a.size(s)
	if err != nil {
		return nil, err
	}
	from, err := a.since(s, size, first.Add(-bornWithin))
	if err != nil {
		return nil, err
	}
	err = a.leaves(s, a.tenant, from, size, func(l ledger.Stored) error {
		if l.At.After(last.Add(bornWithin)) {
			return errEnough
		}
		if strings.HasPrefix(l.Crossing, begin) && !slices.Contains(ids, l.Crossing) {
			if ids = append(ids, l.Crossing); len(ids) > maxNamed {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return ids, err
}
