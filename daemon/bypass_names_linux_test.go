package daemon

import (
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// What entries say of a refusal, behind their boundary.
const (
	misdirectedEntry = " MisdirectedError"
	blockedEntry     = " DomainBlockedError"
	malformedEntry   = " ValidationError"
)

func refusedBy(status int, entry, name string, do func(*inside) told) attempt {
	return attempt{name: name, do: do, status: status, entries: []string{entry}}
}

// twin is what is like the attempts beside it, and allowed.
func twin(boundary, name string, do func(*inside) told) attempt {
	return attempt{name: "allowed: " + name, do: do, status: http.StatusOK, entries: []string{boundary}, arrives: true}
}

// byTunnel is the twin of most.
func byTunnel() attempt {
	return twin("egress/good.test", "a tunnel to a listed host", func(in *inside) told {
		return in.say(in.tunnel("good.test:443", "good.test"), in.get("good.test"))
	})
}

// byName is that of programs that know of no proxy.
func byName(host, boundary string) attempt {
	return twin(boundary, host, func(in *inside) told { return in.say(in.straight(host+":443", host), in.get(host)) })
}

// bypasses are the 31 ways of the list (design/egress.md, 1.3), in its order.
func bypasses() []bypass {
	return []bypass{
		{"01_server_name_spoofed", spoofed()},
		{"02_domain_fronting", fronting()},
		{"03_another_name_inside_CONNECT", anotherInside()},
		{"04_second_request_with_another_host", secondRequest()},
		{"05_absolute_form_and_Host", absoluteForm()},
		{"06_bracketed_authority", inConnects("[good.test]:443", "[good.test:443]", "[[::1]]:443", "[good.test", "[::1%25lo]:443")},
		{"07_control_and_escaped_bytes", controlBytes()},
		{"08_dots_case_and_length", dotsAndCase()},
		{"09_other_scripts", otherScripts()},
		{"10_names_that_map_to_addresses", otherDigits()},
		{"11_user_and_fragment", userAndFragment()},
		{"12_wildcards", wildcards()},
		{"13_numeric_addresses", numeric()},
		{"14_addresses_in_other_forms", otherForms()},
		{"15_rebinding", rebinding()},
		{"16_metadata", cloudMetadata()},
		{"17_names_as_a_tunnel", nameTunnel()},
		{"18_local_names_and_search_lists", localNames()},
		{"19_other_protocols", otherProtocols()},
		{"20_odd_ports_and_the_proxy_itself", oddPorts()},
		{"21_request_smuggling", smuggling()},
		{"22_encrypted_missing_and_split_hello", hellos()},
		{"23_plain_HTTP", plainHTTP()},
		{"24_redirects", redirects()},
		{"25_past_the_variables", pastTheVariables()},
		{"26_websocket", webSockets()},
		{"27_own_account", ownAccount()},
		{"28_encodings", encodings()},
		{"29_secret_in_a_label", secretNames()},
		{"30_slow_drip", slowDrip()},
		{"31_blinding_the_scanner", blinding()},
	}
}

func spoofed() []attempt {
	return []attempt{
		refusedBy(403, "egress/evil.test"+blockedEntry, "the server's address, another's name", func(in *inside) told {
			return in.say(in.straight(goodAddress+":443", "evil.test"), in.get("evil.test"))
		}),
		refusedBy(403, "egress/evil.test"+blockedEntry, "another's address and name", func(in *inside) told {
			return in.say(in.straight(attackerAddress+":443", "evil.test"), in.get("evil.test"))
		}),
		{name: "another's address and no name", fails: true, entries: []string{"egress/unknown" + misdirectedEntry}, direct: "tcp " + attackerAddress + ":443", do: func(in *inside) told {
			s := tls.Client(in.to(attackerAddress+":443"), &tls.Config{InsecureSkipVerify: true})
			return in.say(s, in.get("good.test"))
		}},
		// What is listed goes to where the name says, and not to who is connected to.
		twin("egress/good.test", "another's address, the listed name", func(in *inside) told {
			return in.say(in.straight(attackerAddress+":443", "good.test"), in.get("good.test"))
		}),
	}
}

func fronting() []attempt {
	out := []attempt{byName("good.test", "egress/good.test"), byTunnel()}
	for _, host := range []string{"other.test", "evil.test", "good.test.evil.test", attackerAddress} {
		out = append(out, refusedBy(421, "egress/good.test"+misdirectedEntry, host, func(in *inside) told {
			return in.say(in.straight("good.test:443", "good.test"), in.get(host))
		}), refusedBy(421, "egress/good.test"+misdirectedEntry, "in a tunnel: "+host, func(in *inside) told {
			return in.say(in.tunnel("good.test:443", "good.test"), in.get(host))
		}))
	}
	return out
}

func anotherInside() []attempt {
	out := []attempt{byTunnel()}
	for _, c := range [][2]string{{"evil.test", "evil.test"}, {"other.test", "other.test"}, {"other.test", "good.test"}, {"good.test", "other.test"}, {"good.test", "good.test:444"}, {"good.test", "good.test:80"}} {
		out = append(out, refusedBy(421, "egress/good.test"+misdirectedEntry, c[0]+" asks for "+c[1], func(in *inside) told {
			return in.say(in.tunnel("good.test:443", c[0]), in.get(c[1]))
		}))
	}
	return append(out, attempt{name: "CONNECT and its Host", status: 421, entries: []string{"egress/good.test" + misdirectedEntry}, do: func(in *inside) told {
		return in.say(in.proxy(), "CONNECT good.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
	}})
}

func secondRequest() []attempt {
	first := "GET /first HTTP/1.1\r\nHost: good.test\r\n\r\n"
	out := []attempt{}
	for _, host := range []string{"other.test", "evil.test"} {
		two := []string{"egress/good.test", "egress/good.test" + misdirectedEntry}
		out = append(out, attempt{name: "pipelined: " + host, status: 421, entries: two, do: func(in *inside) told {
			return in.each(in.tunnel("good.test:443", "good.test"), first, in.get(host))
		}}, attempt{name: "kept alive: " + host, status: 421, entries: two, do: func(in *inside) told {
			c := in.straight("good.test:443", "good.test")
			if got := in.say(c, first); got.Status != 200 {
				return got
			}
			return in.say(c, in.get(host))
		}}, refusedBy(421, "egress/good.test"+misdirectedEntry, "HTTP/2 coalesced: "+host, func(in *inside) told {
			return in.asHTTP2(host, "")
		}), refusedBy(421, "egress/good.test"+misdirectedEntry, "HTTP/2 Host beside the authority: "+host, func(in *inside) told {
			return in.asHTTP2("good.test", host)
		}), refusedBy(421, "egress/good.test"+misdirectedEntry, "HTTP/2 authority beside the Host: "+host, func(in *inside) told {
			return in.asHTTP2(host, "good.test")
		}))
	}
	return append(out,
		attempt{name: "allowed: the second to the same", status: 200, arrives: true, entries: []string{"egress/good.test", "egress/good.test"}, do: func(in *inside) told {
			return in.each(in.tunnel("good.test:443", "good.test"), first, in.get("good.test"))
		}},
		twin("egress/good.test", "HTTP/2", func(in *inside) told { return in.asHTTP2("good.test", "") }),
		twin("egress/good.test", "HTTP/2 with a Host that agrees", func(in *inside) told { return in.asHTTP2("good.test", "good.test") }))
}

func absoluteForm() []attempt {
	ask := func(target, host string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.proxy(), "GET "+target+in.mark+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		}
	}
	within := func(target string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.tunnel("good.test:443", "good.test"), "GET "+target+in.mark+" HTTP/1.1\r\nHost: good.test\r\n\r\n")
		}
	}
	return []attempt{
		refusedBy(421, "egress/plain.test"+misdirectedEntry, "the Host is another's", ask("http://plain.test/", "evil.test")),
		refusedBy(421, "egress/plain.test"+misdirectedEntry, "the Host has another port", ask("http://plain.test/", "plain.test:443")),
		refusedBy(421, "egress/evil.test"+misdirectedEntry, "the target is another's", ask("http://evil.test/", "plain.test")),
		refusedBy(403, "egress/evil.test"+blockedEntry, "both are", ask("http://evil.test/", "evil.test")),
		refusedBy(400, "egress/unknown"+malformedEntry, "to the proxy itself", ask("/", "plain.test")),
		refusedBy(421, "egress/good.test"+misdirectedEntry, "in a tunnel", within("https://other.test/")),
		refusedBy(421, "egress/good.test"+misdirectedEntry, "in a tunnel, without TLS", within("http://good.test/")),
		twin("egress/plain.test", "both the same", ask("http://plain.test/", "plain.test")),
		twin("egress/good.test", "in a tunnel", within("https://good.test/")),
	}
}

