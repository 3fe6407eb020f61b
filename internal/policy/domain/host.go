package domain

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/holdfast-dev/holdfast"
)

// Bounds of a host as it comes, and of a name and its labels (RFC 1035).
const (
	mostHost  = 1024
	mostName  = 253
	mostLabel = 63
)

// Host is a canonical host: a name of at most 253 bytes in lower-case ASCII
// (A-labels) without a trailing dot, or an address, unmapped and without a
// zone. Two hosts are the same if and only if they are ==. The zero Host is no
// host, and nothing lists it.
type Host struct {
	name string
	addr netip.Addr
}

// ParseHost reads one host without port or brackets: a name in any script
// (mapped by IDNA, with one trailing dot ignored) or an IP literal. It refuses,
// as ValidationError, everything that two readers could take for different
// hosts: NUL, CR, LF, space, tab, "%", "@", slashes, empty labels, zones, and
// numbers that are no dotted quad (127.1, 0x7f.1, 2130706433, 0177.0.0.1).
// Labels may hold underscores.
func ParseHost(s string) (Host, error) {
	h, bad := parseHost(s)
	return h, orNil(bad)
}

// parseHost is ParseHost; where there is an error the host is zero.
func parseHost(s string) (Host, *holdfast.Error) {
	if s == "" {
		return Host{}, malformed("the host is empty", "name the host that is meant")
	}
	if len(s) > mostHost {
		return Host{}, malformed("the host has "+strconv.Itoa(len(s))+" bytes, and no name has more than 253", "")
	}
	if strings.Contains(s, ":") {
		return parseIPv6(s)
	}
	name, plain := lower(s)
	if !plain {
		var err *holdfast.Error
		if name, err = mapped(s); err != nil {
			return Host{}, err
		}
	}
	return named(name, s, plain)
}

// named makes a host of a name that was mapped. An address is looked for only
// here, because IDNA maps other digits and dots to those of an address; such
// an address, written to be overlooked, is refused.
func named(name, s string, plain bool) (Host, *holdfast.Error) {
	name = strings.TrimSuffix(name, ".")
	if why := badName(name); why != "" {
		return Host{}, malformed("the host "+quote(s)+" "+why, "")
	}
	if !numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		return Host{name: name}, nil
	}
	addr, err := netip.ParseAddr(name)
	if err != nil || !plain {
		return Host{}, malformed("the host "+quote(s)+" is a number that some read as an address", "write an address as four decimal numbers, without leading zeros")
	}
	return Host{addr: addr}, nil
}

// parseIPv6 reads the only kind of host that holds a colon.
func parseIPv6(s string) (Host, *holdfast.Error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return Host{}, malformed("the host "+quote(s)+" is neither a name nor an address", "a port is no part of a host, and an address has no zone")
	}
	return Host{addr: addr.Unmap()}, nil
}

// lower is s in lower case, and whether it needs no mapping: it is ASCII, and
// no label of it is, or could be taken for, an A-label.
func lower(s string) (string, bool) {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	s = strings.ToLower(s)
	return s, !strings.Contains(s, "xn--")
}

// lookup maps as a lookup does, but for what real names hold: underscores, and
// hyphens in the third and fourth place.
var lookup = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

// mapped is s by IDNA as a lookup maps it (RFC 5891 section 5, UTS 46),
// underscores permitted. What does not map to itself a second time, and an
// A-label of an A-label, is refused.
func mapped(s string) (string, *holdfast.Error) {
	odd := func() *holdfast.Error {
		return malformed("the host "+quote(s)+" is no name by the rules for names in other scripts", "write it in its ASCII form, which starts with xn--")
	}
	if !utf8.ValidString(s) {
		return "", odd()
	}
	name, err := lookup.ToASCII(s)
	if err != nil {
		return "", odd()
	}
	if again, err := lookup.ToASCII(name); err != nil || again != name {
		return "", odd()
	}
	for label := range strings.SplitSeq(name, ".") {
		if !strings.HasPrefix(label, "xn--") {
			continue
		}
		if u, err := lookup.ToUnicode(label); err != nil || strings.HasPrefix(u, "xn--") {
			return "", odd()
		}
	}
	return name, nil
}

// badName says what is wrong with a mapped name, "" for nothing.
func badName(name string) string {
	if len(name) > mostName {
		return "has more than 253 bytes"
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			if !nameByte(name[i]) {
				return "holds " + strconv.QuoteRune(rune(name[i])) + ", which no name holds"
			}
			continue
		}
		switch label := name[start:i]; {
		case label == "":
			return "has an empty label"
		case len(label) > mostLabel:
			return "has a label of more than 63 bytes"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "has a label that starts or ends with a hyphen"
		}
		start = i + 1
	}
	return ""
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// numeric says whether a last label makes its host a number: digits only, or
// what C libraries read as hexadecimal.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func controls(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// quote is s for an error: quoted, so that nothing in it is invisible, and cut
// short.
func quote(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return strconv.QuoteToASCII(s)
}

// String is the canonical form, "" of the zero Host. An IPv6 address stands
// without brackets.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// IsAddr says whether h is an address.
func (h Host) IsAddr() bool { return h.addr.IsValid() }

// Addr is the address of an IP literal; the zero Addr of a name.
func (h Host) Addr() netip.Addr { return h.addr }

// orNil keeps a nil *holdfast.Error from becoming an error that is not nil.
func orNil(e *holdfast.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// malformed is the error of what cannot be read at all (K1).
func malformed(why, hint string) *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: why, Hint: hint}
}
