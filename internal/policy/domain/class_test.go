package domain

import (
	"net/netip"
	"strings"
	"testing"
)

// Every range that is not globally reachable unicast is refused at its first
// and its last address, and the address beside it, where that is anybody's,
// passes. Bypass list 14 and 16.
func TestEgress_Bypass14_AddressesInOtherForms(t *testing.T) {
	for _, c := range []struct{ deny, allow string }{
		{"0.0.0.0 0.255.255.255", "1.0.0.0"},
		{"10.0.0.0 10.255.255.255", "9.255.255.255 11.0.0.0"},
		{"100.64.0.0 100.127.255.255", "100.63.255.255 100.128.0.0"},
		{"127.0.0.0 127.0.0.1 127.255.255.255", "126.255.255.255 128.0.0.0"},
		{"169.254.0.0 169.254.255.255", "169.253.255.255 169.255.0.0"},
		{"172.16.0.0 172.31.255.255", "172.15.255.255 172.32.0.0"},
		{"192.0.0.0 192.0.0.255", "191.255.255.255 192.0.1.0"},
		{"192.0.2.0 192.0.2.255", "192.0.3.0"},
		{"192.88.99.0 192.88.99.255", "192.88.98.255 192.88.100.0"},
		{"192.168.0.0 192.168.255.255", "192.167.255.255 192.169.0.0"},
		{"198.18.0.0 198.19.255.255", "198.17.255.255 198.20.0.0"},
		{"198.51.100.0 198.51.100.255", "198.51.99.255 198.51.101.0"},
		{"203.0.113.0 203.0.113.255", "203.0.112.255 203.0.114.0"},
		{"224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255", "223.255.255.255"},
		// IPv4 in IPv6: mapped, compatible, both of NAT64, 6to4, Teredo, ISATAP.
		{"::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::8.8.8.8", "8.8.8.8"},
		{"64:ff9b::a00:1 64:ff9b::808:808 64:ff9b:1::a00:1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "2600:ff9b::a00:1"},
		{"2002:7f00:1:: 2002:808:808::1 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::1"},
		{"2001:: 2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1", "2001:200::1 2001:4860:4860::8888"},
		{"2606:4700::5efe:a00:1 2606:4700::200:5efe:808:808", "2606:4700::201:5efe:808:808 2606:4700::5eff:a00:1"},
		// IPv6 of its own.
		{":: ::1 ::2", "2606:4700:4700::1111"},
		{"2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 3fff:: 3fff:fff:ffff::1", "2001:db7:ffff::1 2001:db9:: 3fff:1000::1"},
		{"fc00:: fd00::1 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2a00:1450::1"},
		{"fe80::1 fe80::1%eth0 febf:ffff:: fec0::1 feff:ffff::", "2400:cb00::1"},
		{"2606:4700::1111%eth0", "2606:4700::1111"},
		{"ff00:: ff02::1 ff0e::1 ffff:ffff::", "2c0f:f248::1"},
		{"100::1 1fff:ffff:: 4000:: 5f00::1 8000::1", "2000::1"},
	} {
		each(t, c.deny, func(a netip.Addr) {
			if err := Class(a); err == nil {
				t.Errorf("%s is reachable", a)
			}
		})
		each(t, c.allow, func(a netip.Addr) {
			if err := Class(a); err != nil {
				t.Error(err)
			}
		})
	}
	if err := Class(netip.MustParseAddr("::ffff:8.8.8.8")); err == nil || !strings.Contains(err.Error(), "an IPv4 address in another form") {
		t.Error(err)
	}
	if Class(netip.Addr{}) == nil {
		t.Error("no address is reachable")
	}
}

// The metadata addresses are refused, and refused even to a row that names
// them; a private address is a row's to name.
func TestEgress_Bypass16_Metadata(t *testing.T) {
	each(t, "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fe80::a9fe:a9fe ::ffff:169.254.169.254", func(a netip.Addr) {
		if Class(a) == nil {
			t.Errorf("%s is reachable", a)
		}
		if _, err := NewTable([]Domain{{Name: "metadata.example.com", Addresses: []netip.Addr{a}}}); err == nil {
			t.Errorf("a row opened the way to %s", a)
		}
		if _, err := NewTable([]Domain{{Name: a.Unmap().String(), Addresses: []netip.Addr{a}}}); err == nil {
			t.Errorf("a row named %s", a)
		}
	})
	each(t, "10.0.0.7 127.0.0.1 ::1 fd12:3456::1 100.64.0.1 168.63.129.17 2606:4700::1111", func(a netip.Addr) {
		if _, err := NewTable([]Domain{{Name: "git.example.com", Addresses: []netip.Addr{a}}}); err != nil {
			t.Error(err)
		}
	})
}

func each(t *testing.T, list string, f func(netip.Addr)) {
	t.Helper()
	for s := range strings.FieldsSeq(list) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			t.Fatal(err)
		}
		f(a)
	}
}

func BenchmarkClass(b *testing.B) {
	a := netip.MustParseAddr("2606:4700::1111")
	for b.Loop() {
		if Class(a) != nil {
			b.Fatal()
		}
	}
}
