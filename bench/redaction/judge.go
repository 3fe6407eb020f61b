package redaction

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// isRight reports whether what a rule masked is a value of the kind that the rule names. It
// shares no code with the rules: it looks at the form, or for a word before the value.
func isRight(rule, value, before string) bool {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, value)
	switch {
	case rule == "email":
		return mailForm.MatchString(value)
	case rule == "card":
		return len(digits) >= 12 && len(digits) <= 19 && hasLuhnDigit(digits)
	case rule == "pii.phone":
		return len(digits) >= 7 && len(digits) <= 15 && phoneForm.MatchString(value)
	case rule == "pii.ssn":
		return len(digits) == 9
	case rule == "pii.iban":
		return ibanForm.MatchString(value)
	case strings.HasPrefix(rule, "pii."):
		return personalWords.MatchString(before)
	case rule == "secret.assignment" || rule == "secret.field":
		return secretWords.MatchString(before)
	case strings.HasPrefix(rule, "secret."):
		return len(value) >= 8
	}
	return false
}

var (
	mailForm  = regexp.MustCompile(`^[^\s@"]+@[^\s@"]+\.[\p{L}]{2,}$`)
	phoneForm = regexp.MustCompile(`^[+0-9().\-/ x\x{a0}]+$`)
	ibanForm  = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9 ]{10,40}$`)
	// secretWords are words that announce a secret within the line before it.
	secretWords = regexp.MustCompile(`(?i)pass|pwd|pin\b|secret|token|key|auth|cred|cookie|session|bearer|login`)
	// personalWords announce personal data.
	personalWords = regexp.MustCompile(`(?i)name|birth|born|address|passport|licen[cs]e|tax|ssn|social|` +
		`account|routing|health|medicare|nhs|vin\b|wallet|national|id\b|iban|bank|phone|insurance`)
)

// hasLuhnDigit reports whether the last digit of a number is right (ISO/IEC 7812).
func hasLuhnDigit(digits string) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// keepsShape reports whether two JSON documents have the same names, types and numbers, and
// differ in strings alone. Documents that are not JSON have no shape.
func keepsShape(before, after []byte) bool {
	a, err := decodeNumbers(before)
	if err != nil {
		return true
	}
	b, err := decodeNumbers(after)
	return err == nil && sameShape(a, b)
}

func decodeNumbers(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func sameShape(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			w, ok := b[name]
			if !ok || !sameShape(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameShape(a[i], b[i]) {
				return false
			}
		}
		return true
	case string:
		_, ok := b.(string)
		return ok
	}
	return a == b
}
