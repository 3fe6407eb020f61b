package schema

import (
	"context"
	"embed"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
)

// standardFiles are the schemas of the dialects as json-schema.org publishes
// them. Nothing reads them before a schema is compiled.
//
//go:embed metaschema/draft metaschema/draft-07
var standardFiles embed.FS

// trees keeps each standard document that was read. The trees are never
// changed.
var trees sync.Map

// readStandard returns the standard document at a path below json-schema.org,
// or nil if there is none.
func readStandard(file string) (any, error) {
	if tree, ok := trees.Load(file); ok {
		return tree, nil
	}
	raw, err := standardFiles.ReadFile("metaschema/" + file + ".json")
	if err != nil {
		return nil, nil
	}
	tree, err := read(raw)
	if err != nil {
		return nil, err
	}
	trees.Store(file, tree)
	return tree, nil
}

// metaschemas are the compiled schemas of the dialects, each compiled when it
// is first needed.
var metaschemas [draft2020 + 1]struct {
	once  sync.Once
	graph *graph
	err   error
}

// compileMetaschema returns the schema that schemas of d must fit.
func compileMetaschema(d dialect) (*graph, error) {
	m := &metaschemas[d]
	m.once.Do(func() { m.graph, m.err = buildMetaschema(d) })
	return m.graph, m.err
}

// buildMetaschema compiles the schema of a dialect, which nothing checks.
func buildMetaschema(d dialect) (*graph, error) {
	tree, err := readStandard(d.standardFile())
	if err != nil {
		return nil, err
	}
	c := newCompiler()
	c.assertsFormat = true
	c.doc = newDocument("https://json-schema.org/"+d.standardFile(), tree)
	c.standard = map[string]*document{d.standardFile(): c.doc}
	if err := c.indexDocument(c.doc); err != nil {
		return nil, err
	}
	c.pending = nil
	return c.buildGraph()
}

// checkPending checks every region that was found against its dialect's own
// schema. All checks of one compilation share one bound on their work.
func (c *compiler) checkPending() error {
	pending := c.pending
	c.pending = nil
	for _, r := range pending {
		if !r.dialect.isSupported() {
			continue // it is rejected if anything refers to it
		}
		if err := c.checkRegion(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) checkRegion(r region) error {
	g, err := compileMetaschema(r.dialect)
	if err != nil {
		return err
	}
	w := &walk{ctx: context.Background(), g: g, work: c.checks, showNames: true}
	found, err := w.runTwice(r.at.withoutForeign())
	c.checks = w.left
	var e *holdfast.Error
	switch {
	case errors.As(err, &e):
		return &flaw{pointer: r.at.buildPointer(), why: "cannot be checked against its dialect: " + e.Why}
	case err != nil:
		return err
	case len(found) > 0:
		return describeViolation(r.at, found)
	}
	return nil
}

// describeViolation turns the most specific complaint of a dialect's own
// schema, the first by place if there are several, into a flaw.
func describeViolation(at *place, found []Violation) error {
	// That no alternative fits says less than what is wrong with one.
	isVague := func(v, than Violation) bool {
		return (v.Keyword == "anyOf" || v.Keyword == "oneOf") && strings.HasPrefix(than.Pointer, v.Pointer) &&
			(v.Pointer != than.Pointer || v.Keyword != than.Keyword)
	}
	worst := slices.MinFunc(found, func(a, b Violation) int {
		switch {
		case isVague(a, b):
			return 1
		case isVague(b, a):
			return -1
		}
		return strings.Compare(a.Pointer, b.Pointer)
	})
	f := &flaw{pointer: at.buildPointer() + worst.Pointer, why: "not valid in its dialect: " + worst.Message}
	if p, _ := at.findPath(worst.Pointer); p != nil {
		switch v := p.value.(type) {
		case string:
			if p.token == "pattern" && worst.Keyword == "format" {
				describePattern(f, v)
			}
		case map[string]any:
			if p.token != "patternProperties" || worst.Keyword != "propertyNames" {
				break
			}
			for _, name := range sortedNames(v) {
				if describePattern(f, name) {
					f.pointer += "/" + escape(name)
					break
				}
			}
		}
	}
	return f
}

// describePattern says in f why source is not a pattern that can be used. It
// reports whether that is so.
func describePattern(f *flaw, source string) bool {
	err := parsePattern(source)
	if err != nil {
		f.why, f.hint = "pattern is not RE2: "+err.Error(), "RE2 has no look-around and no back-references"
	}
	return err != nil
}
