package ruletest

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// fetched reads what a case says of the facts that rules name.
func (d *document) fetched(n *yaml.Node) (map[string]constitution.Fetched, error) {
	m, err := d.members(n, "fetched", nil)
	if err != nil {
		return nil, err
	}
	out := map[string]constitution.Fetched{}
	for name, v := range m {
		text, err := d.json(nil, v)
		if err != nil {
			return nil, err
		}
		doc, err := payload.ParseLimited(text, constitution.MaxFact, constitution.MaxFactDepth)
		if err != nil {
			return nil, d.wrong(v.Line, "the fact "+name+": "+said(err), "")
		}
		out[name] = constitution.Fetched{Value: doc.Value(), Text: text}
		d.given[name] = true
	}
	return out, nil
}

// setting is what the archive's rules are checked by: its own boundaries and the
// facts that its cases give, before those that are known.
func (d *document) setting(known constitution.Setting) constitution.Setting {
	out := constitution.Setting{Boundaries: append(slices.Clone(d.boundaries), known.Boundaries...), Facts: known.Facts}
	for _, name := range slices.Sorted(maps.Keys(d.given)) {
		if !slices.ContainsFunc(known.Facts, func(f constitution.Fact) bool { return f.Name == name }) {
			out.Facts = append(slices.Clone(out.Facts), constitution.Fact{Name: name, Where: d.name})
		}
	}
	return out
}
