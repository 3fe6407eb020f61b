package keyset

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

// reader returns how the set is read.
func (o *Options) reader() (func(context.Context) ([]byte, error), error) {
	n := 0
	for _, s := range []string{o.File, o.URL, o.Issuer} {
		if s != "" {
			n++
		}
	}
	if n != 1 {
		return nil, errors.New("exactly one of a file, an address and an issuer must be given")
	}
	if o.File != "" {
		return func(context.Context) ([]byte, error) { return readFile(o.File) }, nil
	}
	w := &web{tls: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}}
	if o.URL != "" {
		u, err := checkURL(o.URL)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, error) { return w.get(ctx, u) }, nil
	}
	return w.discover(o.Issuer)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return bounded(f)
}

// bounded reads at most maxBody bytes; one more is an error.
func bounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = fmt.Errorf("it is longer than %d bytes", maxBody)
	}
	return b, err
}

// checkURL accepts https, and http where nobody is in between: on loopback.
func checkURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > 2048 {
		return nil, errors.New("the address is not a URL")
	}
	switch {
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("the address has no host")
	case u.User != nil:
		return nil, errors.New("the address holds a user name")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, errors.New("the address holds a fragment")
	case u.Scheme == "https":
		return u, nil
	case u.Scheme == "http" && netaddr.IsLoopbackHost(u.Hostname()):
		return u, nil // the dialer checks what localhost resolves to
	case u.Scheme == "http":
		return nil, errors.New("http is accepted on loopback only: use https")
	}
	return nil, errors.New("the address is not https")
}

// web fetches documents.
type web struct{ tls *tls.Config }

// discover returns the reader of an OpenID Connect issuer: its discovery
// document first (OpenID Connect Discovery 1.0 section 4), then the set.
func (w *web) discover(issuer string) (func(context.Context) ([]byte, error), error) {
	u, err := checkURL(issuer)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, errors.New("an issuer has no query")
	}
	doc, err := checkURL(strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]byte, error) {
		b, err := w.get(ctx, doc)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		set, err := jwksURI(b, issuer, u.Scheme)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		return w.get(ctx, set)
	}, nil
}

// jwksURI reads a discovery document. Its issuer must be the one that was
// asked for, to the byte, or it may speak for somebody else (section 4.3).
func jwksURI(doc []byte, issuer, scheme string) (*url.URL, error) {
	var meta struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := unmarshal(doc, &meta); err != nil {
		return nil, err
	}
	if meta.Issuer != issuer {
		return nil, errors.New("the document is of another issuer: spell the issuer exactly as the document does, the slash at its end included")
	}
	u, err := checkURL(meta.JWKSURI)
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	if scheme == "https" && u.Scheme != "https" {
		return nil, errors.New("jwks_uri is not https although the issuer is")
	}
	return u, nil
}

// get fetches one document within ctx. Every call has connections of its own,
// so that nothing stays open between two readings.
func (w *web) get(ctx context.Context, u *url.URL) ([]byte, error) {
	tr := w.transport(u.Scheme)
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, CheckRedirect: sameOrigin}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is status %d", res.StatusCode)
	}
	return bounded(res.Body)
}

func (w *web) transport(scheme string) *http.Transport {
	tr := &http.Transport{
		TLSClientConfig:        w.tls.Clone(),
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if scheme == "https" {
		tr.Proxy = http.ProxyFromEnvironment
	} else {
		tr.DialContext = (&net.Dialer{Control: loopbackOnly}).DialContext
	}
	return tr
}

// loopbackOnly is asked with the very address that is dialled.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	if !netaddr.IsLoopbackAddrPort(address) {
		return errors.New("http is accepted on loopback only")
	}
	return nil
}

// sameOrigin follows a redirect only to the same scheme, host and port.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return errors.New("a redirect to another host is not followed")
	}
	return nil
}
