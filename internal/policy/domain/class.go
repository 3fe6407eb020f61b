package domain

import (
	"errors"
	"net/netip"
)

// class is a range of addresses that nobody is sent to, and what it is.
type class struct {
	within netip.Prefix
	what   string
	// never holds even where a row names the address: nobody's service is
	// there, or only the machine's own secrets are.
	never bool
}

// classes are the special-purpose addresses of RFC 6890 and the registries that
// keep it up to date, and the metadata addresses that cloud providers document.
// They are asked in order: a range stands before one that holds it.
var classes = []class{
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds answer with their metadata", true},
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata address of a cloud", true},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata address of a cloud", true},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata address of a cloud", true},
	{netip.MustParsePrefix("0.0.0.0/8"), "this host itself, unspecified", true},
	{netip.MustParsePrefix("10.0.0.0/8"), "private", false},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared behind a carrier's translation", false},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", false},
	{netip.MustParsePrefix("172.16.0.0/12"), "private", false},
	{netip.MustParsePrefix("192.0.0.0/24"), "kept for protocols", true},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation", true},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay of 6to4", true},
	{netip.MustParsePrefix("192.168.0.0/16"), "private", false},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks", true},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation", true},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation", true},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", true},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved", true},

	{netip.MustParsePrefix("fd00:ec2::/32"), "the metadata address of a cloud", true},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata address of a cloud", true},
	{netip.MustParsePrefix("::/128"), "this host itself, unspecified", true},
	{netip.MustParsePrefix("::1/128"), "loopback", false},
	{netip.MustParsePrefix("::/96"), "an IPv4 address in another form", true},
	{netip.MustParsePrefix("64:ff9b::/96"), "an IPv4 address behind a translation (NAT64)", true},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an IPv4 address behind a translation (NAT64)", true},
	{netip.MustParsePrefix("2001::/32"), "an IPv4 address in a tunnel (Teredo)", true},
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation", true},
	{netip.MustParsePrefix("2001::/23"), "kept for protocols", true},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address in a tunnel (6to4)", true},
	{netip.MustParsePrefix("3fff::/20"), "for documentation", true},
	{netip.MustParsePrefix("fc00::/7"), "private", false},
	{netip.MustParsePrefix("fe80::/10"), "link-local", true},
	{netip.MustParsePrefix("fec0::/10"), "site-local", true},
	{netip.MustParsePrefix("ff00::/8"), "multicast", true},
}

// unicast is all of IPv6 that was ever given out for global unicast (RFC 4291,
// and IANA's registry); an address outside is nobody's.
var unicast = netip.MustParsePrefix("2000::/3")

// Class is nil only for an address that is globally reachable unicast, and says
// otherwise what the address is. An IPv4 address in IPv6 form is none, whatever
// it holds: unmap it where both are meant to be the same. Whatever is going to
// be dialled is asked about, unless the row names it among its Addresses.
func Class(a netip.Addr) error {
	if what, _ := classOf(a); what != "" {
		return errors.New(a.String() + " is not reachable: it is " + what)
	}
	return nil
}

// classOf says what a is, "" for globally reachable unicast, and whether that
// holds even where a row names it.
func classOf(a netip.Addr) (what string, never bool) {
	switch {
	case !a.IsValid():
		return "no address", true
	case a.Zone() != "":
		return "an address with a zone, which is one machine's own", true
	case a.Is4In6():
		return "an IPv4 address in another form", true
	}
	for _, c := range classes {
		if c.within.Contains(a) {
			return c.what, c.never
		}
	}
	switch {
	case a.Is6() && !unicast.Contains(a):
		return "given to nobody", true
	case isatap(a):
		return "an IPv4 address in a tunnel (ISATAP)", true
	}
	return "", false
}

// isatap looks for the interface identifiers 0:5efe and 200:5efe before an IPv4
// address (RFC 5214).
func isatap(a netip.Addr) bool {
	b := a.As16()
	return a.Is6() && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
