package daemon

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/service"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestBad_Egress_reloadInMidStream: whatever changes of its row, a stream that is
// under way ends as it began: under the bound and with the credential of its
// beginning. The next request has what is new.
func TestBad_Egress_reloadInMidStream(t *testing.T) {
	row := func(more string) string {
		return "'example.com:PORT': {HERE, credential: {header: X-Api-Key, env: HF_TEST_SERVICE_KEY}" + more + "}"
	}
	for name, c := range map[string]struct {
		rows   string
		before func(t *testing.T)
		then   func(t *testing.T, w *world, c *http.Client)
	}{
		"the row removed": {"elsewhere.example.com: {}", nil, func(t *testing.T, w *world, c *http.Client) {
			if _, err := c.Get("https://example.com:" + w.port + "/v1/x"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
				t.Error(err)
			}
		}},
		"the cap lowered": {row(", max_response: 20B"), nil, func(t *testing.T, w *world, c *http.Client) {
			w.get(c, "/v1/x", http.StatusRequestEntityTooLarge)
		}},
		"the credential changed": {row(""), func(t *testing.T) { t.Setenv("HF_TEST_SERVICE_KEY", "another-key-0123456789") }, func(t *testing.T, w *world, c *http.Client) {
			if text := w.get(c, "/v1/x", 200); !strings.Contains(text, `"has_key":false`) {
				t.Errorf("what goes out now: %s", text)
			}
		}},
		"a credential that is gone": {row(""), func(t *testing.T) { t.Setenv("HF_TEST_SERVICE_KEY", "") }, func(t *testing.T, w *world, c *http.Client) {
			w.get(c, "/v1/x", http.StatusBadGateway)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, row(""))
			agent := w.agent()
			resp := w.stream(agent, "it goes on")
			lines := bufio.NewScanner(resp.Body)
			next := func(want string) {
				t.Helper()
				for lines.Scan() {
					if lines.Text() != "" {
						if lines.Text() != "data: "+want {
							t.Errorf("%q, want %q", lines.Text(), want)
						}
						return
					}
				}
				t.Fatal("the stream ended", lines.Err())
			}
			next("it goes on")
			if c.before != nil {
				c.before(t)
			}
			w.reload(c.rows)
			c.then(t, w, agent)
			w.entries(1)
			w.more <- "more than twenty bytes, and key-of-the-service-0123456789"
			close(w.more)
			next("more than twenty bytes, and [secret]")
			if lines.Scan() && lines.Text() != "" || lines.Err() != nil {
				t.Error(lines.Text(), lines.Err())
			}
			// The stream's entry is the last: it ended last.
			if e := w.entries(2)[1]; e.Outcome != ledger.Done || e.ErrorKind != "" || e.Boundary != "egress/example.com:"+w.port {
				t.Errorf("the stream is recorded as %s %s %q", e.Boundary, e.Outcome, e.ErrorKind)
			}
		})
	}
}

// badAuthority spoils the state's authority in one way.
type badAuthority struct {
	spoil func(t *testing.T, key, cert string)
	why   string
}

