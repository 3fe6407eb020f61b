package domain

import (
	"net/netip"

	"github.com/holdfast-dev/holdfast"
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
	return Host{}, malformed("no host is understood yet", "")
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

// malformed is the error of what cannot be read at all (K1).
func malformed(why, hint string) *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Gate: holdfast.K1, Why: why, Hint: hint}
}
