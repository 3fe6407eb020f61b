// Package netaddr answers questions about hosts and addresses that are written as text. It resolves no names.
package netaddr

import "net/netip"

// IsLoopbackHost reports whether host, without port and brackets, is certainly this machine: "localhost" or a loopback
// address. Other names are not: what they mean is decided elsewhere.
func IsLoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// IsLoopbackAddrPort reports whether address is a loopback address with a port. net.Dialer.Control and
// http.Request.RemoteAddr have that form. A name is never one.
func IsLoopbackAddrPort(address string) bool {
	ap, err := netip.ParseAddrPort(address)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// IsUnspecifiedHost reports whether host, without port and brackets, is 0.0.0.0 or ::, which a listener on all
// addresses has.
func IsUnspecifiedHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsUnspecified()
}
