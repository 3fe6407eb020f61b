package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/holdfast-dev/holdfast/internal/api"
)

// maxWaitRoom is how long a request for room may wait at most.
const maxWaitRoom = 10 * time.Minute

// maxCertFile bounds a file of certificates.
const maxCertFile = 1 << 20

func (k *checker) sandbox(c *Config) {
	if w := time.Duration(c.Sandbox.Wait); w < time.Millisecond || w > maxWaitRoom {
		k.fail(k.at("sandbox.wait"), "wait 1ms to 10m", "sandbox.wait: %v is not allowed", w)
	}
	e := c.Sandbox.Executor
	named := 0
	for _, f := range []string{e.Cert, e.Key, e.Clients} {
		if f != "" {
			named++
		}
	}
	if e.Listen == "" {
		if named > 0 {
			k.fail(k.at("sandbox.executor"), "write listen: 127.0.0.1:7413", "sandbox.executor has no listen")
		}
		return
	}
	host, port, err := net.SplitHostPort(e.Listen)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || bad != nil || strconv.FormatUint(n, 10) != port:
		k.fail(k.at("sandbox.executor.listen"), "write host:port, such as 127.0.0.1:7413", "sandbox.executor.listen: %q is not an address", clip(e.Listen))
	case named != 0 && named != 3:
		k.fail(k.at("sandbox.executor"), "", "sandbox.executor needs all three of cert, key and clients, or none")
	case named == 0 && !loopback(host):
		k.fail(k.at("sandbox.executor.listen"), "listen on 127.0.0.1, or name cert, key and clients", "sandbox.executor.listen: %q can be reached from other machines", clip(e.Listen))
	}
}

// executorFiles reads what the executor's certificates are, so that a mistake is
// found where it is written.
func (r *reading) executorFiles(e *ExecutorConfig) {
	if e.Cert == "" || e.Key == "" || e.Clients == "" {
		return
	}
	e.Cert, e.Key, e.Clients = r.abs(e.Cert), r.abs(e.Key), r.abs(e.Clients)
	if _, err := e.credentials(r.guard); err != nil {
		why, hint := letter(err)
		r.fail(place(filepath.Base(r.files[0]), r.lines["sandbox.executor"]), hint, why)
	}
}

// credentials reads the certificates: both sides show one, and nothing older
// than TLS 1.3 is spoken. Nil without any.
func (e ExecutorConfig) credentials(g guard) (credentials.TransportCredentials, error) {
	if e.Cert == "" {
		return nil, nil
	}
	cert, err := g.read(e.Cert, maxCertFile)
	if err != nil {
		return nil, unreadable(e.Cert, err)
	}
	key, err := readRegular(e.Key, maxCertFile, privateFile(e.Key))
	if err != nil {
		return nil, unreadable(e.Key, err)
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, hinted("both are PEM, and belong together", "%s and %s are no certificate and its key", e.Cert, e.Key)
	}
	signers, err := g.read(e.Clients, maxCertFile)
	if err != nil {
		return nil, unreadable(e.Clients, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(signers) {
		return nil, hinted("it is PEM, of whoever signs the clients' certificates", "%s holds no certificate", e.Clients)
	}
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}), nil
}

// room is how much code runs and waits at once.
func (c SandboxConfig) room() api.Room {
	return api.Room{Running: c.Running, Waiting: c.Waiting, Wait: time.Duration(c.Wait)}
}
