package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// Source finds a schema's text by its id. It returns an error of kind
// SchemaNotFoundError, or nil bytes, for an id it does not know, and gives up
// when ctx ends.
type Source func(ctx context.Context, id string) ([]byte, error)

// Registry compiles schemas on first use and keeps them. Get with one id asks
// the source once and answers with the same *Schema ever after, until Forget
// (spec 003 section 1.2, K1_INV2). The zero Registry knows no schema; it may
// be used by many goroutines.
type Registry struct {
	source Source

	mu   sync.Mutex
	byID map[string]*entry
	// byHash holds what is compiled of each text, so that one that many ids
	// share, or that returns after Forget, is compiled once. It holds at most
	// maxKept texts.
	byHash map[string]compiled
}

// maxKept bounds byHash; when it is full it is emptied.
const maxKept = 1024

// entry is one id's lookup. Whoever holds its turn asks the source; the others
// wait for the answer, each no longer than its own context.
type entry struct {
	turn   chan struct{}
	schema *Schema // owned by whoever holds the turn
}

type compiled struct {
	graph *graph
	err   error
}

// NewRegistry makes a registry over source.
func NewRegistry(source Source) *Registry { return &Registry{source: source} }

// Get returns the schema of id. Errors are *holdfast.Error: SchemaNotFoundError
// where the source does not know it or fails, TimeoutError where ctx ended
// first (the caller's five seconds, D7), SchemaParseError as Compile. Errors
// are not kept, but for what the text itself makes impossible.
func (r *Registry) Get(ctx context.Context, id string) (*Schema, error) {
	e := r.entry(id)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, late(id, ctx.Err())
	}
	if e.schema != nil {
		return e.schema, nil
	}
	s, err := r.ask(ctx, id)
	if err != nil {
		r.drop(id, e)
		return nil, err
	}
	e.schema = s
	return s, nil
}

func (r *Registry) ask(ctx context.Context, id string) (*Schema, error) {
	raw, err := r.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.Compile(id, raw)
}

// drop removes an entry without a schema, so that asking for names that do not
// exist leaves nothing behind.
func (r *Registry) drop(id string, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[id] == e {
		delete(r.byID, id)
	}
}

func late(id string, err error) error {
	return &holdfast.Error{
		Kind: holdfast.KindTimeout, Gate: holdfast.K1, Rule: id, Err: err,
		Why: fmt.Sprintf("schema %s was not found in time", clip(id)),
	}
}

// Compile is the function Compile that remembers texts, failures included.
func (r *Registry) Compile(id string, raw []byte) (*Schema, error) {
	hash := hashOf(raw)
	r.mu.Lock()
	c, ok := r.byHash[hash]
	r.mu.Unlock()
	if !ok {
		c.graph, c.err = compile(raw)
		r.keep(hash, c)
	}
	if c.err != nil {
		return nil, parseError(id, c.err)
	}
	return &Schema{id: id, hash: hash, graph: c.graph}, nil
}

// Forget makes the next Get of each id ask the source again; without ids, of
// every id. What other goroutines already hold stays valid.
func (r *Registry) Forget(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(ids) == 0 {
		r.byID = nil
	}
	for _, id := range ids {
		delete(r.byID, id)
	}
}

func (r *Registry) entry(id string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byID[id]
	if e == nil {
		if r.byID == nil {
			r.byID = map[string]*entry{}
		}
		e = &entry{turn: make(chan struct{}, 1)}
		r.byID[id] = e
	}
	return e
}

func (r *Registry) keep(hash string, c compiled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byHash == nil || len(r.byHash) >= maxKept {
		r.byHash = map[string]compiled{}
	}
	r.byHash[hash] = c
}

func (r *Registry) lookup(ctx context.Context, id string) ([]byte, error) {
	var raw []byte
	var err error
	if r.source != nil {
		raw, err = r.source(ctx, id)
	}
	var known *holdfast.Error
	switch {
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		return nil, late(id, err)
	case err != nil && errors.As(err, &known):
		return nil, err
	case err != nil || raw == nil:
		return nil, &holdfast.Error{
			Kind: holdfast.KindSchemaNotFound, Gate: holdfast.K1, Rule: id, Err: err,
			Why: fmt.Sprintf("schema %s is not in the registry", clip(id)), Hint: "declare it in the boundary's contract",
		}
	}
	return raw, nil
}
