package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// observed are the boundaries that a door saw rather than configuration: the
// tools of listed MCP servers (D37).
type observed struct {
	mu   sync.RWMutex
	seen map[string]*sight // guarded by mu; by boundary
	per  map[string]int    // guarded by mu; how many under each server
}

// sight is one observed boundary, as it was last seen.
type sight struct {
	as holdfast.Contract
	// drifted says that it is not what it was at first sight: it is put to
	// a person, whatever its hints and its contract say.
	drifted bool
	under   *policy
	made    *contract
}

// maxName bounds the name of a boundary that only a pattern lists, in bytes.
const maxName = 512

// plainName says whether a name is spelled in the one way that a name has:
// segments of plain characters, none empty, none that climbs. Another spelling
// of a boundary that is listed by itself must not pass under a pattern.
func plainName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, notPlain) {
			return false
		}
	}
	return true
}

func notPlain(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~%+@:=,", r))
}

// maxObserved bounds how many boundaries one server may bring.
const maxObserved = 1_000

// Observe tells the kernel of boundaries that a door saw, such as the tools of
// an MCP server, and returns them as they are in force: what configuration
// says of a boundary wins over what was seen. The first sight of a boundary is
// kept for ever by its pin; one that comes with another pin is an event, and
// is held from then on. A schema that does not compile is no error here:
// crossing that boundary is refused.
func (k *Kernel) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	drifted, err := k.pin(ctx, cs)
	if err != nil {
		return nil, err
	}
	pol := k.policy.Load()
	out := make([]holdfast.Contract, 0, len(cs))
	for i, c := range cs {
		made := k.seen.put(pol, c, drifted[i])
		if made == nil {
			return nil, &holdfast.Error{Kind: holdfast.KindConflict, Gate: holdfast.K1,
				Why:  fmt.Sprintf("the server of %s lists more than %d boundaries", clip(c.Boundary, 64), maxObserved),
				Hint: "put a server with fewer tools behind holdfast"}
		}
		out = append(out, made.Contract)
	}
	return out, nil
}

// pin compares each boundary with its first sight, which it keeps. It says
// which have changed.
func (k *Kernel) pin(ctx context.Context, cs []holdfast.Contract) ([]bool, error) {
	drifted := make([]bool, len(cs))
	first := make([]string, len(cs))
	fresh := false
	err := k.store.View(ctx, func(tx Tx) error {
		for i, c := range cs {
			b, err := tx.Meta(pinName(c.Boundary))
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			first[i] = string(b)
			fresh = fresh || first[i] == "" || first[i] != c.Pin
		}
		return nil
	})
	if err != nil || !fresh {
		return drifted, err
	}
	err = walError(k.store.Update(ctx, func(tx Tx) error {
		for i, c := range cs {
			if drifted[i], err = k.pinOne(tx, c); err != nil {
				return err
			}
		}
		return nil
	}))
	for i, c := range cs {
		if err == nil && drifted[i] {
			k.notify(Notice{Level: "warning", Event: "tool_changed", Boundary: c.Boundary, Why: "its description or schema is not what it was at first sight; it is held from now on"})
		}
	}
	return drifted, err
}

// pinOne keeps a first sight, or says that this is another one.
func (k *Kernel) pinOne(tx Tx, c holdfast.Contract) (bool, error) {
	b, err := tx.Meta(pinName(c.Boundary))
	switch {
	case errors.Is(err, ErrNotFound):
		return false, tx.PutMeta(pinName(c.Boundary), []byte(c.Pin))
	case err != nil:
		return false, err
	case string(b) == c.Pin:
		return false, nil
	}
	told := "changed/" + c.Boundary
	if last, err := tx.Meta(told); err == nil && string(last) == c.Pin {
		return true, nil // this very change is recorded
	}
	if err := tx.PutMeta(told, []byte(c.Pin)); err != nil {
		return true, err
	}
	return true, k.event(tx, Event{Tenant: holdfast.Local, Name: "tool_changed", Who: c.Source, Subject: c.Boundary,
		Data: map[string]any{"first": string(b), "now": c.Pin}})
}

func pinName(boundary string) string { return "pin/" + boundary }

func (o *observed) put(pol *policy, c holdfast.Contract, drifted bool) *contract {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen, o.per = map[string]*sight{}, map[string]int{}
	}
	s := o.seen[c.Boundary]
	if s == nil {
		server := serverOf(c.Boundary)
		if o.per[server] >= maxObserved {
			return nil
		}
		o.per[server]++
		s = &sight{}
		o.seen[c.Boundary] = s
	} else if s.under == pol && s.as.Pin == c.Pin && s.as.Risk == c.Risk && s.drifted == drifted {
		return s.made
	}
	s.as, s.drifted = c, drifted
	return s.compile(pol)
}

// compile makes the contract in force under pol. The caller holds the lock.
func (s *sight) compile(pol *policy) *contract {
	c := pol.overlay(s.as)
	if s.drifted && c.Risk > holdfast.High {
		c.Risk = holdfast.High
	}
	s.under, s.made = pol, compile(c, pol.Rules)
	return s.made
}

// serverOf is the part of a boundary's name before its last segment.
func serverOf(boundary string) string {
	if i := strings.LastIndexByte(boundary, '/'); i >= 0 {
		return boundary[:i]
	}
	return boundary
}

// find returns the observed contract under pol, compiling what was last seen
// anew after a policy change.
func (o *observed) find(pol *policy, boundary string) *contract {
	o.mu.RLock()
	s := o.seen[boundary]
	if s == nil || s.under == pol {
		defer o.mu.RUnlock()
		if s == nil {
			return nil
		}
		return s.made
	}
	o.mu.RUnlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.under == pol {
		return s.made
	}
	return s.compile(pol)
}

// lookup finds the contract in force for a boundary, or nil.
func (k *Kernel) lookup(pol *policy, boundary string) *contract {
	if c := k.seen.find(pol, boundary); c != nil {
		return c
	}
	c := pol.find(boundary)
	if c == nil || c == pol.exact[boundary] {
		return c
	}
	// A pattern's contract, under the boundary's own name, which is the
	// agent's text and is written down as it is: what may not be written is
	// no name.
	if !plainName(boundary) || pol.resembles(boundary) || k.redact.Text([]byte(boundary)).Found() {
		return nil
	}
	own := *c
	own.Boundary = boundary
	return &own
}

// Contract returns the contract in force for a boundary.
func (k *Kernel) Contract(boundary string) (holdfast.Contract, bool) {
	c := k.lookup(k.policy.Load(), boundary)
	if c == nil {
		return holdfast.Contract{}, false
	}
	return c.Contract, true
}

// governs is what an approval is bound to beside the request: the policy, and
// for a tool that was observed what it said of itself (D11, D37).
func (j *judgement) governs() string { return governs(j.pol, j.contract) }

// governs is the same for a boundary as it is now.
func (k *Kernel) governs(boundary string) string {
	pol := k.policy.Load()
	return governs(pol, k.lookup(pol, boundary))
}

func governs(pol *policy, c *contract) string {
	if c == nil || c.Pin == "" {
		return pol.Version
	}
	sum := sha256.Sum256([]byte(pol.Version + " " + c.Pin))
	return hex.EncodeToString(sum[:])
}
