package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

// refuse makes the error for one place. The pointer is cut and cleaned by
// shown; the content at the place is never part of the text.
func refuse(kind holdfast.Kind, why, pointer string, offset int, hint string) error {
	gate := holdfast.K5
	if kind == holdfast.KindPayloadTooLarge {
		gate = holdfast.K1
	}
	return &holdfast.Error{
		Kind: kind, Gate: gate, Hint: hint,
		Why: fmt.Sprintf("%s at %s (byte %d)", why, shown(pointer), offset),
	}
}

func (p *parser) tooDeep(offset int) error {
	pointer := ""
	if p.dec != nil {
		pointer = string(p.dec.StackPointer())
	}
	why := fmt.Sprintf("more than %d containers inside each other", p.maxDepth)
	return refuse(holdfast.KindPayloadTooLarge, why, pointer, offset, "flatten the document")
}

// syntax sorts what the tokenizer found into the kinds of D10.
func (p *parser) syntax(err error) error {
	pointer, offset := "", int(p.dec.InputOffset())
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		pointer, offset = string(s.JSONPointer), int(s.ByteOffset)
	}
	rest := p.src[min(max(offset, 0), len(p.src)):]
	switch {
	case notANumber(rest):
		return refuse(holdfast.KindCanonicalize, "NaN and infinities are not JSON", pointer, offset, "send null or a string")
	case loneSurrogate(rest):
		return refuse(holdfast.KindCanonicalize, "a surrogate stands alone in a string", pointer, offset, "send well-formed Unicode")
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return refuse(holdfast.KindValue, "the document ends too early", pointer, len(p.src), wanted(pointer, ""))
	case len(rest) > 0 && rest[0] >= 0x80:
		return refuse(holdfast.KindValue, "not valid UTF-8 or not JSON", pointer, offset, "send JSON in UTF-8")
	}
	return refuse(holdfast.KindValue, "not valid JSON", pointer, offset, wanted(pointer, expectation(s)))
}

// wanted is the hint at a place. At the root it is what a document looks like:
// who writes none at all is not helped by the next character.
func wanted(pointer, next string) string {
	if pointer == "" {
		return `the payload must be JSON, such as '{"path": "a"}'`
	}
	return next
}

// expectation is the tokenizer's own hint about what may stand at the place,
// the part of its message in brackets, which quotes nothing of the document.
func expectation(s *jsontext.SyntacticError) string {
	if s == nil || s.Err == nil {
		return ""
	}
	return expectationIn(s.Err.Error())
}

// expectationIn returns the part of the tokenizer's message in brackets. The tokenizer
// has no type for it, and nothing but a hint depends on it.
func expectationIn(message string) string {
	_, after, found := strings.Cut(message, "(")
	if !found || !strings.HasPrefix(after, "expecting ") || !strings.HasSuffix(after, ")") {
		return ""
	}
	return strings.TrimSuffix(after, ")")
}

func notANumber(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("-"))
	return bytes.HasPrefix(b, []byte("NaN")) || bytes.HasPrefix(b, []byte("Infinity"))
}

// loneSurrogate says whether b begins with an escape \uD800 to \uDFFF, at
// which the tokenizer stops only when its other half is missing.
func loneSurrogate(b []byte) bool {
	return len(b) >= 4 && b[0] == '\\' && b[1] == 'u' && (b[2] == 'd' || b[2] == 'D') &&
		strings.IndexByte("89abcdefABCDEF", b[3]) >= 0
}

// Limits of a pointer in an error text.
const (
	maxToken   = 64
	maxPointer = 256
)

// shown makes a pointer fit for people and logs: names come from the
// document, so long ones are cut and those that could carry a secret or break
// a line are replaced.
func shown(pointer string) string {
	if pointer == "" {
		return "the root"
	}
	var b strings.Builder
	for _, token := range strings.Split(pointer[1:], "/") {
		b.WriteByte('/')
		b.WriteString(shownToken(token))
		if b.Len() > maxPointer {
			b.WriteString("/...")
			break
		}
	}
	return b.String()
}

// shownToken keeps words and indexes. Anything with characters outside names
// or with a run of digits and letters as long as a key is withheld.
func shownToken(token string) string {
	if len(token) > maxToken {
		return "(long name)"
	}
	digits, letters := 0, 0
	for _, r := range token {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r > 0x7f && r < 0xfffd:
			letters++
		case !strings.ContainsRune("_-.$~:()[] ", r):
			return "(name withheld)"
		}
	}
	if digits > 8 || digits > 3 && digits+letters >= 16 || credential(token) {
		return "(name withheld)"
	}
	return token
}

// credential knows the beginnings of common keys and tokens.
func credential(s string) bool {
	for _, prefix := range []string{"sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "eyJ", "-----"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
