package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Part is what one thing takes of a figure, in the figure's unit or in that of
// the whole that it is a part of.
type Part struct {
	What   string  `json:"what"`
	Amount float64 `json:"amount"`
	Unit   string  `json:"unit"`
	Share  float64 `json:"share"` // of all parts together, from 0 to 1
}

// PartsOf are the parts of a whole with their shares, the greatest first. What is
// below nothing, because two medians were taken from each other, counts as none.
func PartsOf(unit string, amounts map[string]float64) []Part {
	sum := 0.0
	var list []Part
	for what, v := range amounts {
		if v > 0 {
			sum += v
			list = append(list, Part{What: what, Amount: v, Unit: unit})
		}
	}
	for i := range list {
		list[i].Share = list[i].Amount / sum
	}
	slices.SortFunc(list, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.What, b.What))
	})
	return list
}

// limitedBy is parts in words, without those that are next to nothing.
func limitedBy(list []Part) string {
	var words []string
	for _, p := range list {
		if p.Share >= 0.02 {
			words = append(words, fmt.Sprintf("%s %.0f %% (%s %s)", p.What, 100*p.Share, Number(p.Amount), p.Unit))
		}
	}
	return strings.Join(words, ", ")
}