// inConnects are authorities that must not be read at all.
func inConnects(all ...string) []attempt {
	out := []attempt{byTunnel()}
	for _, to := range all {
		out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, fmt.Sprintf("CONNECT %.40q", to), func(in *inside) told { return in.connected(to) }))
	}
	return out
}

func controlBytes() []attempt {
	var names []string
	for _, odd := range []string{"\x00", "\r", "\t", "%00", "%2f", "%0d%0a", "\\", "\x7f", "\v", "\xc2\xa0"} {
		names = append(names, "evil.test"+odd+".good.test:443", "good.test"+odd+":443")
	}
	out := inConnects(names...)
	return append(out,
		refusedBy(400, "egress/unknown"+malformedEntry, "a space in a CONNECT", func(in *inside) told { return in.connected("evil.test good.test:443") }),
		refusedBy(400, "egress/unknown"+malformedEntry, "a line in a CONNECT", func(in *inside) told { return in.connected("good.test:443\r\nHost: evil.test\r\nX:") }),
		// SOCKS5: a domain of 20 bytes with a NUL, behind the greeting.
		refusedBy(400, "egress/unknown"+malformedEntry, "SOCKS5", func(in *inside) told {
			return in.say(in.proxy(), "\x05\x01\x00\x05\x01\x00\x03\x13evil.test\x00.good.test\x01\xbb\r\n\r\n"+in.get("good.test"))
		}),
		attempt{name: "a NUL in the name of a handshake", entries: []string{"egress/unknown" + misdirectedEntry}, do: func(in *inside) told {
			return in.say(in.straight("good.test:443", "evil.test\x00.good.test"), in.get("good.test"))
		}},
		refusedBy(400, "egress/unknown"+malformedEntry, "a NUL in a Host", func(in *inside) told {
			return in.say(in.to("plain.test:80"), in.get("evil.test\x00.plain.test"))
		}))
}

