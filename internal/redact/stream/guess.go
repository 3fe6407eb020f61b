package stream

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/guess"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// guess looks for what only surroundings tell, up to a place that no guess is
// expected to cross.
func (l *lane) guess(final bool) {
	to := l.quiet(final)
	if to <= l.known {
		return
	}
	n := len(l.x.S)
	taken := slices.Clone(l.taken)
	for i := range taken {
		taken[i].End = min(taken[i].End, n)
	}
	var list []span.Span
	for _, sp := range l.e.Guess.Find(l.x.S, span.Union(taken)) {
		if sp.Start < l.known || sp.Start >= to {
			continue
		}
		if sp.End > to {
			to = sp.Start
			break
		}
		list = append(list, sp)
	}
	l.known = to
	l.note(list)
}

// quiet returns the last place up to the first unjudged trigger that no guess
// crosses, or where more than enough follows.
func (l *lane) quiet(final bool) int {
	if final {
		return len(l.s)
	}
	far := min(l.at, len(l.x.S)-certain.MaxAhead)
	for i := l.at; i > max(far, l.known); i-- {
		if l.x.S[i-1] == ' ' && quietAfter(l.x.S[l.known:i], l.e.Probable&guess.Addresses != 0) {
			return i
		}
	}
	return far
}

// quietAfter says whether nothing that is guessed goes on behind s: it ends in
// two plain words, and for an address no number stands six words before it,
// unless a sign divides them.
func quietAfter(s []byte, places bool) bool {
	for n := range 7 {
		e := len(s) - 1
		if e < 0 || s[e] != ' ' {
			return n >= 2
		}
		b := e
		for b > 0 && char.Class[s[b-1]]&char.Space == 0 {
			b--
		}
		w := s[b:e]
		switch {
		case n < 2 && !isPlainWord(w), n >= 2 && places && hasDigit(w):
			return false
		case n >= 2 && (!places || len(w) == 0 || char.IndexByte(",;:!?)\"", w[len(w)-1]) >= 0):
			return true
		}
		s = s[:b]
	}
	return true
}

func hasDigit(w []byte) bool {
	for _, c := range w {
		if char.Class[c]&char.Digit != 0 {
			return true
		}
	}
	return false
}

// isPlainWord says whether w has small letters only and belongs to no name, no
// street and no post office box.
func isPlainWord(w []byte) bool {
	for _, c := range w {
		if char.Class[c]&char.Lower == 0 {
			return false
		}
	}
	switch string(w) {
	case "", "post", "office", "po", "gpo", "box":
		return false
	}
	return !guess.MayBelong(w)
}
