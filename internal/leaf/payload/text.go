package payload

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// text is the canonical form in the making and, from the first number on
// whose source differs from its canonical form, the exact form beside it.
// Until then the two are equal and only one is kept.
type text struct {
	canon   []byte
	exact   []byte
	split   bool
	scratch []byte
}

// mark is a length of both texts.
type mark struct{ canon, exact int }

func (t *text) mark() mark {
	if !t.split {
		return mark{len(t.canon), len(t.canon)}
	}
	return mark{len(t.canon), len(t.exact)}
}

func (t *text) add(b []byte) {
	t.canon = append(t.canon, b...)
	if t.split {
		t.exact = append(t.exact, b...)
	}
}

func (t *text) addByte(c byte) {
	t.canon = append(t.canon, c)
	if t.split {
		t.exact = append(t.exact, c)
	}
}

func (t *text) dropLast() {
	t.canon = t.canon[:len(t.canon)-1]
	if t.split {
		t.exact = t.exact[:len(t.exact)-1]
	}
}

// quote writes b as a JSON string of the shortest form (RFC 8785 3.2.2.2).
func (t *text) quote(b []byte) error {
	from := len(t.canon)
	out, err := jsontext.AppendQuote(t.canon, b)
	t.canon = out
	if t.split {
		t.exact = append(t.exact, out[from:]...)
	}
	return err
}

// number writes a number. It fails when the value overflows a double.
func (t *text) number(source string) error {
	if plain(source) {
		t.canon = append(t.canon, source...)
		if t.split {
			t.exact = append(t.exact, source...)
		}
		return nil
	}
	f, err := strconv.ParseFloat(source, 64)
	if err != nil {
		return err
	}
	if f == 0 {
		f = 0 // minus zero is written 0
	}
	from := len(t.canon)
	out := jsontext.AppendFloat(t.canon, f, 64)
	if !t.split && string(out[from:]) != source {
		t.split = true
		t.exact = append(make([]byte, 0, cap(out)), t.canon...)
	}
	t.canon = out
	if t.split {
		t.exact = append(t.exact, source...)
	}
	return nil
}

// plain says that a number's source is its own canonical form without looking
// at its value: a whole number of at most 15 digits, which a double holds, and
// not minus zero.
func plain(source string) bool {
	digits := strings.TrimPrefix(source, "-")
	if len(digits) > 15 || source == "-0" {
		return false
	}
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// reorder writes the members of the object that began at base, and is about
// to end, in the order of own.
func (t *text) reorder(base mark, own []member) {
	t.scratch = append(t.scratch[:0], t.canon[base.canon:]...)
	t.canon = t.canon[:base.canon]
	for _, m := range own {
		t.canon = append(t.canon, t.scratch[m.from.canon-base.canon:m.to.canon-base.canon]...)
	}
	if !t.split {
		return
	}
	t.scratch = append(t.scratch[:0], t.exact[base.exact:]...)
	t.exact = t.exact[:base.exact]
	for _, m := range own {
		t.exact = append(t.exact, t.scratch[m.from.exact-base.exact:m.to.exact-base.exact]...)
	}
}
