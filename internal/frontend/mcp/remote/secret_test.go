package remote

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

const sesame = `open"/~sesame\1234`

// TestCredentialStays: a server that repeats the credential gives it to nobody:
// not in an error, a result, a log or the reason of a failure.
func TestCredentialStays(t *testing.T) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sesame)
	var log syncBuffer
	for name, h := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 401, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no such token `+quoted+`","data":"Bearer `+quoted+`"}}`)
		},
		"without id": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 401, `{"jsonrpc":"2.0","error":{"code":-1,"message":"`+quoted+`"}}`)
		},
		"result": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":{"`+quoted+`":["\\","Bearer `+quoted+`"]}}`)
		},
		"notification": func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"x":"`+quoted+`"}}`)
		},
		"page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, sesame, 500) },
		"header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sesame)
			w.Header().Set("Mcp-Session-Id", sesame)
			w.WriteHeader(200)
		},
		"redirect": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://x/"+sesame)
			w.WriteHeader(302)
		},
		"method": func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, `data: {"jsonrpc":"2.0","id":8,"method":"`+quoted+`","params":{}}`)
		},
		"id": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":"`+quoted+`","result":{}}`)
		},
		"member": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":{"`+quoted+`":1,"`+quoted+`":2}}`)
		},
		"tool": func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"`+quoted+`","inputSchema":{"properties":{"`+quoted+`":{"x-mcp-header":""}}}}]}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			w := wired(t, s.URL, func(c *Config) {
				c.Header = map[string]holdfast.Secret{"Authorization": holdfast.NewSecret("Bearer " + sesame)}
				c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			w.send(list)
			got := w.next()
			if strings.Contains(got, "sesame") {
				t.Errorf("the line is %s", got)
			}
			if name == "result" && !strings.Contains(got, `{"REDACTED":["\\","REDACTED"]}`) {
				t.Errorf("the line is %s", got)
			}
			w.Close()
		})
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the log has it: %s", log.String())
	}
	for _, header := range []string{"Authorization\n", "X"} {
		_, err := Dial(t.Context(), Config{URL: "https://x/", Header: map[string]holdfast.Secret{header: holdfast.NewSecret(sesame + "\n")}})
		if err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("error %v", err)
		}
	}
}