func dotsAndCase() []attempt {
	out := inConnects("good..test:443", ".good.test:443", "good.test..:443", ".:443", strings.Repeat("a.", 130)+"wild.test:443", strings.Repeat("a", 64)+".wild.test:443")
	for _, name := range []string{"GOOD.Test", "good.test."} {
		out = append(out, twin("egress/good.test", name, func(in *inside) told {
			return in.say(in.tunnel(name+":443", "good.test"), in.get(name))
		}))
	}
	return out
}

func otherScripts() []attempt {
	out := []attempt{byTunnel()}
	for _, host := range []string{"ｇood。test", "go\u00adod.test", "gооd.test", "good\u3002test", "\u202egood.test"} {
		out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, "as bytes: "+url.PathEscape(host), func(in *inside) told { return in.connected(host + ":443") }),
			refusedBy(400, "egress/unknown"+malformedEntry, "escaped: "+url.PathEscape(host), func(in *inside) told {
				return in.say(in.proxy(), "GET http://"+url.PathEscape(host)+"/"+in.mark+" HTTP/1.1\r\nHost: good.test\r\n\r\n")
			}))
	}
	return append(out, refusedBy(403, "egress/xn--gd-fmca.test"+blockedEntry, "a look-alike", func(in *inside) told {
		return in.say(in.tunnel("xn--gd-fmca.test:443", "xn--gd-fmca.test"), in.get("xn--gd-fmca.test"))
	}))
}

