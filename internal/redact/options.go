package redact

import (
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/format"
	"github.com/holdfast-dev/holdfast/internal/redact/literal"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/memory"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Options say what an engine knows beyond the document's rules, and how it
// writes what it masks. The zero value is good: the ledger's masks, and only
// what is certain.
type Options struct {
	// Literals are masked wherever they occur: as they are, in base64 (both
	// alphabets, at any alignment), in hex, in UTF-16, URL-encoded (once or
	// twice), escaped for JSON or HTML. One with 8 letters and digits or more is
	// also found where its bytes, or their base64, hex or decimal numbers, stand
	// in order with up to 48 bytes of signs, blanks, line breaks or escapes
	// between any two, and each escaped in its own way. Each is 4 to 65 536 bytes; at most
	// 1024 of 262 144 bytes together. Their forms are held in a Memory.
	Literals []holdfast.Secret
	// Masks is the style of what is written in the place of a finding.
	Masks Masks
	// Key is the tenant's key of pseudonyms, 16 bytes at least; it is read
	// for Pseudonyms only.
	Key holdfast.Secret
	// Passing says that Literals are known for a while only: their forms are kept in ordinary memory, and not in
	// that of a Memory, which is never freed.
	Passing bool
	// LiteralRule is the rule under which Literals are reported and masked, such as "email". The default is
	// "secret.literal".
	LiteralRule string
	// FewForms says that Literals are found as they are, and in those encodings and escapes in which they have 8
	// letters and digits or more, of base64, hexadecimal and decimal bytes: New takes a fifth of the time.
	FewForms bool
	// OnlyRegistered says that nothing but Literals is found.
	OnlyRegistered bool
	// PassPersonal says that secrets are found and personal data is not.
	PassPersonal bool
}

// minKey is the least length of a key in bytes.
const minKey = 16

// Engine redacts. It is immutable and may be used by many goroutines. Only
// New makes one that works: the zero value masks everything and seals nothing.
type Engine struct {
	text   *engine.Engine
	bodies *format.Reader
	// secrets and personal are bodies that find one class. Nil in what WithReplace and Registered return.
	secrets, personal *format.Reader
}

// New returns an engine. A ValueError is: a literal that is too short to be
// told from ordinary text, or too long; a style or a kind that does not exist;
// Pseudonyms without a key of 16 bytes.
func New(o Options) (*Engine, error) {
	switch {
	case o.Masks > Pseudonyms:
		return nil, invalidOption("masks", "there is no style "+strconv.Itoa(int(o.Masks)), "take Ledger, Egress or Pseudonyms")
	case o.Masks == Pseudonyms && len(o.Key.Reveal()) < minKey:
		return nil, invalidOption("key", "the key has "+strconv.Itoa(len(o.Key.Reveal()))+" bytes", "a key of pseudonyms is at least 16 random bytes long")
	}
	forms := literal.AllForms
	if o.FewForms {
		forms = literal.FewForms
	}
	lit, err := literal.NewIn(&memory.Memory{Ordinary: o.Passing}, o.Literals, forms)
	if err != nil {
		return nil, err
	}
	if o.LiteralRule != "" {
		known := slices.Index(rule.Names[:], o.LiteralRule)
		if known < 0 {
			return nil, invalidOption("rule", "unknown rule "+o.LiteralRule, "take one of doc/redaction.md")
		}
		lit = lit.WithRule(rule.Rule(known))
	}
	text := engine.New(lit, mask.Style{Masks: o.Masks, Key: o.Key})
	text.OnlyRegistered = o.OnlyRegistered
	if o.PassPersonal {
		text.Class = rule.OnlySecrets
	}
	e := &Engine{text: text.WithOpening(), bodies: format.New(text)}
	// They share no familiar names: what a name marks as a secret stays as it is in the other.
	e.secrets, e.personal = format.New(text.WithClass(rule.OnlySecrets)), format.New(text.WithClass(rule.OnlyPersonal))
	return e, nil
}

// HasRegistered reports whether text has a registered secret, in any of the forms that are found.
func (e *Engine) HasRegistered(text []byte) bool {
	return e != nil && e.text != nil && e.text.Literals.Find(text) != nil
}

// Registered returns an engine that finds nothing but what is registered with e.
func (e *Engine) Registered() *Engine {
	if e == nil || e.text == nil {
		return nil
	}
	text := e.bodies.WithReplace(e.text.Replacement)
	text.OnlyRegistered = true
	return &Engine{text: text.WithOpening(), bodies: format.New(text)}
}

// WithReplace returns an engine that finds what e finds, and writes what replace returns in place of it:
// see Engine.Replace. It shares what e knows. replace is called by the goroutine that calls the engine, with the
// name of the rule and the text that was found, which it must not keep.
func (e *Engine) WithReplace(replace func(rule string, text []byte) []byte) *Engine {
	if e == nil || e.text == nil {
		return nil
	}
	text := e.bodies.WithReplace(replace)
	return &Engine{text: text.WithOpening(), bodies: e.bodies.WithEngine(text)}
}

// WithFinder returns an engine that finds what find returns for each text that e reads, in order and apart, and nothing
// else. Masks are left out of it. The names of JSON members are not read. With an engine of WithReplace, the function
// of that one writes what replaces a finding. find must not keep the text.
func (e *Engine) WithFinder(find func(text []byte) []Finding) *Engine {
	if e == nil || e.text == nil {
		return nil
	}
	text := e.text.WithFinder(func(s []byte) (spans []span.Span) {
		for _, f := range find(s) {
			spans = appendUnmasked(spans, s, f)
		}
		return spans
	})
	return &Engine{text: text, bodies: format.New(text)}
}

// Trouble says why what the engine knows of Literals could reach a disk, or
// "".
func (e *Engine) Trouble() string {
	if e == nil || e.text == nil {
		return ""
	}
	return e.text.Literals.Trouble()
}

func invalidOption(what, why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K6, Rule: "redact/" + what, Why: why, Hint: hint}
}
