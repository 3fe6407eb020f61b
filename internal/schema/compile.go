package schema

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// base is the address that a schema has inside the resolver. It is
// hierarchical, so that a relative `$id` works, and leads nowhere.
const base = "holdfast://schema/root"

// Limits of patterns: characters of one, and instructions of all together.
const (
	maxPattern      = 10_000
	maxInstructions = 200_000
)

// compile turns text into a graph. The resolver is known to panic on some
// malformed references; here that is one more way to be malformed.
func compile(raw []byte) (g *graph, err error) {
	doc, err := read(raw)
	if err != nil {
		return nil, err
	}
	if err := checkDialect(doc); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			g, err = nil, &flaw{why: fmt.Sprintf("cannot be resolved: %v", p)}
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refusing{})
	engine := patterns{left: maxInstructions}
	c.UseRegexpEngine(engine.compile)
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(base)
	if err != nil {
		return nil, explain(err)
	}
	return build(c, doc, root)
}

// checkDialect allows the three dialects of D7 at the root. Subschemas are
// checked when the graph is built.
func checkDialect(doc any) error {
	m, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	v, ok := m["$schema"]
	if !ok {
		return nil
	}
	s, _ := v.(string)
	s = strings.TrimSuffix(s, "#")
	for _, scheme := range []string{"http://", "https://"} {
		switch strings.TrimPrefix(s, scheme) {
		case "json-schema.org/draft-07/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema":
			return nil
		}
	}
	return &flaw{pointer: "/$schema", why: "this dialect is not supported", hint: "use draft-07, 2019-09 or 2020-12"}
}

// refusing is the loader of everything outside the document.
type refusing struct{}

var errRemote = errors.New("references outside the schema are not fetched")

// Load always fails.
func (refusing) Load(string) (any, error) { return nil, errRemote }

// pattern is a compiled RE2 pattern with its size, by which a match's work is
// known before it is made.
type pattern struct {
	*regexp.Regexp
	size int
}

type patterns struct{ left int }

func (p *patterns) compile(source string) (jsonschema.Regexp, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("pattern of %d characters is above the limit of %d", len(source), maxPattern)
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if p.left -= len(prog.Inst); p.left < 0 {
		return nil, errors.New("the schema's patterns are too large together")
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

// explain finds the place and the reason in the resolver's errors.
func explain(err error) error {
	var (
		invalid *jsonschema.SchemaValidationError
		regex   *jsonschema.InvalidRegexError
		load    *jsonschema.LoadURLError
		absent  *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
	)
	switch {
	case errors.As(err, &invalid):
		var v *jsonschema.ValidationError
		if errors.As(invalid.Err, &v) {
			return worst(pointerOf(invalid.URL), v)
		}
	case errors.As(err, &regex):
		return &flaw{pointer: pointerOf(regex.URL), why: "pattern is not RE2: " + regex.Err.Error(), hint: "RE2 has no look-around and no back-references"}
	case errors.As(err, &load):
		return &flaw{why: "refers to " + load.URL + ", which is outside", hint: errRemote.Error()}
	case errors.As(err, &absent):
		return &flaw{pointer: pointerOf(absent.URL), why: "refers to something absent"}
	case errors.As(err, &anchor):
		return &flaw{why: "refers to an anchor that is absent: " + strings.TrimPrefix(anchor.Reference, base)}
	}
	return &flaw{why: err.Error()}
}

// worst is the deepest complaint of the dialect's own schema, the first by
// place where there are several.
func worst(at string, v *jsonschema.ValidationError) error {
	printer := message.NewPrinter(language.English)
	var all []*flaw
	var walk func([]string, *jsonschema.ValidationError)
	walk = func(place []string, v *jsonschema.ValidationError) {
		// What is wrong with a member's name has no place of its own.
		if len(v.InstanceLocation) > len(place) {
			place = v.InstanceLocation
		}
		for _, cause := range v.Causes {
			walk(place, cause)
		}
		if len(v.Causes) == 0 {
			all = append(all, &flaw{pointer: at + join(place), why: "not valid in its dialect: " + v.ErrorKind.LocalizedString(printer)})
		}
	}
	walk(nil, v)
	slices.SortFunc(all, func(a, b *flaw) int {
		return strings.Compare(a.pointer+"\x00"+a.why, b.pointer+"\x00"+b.why)
	})
	return all[0]
}

// pointerOf is the fragment of a location as a JSON pointer.
func pointerOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	if p, err := url.PathUnescape(fragment); err == nil {
		return p
	}
	return fragment
}

func join(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape(t))
	}
	return b.String()
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