func otherDigits() []attempt {
	out := []attempt{byTunnel()}
	for _, host := range []string{"①②⑦.⓪.⓪.①", "１27.0.0.1", "127。0。0。1", "0ｘ7f.1", "𝟏27.0.0.1"} {
		out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, host, func(in *inside) told { return in.connected(host + ":443") }),
			refusedBy(400, "egress/unknown"+malformedEntry, "in a URL: "+host, func(in *inside) told {
				return in.say(in.proxy(), "GET http://"+url.PathEscape(host)+"/"+in.mark+" HTTP/1.1\r\nHost: plain.test\r\n\r\n")
			}))
	}
	return out
}

func userAndFragment() []attempt {
	out := inConnects("evil.test@good.test:443", "good.test@evil.test:443", "good.test#@evil.test:443", "good.test?@evil.test:443", "good.test/:443", "good.test\\@evil.test:443")
	for _, target := range []string{"http://plain.test@evil.test/", "http://a:b@plain.test/", "http://plain.test/#@evil.test/", "http://plain.test\\@evil.test/", "http:///plain.test/", "http:plain.test/", "http://evil.test#@plain.test/"} {
		out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, target, func(in *inside) told {
			return in.say(in.proxy(), "GET "+target+in.mark+" HTTP/1.1\r\nHost: plain.test\r\n\r\n")
		}))
	}
	return append(out, twin("egress/plain.test", "without", func(in *inside) told {
		return in.say(in.proxy(), "GET http://plain.test/"+in.mark+" HTTP/1.1\r\nHost: plain.test\r\n\r\n")
	}))
}

func wildcards() []attempt {
	out := []attempt{byName("a.wild.test", "egress/*.wild.test"), byName("a.b.wild.test", "egress/*.wild.test")}
	for _, host := range []string{"wild.test", "xwild.test", "a.wild.test.evil.test", "notgood.test", "good.test.evil.test", "a.good.test"} {
		out = append(out, refusedBy(403, "egress/"+host+blockedEntry, host, func(in *inside) told {
			return in.say(in.straight(host+":443", host), in.get(host))
		}))
	}
	return out
}

// special is a name that the world's name server takes for those addresses.
func special(addresses ...string) string {
	var parts []string
	for _, a := range addresses {
		parts = append(parts, hex.EncodeToString(netip.MustParseAddr(a).AsSlice()))
	}
	return strings.Join(parts, "-") + ".special.test"
}

// byAddress asks a listed host whose addresses are these.
func byAddress(name string, addresses ...string) attempt {
	host := special(addresses...)
	return refusedBy(403, "egress/*.special.test"+blockedEntry, name, func(in *inside) told {
		return in.say(in.tunnel(host+":443", host), in.get(host))
	})
}

func numeric() []attempt {
	out := inConnects("127.1:443", "0x7f.1:443", "2130706433:443", "0177.0.0.1:443", "127.0.0.01:443", "0x7f000001:443", "1.1.1.257:443")
	for _, host := range []string{"127.1", "0x7f.1", "2130706433", "0177.0.0.1"} {
		out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, "Host: "+host, func(in *inside) told {
			return in.say(in.to("plain.test:80"), in.get(host))
		}))
	}
	out = append(out, byAddress("a listed name for loopback", "127.0.0.1"))
	return append(out, refusedBy(403, "egress/127.0.0.1"+blockedEntry, "loopback in its own form", func(in *inside) told { return in.throughTo("127.0.0.1:443") }))
}

