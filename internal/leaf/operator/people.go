package operator

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Limits of a list of keys.
const (
	MaxKeys    = 16
	MaxKeyList = 64 << 10 // bytes
	maxPerson  = 64       // bytes of a name
)

// CheckName refuses a name that a key cannot bear: one to 64 letters, digits,
// dots, dashes and underscores of ASCII.
func CheckName(name string) error {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)
	}
	if name == "" || len(name) > maxPerson || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return refuse(holdfast.KindUsage, fmt.Sprintf("%q is no name for a key", name), "use letters, digits, dots, dashes and underscores", nil)
	}
	return nil
}

// Named is the key under a person's name. A name that CheckName refuses gives
// the zero Public.
func (p Public) Named(name string) Public {
	if CheckName(name) != nil {
		return Public{}
	}
	p.name = name
	return p
}

// Entry is the line by which a list admits this key: its text, and the word of
// a person who is in the list already. The statement's Act is Admit, its
// Subject the key's ID and its Value the key's text.
func Entry(admitted Public, word Signed) string {
	return admitted.String() + " " + base64.StdEncoding.EncodeToString(word.Statement) + " " + base64.StdEncoding.EncodeToString(word.Signature)
}

// ParseKeys reads a list of keys, one a line; empty lines and those that begin
// with # are skipped. The first key is there because whoever made the list put
// it there; each one after it is an Entry that a key before it has signed. A
// list that is wrong in any place is a ValueError and no list.
func ParseKeys(text string) ([]Public, error) {
	if len(text) > MaxKeyList {
		return nil, badList(0, fmt.Sprintf("the list has more than %d bytes", MaxKeyList))
	}
	var out []Public
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p, err := parseEntry(line, out)
		if err != nil {
			return nil, badList(n, err.Error())
		}
		for _, other := range out {
			if other.Equal(p) || strings.EqualFold(other.name, p.name) && p.name != "" {
				return nil, badList(n, "the key, or its name, is there already")
			}
		}
		if out = append(out, p); len(out) > MaxKeys {
			return nil, badList(n, fmt.Sprintf("there are more than %d keys", MaxKeys))
		}
	}
	return out, nil
}

func badList(line int, why string) error {
	return refuse(holdfast.KindValue, fmt.Sprintf("the list of operators' keys is wrong in line %d: %s", line, why), "a key is added with `holdfast init --operator NAME`", nil)
}

func parseEntry(line string, before []Public) (Public, error) {
	if len(before) == 0 {
		return ParsePublic(line)
	}
	f := strings.Split(line, " ")
	if len(f) != 5 {
		return Public{}, fmt.Errorf("it is not a key with a name and the word of one before it")
	}
	p, err := ParsePublic(strings.Join(f[:3], " "))
	if err != nil {
		return p, err
	}
	var word Signed
	if word.Statement, err = base64.StdEncoding.Strict().DecodeString(f[3]); err == nil {
		word.Signature, err = base64.StdEncoding.Strict().DecodeString(f[4])
	}
	if err != nil {
		return p, fmt.Errorf("the word of the one before it is not base64")
	}
	said, err := Parse(word.Statement)
	if err != nil {
		return p, err
	}
	for _, by := range before {
		// Its age was judged when it was said.
		if s, err := Verify(by, word, said.At); err == nil && s.Act == Admit && s.Subject == p.ID() && s.Value == p.String() {
			return p, nil
		}
	}
	return p, fmt.Errorf("no key before it has signed for it")
}
