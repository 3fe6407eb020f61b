package record

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxFetchedText bounds what one record keeps of all facts together, in bytes.
const maxFetchedText = 8 << 10

// Fetched returns what a record keeps of facts: enough to evaluate again by those that are
// short and do not depend on what an agent sent. seal marks the text of a fact.
func (w *Writer) Fetched(all map[string]constitution.Fetched, seal func(text string) string) []ledger.Fetched {
	var out []ledger.Fetched
	left := maxFetchedText
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(out) == ledger.MaxFetched {
			break
		}
		f := all[name]
		r := ledger.Fetched{Name: name}
		if f.Err != nil {
			r.Why = w.Quote(f.Err.Error(), 256)
		} else {
			r.Seal = seal(string(f.Text))
			if r.Text = w.keptText(&f); len(r.Text) > left {
				r.Text = ""
			}
			left -= len(r.Text)
		}
		out = append(out, r)
	}
	return out
}

// keptText returns the text of a fact that a record may hold, or "".
func (w *Writer) keptText(f *constitution.Fetched) string {
	if f.PerRequest || len(f.Text) > ledger.MaxFetchedText {
		return ""
	}
	res, err := w.texts.JSON(f.Text)
	if err != nil || res.Found() {
		return ""
	}
	return string(f.Text)
}
