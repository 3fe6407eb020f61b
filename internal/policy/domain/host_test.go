package domain

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Every way of writing a host that is one host ends in that host.
func TestHostIsCanonical(t *testing.T) {
	long := strings.Repeat("a", 63)
	for in, want := range map[string]string{
		"api.openai.com":                "api.openai.com",
		"API.OpenAI.Com":                "api.openai.com",
		"api.openai.com.":               "api.openai.com",
		"ｅxample。com":                   "example.com",
		"exam\u00adple.com":             "example.com",
		"EXAMPLE．com":                   "example.com",
		"bücher.example":                "xn--bcher-kva.example",
		"BÜCHER.example.":               "xn--bcher-kva.example",
		"xn--bcher-kva.example":         "xn--bcher-kva.example",
		"XN--bcher-kva.example":         "xn--bcher-kva.example",
		"straße.example":                "xn--strae-oqa.example",
		"аpple.com":                     "xn--pple-43d.com",
		"_dmarc.example.com":            "_dmarc.example.com",
		"a_b.bücher.example":            "a_b.xn--bcher-kva.example",
		"r3---sn-apo3qvuoxuxbt.example": "r3---sn-apo3qvuoxuxbt.example",
		"1password.com":                 "1password.com",
		"localhost":                     "localhost",
		"0x.example":                    "0x.example",
		"127.0.0.1":                     "127.0.0.1",
		"127.0.0.1.":                    "127.0.0.1",
		"::1":                           "::1",
		"2001:DB8:0::1":                 "2001:db8::1",
		"::ffff:10.0.0.1":               "10.0.0.1",
		long + ".example":               long + ".example",
		strings.Repeat("ab.", 84) + "c": strings.Repeat("ab.", 84) + "c", // 253 bytes
	} {
		h, err := ParseHost(in)
		if err != nil || h.String() != want {
			t.Errorf("%q is %q, not %q: %v", in, h, want, err)
			continue
		}
		if again, err := ParseHost(h.String()); err != nil || again != h {
			t.Errorf("%q is read back as %q: %v", h, again, err)
		}
	}
}

// What two readers could take for two hosts is no host at all.
func TestHostRefusesTheAmbiguous(t *testing.T) {
	for _, in := range []string{
		"", ".", "..", ".example.com", "a..b", "example.com..", "a.。b",
		"a\x00b.com", "example.com\x00.evil.com", "a\rb", "a\nb", "a b", "a\tb", " example.com", "example.com ", "exa\u00a0mple.com", "a\u3000b.com",
		"a%2fb", "%61.com", "example.com%00", "fe80::1%eth0", "::1%1", "user@example.com", "a/b", `a\b`, "a?b", "a#b", "a:b", "a:443", "[::1]", "*.example.com",
		"ex＠mple.com", "a／b.com", "a℀b.com", "a：443", "a％2fb.com", "⑴.com",
		"127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01", "1.2.3", "1.2.3.4.5", "256.0.0.1", "017700000001", "example.0x7f", "example.1", "0x", "1.2.3.4..",
		"①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "①.example.１",
		"-a.com", "a-.com", "a.-", "xn--a.com", "xn--.com", "xn--example-.com", "xn--xn---epa.com", "a\xffb.com", "\u202eexample.com", "a\u200bb\u200d.com",
		"a!b.com", "a$b", "a,b", "a|b", "a{b}", "☃☃\x7f.com",
		"\u0627a.example", "aℵb.example", strings.Repeat("ab.", 84) + "cd", strings.Repeat("a", 64) + ".com", strings.Repeat("abcdefg.", 32) + "com", strings.Repeat("a", 2000), strings.Repeat("ü", 500),
		":", ":::", "1:2", "::1.2.3", "0:0:0:0:0:0:0:0:1",
	} {
		h, err := ParseHost(in)
		if err == nil || h != (Host{}) {
			t.Errorf("%q was read as %q", in, h)
		}
		if holdfast.KindOf(err) != holdfast.KindValidation {
			t.Errorf("%q: %v is no ValidationError", in, err)
		}
	}
}

// A host is an address or a name, and never both.
func TestHostAddr(t *testing.T) {
	h, err := ParseHost("192.0.2.1")
	if err != nil || !h.IsAddr() || h.Addr() != netip.MustParseAddr("192.0.2.1") {
		t.Error(h, err)
	}
	if h, err = ParseHost("a.example"); err != nil || h.IsAddr() || h.Addr().IsValid() {
		t.Error(h, err)
	}
	if (Host{}).IsAddr() || (Host{}).String() != "" {
		t.Error("the zero host is something")
	}
}
