package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members are still text. It was read without
// duplicate names and as valid UTF-8, at every depth.
type object map[string]jsontext.Value

// parts are the pieces of a token's compact form. Nothing in them is verified.
type parts struct {
	header    object
	claims    object
	signed    string // what the signature is over
	signature []byte
}

// strict is base64url without padding that refuses stray bits, so that one
// token has one spelling.
var strict = base64.RawURLEncoding.Strict()

// split takes a token apart. The caller has bounded its length.
func split(text string) (parts, error) {
	if !alphabet(text) {
		return parts{}, errors.New("it holds characters outside base64url")
	}
	seg := strings.Split(text, ".")
	if len(seg) != 3 {
		return parts{}, fmt.Errorf("it has %d parts instead of 3", len(seg))
	}
	p := parts{signed: text[:len(seg[0])+1+len(seg[1])]}
	var err error
	if p.header, err = decode(seg[0]); err != nil {
		return parts{}, fmt.Errorf("header: %w", err)
	}
	if p.claims, err = decode(seg[1]); err != nil {
		return parts{}, fmt.Errorf("claims: %w", err)
	}
	if p.signature, err = strict.DecodeString(seg[2]); err != nil {
		return parts{}, errors.New("signature: not base64url")
	}
	return p, nil
}

// alphabet refuses what the base64 decoder would skip, such as line breaks.
func alphabet(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

func decode(seg string) (object, error) {
	b, err := strict.DecodeString(seg)
	if err != nil {
		return nil, errors.New("not base64url")
	}
	if tooDeep(b) {
		return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, jsonFault(err)
	}
	if o == nil {
		return nil, errors.New("null instead of an object")
	}
	return o, nil
}

// jsonFault says where JSON is wrong without repeating what is in it.
func jsonFault(err error) error {
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("a name occurs twice, at byte %d", syn.ByteOffset)
		}
		return fmt.Errorf("not JSON, at byte %d", syn.ByteOffset)
	}
	return errors.New("not a JSON object")
}

// tooDeep counts brackets outside strings. It need not know whether the text
// is JSON: the parser that follows does.
func tooDeep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// has says whether a member is there and is not null.
func (o object) has(name string) bool {
	v, ok := o[name]
	return ok && v.Kind() != 'n'
}

// text returns a member that is a string; a missing one is "".
func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	if o[name].Kind() != '"' {
		return "", fmt.Errorf("%s is not a string", name)
	}
	b, err := jsontext.AppendUnquote(nil, o[name])
	if err != nil {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return string(b), nil
}

// texts returns a member that is an array of strings.
func (o object) texts(name string) ([]string, error) {
	var out []*string // a null would silently become ""
	if o[name].Kind() != '[' || json.Unmarshal(o[name], &out) != nil || slices.Contains(out, nil) {
		return nil, fmt.Errorf("%s is not an array of strings", name)
	}
	plain := make([]string, len(out))
	for i, s := range out {
		plain[i] = *s
	}
	return plain, nil
}

// lastSecond is the end of year 9999, the last that every format can write.
const lastSecond = 253402300799

// instant returns a NumericDate rounded to a whole second in the direction
// that refuses more: down for exp, up for nbf and iat.
func (o object) instant(name string, round func(float64) float64) (time.Time, error) {
	if o[name].Kind() != '0' {
		return time.Time{}, fmt.Errorf("%s is not a number", name)
	}
	f, err := strconv.ParseFloat(string(o[name]), 64)
	if err != nil || math.Abs(f) > lastSecond {
		return time.Time{}, fmt.Errorf("%s is out of range", name)
	}
	return time.Unix(int64(round(f)), 0).UTC(), nil
}