func otherForms() []attempt {
	host := special(goodAddress)
	out := []attempt{byName(host, "egress/*.special.test")}
	for _, a := range []string{"10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.0.0.0", "100.64.0.1", "192.0.0.1", "198.18.0.1", "240.0.0.1", "224.0.0.1", "255.255.255.255", "169.254.169.254",
		"::1", "::", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::1", "2001::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1", "2001:db8::1"} {
		out = append(out, byAddress("a listed name for "+a, a))
	}
	// In DNS an IPv4 address in IPv6 form has 16 bytes.
	for _, a := range []string{"::ffff:10.0.0.1", "::ffff:127.0.0.1"} {
		b := netip.MustParseAddr(a).As16()
		mapped := hex.EncodeToString(b[:]) + ".special.test"
		out = append(out, refusedBy(403, "egress/*.special.test"+blockedEntry, "a listed name for "+a, func(in *inside) told {
			return in.say(in.tunnel(mapped+":443", mapped), in.get(mapped))
		}))
	}
	for to, row := range map[string]string{"[::1]:443": "egress/::1", "[::ffff:127.0.0.1]:443": "egress/127.0.0.1", "[64:ff9b::7f00:1]:443": "egress/64:ff9b::7f00:1", "10.0.0.1:443": "egress/10.0.0.1"} {
		out = append(out, refusedBy(403, row+blockedEntry, "CONNECT "+to, func(in *inside) told { return in.throughTo(to) }))
	}
	return out
}

func rebinding() []attempt {
	out := []attempt{
		byAddress("one private answer behind a public one", goodAddress, "127.0.0.1"),
		byAddress("one private answer before a public one", "10.1.2.3", goodAddress),
		byAddress("a private answer of the other family", goodAddress, "fe80::1"),
		byName(special(goodAddress, goodAddress), "egress/*.special.test"),
	}
	return append(out, attempt{name: "a name that turns to loopback", status: 403, entries: []string{"egress/*.special.test", "egress/*.special.test" + blockedEntry}, do: func(in *inside) told {
		const host = "turn1.special.test"
		c := in.tunnel(host+":443", host)
		if got := in.say(c, "GET /first HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); got.Status != 200 {
			return got
		}
		return in.say(c, in.get(host))
	}})
}

func cloudMetadata() []attempt {
	const path = "latest/meta-data/"
	ask := func(address, host string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.to(address), "GET /"+path+in.mark+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		}
	}
	return []attempt{
		byTunnel(),
		refusedBy(403, "egress/169.254.169.254"+blockedEntry, "by its address", ask("169.254.169.254:80", "169.254.169.254")),
		refusedBy(403, "egress/169.254.169.254"+blockedEntry, "by the proxy", func(in *inside) told {
			return in.say(in.proxy(), "GET http://169.254.169.254/"+path+in.mark+" HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
		}),
		refusedBy(403, "egress/metadata.google.internal"+blockedEntry, "by its name", ask("metadata.google.internal:80", "metadata.google.internal")),
		refusedBy(403, "egress/fd00:ec2::254"+blockedEntry, "by IPv6", func(in *inside) told { return in.throughTo("[fd00:ec2::254]:80") }),
		refusedBy(421, "egress/plain.test"+misdirectedEntry, "its name behind a listed one", func(in *inside) told {
			return in.say(in.connect("plain.test:80"), in.get("169.254.169.254"))
		}),
		byAddress("a listed name for it", "169.254.169.254"),
		byAddress("a listed name for that of IPv6", "fd00:ec2::254"),
		byAddress("a listed name for another's", "168.63.129.16"),
		{name: "by a packet", fails: true, direct: "tcp [fd00:ec2::254]:80", do: func(in *inside) told { return in.say(in.to("[fd00:ec2::254]:80"), in.get("x")) }},
	}
}

// question is a name and a type as DNS asks for them.
func question(name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	b, err := m.Pack()
	must(err)
	return b
}

