package egress

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What the tests of bad input (TestBad) share. Each of them goes over real
// sockets and asks for four things: the error by its name, the status, the
// record, and that nothing was forwarded that should not have been.

// wrong fails unless the ledger holds n crossings, and the last is of boundary
// and went wrong by kind: refused before it began, or begun and failed.
func (w *world) wrong(n int, boundary string, kind holdfast.Kind, begun bool) *ledger.Entry {
	w.t.Helper()
	w.last(n, boundary, kind)
	e := w.read()[n-1]
	outcome := ledger.Denied
	switch {
	case begun && kind == holdfast.KindCanceled:
		outcome = ledger.Canceled
	case begun:
		outcome = ledger.Failed
	}
	if (e.BeginSeq != nil) != begun || e.Outcome != outcome {
		w.t.Fatalf("the crossing began: %v, and is %s, want %v and %s (%s)", e.BeginSeq != nil, e.Outcome, begun, outcome, e.Why)
	}
	return e
}

// badUp is an upstream that f makes of each connection, by the name of row,
// which is plain.test, or good.test with TLS.
func badUp(t *testing.T, row domain.Domain, c *tls.Config, f func(net.Conn)) *world {
	t.Helper()
	return badRow(t, row, c != nil, listenBad(t, c, f))
}

// badUps returns a world with one row that has a port for each of fs, and the ports. A
// test of many answers shares it: turnTo says which one is fetched.
func badUps(t *testing.T, row domain.Domain, c *tls.Config, fs map[string]func(net.Conn)) (*world, map[string]uint16) {
	t.Helper()
	ports, list := map[string]uint16{}, []uint16{}
	for name, f := range fs {
		ports[name] = listenBad(t, c, f)
		list = append(list, ports[name])
	}
	return badRow(t, row, c != nil, list...), ports
}

// turnTo makes port the one that fetch asks.
func (w *world) turnTo(port uint16) { w.up.port, w.plain.port = port, port }

// listenBad serves each connection to the port that it returns by f.
func listenBad(t *testing.T, c *tls.Config, f func(net.Conn)) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() { l.Close(); open.Wait() })
	open.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer raw.Close()
				defer context.AfterFunc(t.Context(), func() { raw.Close() })()
				conn := raw
				if c != nil {
					over := tls.Server(raw, c)
					if over.Handshake() != nil {
						return
					}
					conn = over
				}
				f(conn)
			})
		}
	})
	return portOf(t, l.Addr())
}

// badRow is a world with one row, whose ports are somebody else's.
func badRow(t *testing.T, row domain.Domain, tls bool, ports ...uint16) *world {
	t.Helper()
	w := newEgress(t, setup{rows: func(_, _ uint16) []domain.Domain {
		row.Ports, row.Plain = ports, !tls
		if row.Name = "plain.test"; tls {
			row.Name = "good.test"
		}
		return []domain.Domain{row}
	}})
	w.turnTo(ports[0])
	return w
}

// fetch asks for path of the world's plain.test or good.test over the proxy
// port and returns what came, with the error that broke it off.
func (w *world) fetch(name, path string) (*reply, error) {
	w.t.Helper()
	scheme, port := "https", w.up.port
	if name == "plain.test" {
		scheme, port = "http", w.plain.port
	}
	resp, err := w.client().Get(fmt.Sprintf("%s://%s:%d%s", scheme, name, port, path))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return &reply{resp, string(text)}, err
}

// minted is a certificate for good.test that is its own authority, changed, and
// the file of it.
func minted(t *testing.T, change func(*x509.Certificate)) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bad"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"good.test"}}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// askedOf reads one request's head from an upstream's connection.
func askedOf(c net.Conn) bool {
	_, err := http.ReadRequest(bufio.NewReader(c))
	return err == nil
}

// untilCut writes what next gives until the connection is cut, and says how
// much was taken.
func untilCut(c net.Conn, next func() string) (n int64) {
	for {
		k, err := io.WriteString(c, next())
		if n += int64(k); err != nil || n > 1<<30 {
			return n
		}
	}
}

// stayOpen says nothing more until the other side goes away.
func stayOpen(c net.Conn) { io.Copy(io.Discard, c) }

func bigText(n int) string { return strings.Repeat("words and words\n", n/16+1)[:n] }
