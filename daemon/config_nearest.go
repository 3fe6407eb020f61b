package daemon

// nearest returns the known word that a typing error most likely meant, or "".
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if n := edits(word, k); n < least {
			best, least = k, n
		}
	}
	return best
}

// edits counts the insertions, deletions and replacements between two words.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			step := 1
			if a[i] == b[j] {
				step = 0
			}
			last, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, last+step)
		}
	}
	return row[len(b)]
}
