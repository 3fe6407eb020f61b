package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
)

func TestEgress_Bypass21_RequestSmuggling(t *testing.T) {
	w := newEgress(t, setup{})
	host := w.at("good.test")
	ask := func(text string) *reply {
		t.Helper()
		c, err := w.tunnel(host, "good.test")
		w.must(err)
		return say(c, text)
	}
	post := func(fields, body string) string {
		return "POST / HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n" + body
	}
	inner := "GET /smuggled HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	n := 0
	for _, c := range []struct{ name, text string }{
		{"TE and CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+inner)},
		{"CL and TE", post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+inner)},
		{"two lengths", post("Content-Length: 0\r\nContent-Length: 4\r\n", "abcd")},
		{"two equal lengths", post("Content-Length: 4\r\nContent-Length: 4\r\n", "abcd")},
		{"a list of lengths", post("Content-Length: 4, 4\r\n", "abcd")},
		{"a signed length", post("Content-Length: +4\r\n", "abcd")},
		{"a negative length", post("Content-Length: -4\r\n", "abcd")},
		{"a length beyond 63 bits", post("Content-Length: 9999999999999999999999\r\n", "abcd")},
		{"bare LF between fields", "GET / HTTP/1.1\r\nHost: " + host + "\nX: y\r\n\r\n"},
		{"bare LF after the line", "GET / HTTP/1.1\nHost: " + host + "\r\n\r\n"},
		{"bare LFs alone", "GET / HTTP/1.1\nHost: " + host + "\n\n"},
		{"bare CR", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\rb\r\n\r\n"},
		{"NUL", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\x00b\r\n\r\n"},
		{"obs-fold", "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: a\r\n b\r\n\r\n"},
		{"space before the colon", post("Content-Length : 4\r\n", "abcd")},
		{"xchunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
		{"chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
		{"gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
		{"identity", post("Transfer-Encoding: identity\r\n", "0\r\n\r\n")},
		{"chunked with a tab", post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")},
		{"bare LF after a chunk's size", post("Transfer-Encoding: chunked\r\n", "4\nabcd\r\n0\r\n\r\n")},
		{"a chunk that is longer", post("Transfer-Encoding: chunked\r\n", "4\r\nabcde\r\n0\r\n\r\n")},
		{"a chunk's extension", post("Transfer-Encoding: chunked\r\n", "4;x=\r\nabcd\r\n0\r\n\r\n")},
		{"a chunk's size with 0x", post("Transfer-Encoding: chunked\r\n", "0x4\r\nabcd\r\n0\r\n\r\n")},
		{"a chunk's size beyond 32 bits", post("Transfer-Encoding: chunked\r\n", "100000004\r\nabcd\r\n0\r\n\r\n")},
		{"a trailer", post("Transfer-Encoding: chunked\r\n", "0\r\nX-Late: y\r\n\r\n")},
		{"a trailer that is announced", post("Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n", "0\r\n\r\n")},
		{"another expectation", post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a")},
		{"h2c", "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"},
		{"HTTP/2 without ALPN", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: " + host + "\r\nHost: " + w.at("other.test") + "\r\n\r\n"},
		{"two equal Hosts", "GET / HTTP/1.1\r\nHost: " + host + "\r\nhost: " + host + "\r\n\r\n"},
		{"no Host", "GET / HTTP/1.1\r\n\r\n"},
		{"two spaces", "GET  / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
		{"a tab in the line", "GET\t/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
		{"a blank line before", "\r\nGET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
		{"HTTP/0.9", "GET /\r\n\r\n"},
		{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: " + host + "\r\n\r\n"},
		{"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: " + host + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
	} {
		n++
		got := ask(c.text)
		if got == nil || got.StatusCode != 400 {
			t.Errorf("%s: %+v, want 400", c.name, got)
		} else if got.Header.Get(refusal.HeaderCrossing) == "" || !strings.Contains(got.Text, "hint: ") {
			t.Errorf("%s: the refusal is %q", c.name, got.Text)
		}
	}
	w.untouched()
	for _, e := range w.entries(n) {
		if e.ErrorKind != holdfast.KindValidation {
			t.Errorf("the ledger says %s %q", e.ErrorKind, e.Why)
		}
	}
	// What a request may be made of.
	w.passed(ask(post("Content-Length: 4\r\n", "abcd")))
	w.passed(ask(post("Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n6\r\nefghij\r\n0\r\n\r\n")))
	w.passed(ask("GET / HTTP/1.0\r\nHost: " + host + "\r\n\r\n"))
	c, err := w.tunnel(host, "good.test")
	w.must(err)
	if got := say(c, post("Expect: 100-continue\r\nContent-Length: 4\r\n", "abcd")); got == nil || got.StatusCode != 100 && got.StatusCode != 200 {
		t.Errorf("100-continue: %+v", got)
	}
	w.entries(n + 4)
	if got := w.up.requests(); len(got) != 4 || got[0].Body != "abcd" || got[1].Body != "abcdefghij" || got[3].Body != "abcd" {
		t.Errorf("the server saw %+v", got)
	}
	for _, r := range w.up.requests() {
		if strings.Contains(r.URI, "smuggled") {
			t.Error("a smuggled request arrived")
		}
	}
}

func TestEgress_Bypass21_HTTP2PseudoHeaders(t *testing.T) {
	w := newEgress(t, setup{})
	host := w.at("good.test")
	ask := func(fields ...[2]string) int {
		c, err := w.tunnel(host, "good.test", "h2")
		w.must(err)
		return newH2(t, c).ask(1, fields...)
	}
	usual := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {":authority", host}}
	with := func(f ...[2]string) [][2]string { return append(append([][2]string(nil), usual...), f...) }
	for name, fields := range map[string][][2]string{
		"two authorities":        with([2]string{":authority", w.at("other.test")}),
		"two paths":              with([2]string{":path", "/2"}),
		"pseudo after fields":    {usual[0], usual[1], usual[2], {"x", "y"}, usual[3]},
		"an unknown pseudo":      with([2]string{":proto", "x"}),
		"a CR LF in a value":     with([2]string{"x", "a\r\nhost: evil.test"}),
		"an upper-case name":     with([2]string{"X-Upper", "a"}),
		"a CR LF in the path":    {usual[0], usual[1], {":path", "/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"}, usual[3]},
		"a connection field":     with([2]string{"connection", "upgrade"}),
		"a transfer-encoding":    with([2]string{"transfer-encoding", "chunked"}),
		"a path that is no path": {usual[0], usual[1], {":path", "@evil.test/"}, usual[3]},
		"no authority":           {usual[0], usual[1], usual[2]},
	} {
		if got := ask(fields...); got != 0 && got != 400 && got != 421 {
			t.Errorf("%s: %d", name, got)
		}
	}
	w.untouched()
	if got := ask(usual...); got != 200 {
		t.Errorf("a usual request got %d", got)
	}
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

// inRecords writes the first handshake record again as many of size bytes each.
type inRecords struct {
	net.Conn
	size int
	done bool
}

func (s *inRecords) Write(p []byte) (int, error) {
	if s.done || p[0] != recordHandshake {
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

func TestEgress_Bypass22_ClientHelloInPieces(t *testing.T) {
	w := newEgress(t, setup{})
	hello := func(c net.Conn) (*reply, error) {
		// Many protocols make a ClientHello of more than 4 KB.
		protos := []string{"http/1.1"}
		for i := range 60 {
			protos = append(protos, fmt.Sprintf("%0100d", i))
		}
		s := tls.Client(c, &tls.Config{ServerName: "good.test", RootCAs: w.roots, NextProtos: protos})
		if err := s.Handshake(); err != nil {
			return nil, err
		}
		return say(s, get(w.at("good.test"), "/")), nil
	}
	for name, c := range map[string]net.Conn{"segments": slowly{w.dial(w.clear), 700}, "records": &inRecords{Conn: w.dial(w.clear), size: 100}, "one": w.dial(w.clear)} {
		got, err := hello(c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.passed(got)
	}
	// The name cannot hide in a second record.
	c := tls.Client(&inRecords{Conn: w.dial(w.clear), size: 40}, &tls.Config{ServerName: "evil.test", RootCAs: w.roots})
	w.refused(say(c, get(w.at("evil.test"), "/")), 403)
}

func TestEgress_Bypass22_NoNameNoTLSAndTooMuch(t *testing.T) {
	t.Parallel()
	w := newEgress(t, setup{config: func(c *Config) { c.Limits.Header = 2 * time.Second }})
	insecure := func(name string) *tls.Config { return &tls.Config{ServerName: name, InsecureSkipVerify: true} }
	// No name, and an address where a name belongs.
	if err := tls.Client(w.dial(w.clear), insecure("")).Handshake(); err == nil {
		t.Error("a ClientHello without a name was answered")
	}
	w.last(1, "egress/unknown", holdfast.KindMisdirected)
	if err := tls.Client(w.connect(w.at("good.test")), insecure("")).Handshake(); err == nil {
		t.Error("a ClientHello without a name was answered in a tunnel")
	}
	w.last(2, "egress/good.test", holdfast.KindMisdirected)
	// A record that is no ClientHello, and one that never ends.
	c := w.dial(w.clear)
	c.Write([]byte{22, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	io.Copy(io.Discard, c)
	w.last(3, "egress/unknown", holdfast.KindValidation)
	c = w.dial(w.clear)
	go func() {
		c.Write([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff})
		for {
			if _, err := c.Write(bytes.Repeat([]byte("x"), 1<<14)); err != nil {
				return
			}
		}
	}()
	io.Copy(io.Discard, c)
	w.last(4, "egress/unknown", holdfast.KindValidation)
	// Something else than TLS and HTTP, and nothing at all.
	w.refused(say(w.dial(w.clear), "SSH-2.0-OpenSSH_9.9\r\n\r\n"), 400)
	if _, err := io.Copy(io.Discard, w.dial(w.clear)); isTimeout(err) {
		t.Error("a silent connection is kept")
	}
	w.entries(5)
	w.untouched()
	w.passed(say(tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots}), get(w.at("good.test"), "/")))
}

func TestEgress_Bypass22_ECHInAnOpaqueTunnel(t *testing.T) {
	w := newEgress(t, setup{})
	if !hasECH(&tls.ClientHelloInfo{Extensions: []uint16{0, 0xfe0d}}) || hasECH(&tls.ClientHelloInfo{Extensions: []uint16{0, 16}}) {
		t.Fatal("the extension is not seen")
	}
	// The name that the tunnel sees must be the CONNECT's. The certificate is
	// the server's own: nobody looked inside.
	c := tls.Client(w.connect(w.at("blind.test")), &tls.Config{ServerName: "other.test", RootCAs: w.roots})
	w.refused(say(c, get(w.at("other.test"), "/")), 421)
	w.untouched()
	w.last(1, "egress/blind.test", holdfast.KindMisdirected)
	s := tls.Client(w.connect(w.at("blind.test")), &tls.Config{ServerName: "blind.test", InsecureSkipVerify: true})
	w.passed(say(s, get(w.at("blind.test"), "/")))
	if cn := s.ConnectionState().PeerCertificates[0].Subject.CommonName; cn != "upstream" {
		t.Errorf("the tunnel shows the certificate of %q", cn)
	}
	s.Close()
	w.last(2, "egress/blind.test", "")
	// Without TLS there is no name to hold against it.
	if got := say(w.connect(w.at("blind.test")), get(w.at("blind.test"), "/")); got == nil || got.StatusCode != 403 {
		t.Errorf("plain text in an opaque tunnel: %+v", got)
	}
}

func TestEgress_Bypass23_PlainHTTPIsFilteredToo(t *testing.T) {
	w := newEgress(t, setup{})
	at := func(name string) string { return fmt.Sprintf("%s:%d", name, w.plain.port) }
	w.passed(say(w.dial(w.open), get(at("plain.test"), "/")))
	w.refused(say(w.dial(w.open), get(at("evil.test"), "/")), 403)
	w.refused(say(w.dial(w.open), get(at("good.test"), "/")), 403) // only with TLS
	w.refused(say(w.dial(w.open), get("plain.test", "/")), 421)    // another port
	w.refused(say(w.dial(w.open), get("plain.test:x", "/")), 400)
	w.refused(say(w.dial(w.clear), get(w.at("good.test"), "/")), 403)
	w.passed(say(w.connect(at("plain.test")), get(at("plain.test"), "/")))
	w.refused(say(w.connect(at("plain.test")), get(at("evil.test"), "/")), 421)
	w.entries(8)
	if n := len(w.plain.requests()); n != 2 {
		t.Errorf("the server saw %d requests, want 2", n)
	}
}

func TestEgress_Bypass24_ARedirectIsANewCrossing(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/evil":
			http.Redirect(rw, r, "https://"+w.at("evil.test")+"/", http.StatusFound)
		case "/meta":
			http.Redirect(rw, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case "/other":
			http.Redirect(rw, r, "https://"+w.at("other.test")+"/end", http.StatusFound)
		default:
			io.WriteString(rw, "hello from the end")
		}
	})
	client := w.client()
	if _, err := client.Get("https://" + w.at("good.test") + "/evil"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a redirect to a blocked host gave %v", err)
	}
	r, err := client.Get("https://" + w.at("good.test") + "/meta")
	w.must(err)
	if r.StatusCode != 403 {
		t.Errorf("a redirect to the metadata service gave %s", r.Status)
	}
	r.Body.Close()
	r, err = client.Get("https://" + w.at("good.test") + "/other")
	w.must(err)
	if b, _ := io.ReadAll(r.Body); r.StatusCode != 200 || string(b) != "hello from the end" {
		t.Errorf("a redirect to another listed host gave %s %q", r.Status, b)
	}
	r.Body.Close()
	w.entries(6)
}

func TestEgress_Bypass31_BytesThatBlindTheScanner(t *testing.T) {
	w := newEgress(t, setup{})
	client := w.client()
	post := func(encoding string, body []byte) int {
		t.Helper()
		r, err := http.NewRequest("POST", "https://"+w.at("good.test")+"/", bytes.NewReader(body))
		w.must(err)
		r.Header.Set("Content-Type", "text/plain")
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		resp, err := client.Do(r)
		w.must(err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	key := "sk-ant-api03-" + "Zk3vQ9xL2mT8rW5yB7nC4dF6gH1jK0pS-" + "aA3bB5cC7dD9eE1fF2gG4hH6iI8jJ0kK"
	for name, c := range map[string]struct {
		encoding string
		body     string
	}{
		"an unknown encoding": {"lzma", key}, "an encoding that it is not": {"gzip", key}, "cut short": {"gzip", "\x1f\x8b\x08\x00"},
	} {
		if got := post(c.encoding, []byte(c.body)); got != 400 {
			t.Errorf("%s: status %d, want 400", name, got)
		}
	}
	post("", []byte("before \xff\xfe "+key+" \xff after")) // refused or masked, never as it was
	for _, r := range w.up.requests() {
		if strings.Contains(r.Body, key) {
			t.Error("a secret beside invalid UTF-8 arrived")
		}
	}
	if got := post("", []byte("an ordinary text")); got != 200 {
		t.Errorf("an ordinary text got %d", got)
	}
}

func TestEgress_Bypass12_WildcardsEndAtALabel(t *testing.T) {
	w := newEgress(t, setup{})
	for _, name := range []string{"wild.test", "xwild.test", "a.wild.test.evil.test"} {
		r := say(w.dial(w.explicit), "CONNECT "+w.at(name)+" HTTP/1.1\r\nHost: "+w.at(name)+"\r\n\r\n")
		w.refused(r, 403)
	}
	c, err := w.tunnel(w.at("a.wild.test"), "a.wild.test")
	w.must(err)
	w.passed(say(c, get(w.at("a.wild.test"), "/")))
	w.last(4, "egress/*.wild.test", "")
}

func TestEgress_Bypass29_ASecretInALabel(t *testing.T) {
	w := newEgress(t, setup{})
	name := "ghp-" + "x.wild.test"
	c, err := w.tunnel(w.at(name), name)
	w.must(err)
	w.passed(say(c, get(w.at(name), "/")))
	secret := strings.ToLower("AKIA" + "QYLPMN5HHHFPZAM2")
	for _, path := range []string{"/?key=AKIA" + "QYLPMN5HHHFPZAM2", "/AKIA" + "QYLPMN5HHHFPZAM2/x"} {
		c, err = w.tunnel(w.at("good.test"), "good.test")
		w.must(err)
		say(c, get(w.at("good.test"), path))
	}
	for _, r := range w.up.requests() {
		if strings.Contains(strings.ToLower(r.URI), secret) {
			t.Errorf("a secret in a URL arrived: %s", r.URI)
		}
	}
}
