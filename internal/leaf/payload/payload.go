// Package payload reads one hostile JSON document: bounded in bytes and depth
// before anything else looks at it, parsed once, and given back as the tree
// that schemas and rules see, the canonical form of RFC 8785 and the two
// hashes of D10. It does no I/O and keeps no state.
package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Doc is one parsed document. Everything in it is computed by Parse and never
// changes, so a Doc may be shared between goroutines. The zero Doc is empty
// and has no key.
type Doc struct {
	value     any
	canonical []byte
	key       string
	exact     string
	size      int
	depth     int
}

// Parse reads b as exactly one JSON document of at most holdfast.MaxPayload
// bytes and holdfast.MaxDepth nested containers (D7; a root without containers
// has depth 1, as has a flat object). It neither changes nor keeps b.
//
// Errors are *holdfast.Error and name the place as a JSON pointer and a byte
// offset from 0, never the content there:
//
//   - ValueError: empty, not JSON, not UTF-8, with a byte order mark, or with
//     something after the document;
//   - CanonicalizeError (D10): a member name that occurs twice in one object,
//     a lone surrogate, NaN or an infinity, a number beyond a double's range;
//   - PayloadTooLargeError: too many bytes or too deep.
func Parse(b []byte) (*Doc, error) {
	return ParseLimited(b, holdfast.MaxPayload, holdfast.MaxDepth)
}

// ParseLimited is Parse with other limits. A limit below 1 refuses everything.
func ParseLimited(b []byte, maxBytes, maxDepth int) (*Doc, error) {
	if len(b) > maxBytes {
		return nil, &holdfast.Error{
			Kind: holdfast.KindPayloadTooLarge, Gate: holdfast.K1,
			Why:  fmt.Sprintf("document of %d bytes is above the limit of %d", len(b), maxBytes),
			Hint: "send bulk as a hash and a size",
		}
	}
	p := parser{src: b, maxDepth: maxDepth}
	value, err := p.document()
	if err != nil {
		return nil, err
	}
	d := &Doc{value: value, canonical: p.out.canon, size: len(b), depth: p.deepest}
	d.key = digest(d.canonical)
	d.exact = d.key
	if p.out.split {
		d.exact = digest(p.out.exact)
	}
	return d, nil
}

// Value returns the document as a tree of map[string]any, []any, string,
// bool, nil and json.Number, which keeps a number's source text. The tree is
// shared: the caller must not change it.
func (d *Doc) Value() any { return d.value }

// Forget gives up the tree, which is many times as large as the text: Value is
// nil from here on. All else stays.
func (d *Doc) Forget() { d.value = nil }

// Canonical returns the RFC 8785 form: members in UTF-16 order, numbers as
// ECMAScript writes them, no Unicode normalisation (D10). The caller must not
// change it.
func (d *Doc) Canonical() []byte { return d.canonical }

// Key returns SHA-256 of Canonical as 64 lower-case hex digits. Two documents
// share it when they are equal as RFC 8785 sees them, numbers rounded to
// doubles.
func (d *Doc) Key() string { return d.key }

// Exact returns the exact hash of D10, 64 lower-case hex digits: SHA-256 of
// the canonical form in which every number keeps its source text. Holds,
// approvals and replays bind to it, because 9007199254740993 and
// 9007199254740992 share one Key.
func (d *Doc) Exact() string { return d.exact }

// Size returns the document's length in bytes as it came.
func (d *Doc) Size() int { return d.size }

// Depth returns how many containers lie inside each other at most, at least 1.
func (d *Doc) Depth() int { return d.depth }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
