// Package authority is the certificate authority of the proxy: its key and certificate
// in files, and a certificate for each host that is terminated.
package authority

import (
	"container/list"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	authorityKey  = "egress-ca-key.pem"
	authorityCert = "egress-ca.pem"
	authorityLife = 10 * 365 * 24 * time.Hour
	// leafLife is short: a leaf lives in memory only, and is made in a quarter
	// of a millisecond.
	leafLife  = 7 * 24 * time.Hour
	leafRenew = 24 * time.Hour
	maxLeaves = 1024
	// backdate lets a client's clock be behind.
	backdate = time.Hour
)

// Authority is the local certificate authority: it signs what the proxy shows
// to the programs of a workspace, and only those are told to trust it. It is
// safe for concurrent use.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
	// leafKey is one key for all leaves of this process; it is never written.
	leafKey *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[domain.Host]*list.Element // guarded by mu
	used   *list.List                    // guarded by mu: of *leaf, the latest first
}

type leaf struct {
	host domain.Host
	cert *tls.Certificate
}

// Files are the names of the files in dir: key and certificate.
func Files() []string { return []string{authorityKey, authorityCert} }

// Open reads the authority in dir, or makes one where dir holds
// neither its key nor its certificate: a P-256 key (mode 0600) and a
// certificate for ten years. What is there and cannot be used is an error and
// stays as it is: programs trust that certificate.
func Open(dir string) (*Authority, error) {
	keyPath, certPath := filepath.Join(dir, authorityKey), filepath.Join(dir, authorityCert)
	_, keyErr := os.Lstat(keyPath)
	_, certErr := os.Lstat(certPath)
	if errors.Is(keyErr, fs.ErrNotExist) && errors.Is(certErr, fs.ErrNotExist) {
		if err := makeAuthority(dir, time.Now()); err != nil {
			return nil, unusable("cannot be made", dir, "see that the directory can be written by the user that runs the daemon, and by nobody else", err)
		}
	}
	key, err := readKey(keyPath)
	if err != nil {
		return nil, err
	}
	return readAuthority(certPath, key)
}

func unusable(what, path, hint string, err error) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the egress certificate authority %s: %s", what, path), Hint: hint, Err: err}
}

// replaceHint is what helps where a file is broken: nothing replaces it by
// itself.
const replaceHint = "restore both files from a backup, or move both away: a new authority is then made, and workspaces that are open must be started again"

func readKey(path string) (*ecdsa.PrivateKey, error) {
	raw, info, err := readSmall(path)
	if err != nil {
		return nil, unusable("has no readable key", path, replaceHint, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, unusable(fmt.Sprintf("has a key that others can read (mode %04o)", info.Mode().Perm()), path,
			"if nobody can have read it, run chmod 600 on it; else move both files away and let a new authority be made", nil)
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) > 0 {
		return nil, unusable("has a broken key", path, replaceHint, nil)
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, unusable("has a broken key", path, replaceHint, err)
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, unusable("has a key that is not P-256", path, replaceHint, nil)
	}
	return key, nil
}

// readSmall reads a regular file of at most 64 KB, and follows no link.
func readSmall(path string) ([]byte, fs.FileInfo, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() || before.Size() > 64<<10 {
		return nil, nil, fmt.Errorf("%s is not a regular file of at most 64 KB", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !os.SameFile(before, info) {
		return nil, nil, fmt.Errorf("%s changed while it was opened", path)
	}
	raw := make([]byte, info.Size())
	n, err := f.ReadAt(raw, 0)
	if n < len(raw) {
		return nil, nil, err
	}
	return raw, info, nil
}

func readAuthority(path string, key *ecdsa.PrivateKey) (*Authority, error) {
	raw, info, err := readSmall(path)
	if err != nil {
		return nil, unusable("has no readable certificate", path, replaceHint, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, unusable(fmt.Sprintf("has a certificate that others can write (mode %04o)", info.Mode().Perm()), path, "run chmod 644 on it", nil)
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		return nil, unusable("has a broken certificate", path, replaceHint, nil)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, unusable("has a broken certificate", path, replaceHint, err)
	}
	switch pub, ok := cert.PublicKey.(*ecdsa.PublicKey); {
	case !ok || !pub.Equal(key.Public()):
		return nil, unusable("has a certificate for another key", path, replaceHint, nil)
	case !cert.IsCA || !cert.BasicConstraintsValid || cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, unusable("has a certificate that may not sign", path, replaceHint, nil)
	case time.Now().Before(cert.NotBefore):
		return nil, unusable("does not hold yet, but from "+cert.NotBefore.UTC().Format(time.RFC3339), path, "see this machine's clock", nil)
	case !time.Now().Before(cert.NotAfter):
		return nil, unusable("has expired on "+cert.NotAfter.Format(time.DateOnly), path, "move both files away: a new authority is then made", nil)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of leaves: %w", err)
	}
	return &Authority{key: key, cert: cert, pem: raw, leafKey: leafKey, leaves: map[domain.Host]*list.Element{}, used: list.New()}, nil
}

// makeAuthority writes a new authority, the key first: a certificate without
// a key could sign nothing, and the next start would say so.
func makeAuthority(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := serialNumber()
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Holdfast egress " + fmt.Sprintf("%x", serial.Bytes()[:4]), Organization: []string{"Holdfast"}},
		NotBefore:    now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := durable.CreateFile(filepath.Join(dir, authorityKey), keyText, 0o600); err != nil {
		return err
	}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return durable.CreateFile(filepath.Join(dir, authorityCert), certText, 0o644)
}

func serialNumber() (*big.Int, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and of one length
	return new(big.Int).SetBytes(b[:]), nil
}

// PEM is the authority's certificate, which clients inside are told to trust.
// The slice is the caller's.
func (a *Authority) PEM() []byte { return append([]byte(nil), a.pem...) }

// Leaf returns a certificate for exactly h: a name, or an address where h is a
// literal. Whether h may have one is the caller's to say. Up to 1024 are kept.
func (a *Authority) Leaf(h domain.Host) (*tls.Certificate, error) {
	if h == (domain.Host{}) {
		return nil, errors.New("no certificate for no host")
	}
	now := time.Now()
	a.mu.Lock()
	if e, ok := a.leaves[h]; ok {
		if l := e.Value.(*leaf); now.Add(leafRenew).Before(l.cert.Leaf.NotAfter) {
			a.used.MoveToFront(e)
			a.mu.Unlock()
			return l.cert, nil
		}
	}
	a.mu.Unlock()
	cert, err := a.sign(h, now) // two at once for one host make two, and one stays
	if err != nil {
		return nil, err
	}
	a.keep(&leaf{host: h, cert: cert})
	return cert, nil
}

func (a *Authority) keep(l *leaf) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.leaves[l.host]; ok {
		e.Value = l
		a.used.MoveToFront(e)
		return
	}
	a.leaves[l.host] = a.used.PushFront(l)
	for a.used.Len() > maxLeaves {
		last := a.used.Back()
		delete(a.leaves, a.used.Remove(last).(*leaf).host)
	}
}

func (a *Authority) sign(h domain.Host, now time.Time) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	until := now.Add(leafLife)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	t := &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-backdate), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if h.IsAddr() {
		t.IPAddresses = []net.IP{h.Addr().AsSlice()}
	} else {
		t.DNSNames = []string{h.String()}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, a.leafKey.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that was signed: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leafKey, Leaf: parsed}, nil
}
