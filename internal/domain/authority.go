package domain

import (
	"net/netip"
	"strconv"
)

// Origin is where a request goes: scheme, host and port. Two origins are the
// same if and only if they are ==.
type Origin struct {
	TLS  bool
	Host Host
	Port uint16
}

// Authority is "host:port", with brackets around an IPv6 address: what a
// CONNECT names and a dialler takes.
func (o Origin) Authority() string {
	port := strconv.Itoa(int(o.Port))
	if o.Host.IsAddr() {
		return netip.AddrPortFrom(o.Host.Addr(), o.Port).String()
	}
	return o.Host.String() + ":" + port
}

// String is "https://host", or http, with the port where it is not the
// scheme's own. ParseURL reads it back.
func (o Origin) String() string {
	scheme, own := "http://", uint16(80)
	if o.TLS {
		scheme, own = "https://", 443
	}
	if o.Port != own {
		return scheme + o.Authority()
	}
	if o.Host.Addr().Is6() {
		return scheme + "[" + o.Host.String() + "]"
	}
	return scheme + o.Host.String()
}

// ParseAuthority reads "host", "host:port" or "[v6]:port", as a CONNECT, a Host
// header or an allowlist writes them; given says whether a port stood there.
// Brackets around anything but an IPv6 address, user-info, an empty port and
// ports with leading zeros are refused as ValidationError.
func ParseAuthority(s string) (h Host, port uint16, given bool, err error) {
	return Host{}, 0, false, malformed("no authority is understood yet", "")
}

// ParseURL reads an absolute URL of scheme http or https (ws and wss count as
// these). The target is path and query exactly as they stand, "/" where there
// is no path, and at most 32 KiB of visible ASCII. A fragment, user-info,
// backslashes and whatever ParseAuthority refuses are a ValidationError.
func ParseURL(raw string) (o Origin, target string, err error) {
	return Origin{}, "", malformed("no URL is understood yet", "")
}
