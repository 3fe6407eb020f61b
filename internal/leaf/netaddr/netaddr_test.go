package netaddr

import "testing"

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		host                  string
		loopback, unspecified bool
	}{
		{host: "localhost", loopback: true},
		{host: "127.0.0.1", loopback: true},
		{host: "127.255.255.254", loopback: true},
		{host: "::1", loopback: true},
		{host: "::1%lo", loopback: true},
		{host: "::ffff:127.0.0.1", loopback: true},
		{host: "0.0.0.0", unspecified: true},
		{host: "::", unspecified: true},
		{host: "::ffff:0.0.0.0", unspecified: true},
		{host: ""},
		{host: "LOCALHOST"},
		{host: "localhost."},
		{host: "a.localhost"},
		{host: "localhost.example.com"},
		{host: "127.0.0.1.example.com"},
		{host: "127.1"},
		{host: "127.0.0.01"},
		{host: "2130706433"},
		{host: "0x7f.0.0.1"},
		{host: "[::1]"},
		{host: "127.0.0.1:80"},
		{host: "128.0.0.1"},
		{host: "10.0.0.1"},
		{host: "0.0.0.1"},
		{host: "169.254.0.1"},
		{host: "::2"},
		{host: "::ffff:10.0.0.1"},
		{host: "2001:db8::1"},
		{host: "fe80::1%eth0"},
	} {
		if got := IsLoopbackHost(c.host); got != c.loopback {
			t.Errorf("IsLoopbackHost(%q) is %v", c.host, got)
		}
		if got := IsUnspecifiedHost(c.host); got != c.unspecified {
			t.Errorf("IsUnspecifiedHost(%q) is %v", c.host, got)
		}
	}
}

func TestIsLoopbackAddrPort(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:65535": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"": false, "127.0.0.1": false, "::1": false, "[::1]": false, "localhost:80": false, "127.0.0.1:": false,
		"127.0.0.1:65536": false, "192.0.2.1:80": false, "[2001:db8::1]:80": false, "0.0.0.0:80": false, "[::]:80": false,
	} {
		if got := IsLoopbackAddrPort(address); got != want {
			t.Errorf("IsLoopbackAddrPort(%q) is %v", address, got)
		}
	}
}