// askedOf is what a name server answers by UDP.
func (in *inside) askedOf(server, name string, kind dnsmessage.Type) told {
	c := in.to2("udp", server)
	must(c.SetDeadline(time.Now().Add(3 * time.Second)))
	_, err := c.Write(question(name, kind))
	must(err)
	b := make([]byte, 4096)
	n, err := c.Read(b)
	must(err)
	var m dnsmessage.Message
	must(m.Unpack(b[:n]))
	var text []string
	for _, a := range m.Answers {
		if a, ok := a.Body.(*dnsmessage.AResource); ok {
			text = append(text, netip.AddrFrom4(a.A).String())
		}
	}
	return told{Text: fmt.Sprint(text)}
}

func nameTunnel() []attempt {
	out := []attempt{byTunnel()}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeSRV, dnsmessage.Type(65), dnsmessage.TypeALL} {
		for _, server := range []string{"127.0.0.1:53", "8.8.8.8:53", attackerAddress + ":53"} {
			for _, domain := range []string{".evil.test.", ".wild.test."} {
				text, direct := "[]", ""
				if kind == dnsmessage.TypeA {
					text = "[198.18.0.1]"
				}
				if !strings.HasPrefix(server, "127.") {
					direct = "udp " + server
				}
				out = append(out, attempt{name: fmt.Sprintf("%v of %s at %s", kind, domain, server), text: text, direct: direct, do: func(in *inside) told {
					return in.askedOf(server, in.mark+domain, kind)
				}})
			}
		}
	}
	// By TCP it is a connection like others, and no request that can be read.
	out = append(out, refusedBy(400, "egress/unknown"+malformedEntry, "by TCP", func(in *inside) told {
		q := question(in.mark+".evil.test.", dnsmessage.TypeTXT)
		return in.say(in.to("8.8.8.8:53"), string([]byte{0, byte(len(q))})+string(q)+"\r\n\r\n")
	}))
	for _, host := range []string{"dns.google", "evil.test"} {
		out = append(out, refusedBy(403, "egress/"+host+blockedEntry, "by TLS: "+host, func(in *inside) told {
			return in.say(in.straight("8.8.8.8:853", host), in.get(host+":853"))
		}), refusedBy(403, "egress/"+host+blockedEntry, "by HTTPS: "+host, func(in *inside) told {
			return in.say(in.straight("8.8.8.8:443", host), "GET /dns-query?dns="+in.mark+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		}), refusedBy(403, "egress/MARK."+host+blockedEntry, "a name in a CONNECT: "+host, func(in *inside) told {
			return in.throughTo(in.mark + "." + host + ":443")
		}))
	}
	return out
}

func localNames() []attempt {
	out := []attempt{byTunnel()}
	for _, host := range []string{"localhost", "intranet", "hosted"} {
		out = append(out, refusedBy(403, "egress/"+host+blockedEntry, host, func(in *inside) told { return in.throughTo(host + ":443") }))
	}
	return append(out,
		refusedBy(403, "egress/localhost"+blockedEntry, "localhost.", func(in *inside) told { return in.throughTo("localhost.:443") }),
		refusedBy(403, "egress/*.special.test"+blockedEntry, "a name of the hosts file", func(in *inside) told {
			return in.say(in.tunnel("hosted.special.test:443", "hosted.special.test"), in.get("hosted.special.test"))
		}),
		// Only the search list has it: nosuch.special.test.found.test.
		refusedBy(502, "egress/*.special.test ForwardError", "a name of the search list", func(in *inside) told {
			return in.say(in.tunnel("nosuch.special.test:443", "nosuch.special.test"), in.get("nosuch.special.test"))
		}))
}

// to2 connects by another network than TCP.
func (in *inside) to2(network, address string) net.Conn {
	c, err := net.Dial(network, address)
	must(err)
	in.conns = append(in.conns, c)
	return c
}
