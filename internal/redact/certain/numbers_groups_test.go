package certain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// digitTexts are texts of digits and of what stands between and beside them.
func digitTexts(r *rand.Rand, n int) []byte {
	between := []string{" ", "-", ".", "/", "\t", "  ", ") ", " (", "(", ")", "\u00a0", "\u2009", "\u2013", "\u2014", ",", "\n", "a", "\xc2", "\xe2\x80", "phone ", "DE", "%20", "--"}
	known := []string{"(415) 555-0132", "020 7946 0958", "1-415-555-0132", "4111 1111 1111 1111", "078-05-1120", "1985-03-12", "AB 12 34 56 C"}
	var s []byte
	for len(s) < n {
		for range r.IntN(9) >> r.IntN(3) {
			s = append(s, byte('0'+r.IntN(10)))
		}
		if r.IntN(40) == 0 {
			s = append(s, "01234567890123456789012"[r.IntN(8):]...)
		}
		if r.IntN(20) == 0 {
			s = append(s, known[r.IntN(len(known))]...)
		}
		s = append(s, between[r.IntN(len(between))>>r.IntN(5)]...)
	}
	return s
}

// What was kept of the groups read lately is what reading them anew gives, at
// whatever digits they are asked for, and whether the text's end was reached.
func TestGroupsKeptAreThoseReadAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 31))
	kept := 0
	for range 2000 {
		s := digitTexts(r, 1+r.IntN(160))
		x := Scanner{state: state{Cursor: cursor.Cursor{S: s}}}
		for i := r.IntN(len(s)); i < len(s); {
			fresh := Scanner{state: state{Cursor: cursor.Cursor{S: s}}}
			n := fresh.DigitRun(i)
			if want := char.DigitsFrom(s, i, cursor.MaxRun); n != want {
				t.Fatalf("%q at %d: %d digits, want %d", s, i, n, want)
			}
			if n == 0 || n == cursor.MaxRun {
				i++
				continue
			}
			if had := x.lately.kept(i); had > 0 {
				if kept++; had != n {
					t.Fatalf("%q at %d: kept %d digits, want %d", s, i, had, n)
				}
			}
			var buf [cursor.MaxGroups]cursor.Group
			want := fresh.Groups(i, n, cursor.MaxDigits, buf[:0])
			x.Touched = false
			if got := x.groupsAt(i, n); !slices.Equal(got, want) || x.Touched != fresh.Touched {
				t.Fatalf("%q at %d\n got %v %v\nwant %v %v", s, i, got, x.Touched, want, fresh.Touched)
			}
			switch r.IntN(8) {
			case 0:
				i += r.IntN(n + 1)
			case 1:
				i = max(0, i-r.IntN(30))
			default:
				i += n
			}
		}
	}
	if kept < 10000 {
		t.Errorf("only %d were kept", kept)
	}
}

// Where no letter stands near a number, what only a word tells is not asked
// for: it would not have been found.
func TestNumberFarFromLettersNeedsNoWord(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 77))
	mute, told := 0, 0
	for range 3000 {
		s := digitTexts(r, 20+r.IntN(300))
		var x Scanner
		x.S = s
		for i := range s {
			if char.Class[s[i]]&char.Digit == 0 || char.DigitsFrom(s, i, cursor.MaxRun) == cursor.MaxRun {
				continue
			}
			if got, want := x.wordlessBefore(i), noLetter(s[max(0, i-reachNear):i]); got != want {
				t.Fatalf("%q at %d: wordless %v, want %v", s, i, got, want)
			} else if !got {
				continue
			}
			mute++
			asks := Scanner{state: state{Cursor: cursor.Cursor{S: s}}}
			var buf [cursor.MaxGroups]cursor.Group
			g := asks.Groups(i, asks.DigitRun(i), cursor.MaxDigits, buf[:0])
			if _, by := asks.identity(g); by != rule.None || len(asks.spans) > 0 {
				t.Fatalf("%q at %d is %s", s, i, rule.Names[by])
			}
			start, end := asks.phone(g, false)
			if b, e := asks.phone(g, true); b != start || e != end {
				t.Fatalf("%q at %d: phone [%d, %d), want [%d, %d)", s, i, b, e, start, end)
			}
			if end > 0 {
				told++
			}
		}
		got, joined := Find(s, false)
		if want, all := FindPlainly(s, false); !slices.Equal(got, want) || joined != all {
			t.Fatalf("%q\n got %v\nwant %v", s, got, want)
		}
	}
	if mute < 10000 || told < 10 {
		t.Errorf("%d far from letters, %d phones", mute, told)
	}
}

func noLetter(s []byte) bool {
	return !slices.ContainsFunc(s, func(c byte) bool { return char.Class[c]&char.Letter != 0 })
}
