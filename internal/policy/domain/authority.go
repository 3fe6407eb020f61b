package domain

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// mostTarget bounds path and query, in bytes.
const mostTarget = 32 << 10

// Origin is where a request goes: scheme, host and port. Two origins are the
// same if and only if they are ==.
type Origin struct {
	TLS  bool
	Host Host
	Port uint16
}

// Authority is "host:port", with brackets around an IPv6 address: what a
// CONNECT names and a dialler takes. ParseAuthority reads it back.
func (o Origin) Authority() string {
	if o.Host.IsAddr() {
		return netip.AddrPortFrom(o.Host.Addr(), o.Port).String()
	}
	return o.Host.String() + ":" + strconv.Itoa(int(o.Port))
}

// String is "https://host", or http, with the port where it is not the
// scheme's own. ParseURL reads it back.
func (o Origin) String() string {
	scheme := "http://"
	if o.TLS {
		scheme = "https://"
	}
	switch {
	case o.Port != ownPort(o.TLS):
		return scheme + o.Authority()
	case o.Host.Addr().Is6():
		return scheme + "[" + o.Host.String() + "]"
	}
	return scheme + o.Host.String()
}

func ownPort(tls bool) uint16 {
	if tls {
		return 443
	}
	return 80
}

// ParseAuthority reads "host", "host:port" or "[v6]:port", as a CONNECT, a Host
// header or an allowlist writes them; given says whether a port stood there.
// Brackets around anything but an IPv6 address, user-info, an empty port and
// ports with leading zeros are refused as ValidationError.
func ParseAuthority(s string) (h Host, port uint16, given bool, err error) {
	h, port, given, bad := parseAuthority(s)
	return h, port, given, orNil(bad)
}

func parseAuthority(s string) (h Host, port uint16, given bool, err *holdfast.Error) {
	if len(s) > mostHost {
		return Host{}, 0, false, malformed("the authority has "+strconv.Itoa(len(s))+" bytes, and no host has more than 253", "")
	}
	if strings.Contains(s, "@") {
		return Host{}, 0, false, malformed("the authority "+quote(s)+" holds a user, which reads as another host", "leave out everything up to the @; credentials are added by the proxy")
	}
	host, rest, given := s, "", false
	if strings.HasPrefix(s, "[") {
		if host, rest, err = bracketed(s); err != nil {
			return Host{}, 0, false, err
		}
		rest, given = strings.CutPrefix(rest, ":")
	} else {
		host, rest, given = strings.Cut(s, ":")
	}
	if strings.Contains(rest, ":") || !given && rest != "" {
		return Host{}, 0, false, malformed("the authority "+quote(s)+" is no host with a port", "write an IPv6 address in brackets: [2001:db8::1]:443")
	}
	if given {
		if port, err = parsePort(rest); err != nil {
			return Host{}, 0, false, err
		}
	}
	if h, err = parseHost(host); err != nil {
		return Host{}, 0, false, err
	}
	return h, port, given, nil
}

// bracketed cuts the brackets off an IPv6 address.
func bracketed(s string) (host, rest string, err *holdfast.Error) {
	host, rest, closed := strings.Cut(s[1:], "]")
	addr, bad := netip.ParseAddr(host)
	if !closed || bad != nil || !addr.Is6() {
		return "", "", malformed("the authority "+quote(s)+" has brackets around what is no IPv6 address", "write a name without brackets")
	}
	return host, rest, nil
}

func parsePort(s string) (uint16, *holdfast.Error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' {
		return 0, malformed("the port "+quote(s)+" is no number from 1 to 65535", "leave out the colon for the scheme's own port")
	}
	return uint16(n), nil
}

// ParseURL reads an absolute URL of scheme http or https (ws and wss count as
// these). The target is path and query as they stand, "/" where there is no
// path, and at most 32 KiB of visible ASCII; only what no path may hold (RFC
// 3986 section 3.3) is percent-encoded, so that everybody sends it on as it was
// judged. A fragment, user-info,
// backslashes and whatever ParseAuthority refuses are a ValidationError.
func ParseURL(raw string) (o Origin, target string, err error) {
	o, target, bad := parseURL(raw)
	return o, target, orNil(bad)
}

func parseURL(raw string) (Origin, string, *holdfast.Error) {
	if len(raw) > mostTarget+mostHost {
		return Origin{}, "", malformed("the URL has "+strconv.Itoa(len(raw))+" bytes, and more than 32 KiB are not read", "send what is long in the body")
	}
	scheme, after, ok := strings.Cut(raw, "://")
	tls, known := schemeOf(scheme)
	if !ok || !known {
		return Origin{}, "", malformed("the URL "+quote(raw)+" does not start with https:// or http://", "write the whole URL, scheme first")
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	target := after[end:]
	host, port, given, err := parseAuthority(after[:end])
	if err != nil {
		return Origin{}, "", err
	}
	if !given {
		port = ownPort(tls)
	}
	if target == "" || target[0] == '?' {
		target = "/" + target
	}
	if err := checkTarget(target); err != nil {
		return Origin{}, "", err
	}
	return Origin{TLS: tls, Host: host, Port: port}, plainTarget(target), nil
}

func schemeOf(s string) (tls, known bool) {
	switch strings.ToLower(s) {
	case "https", "wss":
		return true, true
	case "http", "ws":
		return false, true
	}
	return false, false
}

// checkTarget wants a path and a query that every server reads alike up to
// here: visible ASCII, no fragment, no backslash outside the query, and escapes
// that are whole.
func checkTarget(target string) *holdfast.Error {
	if len(target) > mostTarget {
		return malformed("path and query have "+strconv.Itoa(len(target))+" bytes, and more than 32 KiB are not read", "send what is long in the body")
	}
	if !strings.HasPrefix(target, "/") {
		return malformed("the path "+quote(target)+" does not start with a slash", "")
	}
	query := false
	for i := 0; i < len(target); i++ {
		switch c := target[i]; {
		case c <= ' ' || c >= 0x7f:
			return malformed("path or query hold a byte that is no visible ASCII", "percent-encode it")
		case c == '#':
			return malformed("the URL has a fragment, which is never sent to a server", "leave out everything from the # on, or write %23")
		case c == '?':
			query = true
		case c == '\\' && !query:
			return malformed("the path holds a backslash, which some read as a slash", "write %5C where a backslash is meant")
		case c == '%' && !query && !escape(target[i:]):
			return malformed("the path holds a percent sign that starts no escape", "write %25 where a percent sign is meant")
		}
	}
	return nil
}

// unwritten are the visible ASCII characters that no path holds unescaped.
const unwritten = "\"<>^`{|}"

// plainTarget escapes what may not stand in a path; the query stays as it is.
func plainTarget(target string) string {
	path, query, has := strings.Cut(target, "?")
	if !strings.ContainsAny(path, unwritten) {
		return target
	}
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; strings.IndexByte(unwritten, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if has {
		b.WriteString("?" + query)
	}
	return b.String()
}

// escape says whether s starts with a whole percent escape.
func escape(s string) bool {
	return len(s) >= 3 && s[0] == '%' && hexDigit(s[1]) >= 0 && hexDigit(s[2]) >= 0
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
