package measure

// HalfCount is what was counted in one half of a set.
type HalfCount struct {
	Of       int `json:"of"`
	Holdfast int `json:"holdfast"`
	Gitleaks int `json:"gitleaks"`
}

// Percent returns n in percent of the half; of an empty one 0.
func (c HalfCount) Percent(n int) float64 {
	if c.Of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(c.Of)
}

// Halves are the counts of the half of a set that no rule is written from, and of the
// other one.
type Halves struct {
	Unused HalfCount `json:"unused"`
	Used   HalfCount `json:"used"`
}

// Add counts one item, and whether Holdfast and its peer found it.
func (h *Halves) Add(unused, ours, theirs bool) {
	c := &h.Used
	if unused {
		c = &h.Unused
	}
	c.Of++
	if ours {
		c.Holdfast++
	}
	if theirs {
		c.Gitleaks++
	}
}