// signed writes a certificate of the key's own over cert.
func signed(t *testing.T, key, cert string, change func(*x509.Certificate)) {
	t.Helper()
	raw, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bad"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.(*ecdsa.PrivateKey).Public(), k)
	if err == nil {
		err = os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBad_Egress_aBrokenAuthority: a daemon whose authority cannot be used says
// so by name, opens no listener, and leaves the files as they are.
func TestBad_Egress_aBrokenAuthority(t *testing.T) {
	t.Parallel()
	put := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	garbage, empty := put("no PEM at all\n"), put("")
	mode := func(m os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.Chmod(path, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	directory := func(t *testing.T, path string) {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, path string) {
		if err := errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path)); err != nil {
			t.Fatal(err)
		}
	}
	ofKey := func(f func(*testing.T, string)) func(*testing.T, string, string) {
		return func(t *testing.T, key, _ string) { f(t, key) }
	}
	ofCert := func(f func(*testing.T, string)) func(*testing.T, string, string) {
		return func(t *testing.T, _, cert string) { f(t, cert) }
	}
	other := func(t *testing.T, path string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		put(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))(t, path)
	}
	for name, c := range map[string]badAuthority{
		"a key of garbage":           {ofKey(garbage), "broken key"},
		"an empty key":               {ofKey(empty), "broken key"},
		"the key of another":         {ofKey(other), "certificate for another key"},
		"a key that others read":     {ofKey(mode(0o644)), "others can read"},
		"a key that is a directory":  {ofKey(directory), "no readable key"},
		"a key that is a link":       {ofKey(link), "no readable key"},
		"a certificate of garbage":   {ofCert(garbage), "broken certificate"},
		"an empty certificate":       {ofCert(empty), "broken certificate"},
		"a certificate others write": {ofCert(mode(0o666)), "others can write"},
		"a certificate: a directory": {ofCert(directory), "no readable certificate"},
		"an expired certificate": {func(t *testing.T, k, cert string) {
			signed(t, k, cert, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
		}, "has expired"},
		"a certificate of the future": {func(t *testing.T, k, cert string) {
			signed(t, k, cert, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) })
		}, "does not hold yet"},
		"a certificate that signs none": {func(t *testing.T, k, cert string) { signed(t, k, cert, func(c *x509.Certificate) { c.IsCA = false }) }, "may not sign"},
		"no key beside a certificate": {ofKey(func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}), "no readable key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := authority.Open(dir); err != nil {
				t.Fatal(err)
			}
			files := authority.Files()
			key, cert := filepath.Join(dir, files[0]), filepath.Join(dir, files[1])
			c.spoil(t, key, cert)
			before, _ := os.ReadFile(key)
			config := filepath.Join(t.TempDir(), "holdfast.yaml")
			if err := os.WriteFile(config, []byte(quiet+"egress:\n  listen: [{address: '127.0.0.1:0', agent: nightly}]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), Options{State: dir, Config: config, Version: "test"})
			if err == nil {
				err = d.Serve(t.Context(), Serving{Ready: func(string) { t.Error("it serves") }})
				_ = d.Close()
			}
			var he *holdfast.Error
			if !errors.As(err, &he) || !strings.Contains(he.Why, c.why) || he.Hint == "" {
				t.Fatalf("%v, want %q", err, c.why)
			}
			if made, err := service.FindAuthority(PathsIn(dir).Dir); !made || err == nil {
				t.Errorf("what a doctor sees: %v %v", made, err)
			}
			if after, _ := os.ReadFile(key); string(before) != string(after) {
				t.Error("the key was replaced")
			}
		})
	}
}

// TestBad_Egress_brokenRoots: the file of a row's own authorities was right when
// it was read, and is not any more: nothing is sent, and the next request after
// it was mended is.
func TestBad_Egress_brokenRoots(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE}")
	w.d.repeats()
	roots := filepath.Join(w.dir, "roots.pem")
	good, err := os.ReadFile(roots)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, spoil := range map[string]func() error{
		"garbage":     func() error { return os.WriteFile(roots, []byte("nothing\n"), 0o600) },
		"empty":       func() error { return os.WriteFile(roots, nil, 0o600) },
		"gone":        func() error { return nil },
		"a directory": func() error { return os.Mkdir(roots, 0o700) },
		"a pipe":      func() error { return syscall.Mkfifo(roots, 0o600) },
	} {
		if err := errors.Join(os.RemoveAll(roots), spoil()); err != nil {
			t.Fatal(err)
		}
		if text := w.get(w.agent(), "/v1/x", http.StatusBadGateway); !strings.Contains(text, "root certificates cannot be read") {
			t.Errorf("%s: %q", name, text)
		}
		n++
		if e := w.entries(n)[n-1]; e.ErrorKind != holdfast.KindForward {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if err := errors.Join(os.RemoveAll(roots), os.WriteFile(roots, good, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.get(w.agent(), "/v1/x", 200)
}
