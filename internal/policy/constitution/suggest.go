package constitution

// nearest returns the known name that a typing error most likely meant, or "".
func nearest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)
	for _, k := range known {
		if d := distance(name, k); d > 0 && (d < least || d == least && (best == "" || k < best)) {
			best, least = k, d
		}
	}
	return best
}

// Nearest is the id of the rule that a typing error most likely meant, or "".
func (s *Set) Nearest(id string) string {
	var known []string
	for _, r := range s.Rules() {
		known = append(known, r.ID)
	}
	return nearest(id, known)
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that make b of a (optimal string alignment), in bytes. Long names
// are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			step := 1
			if a[i-1] == b[j-1] {
				step = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+step)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