// TestErrorsAreMasked: the texts of a server's errors pass the mask, and stay
// JSON whatever that makes of them.
func TestErrorsAreMasked(t *testing.T) {
	for in, want := range map[string]string{
		`{"code":1,"message":"key k-1 is wrong","data":{"a":["k-1"]}}`: `{"code":1,"message":"key *** is wrong","data":{"a":["***"]}}`,
		`{"code":1,"message":"\u006b-1","data":"k-1"}`:                 `{"code":1,"message":"***","data":"***"}`,
		`{"code":1,"message":"m","data":{"a":brk}}`:                    "",
		`{"code":1,"message":"m","data":{"a":7331}}`:                   `{"code":1,"message":"m","data":"REDACTED"}`,
		`{"code":1,"message":"m","data":null}`:                         `{"code":1,"message":"m","data":null}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asJSON(w, 500, `{"jsonrpc":"2.0","id":1,"error":`+in+`}`)
		})
		w := wired(t, s.URL, func(c *Config) {
			c.Mask = func(b []byte) []byte {
				return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("k-1"), []byte("***")), []byte("7331"), []byte("{"))
			}
		})
		w.send(list)
		if want == "" {
			w.want("HTTP 500")
			continue
		}
		w.want(`"error":` + want)
	}
}

// TestConfig: what cannot be used is refused before anything is sent, and no
// error repeats the URL.
func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		c  Config
		ok bool
	}{
		"https":            {Config{URL: "https://example.com/mcp?key=1"}, true},
		"http here":        {Config{URL: "http://127.0.0.1:1/"}, true},
		"http here, 6":     {Config{URL: "http://[::1]:1/"}, true},
		"http localhost":   {Config{URL: "http://localhost:1/"}, true},
		"http":             {Config{URL: "http://example.com/"}, false},
		"http, by name":    {Config{URL: "http://example.com/", Plaintext: true}, true},
		"like localhost":   {Config{URL: "http://localhost.example.com/"}, false},
		"like loopback":    {Config{URL: "http://127.0.0.1.example.com/"}, false},
		"number":           {Config{URL: "http://2130706433/"}, false},
		"any address":      {Config{URL: "http://0.0.0.0/"}, false},
		"user":             {Config{URL: "https://hunter2@example.com/"}, false},
		"password":         {Config{URL: "https://u:hunter2@example.com/"}, false},
		"fragment":         {Config{URL: "https://example.com/#hunter2"}, false},
		"no host":          {Config{URL: "https:///hunter2"}, false},
		"port alone":       {Config{URL: "https://:443/hunter2"}, false},
		"opaque":           {Config{URL: "https:hunter2"}, false},
		"file":             {Config{URL: "file:///hunter2"}, false},
		"nothing":          {Config{}, false},
		"no URL":           {Config{URL: "https://exa mple/hunter2\x7f"}, false},
		"long":             {Config{URL: "https://example.com/" + strings.Repeat("x", maxURL)}, false},
		"own header":       {Config{URL: "https://x/", Header: secret("Mcp-Session-Id", "x")}, false},
		"host":             {Config{URL: "https://x/", Header: secret("hOST", "x")}, false},
		"leave to repeat":  {Config{URL: "https://x/", Header: secret("Idempotency-Key", "x")}, false},
		"header's name":    {Config{URL: "https://x/", Header: secret("A B", "x")}, false},
		"two lines":        {Config{URL: "https://x/", Header: secret("A", "x\r\nB: y")}, false},
		"no ASCII":         {Config{URL: "https://x/", Header: secret("A", "é")}, false},
		"header":           {Config{URL: "https://x/", Header: secret("X-Api-Key", "x")}, true},
		"header, long":     {Config{URL: "https://x/", Header: secret("A", strings.Repeat("x", maxHeaders))}, false},
		"localhost's name": {Config{URL: "http://a.localhost/"}, true},
	} {
		conn, err := Dial(t.Context(), c.c)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || holdfast.KindOf(err) != holdfast.KindUsage) {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
}

func secret(name, value string) map[string]holdfast.Secret {
	return map[string]holdfast.Secret{name: holdfast.NewSecret(value)}
}

// TestLoopbackIsLoopback: a name that is taken for this machine's and leads
// away is not connected to without TLS.
func TestLoopbackIsLoopback(t *testing.T) {
	c := dial(t, "http://localhost:1/")
	tr := c.client.Transport.(*http.Transport)
	for address, ok := range map[string]bool{"192.0.2.1:80": false, "[2001:db8::1]:80": false, "127.0.0.1:1": true, "[::1]:1": true} {
		conn, err := tr.DialContext(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		if away := err != nil && strings.Contains(err.Error(), "away from this machine"); away == ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestNoProxyUnasked, TestNoCookies: nothing of the environment, and nothing
// that the server asks to be kept, is in a request.
func TestNoProxyUnasked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := dial(t, "https://example.com/", func(c *Config) { c.EnvironmentProxy = asked })
		if got := c.client.Transport.(*http.Transport).Proxy != nil; got != asked {
			t.Errorf("proxy %v, asked %v", got, asked)
		}
	}
}

func TestNoCookies(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		asJSON(w, 200, fine)
	})
	jar := &http.Client{Jar: everyJar{t}}
	w := wired(t, s.URL, func(c *Config) { c.Client = jar })
	for range 2 {
		w.send(list)
		w.want(fine)
	}
}

// everyJar would send its cookie everywhere.
type everyJar struct{ t *testing.T }

func (everyJar) Cookies(*url.URL) []*http.Cookie { return []*http.Cookie{{Name: "a", Value: "b"}} }

func (j everyJar) SetCookies(*url.URL, []*http.Cookie) { j.t.Error("a cookie was kept") }

// TestTLS: a certificate that nobody trusts is an error before anything is
// said, and one whose root the caller brings is not.
func TestTLS(t *testing.T) {
	asked := false
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = true
		_, _ = io.Copy(io.Discard, r.Body)
		asJSON(w, 200, fine)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	w := wired(t, s.URL)
	w.send(list)
	w.want(`"id":1`, "could not be reached", "certificate")
	if asked {
		t.Error("an untrusted server was asked")
	}
	w = wired(t, s.URL, func(c *Config) { c.Client = s.Client() })
	w.send(list)
	w.want(fine)
}

// TestOldTLSIsRefused: a server that speaks nothing newer than TLS 1.1 gets no
// request.
func TestOldTLSIsRefused(t *testing.T) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			t.Error("the server was to show a certificate")
			return nil, errors.New("the test ends here")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	w := wired(t, "https://"+l.Addr().String())
	w.send(list)
	w.want(`"id":1`, "could not be reached")
}
