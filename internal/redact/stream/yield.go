package stream

import (
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

const (
	// maxYielded is the longest word of letters that is let go before it ends.
	maxYielded = 24
	// maxYieldedDigits is how many digits are.
	maxYieldedDigits = 3
	// maxYieldedLiteral is how much of what may be a registered literal is.
	maxYieldedLiteral = 3
)

// Held is how many bytes of what was written to s may still come out of it; where
// some of it was masked already, about.
func (s *Stream) Held() int {
	if s.first == nil {
		return 0
	}
	return s.first.held()
}

// Yield writes on what is held, where nothing of it looks like the beginning of
// something to mask: the last words of a text that has come to a halt, such as
// an event after which no other comes. It says whether nothing is held any more.
// s remembers what it let go. If the text goes on and what was let go turns out
// to be the head of something, an address' name before its "@", the rest of that
// is masked: then what s has written is no longer Text's output for the whole.
// The errors are Write's.
func (s *Stream) Yield() (done bool, err error) {
	if s.err != nil || s.first == nil {
		return s.err == nil, s.err
	}
	out, err := s.yield()
	if len(out) > 0 && err == nil && s.w != nil {
		_, err = s.w.Write(out)
	}
	s.err = err
	return err == nil && s.Held() == 0, err
}

func (s *Stream) yield() (out []byte, err error) {
	defer func() {
		if f := recover(); f != nil {
			s.first = nil
			out, err = nil, streamFault("the redaction engine faulted", fmt.Errorf("panic: %v", f))
		}
	}()
	return s.first.yield(), nil
}

// held returns the number of bytes that the stage, and those after it, keep and may still
// write. The text under a mask whose end has not come is never written.
func (t *stage) held() int {
	n := 0
	if t.cover == nil {
		n = t.raw.base + len(t.raw.s) - t.sent
	}
	if t.next != nil {
		n += t.next.held()
	}
	return n
}

// yield lets go what is plain, and returns what comes out after the last stage.
func (t *stage) yield() []byte {
	if t.cover == nil && t.raw.base+len(t.raw.s) > t.sent {
		if !t.plain() {
			return nil
		}
		t.piece = t.piece[:0]
		t.copy(t.raw.base + len(t.raw.s))
		t.forget()
		if t.next == nil {
			return t.piece
		}
		out := append([]byte(nil), t.next.write(t.piece, false)...)
		return append(out, t.next.yield()...)
	}
	if t.next == nil {
		return nil
	}
	return t.next.yield()
}

// plain reports whether what is held is ordinary words, none of which a search,
// a literal or what was found so far reaches into.
func (t *stage) plain() bool {
	l := &t.raw
	if len(l.out) > 0 || len(t.runs.out) > 0 || l.x.IsOpen() || len(l.s)-l.lit > maxYieldedLiteral {
		return false
	}
	from := min(t.sent-l.base, l.at)
	if !ordinary(l.s[from:]) {
		return false
	}
	if u := t.unfolded; u != nil {
		if len(u.out) > 0 || u.x.IsOpen() || !ordinary(u.s[min(u.at, max(0, len(u.s)-(len(l.s)-from))):]) {
			return false
		}
	}
	end := len(l.s)
	for end > from && !char.Letterish(l.s[end-1]) {
		end-- // the point at the end of a sentence waits for what follows it
	}
	return !l.reaches(end) && t.e.Pass(l.s[max(0, l.at-certain.MaxBefore):], false) == nil
}

// reaches says whether a trigger that has not been judged, before end, waits for
// what comes after it. The few digits of an ordinary text may wait, and so may
// the name of a scheme: it is what follows them that must not be let go, and that
// is then asked about again.
func (l *lane) reaches(end int) bool {
	s := l.s[:end]
	return certain.FirstWaiting(s, l.at, func(i int) bool {
		return char.Class[s[i]]&char.Digit != 0 || char.IndexByte("bBwW", s[i]) >= 0 && lastGap(s, i) == 0
	}) < end
}

// ordinary says whether s is words of letters with the signs that prose has
// after a word, and at most a few digits.
func ordinary(s []byte) bool {
	word, digits := 0, 0
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRune(s[i:])
		i += w
		switch {
		case r < utf8.RuneSelf && char.Class[byte(r)]&char.Letter != 0, r >= utf8.RuneSelf && r != utf8.RuneError:
			if word++; word > maxYielded {
				return false
			}
			continue
		case r < utf8.RuneSelf && char.Class[byte(r)]&char.Digit != 0:
			if digits++; digits > maxYieldedDigits || word > 0 && i > w && char.Class[s[i-w-1]]&char.Letter != 0 {
				return false
			}
			continue
		case r == ' ', r == '\n', r == '\t', r == '\r':
			word = 0
			continue
		case r == ',', r == '.', r == '!', r == '?', r == ';', r == ':', r == ')', r == '"', r == '\'':
			if i < len(s) && char.Class[s[i]]&char.Space == 0 && !endSign(s[i]) && r != '\'' {
				return false
			}
			if i < len(s) && r == ':' {
				return false
			}
			continue
		case r == '(', r == '*', r == '#':
			continue
		case r == '-', r == '/':
			if word++; word > maxYielded || i > w && char.Class[s[i-w-1]]&char.Digit != 0 {
				return false
			}
			continue
		}
		return false
	}
	return true
}

func endSign(c byte) bool { return char.IndexByte(`,.!?;:)"'`, c) >= 0 }
