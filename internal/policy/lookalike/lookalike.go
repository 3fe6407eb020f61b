// Package lookalike finds members of an object that a server could take for one another.
package lookalike

import (
	"encoding/json"
	"fmt"
	"unicode"

	"github.com/holdfast-dev/holdfast"
)

// Many servers read member names without regard to case, the standard JSON
// package of Go among them. To rules and schemas "PATH" is not "path"; to such
// a server it is, and the later one wins. So two members of one object that
// differ only in case are refused, and so is one that differs only in case
// from a name that the contract's schema knows.

// Names are the member names that a schema knows, by their folded form.
type Names map[string]map[string]bool

// ReadNames collects the names of every `properties` in a schema; of malformed JSON it
// returns nil.
func ReadNames(raw json.RawMessage) Names {
	var tree any
	if len(raw) == 0 || json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	out := Names{}
	out.collectNames(tree)
	return out
}

func (n Names) collectNames(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n.collectNames(e)
		}
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for name := range props {
				f := Fold(name)
				if n[f] == nil {
					n[f] = map[string]bool{}
				}
				n[f][name] = true
			}
		}
		for _, e := range v {
			n.collectNames(e)
		}
	}
}

// Check returns an error of K1 for a member of a document that a server could take for
// another one.
func (n Names) Check(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := n.Check(e); err != nil {
				return err
			}
		}
	case map[string]any:
		return n.checkObject(v)
	}
	return nil
}

func (n Names) checkObject(object map[string]any) error {
	seen := make(map[string]bool, len(object))
	for name, e := range object {
		f := Fold(name)
		if seen[f] {
			return newError("two members of one object differ only in case", name)
		}
		seen[f] = true
		if known := n[f]; known != nil && !known[name] {
			return newError("a member differs only in case from one that the schema knows", name)
		}
		if err := n.Check(e); err != nil {
			return err
		}
	}
	return nil
}

func newError(why, name string) error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1,
		Why: fmt.Sprintf("%s (%d characters long)", why, len([]rune(name))), Hint: "a server may take one for the other: spell each name in one way"}
}

// Fold gives names that differ only in case one form: the smallest rune of
// each rune's orbit of simple folds, as Unicode has them.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || 'A' <= c && c <= 'Z' || c == 'k' || c == 's' {
			return foldSlow(s)
		}
	}
	return s
}

// foldSlow is Fold where something may change. k and s have relatives beyond
// ASCII (the Kelvin sign and the long s).
func foldSlow(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		least := r
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			least = min(least, o)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A'
		}
		out = append(out, least)
	}
	return string(out)
}
