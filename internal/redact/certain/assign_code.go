package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
)

// lineOf reads the line of a value that ends at end, and of its name at name.
func (x *Scanner) lineOf(name, end int) line.Line {
	l := line.Around(x.S, name, end)
	x.Touch(l.Read)
	return l
}

// isExpression reports whether the value without quotes at [v, end) is code. name is
// where its name begins.
func (x *Scanner) isExpression(v, end int, k fieldname.Kind, sep byte, name int) bool {
	value := x.S[v:end]
	if sep == ' ' {
		return false
	}
	if last := value[len(value)-1]; (last == '[' || last == '(') && end < len(x.S) && char.IsQuote(x.S[end]) {
		return true // os.environ["NAME"]
	}
	l := x.lineOf(name, end)
	defer func() { x.Touch(l.Read) }()
	if line.IsFragment(value, l.Tail) {
		return true
	}
	s := line.ShapeOf(value, l.Tail)
	if l.IsSetting(name, v, sep) {
		return s == line.Call && (bytes.IndexByte(value, '(') > 0 || value[0] == '{' && len(l.Tail) > 0 &&
			l.Tail[0] == '}')
	}
	if line.IsType(value) {
		return true
	}
	switch k {
	case fieldname.Person, fieldname.PII:
		switch {
		case s == line.Call || s == line.Path || k == fieldname.PII && (!line.HasDigit(value) ||
			bytes.ContainsAny(value, "=?{}()[]|%")):
			return true
		case char.Class[value[0]]&char.Lower != 0 && bytes.IndexByte(value, ' ') < 0 && sep == ':':
			return true
		}
		return l.IsCode(name, sep) && len(l.Head) > 0
	case fieldname.Line, fieldname.Cookie:
		if blank := bytes.IndexByte(value, ' '); blank > 0 && len(value) < maxTail && bytes.IndexByte(value, '=') < 0 &&
			line.IsProseWord(value[:blank], value[blank:]) {
			return true
		}
		if c := value[len(value)-1]; c == '{' || c == '(' || sep == ':' && l.IsCode(name, sep) {
			return true
		}
		return s == line.Call || s != line.Other && fieldname.IsNameOfSecret(value) ||
			sep == '=' && (l.IsSpaced(v) || l.IsCode(name, sep))
	}
	if s != line.Call && s != line.Number && fieldname.IsIrregular(value) {
		return l.IsCode(name, sep)
	}
	switch s {
	case line.Call:
		return true
	case line.Path:
		return !line.HasDigit(value) || fieldname.IsNameOfSecret(value) || l.IsCode(name, sep) || l.HandsOn() &&
			!fieldname.IsRandom(value)
	case line.Number:
		return k != fieldname.Password || char.DigitsFrom(value, 0, len(value)) < len(value) || l.IsCode(name, sep) ||
			l.HandsOn() && (sep == '=' && l.IsSpaced(v) || isHumped(x.S[name:v]))
	case line.Name:
		return isCapital(value[0]) || !l.IsListed()
	case line.Word:
		if l.IsRemark() {
			return fieldname.IsNameOfSecret(value)
		}
		if whole := bytes.TrimSpace(x.S[v : end+len(l.Tail)]); sep == ':' && len(whole) < maxTail && len(l.Tail) > 1 &&
			!line.HasDigit(whole) && fieldname.OfName(whole).IsSecret() {
			return true // a label
		}
		return fieldname.IsNameOfSecret(value) || l.HandsOn() || l.IsCode(name, sep) || line.IsProseWord(value,
			l.Tail) ||
			l.IsAmongCode() || sep == '=' && l.IsSpaced(v) && !l.IsListed()
	case line.Mixed:
		return fieldname.IsNameOfSecret(value) || l.IsCode(name, sep) || l.HasOperator()
	}
	return l.IsCode(name, sep) && !fieldname.IsTelling(value)
}

// isSecretLiteral reports whether the string at [v, end) may be the secret that the name
// announces: in code it is often the name of a field, a label or a pattern.
func (x *Scanner) isSecretLiteral(v, end int, k fieldname.Kind, sep byte, name int) bool {
	value := x.S[v:end]
	if k == fieldname.Person || k == fieldname.PII {
		return true
	}
	if fieldname.IsPattern(value) || len(value) == 1 && sep == '=' {
		return false
	}
	if !fieldname.IsNameOfSecret(value) {
		return true
	}
	l := x.lineOf(name, end)
	tail := bytes.TrimLeft(l.Tail, "\"'`")
	return sep == '=' && len(l.Head) == 0 && l.Begun && len(tail) == 0 && x.S[v-2] == '=' &&
		isCapital(x.S[name]) && bytes.IndexByte(value, ' ') < 0
}

// isScored reports whether the value that ends at end is a token of a text: its score, its
// place or the expression that finds it follows.
func (x *Scanner) isScored(name, end int) bool {
	if !x.Has(name, "token") || x.Is(name+5, char.Ident) {
		return false
	}
	stop := min(len(x.S), end+maxTail)
	x.Touch(end + maxTail)
	for _, t := range [...]string{"logprob", "start_offset", "regex "} {
		if bytes.Contains(x.S[end:stop], []byte(t)) {
			return true
		}
	}
	return false
}

// isHumped reports whether a name has a capital after a small letter.
func isHumped(name []byte) bool {
	for i := 1; i < len(name) && char.Class[name[i]]&char.Ident != 0; i++ {
		if isCapital(name[i]) && char.Class[name[i-1]]&char.Lower != 0 {
			return true
		}
	}
	return false
}

func isCapital(c byte) bool { return char.Class[c]&char.Upper != 0 }
