package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/dns/dnsmessage"
)

// The addresses of a world. At the good one is the server of all names that the
// allowlist has; at all others, whatever their port, somebody else.
const (
	goodAddress     = "93.184.215.14"
	attackerAddress = "93.184.215.66"
)

// strangePorts are where somebody listens at every address.
var strangePorts = []int{21, 22, 25, 53, 80, 443, 853, 5432, 6379, 7412, 8443}

// around is everybody outside of a workspace, and what reached them.
type around struct {
	t     *testing.T
	roots string // file: who signed the good server's certificate

	mu        sync.Mutex
	heard     bytes.Buffer   // what the good server was told, by HTTP as it came
	strangers []string       // who else was connected to
	asked     []string       // the questions that came to the name server
	turns     map[string]int // how often a name that turns was asked for
}

func newAround(t *testing.T) *around {
	t.Helper()
	a := &around{t: t, turns: map[string]int{}, roots: filepath.Join(t.TempDir(), "roots.pem")}
	cert := a.certificate()
	over := &http.Server{Handler: http.HandlerFunc(a.answer), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	conns := arriving{make(chan net.Conn), make(chan struct{})}
	go over.Serve(conns)
	t.Cleanup(func() { close(conns.ended); over.Close() })
	for _, port := range strangePorts {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go a.accept(l, conns, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	abstract, err := net.Listen("unix", "@holdfast-world")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abstract.Close() })
	go a.accept(abstract, conns, nil)
	a.names()
	return a
}

// arriving is a listener of connections that others accepted.
type arriving struct {
	conns chan net.Conn
	ended chan struct{}
}

func (l arriving) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}
func (arriving) Close() error   { return nil }
func (arriving) Addr() net.Addr { return &net.TCPAddr{} }

// certificate is of all names that the good server has, and signs itself.
func (a *around) certificate() tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, IsCA: true, BasicConstraintsValid: true,
		DNSNames:  []string{"good.test", "other.test", "blind.test", "socket.test", "own.test", "narrow.test", "drip.test", "rate.test", "*.wild.test", "*.b.wild.test", "*.special.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(a.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// accept serves who came to the good server, and counts who came to anybody else.
func (a *around) accept(l net.Listener, conns arriving, secure *tls.Config) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		at := c.LocalAddr().String()
		switch at {
		case goodAddress + ":443":
			c = overheard{tls.Server(c, secure), a}
		case goodAddress + ":80":
			c = overheard{c, a}
		default:
			a.mu.Lock()
			a.strangers = append(a.strangers, at)
			a.mu.Unlock()
			go func() { io.WriteString(c, "reached a stranger\n"); time.Sleep(time.Second); c.Close() }()
			continue
		}
		select {
		case conns.conns <- c:
		case <-conns.ended:
			return
		}
	}
}

// overheard keeps what is read.
type overheard struct {
	net.Conn
	a *around
}

func (o overheard) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	o.a.hear(string(p[:n]))
	return n, err
}

func (a *around) hear(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard.WriteString(text)
}

// has says whether the good server was told a text.
func (a *around) has(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bytes.Contains(a.heard.Bytes(), []byte(text))
}

// answer is the good server's: under each of its names the same.
func (a *around) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Alt-Svc", `h3=":443"; ma=86400`)
	switch r.URL.Path {
	case "/redirect":
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	case "/much":
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, much())
	case "/knock":
		fmt.Fprint(w, "hello, "+knock(r.URL.Query().Get("port")))
	case "/socket":
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		a.hear("extensions=" + r.Header.Get("Sec-Websocket-Extensions") + ";")
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			a.hear(string(data)) // as it was meant: on the wire it is masked
			if c.Write(r.Context(), kind, append([]byte("you said "), data...)) != nil {
				return
			}
		}
	default:
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "hello from %s, your key is %s", r.Host, r.Header.Get("X-Api-Key"))
	}
}

// much is an ordinary text of two megabytes.
func much() string {
	return strings.Repeat("some ordinary words of an answer, and then the end of a line\n", 1<<15)
}

// knock tries to get at a server of a workspace, by whatever address it may have,
// and says of itself what came of it.
func knock(port string) string {
	for _, at := range []string{"127.0.0.1", "198.18.0.1", "198.18.0.2", "10.0.0.1", "192.168.1.1", "::1", "0.0.0.0"} {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(at, port), time.Second)
		if err != nil {
			continue
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Second))
		if b, _ := io.ReadAll(c); len(b) > 0 {
			return "got in by " + at
		}
	}
	return "nobody there"
}

// names answers for the name server of the machine.
func (a *around) names() {
	a.t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { pc.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Additionals = nil
			a.resolve(&m)
			if out, err := m.Pack(); err == nil {
				pc.WriteTo(out, from)
			}
		}
	}()
}

func (a *around) resolve(m *dnsmessage.Message) {
	q := m.Questions[0]
	name := strings.ToLower(q.Name.String())
	list, known := a.addresses(name, q.Type)
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RecursionDesired: true}
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, at := range list {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET} // TTL 0
		switch {
		case at.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: at.As4()}})
		case at.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
		}
	}
}

// addresses are those of a name: of LABEL.special.test what the label says, in
// hexadecimal, one after the other with dashes; "turn" and anything becomes
// another from the second question on.
func (a *around) addresses(name string, kind dnsmessage.Type) ([]netip.Addr, bool) {
	a.mu.Lock()
	a.asked = append(a.asked, kind.String()+" "+name)
	a.mu.Unlock()
	good := []netip.Addr{netip.MustParseAddr(goodAddress)}
	label, special := strings.CutSuffix(name, ".special.test.")
	switch {
	case strings.HasSuffix(name, ".found.test."): // the search list's
		return good, true
	case special && strings.HasPrefix(label, "turn"):
		a.mu.Lock()
		defer a.mu.Unlock()
		if kind == dnsmessage.TypeA {
			a.turns[label]++
		}
		if a.turns[label] > 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, true
		}
		return good, true
	case special:
		var list []netip.Addr
		for part := range strings.SplitSeq(label, "-") {
			b, err := hex.DecodeString(part)
			at, ok := netip.AddrFromSlice(b)
			if err != nil || !ok {
				return nil, false
			}
			list = append(list, at)
		}
		return list, true
	case slices.Contains([]string{"good.test.", "other.test.", "plain.test.", "blind.test.", "socket.test.", "own.test.", "narrow.test.", "drip.test.", "rate.test."}, name),
		strings.HasSuffix(name, ".wild.test."):
		return good, true
	case name == "metadata.google.internal.":
		return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, true
	}
	return []netip.Addr{netip.MustParseAddr(attackerAddress)}, true
}

// questions are what the name server was asked.
func (a *around) questions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// reached are who else was connected to.
func (a *around) reached() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.strangers)
}
