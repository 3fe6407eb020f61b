package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestBad_Egress_killedBetweenBeginAndAnswer: the daemon dies while a host works
// on what it was sent. The client sees its connection break; the next daemon
// closes the crossing as one of which the outcome is not known, with all that was
// reserved for it used up, and sends nothing again.
func TestBad_Egress_killedBetweenBeginAndAnswer(t *testing.T) {
	var asked atomic.Int64
	hold := make(chan struct{})
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		if r.URL.Path == "/hold" {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "answered")
	}))
	defer service.Close()
	defer close(hold)
	_, port, _ := net.SplitHostPort(service.Listener.Addr().String())
	host := "example.com:" + port
	s := newSite(t, "version: 1\nlisten: {pages: none}\negress:\n  listen: [{address: '127.0.0.1:0', agent: nightly}]\n  domains:\n    '"+host+
		"': {addresses: [127.0.0.1], roots: roots.pem, budget: token_count}\nbudgets: [{scope: agent, resource: llm_tokens, boundary: 'egress/"+host+"', amount: 1000}]\n")
	s.write("roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})))
	words := strings.Repeat("many ordinary words ", 45) // 900 bytes are 900 tokens at most
	up := func() (post func(path, body string) (int, string, error), kill func()) {
		t.Helper()
		if err := os.Remove(filepath.Join(s.dir, "out")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		cmd := s.start("out", "up", "--no-operator")
		address := strings.Trim(s.after("out", "the egress proxy listens\" address="), `"`)
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(s.must("egress", "ca"))) {
			t.Fatal("the authority is no certificate")
		}
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address}), TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
		c := &http.Client{Transport: tr, Timeout: time.Minute}
		post = func(path, body string) (int, string, error) {
			resp, err := c.Post("https://"+host+path, "text/plain", strings.NewReader(body))
			if err != nil {
				return 0, "", err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			return resp.StatusCode, string(b), err
		}
		kill = func() {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		}
		return post, kill
	}
	post, kill := up()
	broke := make(chan error, 1)
	go func() {
		_, _, err := post("/hold", words)
		broke <- err
	}()
	s.soon("the host", func() bool { return asked.Load() == 1 })
	kill()
	if err := <-broke; err == nil {
		t.Error("the client has an answer of a daemon that died")
	}
	post, _ = up()
	tail := s.must("ledger", "tail")
	if strings.Count(tail, "unknown") != 1 || !strings.Contains(tail, "egress/"+host) {
		t.Errorf("the crossing is not closed as one that was cut off:\n%s", tail)
	}
	if status, text, err := post("/", words); err != nil || status != http.StatusPaymentRequired || !strings.Contains(text, "900 asked, 100 of 1000 left") {
		t.Errorf("what was reserved is not used up: %v %d %s", err, status, text)
	}
	if status, text, err := post("/", "a few words"); err != nil || status != http.StatusOK || text != "answered" {
		t.Errorf("%v %d %s", err, status, text)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the host was asked %d times", n)
	}
	s.must("ledger", "verify", "--semantics")
}
