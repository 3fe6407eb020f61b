package process

import (
	"slices"
	"testing"
)

// Numbers of processes are used again while they are read: what then goes in a
// circle is listed once, and the listing ends.
func TestUnderneath_aNumberUsedAgain(t *testing.T) {
	children := map[int][]int{1: {2, 9}, 2: {3, 4}, 3: {5}, 5: {2, 3}, 4: {4}, 9: {1}, 0: {0, 7}}
	if got := underneath(2, children); !slices.Equal(got, []int{3, 4, 5}) {
		t.Errorf("underneath 2: %v", got)
	}
	if got := underneath(0, children); !slices.Equal(got, []int{7}) {
		t.Errorf("underneath 0: %v", got)
	}
	if got := underneath(6, children); got != nil {
		t.Errorf("underneath nothing: %v", got)
	}
}
