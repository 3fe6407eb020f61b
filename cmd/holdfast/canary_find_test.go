package main

import (
	"bytes"
	"encoding/binary"
	"iter"
	"testing"
)

// spelling is one way to write the heart of a canary: door and kind name the canary.
type spelling struct {
	door, kind, name string
	form             []byte
}

// finder finds any of many spellings in one pass: thousands of searches through all that
// a daemon says take seconds.
type finder struct {
	begins map[uint32][]spelling // by their first four bytes
	seen   [1 << 16]bool         // whether any begins with these two bytes
}

func newFinder(all []spelling) *finder {
	f := &finder{begins: map[uint32][]spelling{}}
	for _, s := range all {
		head := binary.BigEndian.Uint32(s.form)
		f.begins[head] = append(f.begins[head], s)
		f.seen[head>>16] = true
	}
	return f
}

// all yields each spelling in b with where it begins.
func (f *finder) all(b []byte) iter.Seq2[int, spelling] {
	return func(yield func(int, spelling) bool) {
		for i := 0; i+4 <= len(b); i++ {
			if !f.seen[binary.BigEndian.Uint16(b[i:])] {
				continue
			}
			for _, s := range f.begins[binary.BigEndian.Uint32(b[i:])] {
				if bytes.HasPrefix(b[i:], s.form) && !yield(i, s) {
					return
				}
			}
		}
	}
}

// TestFinderFindsEverySpelling: each spelling of each canary is found wherever it is, and
// nothing else is.
func TestFinderFindsEverySpelling(t *testing.T) {
	t.Parallel()
	var all []spelling
	for name, form := range spellings(plant("argument").Hearts[0]) {
		all = append(all, spelling{"argument", "registered", name, form})
	}
	find := newFinder(all)
	for _, s := range all {
		for _, around := range []string{"", "x", string(s.form[:len(s.form)-1])} {
			found := false
			for i, other := range find.all([]byte(around + string(s.form) + around)) {
				found = found || i == len(around) && bytes.Equal(other.form, s.form)
			}
			if !found {
				t.Errorf("%s after %q is not found", s.name, around)
			}
		}
	}
	for range find.all([]byte(plant("payload").text())) {
		t.Error("the canary of another door is found")
	}
}
