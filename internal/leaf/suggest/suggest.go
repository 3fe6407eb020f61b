// Package suggest finds the word that a typing error most likely meant.
package suggest

import "slices"

// maxLength bounds the words that are compared, in bytes: the work grows with the product of both lengths.
const maxLength = 64

// FindNearest returns the word of known that is the fewest edits away from word, at least one and at most maxEdits,
// or "". Of words that are equally near it returns the first.
func FindNearest(word string, known []string, maxEdits int) string {
	best, least := "", maxEdits+1
	for _, k := range known {
		if n := CountEdits(word, k); n > 0 && n < least {
			best, least = k, n
		}
	}
	return best
}

// FindName returns the name of known that a typing error in name most likely meant, or "".
func FindName(name string, known []string) string {
	maxEdits := max(1, len(name)/3)
	return FindNearest(name, slices.Sorted(slices.Values(known)), maxEdits)
}

// CountEdits returns the number of insertions, deletions, replacements and swaps of neighbours that make b of a, in
// bytes (optimal string alignment). Words above 64 bytes are not compared; the result is then the longer length.
func CountEdits(a, b string) int {
	if longer := max(len(a), len(b)); longer > maxLength {
		return longer
	}
	var rows [3][maxLength + 1]int // row i is rows[i%3]
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, second := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], second[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
