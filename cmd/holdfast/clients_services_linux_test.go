package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
)

// services are what the clients of a run want to reach: a Git host, a registry of
// npm's and one of pip's, an API and two providers of models, over TLS on one port of this machine, each
// by its own name below example.com.
type services struct {
	t     *testing.T
	dir   string // the Git repositories
	port  string
	roots []byte // PEM
	npm   []byte // the one package, a tarball
	wheel []byte
	model providertest.Provider

	mu   sync.Mutex
	seen map[string]chan struct{} // by the stream's name: its first event was read
	came []string                 // METHOD host path, in order
}

func newServices(t *testing.T) *services {
	t.Helper()
	s := &services{t: t, dir: t.TempDir(), seen: map[string]chan struct{}{}, npm: tarball(t), wheel: wheel(t)}
	s.repository()
	h := httptest.NewUnstartedServer(s)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	_, s.port, _ = net.SplitHostPort(h.Listener.Addr().String())
	s.roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return s
}

// repository makes one with a commit and two branches, into which may be pushed.
func (s *services) repository() {
	s.t.Helper()
	const script = `set -e
git init -q --bare -b main work.git
git -C work.git config http.receivepack true
git init -q -b main seed && cd seed
git config user.name Ann && git config user.email ann@example.com
seq 1 20000 >numbers && git add numbers && git commit -qm first
git push -q ../work.git main main:ann@example.com/key-0123456789`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	s.mu.Lock()
	s.came = append(s.came, r.Method+" "+host+" "+r.URL.Path)
	s.mu.Unlock()
	switch host {
	case "git.example.com":
		s.git(w, r)
	case "npm.example.com":
		s.registry(w, r)
	case "pypi.example.com":
		s.index(w, r)
	case "api.example.com":
		s.api(w, r)
	case "claude.example.com", "gpt.example.com":
		s.model.ServeHTTP(w, r)
	default:
		http.Error(w, "a host that nobody is", http.StatusTeapot)
	}
}

// visits are the requests that began so.
func (s *services) visits(head string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.came {
		if strings.HasPrefix(v, head) {
			n++
		}
	}
	return n
}

func (s *services) git(w http.ResponseWriter, r *http.Request) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + s.dir,
		"GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"), "HOME=" + s.dir}}
	h.ServeHTTP(w, r)
}

// registry is one of npm's, of the package `plain`, as the public one answers.
func (s *services) registry(w http.ResponseWriter, r *http.Request) {
	tar := "https://" + r.Host + "/plain/-/plain-1.0.0.tgz"
	one, five := sha1.Sum(s.npm), sha512.Sum512(s.npm)
	switch {
	case r.URL.Path == "/plain":
		w.Header().Set("Content-Type", "application/vnd.npm.install-v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "plain", "modified": "2026-01-02T03:04:05.678Z", "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{"name": "plain", "version": "1.0.0", "maintainers": []map[string]string{{"name": "ann", "email": "ann@example.com"}},
				"dist": map[string]any{"tarball": tar, "shasum": hex.EncodeToString(one[:]), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(five[:])}}}})
	case r.URL.Path == "/plain/-/plain-1.0.0.tgz":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(s.npm)
	case strings.HasPrefix(r.URL.Path, "/-/npm/v1/security/"):
		if b, err := io.ReadAll(r.Body); err != nil || !bytes.Contains(b, []byte(`"plain"`)) {
			http.Error(w, "an audit of nothing", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	default:
		http.NotFound(w, r)
	}
}

// index is one of pip's (PEP 503), of the package probe.
func (s *services) index(w http.ResponseWriter, r *http.Request) {
	const file = "probe-1.0-py3-none-any.whl"
	switch r.URL.Path {
	case "/simple/probe/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body><a href=\"/files/%s#sha256=%x\">%s</a></body></html>", file, sha256.Sum256(s.wheel), file)
	case "/files/" + file:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(s.wheel)
	default:
		http.NotFound(w, r)
	}
}

// api says what came: how, how much, and its sum. /events says a second thing only
// once somebody has told /read of the first.
func (s *services) api(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	switch r.URL.Path {
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: one\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.reader(name):
			fmt.Fprint(w, "data: two\n\n")
		case <-r.Context().Done():
		}
	case "/read":
		close(s.reader(name))
	case "/digits":
		http.ServeContent(w, r, "digits.txt", timeless, strings.NewReader(strings.Repeat("0 1 2 3 4 ", 100)))
	default:
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		fmt.Fprintf(w, "reached %s by %s with %d bytes %x\n", r.URL.Path, r.Method, n, h.Sum(nil))
	}
}

func (s *services) reader(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[name] == nil {
		s.seen[name] = make(chan struct{})
	}
	return s.seen[name]
}

// tarball is the npm package plain: 64 KB that cannot be compressed, so that it is
// no text to anybody, beside its program.
func tarball(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"package/package.json": `{"name":"plain","version":"1.0.0","main":"index.js"}`,
		"package/index.js": `module.exports = "plain was installed"`, "package/noise": noise(64 << 10)} {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wheel is the Python package probe (PEP 427).
func wheel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range [][2]string{{"probe/__init__.py", "SAYS = 'probe was installed'\n"}, {"probe/noise", noise(64 << 10)},
		{"probe-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\nAuthor-email: ann@example.com\n"},
		{"probe-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"probe-1.0.dist-info/RECORD", "probe/__init__.py,,\nprobe/noise,,\nprobe-1.0.dist-info/METADATA,,\nprobe-1.0.dist-info/WHEEL,,\nprobe-1.0.dist-info/RECORD,,\n"}} {
		part, err := w.Create(f[0])
		if err == nil {
			_, err = io.WriteString(part, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// noise is n bytes that nothing compresses, the same each time.
func noise(n int) string {
	var b bytes.Buffer
	for sum := sha256.Sum256(nil); b.Len() < n; sum = sha256.Sum256(sum[:]) {
		b.Write(sum[:])
	}
	return b.String()[:n]
}
