package domain

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// list is the allowlist of the bypass tests.
func list(t testing.TB) *Table {
	t.Helper()
	return table(t,
		Domain{Name: "allowed.com", Source: "holdfast.yaml:10"},
		Domain{Name: "*.example.com"},
		Domain{Name: "bücher.example"},
		Domain{Name: "1.1.1.1"},
		Domain{Name: "[2606:4700:4700::1111]:8443"},
		Domain{Name: "127.0.0.1", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		Domain{Name: "apple.com"},
	)
}

func table(t testing.TB, ds ...Domain) *Table {
	t.Helper()
	tab, err := NewTable(ds)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// get is what becomes of a GET of an URL: the row's name, or "" and why.
func get(tab *Table, raw string) (string, error) {
	o, target, err := ParseURL(raw)
	if err != nil {
		return "", err
	}
	d, bad := tab.Decide(Ask{Origin: o, Method: "GET", Target: target})
	if bad != nil {
		return "", bad
	}
	return d.Name, nil
}

// refused wants each URL refused with one of the two kinds, and a why.
func refused(t *testing.T, tab *Table, urls ...string) {
	t.Helper()
	for _, raw := range urls {
		name, err := get(tab, raw)
		if kind := holdfast.KindOf(err); name != "" || kind != holdfast.KindValidation && kind != holdfast.KindDomainBlocked {
			t.Errorf("%q went to %q: %v", raw, name, err)
		}
	}
}

// passed wants each URL to go to the row of that name.
func passed(t *testing.T, tab *Table, row string, urls ...string) {
	t.Helper()
	for _, raw := range urls {
		if name, err := get(tab, raw); err != nil || name != row {
			t.Errorf("%q went to %q, not %q: %v", raw, name, row, err)
		}
	}
}

// authority wants an authority refused, as ValidationError and with nothing
// left over.
func noAuthority(t *testing.T, all ...string) {
	t.Helper()
	for _, s := range all {
		h, port, given, err := ParseAuthority(s)
		if holdfast.KindOf(err) != holdfast.KindValidation || h != (Host{}) || port != 0 || given {
			t.Errorf("%q was read as %q %d %v: %v", s, h, port, given, err)
		}
	}
}

// Brackets stand around IPv6 addresses and nothing else.
func TestEgress_Bypass06_BracketedAuthority(t *testing.T) {
	noAuthority(t, "[allowed.com]:443", "[allowed.com]", "[1.1.1.1]:443", "[::1", "::1]", "[]:443", "[::1]443", "[::1]]:443", "[[::1]]:443",
		"[::1%eth0]:443", "[::1]:", "::1:443", "2606:4700:4700::1111", "allowed.com:443:443", "[::1]:443:443")
	refused(t, list(t), "https://[allowed.com]/", "https://[allowed.com]:443/", "https://2606:4700:4700::1111:8443/", "https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111%25eth0]:8443/")
	passed(t, list(t), "allowed.com", "https://allowed.com:443/")
	passed(t, list(t), "[2606:4700:4700::1111]:8443", "https://[2606:4700:4700::1111]:8443/", "https://[2606:4700:4700:0:0:0:0:1111]:8443/")
}

// No byte that a resolver, a parser or a log could stop at stands in a host.
func TestEgress_Bypass07_ControlAndEscapedBytes(t *testing.T) {
	for _, odd := range []string{"\x00", "\r\n", "\r", "\n", " ", "\t", "\x7f", "%00", "%2f", "%61", "%", "\\", "/", "\v", "\u0085", "\u00a0", "\u2028", "\ufeff@"} {
		for _, s := range []string{"allowed.com" + odd, "evil.com" + odd + ".allowed.com", odd + "allowed.com", "evil.com" + odd + "allowed.com", "evil.com" + odd + ".example.com"} {
			if h, err := ParseHost(s); err == nil {
				t.Errorf("%q is the host %q", s, h)
			}
			noAuthority(t, s, s+":443")
		}
		refused(t, list(t), "https://evil.com"+odd+".allowed.com/", "https://evil.com"+odd+".example.com/", "https://"+odd+"allowed.com/")
	}
	passed(t, list(t), "allowed.com", "https://allowed.com/%00%2f%61")
}

// Case and one trailing dot make no other host; empty labels and names that are
// too long make none.
func TestEgress_Bypass08_DotsCaseAndLength(t *testing.T) {
	refused(t, list(t), "https://allowed.com../", "https://.allowed.com/", "https://allowed..com/", "https://a..example.com/", "https://.example.com/", "https://./", "https:///",
		"https://"+strings.Repeat("abcdefg.", 31)+"example.com/", "https://"+strings.Repeat("a", 64)+".example.com/", "https://"+strings.Repeat("a.", 5000)+"example.com/")
	passed(t, list(t), "allowed.com", "https://ALLOWED.com/", "https://allowed.com./", "HTTPS://Allowed.Com.:443")
	passed(t, list(t), "*.example.com", "https://"+strings.Repeat("abcdefg.", 29)+"example.com/", "https://"+strings.Repeat("a", 63)+".example.com/")
}

// A name in another script is one A-label, and no look-alike of another.
func TestEgress_Bypass09_OtherScripts(t *testing.T) {
	refused(t, list(t), "https://аpple.com/", "https://xn--pple-43d.com/", "https://allowеd.com/", "https://allowed.сom/", "https://xn--allowed-.com/", "https://allowed.com\u3002evil.org/", "https://bu\u0308cher.example.evil.org/", "https://\u202eallowed.com/", "https://xn--a.example.com/")
	passed(t, list(t), "apple.com", "https://apple.com/")
	passed(t, list(t), "allowed.com", "https://ａllowed。com/", "https://allow\u00aded.com/")
	passed(t, list(t), "xn--bcher-kva.example", "https://bücher.example/", "https://BÜCHER.example./", "https://bu\u0308cher.example/", "https://xn--bcher-kva.example/")
	passed(t, list(t), "*.example.com", "https://a_b.example.com/", "https://_x.bücher.example.com/", "https://r3---sn-apo.example.com/")
}

// What maps to an address is not read as one, even where the address is listed.
func TestEgress_Bypass10_NamesThatMapToAddresses(t *testing.T) {
	refused(t, list(t), "https://①②⑦.⓪.⓪.①/", "https://①.①.①.①/", "https://１.1.1.1/", "https://1。1。1。1/", "https://1.1.1.1\u3002/", "https://127\uff0e0.0.1/", "https://0ｘ7f.1/", "https://𝟏.1.1.1/")
	passed(t, list(t), "1.1.1.1", "https://1.1.1.1/")
	passed(t, list(t), "*.example.com", "https://①.example.com/")
}

// What stands before an @ or behind a # is no host, and nothing hides it.
func TestEgress_Bypass11_UserAndFragment(t *testing.T) {
	refused(t, list(t), "http://allowed.com@evil.com", "https://allowed.com@evil.com/", "https://evil.com@allowed.com/", "https://allowed.com:443@evil.com/", "https://user:pw@allowed.com/", "https://@allowed.com/",
		"https://evil.com#@allowed.com/", "https://allowed.com#@evil.com/", "https://allowed.com/#x", "https://allowed.com/?a#b", `https://evil.com\@allowed.com/`, `https://allowed.com\@evil.com/`, `https:\\allowed.com/`, `https://allowed.com\.evil.com/`,
		"https:allowed.com", "https:/allowed.com", "//allowed.com/", "allowed.com", "allowed.com:443", "/", "", "*", "https://?@allowed.com", "ftp://allowed.com/", "gopher://allowed.com/", "file://allowed.com/", "javascript://allowed.com/", " https://allowed.com/", "https://allowed.com /", "https ://allowed.com/")
	noAuthority(t, "allowed.com@evil.com", "user@allowed.com:443", "@", "allowed.com#", "allowed.com?", "allowed.com/", "https://allowed.com")
	passed(t, list(t), "allowed.com", "https://allowed.com/@evil.com", "https://allowed.com/?u=https://user@evil.com/%23", "https://allowed.com", "wss://allowed.com/x", "https://allowed.com?x")
}

// A wildcard is of whole labels below its name, and stops where somebody else
// may register one.
func TestEgress_Bypass12_Wildcards(t *testing.T) {
	refused(t, list(t), "https://notallowed.com/", "https://allowed.com.evil.org/", "https://www.allowed.com/", "https://example.com/", "https://notexample.com/", "https://aexample.com/", "https://x.notexample.com/", "https://a.example.com.evil.org/", "https://example.org/", "https://com/", "https://*.example.com/")
	passed(t, list(t), "*.example.com", "https://a.example.com/", "https://a.b.c.example.com/", "https://notexample.com.example.com/")
	for _, bad := range []string{"*", "*.", "*.com", "*.co.uk", "*.github.io", "*.s3.amazonaws.com", "*.internal", "**.example.com", "a.*.example.com", "*example.com", "*.*.example.com", "*.1.1.1.1", "*.[::1]", "*:443", "*.com:8443"} {
		if _, err := NewTable([]Domain{{Name: bad}}); holdfast.KindOf(err) != holdfast.KindUsage {
			t.Errorf("%q was listed: %v", bad, err)
		}
	}
	cloud := table(t, Domain{Name: "*.amazonaws.com"}, Domain{Name: "mine.s3.amazonaws.com"}, Domain{Name: "*.github.com"})
	refused(t, cloud, "https://evil.s3.amazonaws.com/", "https://s3.amazonaws.com/", "https://a.evil.s3.amazonaws.com/", "https://evil.github.io/", "https://raw.githubusercontent.com/")
	passed(t, cloud, "mine.s3.amazonaws.com", "https://mine.s3.amazonaws.com/")
	passed(t, cloud, "*.amazonaws.com", "https://sts.amazonaws.com/", "https://sts.eu-west-1.amazonaws.com/")
	passed(t, cloud, "*.github.com", "https://api.github.com/")
}

// A number that only some read as an address is no host, and no address is
// listed by being near one that is.
func TestEgress_Bypass13_NumericForms(t *testing.T) {
	refused(t, list(t), "https://127.1/", "https://0x7f.1/", "https://0x7f000001/", "https://2130706433/", "https://0177.0.0.1/", "https://127.0.0.01/", "https://127.0.1/", "https://0X7F.0.0.1/", "https://017700000001/",
		"https://1.1/", "https://0x1010101/", "https://16843009/", "https://01.01.01.01/", "https://1.1.1.1.1/", "https://1.1.1.257/", "https://1.1.1.1../", "https://[::1.1.1.1]/", "https://[1.1.1.1]/", "https://2.2.2.2/", "https://a.0x7f/", "https://0/", "https://::1/", "https://[::1]/")
	passed(t, list(t), "1.1.1.1", "https://1.1.1.1/", "https://1.1.1.1./", "https://[::ffff:1.1.1.1]/", "https://[::ffff:101:101]/")
	passed(t, list(t), "127.0.0.1", "https://127.0.0.1/")
	passed(t, list(t), "*.example.com", "https://127.0.0.1.example.com/", "https://0x7f.example.com/")
}

// A port is listed or closed, a tunnel is of an opaque row or of none, and a
// host that only this machine knows is not reached by its name. Bypass list 5,
// 18, 20 and 29 are the proxy's; this is what it asks.
func TestPortsTunnelsAndLocalNames(t *testing.T) {
	tab := list(t)
	refused(t, tab, "https://allowed.com:22/", "https://allowed.com:25/", "https://allowed.com:6379/", "https://allowed.com:8443/", "https://a.example.com:80/", "https://allowed.com:0/", "https://allowed.com:65536/", "https://allowed.com:0443/", "https://allowed.com:/", "https://allowed.com:+443/", "https://allowed.com:443x/", "https://allowed.com:4 43/",
		"http://allowed.com/", "http://allowed.com:443/", "https://localhost/", "https://localhost./", "https://127.0.0.1:7412/", "https://sk-abcdefabcdef.evil.com/", "https://metadata.google.internal/")
	allowed, _ := ParseHost("allowed.com")
	for _, a := range []Ask{
		{Origin: Origin{true, allowed, 443}, Method: "CONNECT"},
		{Origin: Origin{true, allowed, 443}, Method: "CONNECT", Target: "/"},
		{Origin: Origin{true, Host{}, 443}, Method: "GET", Target: "/"},
		{Origin: Origin{}, Method: "GET", Target: "/"},
		{},
	} {
		if d, err := tab.Decide(a); d != nil || err == nil {
			t.Errorf("%+v was allowed", a)
		}
	}
	// Two authorities are the same if and only if they are equal as values: by
	// that the proxy compares CONNECT, SNI, URL and Host.
	same, _, _, err := ParseAuthority("ALLOWED.com.:443")
	if err != nil || same != allowed {
		t.Error(same, err)
	}
	if other, _, _, _ := ParseAuthority("allowed.com.evil.org:443"); other == allowed {
		t.Error("two hosts are one")
	}
	passed(t, tab, "allowed.com", "https://allowed.com/", "https://allowed.com:443/")
}
