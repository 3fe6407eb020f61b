// Command goproxy is what `go run -C bench . egress` measures Holdfast's proxy
// beside: github.com/elazarl/goproxy, terminating TLS and passing everything on,
// with nothing redacted and nothing recorded. It is given what makes it fast: a
// P-256 authority, certificates that are kept, and as many idle connections to
// the upstream as there are clients.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
)

func main() {
	dial := flag.String("dial", "", "host:port that every request is sent to")
	roots := flag.String("roots", "", "file of the upstream's certificate, PEM")
	ca := flag.String("ca", "", "file that the proxy's own certificate is written to, PEM")
	flag.Parse()
	if err := serve(*dial, *roots, *ca); err != nil {
		fmt.Fprintln(os.Stderr, "goproxy:", err)
		os.Exit(1)
	}
}

// serve prints the address that it listens on, and serves until standard input
// ends.
func serve(dial, roots, ca string) error {
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(roots)
	if err != nil {
		return err
	}
	if !trusted.AppendCertsFromPEM(text) {
		return errors.New("--roots holds no certificate")
	}
	cert, err := authority()
	if err != nil {
		return err
	}
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", l.Addr())
	srv := &http.Server{Handler: proxy(dial, trusted, cert), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whoever started us has gone, however it went
		_ = srv.Close()
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func proxy(dial string, trusted *x509.CertPool, ca *tls.Certificate) *goproxy.ProxyHttpServer {
	p := goproxy.NewProxyHttpServer()
	p.Logger = log.New(io.Discard, "", 0)
	p.CertStore = &certificates{made: map[string]*tls.Certificate{}}
	var d net.Dialer
	p.Tr = &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, dial)
		},
		TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConns: 2048, MaxIdleConnsPerHost: 2048, DisableCompression: true,
	}
	mitm := &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: goproxy.TLSConfigFromCA(ca)}
	p.OnRequest().HandleConnect(goproxy.FuncHttpsHandler(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return mitm, host
	}))
	return p
}

// certificates keeps what was signed, as Holdfast does.
type certificates struct {
	mu   sync.Mutex
	made map[string]*tls.Certificate // guarded by mu
}

// Fetch implements goproxy.CertStorage.
func (c *certificates) Fetch(host string, sign func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.made[host]; have != nil {
		return have, nil
	}
	cert, err := sign()
	if err == nil {
		c.made[host] = cert
	}
	return cert, err
}

// authority is a new authority for a day.
func authority() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "goproxy, measured"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
