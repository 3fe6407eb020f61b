package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number in one exact form: digits without zeros at either end,
// times ten to the power exp. Zero has no digits. Taking it apart costs one
// look at each character, whatever the exponent says; a fraction of
// 1e-999999999 would cost gigabytes.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

// parseDecimal reads a JSON number. It fails for what is not one and for an
// exponent beyond any use (a million millions).
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e, err := strconv.ParseInt(s[i+1:], 10, 64)
		if err != nil || e > 1e12 || e < -1e12 {
			return decimal{}, false
		}
		d.exp = e
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if frac != "" {
		d.exp -= int64(len(frac))
		whole += frac
	}
	whole = strings.TrimLeft(whole, "0")
	d.digits = strings.TrimRight(whole, "0")
	d.exp += int64(len(whole) - len(d.digits))
	if d.digits == "" {
		return decimal{}, len(mantissa) > 0
	}
	for i := 0; i < len(d.digits); i++ {
		if d.digits[i] < '0' || d.digits[i] > '9' {
			return decimal{}, false
		}
	}
	return d, true
}

// decimalOf takes any Go number that may stand in a tree.
func decimalOf(v any) (decimal, bool) {
	switch v := v.(type) {
	case json.Number:
		return parseDecimal(string(v))
	case float64:
		return parseDecimal(strconv.FormatFloat(v, 'g', -1, 64))
	case int, int64:
		return parseDecimal(fmt.Sprint(v))
	}
	return decimal{}, false
}

// formatPlain returns d without an exponent. The reader bounds its length.
func (d decimal) formatPlain() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	point := len(d.digits) + int(d.exp)
	switch {
	case d.exp >= 0:
		return sign + d.digits + strings.Repeat("0", int(d.exp))
	case point > 0:
		return sign + d.digits[:point] + "." + d.digits[point:]
	}
	return sign + "0." + strings.Repeat("0", -point) + d.digits
}

func (d decimal) integer() bool { return d.exp >= 0 }

// String is the same for equal numbers and for no others.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.digits + "e" + strconv.FormatInt(d.exp, 10)
}

// compare returns a number below, at or above zero as d is below, equal to or
// above o.
func (d decimal) compare(o decimal) int {
	switch {
	case d.sign() != o.sign():
		return d.sign() - o.sign()
	case d.sign() == 0:
		return 0
	}
	return d.sign() * d.magnitude(o)
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d decimal) magnitude(o decimal) int {
	a, b := d.exp+int64(len(d.digits)), o.exp+int64(len(o.digits))
	if a != b {
		if a < b {
			return -1
		}
		return 1
	}
	return strings.Compare(d.digits, o.digits)
}

// multiple says whether d is a whole multiple of r; known is false where the
// answer would need numbers larger than exactly allows.
func (d decimal) multiple(r *big.Rat) (yes, known bool) {
	if d.digits == "" {
		return true, true
	}
	if len(d.digits) > maxDigits || d.exp > maxExponent || d.exp < -maxExponent-maxDigits {
		return false, false
	}
	n, ok := new(big.Rat).SetString(d.String())
	if !ok || r.Sign() == 0 {
		return false, false
	}
	return n.Quo(n, r).IsInt(), true
}
