package outputcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

const (
	maxValues    = 6_000_000 // more than a document of 10 MiB can hold
	maxTreeDepth = 1_000
	// lookEvery is the number of values between two looks at the context.
	lookEvery = 100
)

// Context is what built-in predicates need to know beside the output.
// A built-in whose question needs a member that is absent fails with an error:
// no data is not a pass (D3). Rules need none of it.
type Context struct {
	// May reports whether this agent may cross a boundary (or call a tool) of
	// that exact name: celestial L0.
	May func(name string) bool
	// Listed reports whether there is a boundary of that exact name, which
	// makes a leaf of a goal tree something that can be carried out. Where
	// it is nil, May is asked.
	Listed func(name string) bool
	// Own holds the absolute paths that are Holdfast's own (state directory,
	// configuration, rules, ledger, latch): celestial L1.
	Own []string
	// PersonalData reports whether a text holds personal data: celestial L2.
	// The text may be a number's.
	PersonalData func(text string) bool
	// HasSnapshot and HasReview say that a snapshot was taken, or a person
	// decided, before what cannot be undone: celestial L3.
	HasSnapshot, HasReview bool
	// Depth is where the agent stands (a root goal is as deep as the agent),
	// MaxDepth the deepest a goal may be, BudgetLeft what may still be
	// consumed, in the resource's own unit: celestial L4. The trust level is
	// Facts.Level.
	Depth, MaxDepth int
	BudgetLeft      map[holdfast.Resource]int64
	// Conforms validates the output against the contract's output schema,
	// and nil is the only pass: output_schema_conformance. The error's text
	// is shown to people.
	Conforms func(output any) error
}

// walker visits a JSON tree within bounds.
type walker struct {
	ctx   context.Context
	seen  int
	steps []step
	// object is called for every object before its members, value for every
	// key's text and every scalar; either may be nil. A text ends the walk.
	object func(o map[string]any) string
	value  func(v any) string
}

// step is one step from the root: a key, or an index where key is nil.
type step struct {
	key   *string
	index int
}

// walk returns the first text that object or value gave, in the order of the
// tree (keys sorted, so that the answer is always the same).
func (w *walker) walk(v any) (string, error) {
	if w.seen++; w.seen > maxValues || len(w.steps) > maxTreeDepth {
		return "", &failure.Failure{Kind: failure.ErrCost, Text: "the output has too many values or is too deep"}
	}
	if w.seen%lookEvery == 0 && w.ctx.Err() != nil {
		return "", &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: w.ctx.Err()}
	}
	switch v := v.(type) {
	case map[string]any:
		return w.members(v)
	case []any:
		for i, e := range v {
			if why, err := w.into(step{index: i}, e); why != "" || err != nil {
				return why, err
			}
		}
		return "", nil
	case nil, bool, string, json.Number:
		return w.leaf(v), nil
	}
	return "", &failure.Failure{Kind: failure.ErrType, Text: fmt.Sprintf("a Go %T at %s", v, w.at())}
}

func (w *walker) into(s step, v any) (string, error) {
	w.steps = append(w.steps, s)
	why, err := w.walk(v)
	w.steps = w.steps[:len(w.steps)-1]
	return why, err
}

func (w *walker) leaf(v any) string {
	if w.value == nil {
		return ""
	}
	return w.value(v)
}

func (w *walker) members(o map[string]any) (string, error) {
	if w.object != nil {
		if why := w.object(o); why != "" {
			return why, nil
		}
	}
	for _, k := range sortedKeys(o) {
		if why := w.leaf(k); why != "" {
			return why, nil
		}
		if why, err := w.into(step{key: &k}, o[k]); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// within says whether the walker is below a place that it was at before.
func (w *walker) within(place []step) bool {
	return len(w.steps) > len(place) && slices.Equal(w.steps[:len(place)], place)
}

// at writes the walker's place for people, as a JSON pointer in which a key
// that is not plainly a name is "*": keys are the agent's text.
func (w *walker) at() string {
	if len(w.steps) == 0 {
		return "the root"
	}
	var b strings.Builder
	for _, s := range w.steps {
		b.WriteByte('/')
		switch {
		case s.key == nil:
			b.WriteString(strconv.Itoa(s.index))
		case plainKey(*s.key):
			b.WriteString(*s.key)
		default:
			b.WriteByte('*')
		}
	}
	return b.String()
}

func plainKey(key string) bool {
	if key == "" || len(key) > 40 {
		return false
	}
	for i := 0; i < len(key); i++ {
		c := key[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || key[i] != '_' && key[i] != '-' && (key[i] < '0' || key[i] > '9')) {
			return false
		}
	}
	return true
}

func sortedKeys(o map[string]any) []string {
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// CheckTree reports whether a value is a JSON tree at all (spec 003 section 1.9,
// failure predicate 6).
func CheckTree(ctx context.Context, v any) error {
	_, err := (&walker{ctx: ctx}).walk(v)
	return err
}

// member finds a member whatever its case, because a reader of the output may
// not care about case either. Two spellings of one name are one too many: the
// first value is returned with ok false.
func member(o map[string]any, name string) (value any, there, ok bool) {
	if v, exact := o[name]; exact {
		value, there = v, true
	}
	for k, v := range o {
		if k == name || len(k) != len(name) || !strings.EqualFold(k, name) {
			continue
		}
		if there {
			return value, true, false
		}
		value, there = v, true
	}
	return value, there, true
}
