package keyset

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// jwk writes a real key as the JWK of an id.
func jwk(t testing.TB, k any, kid string, private bool) json.RawMessage {
	t.Helper()
	j, err := jwkset.NewJWKFromKey(k, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}, Marshal: jwkset.JWKMarshalOptions{Private: private}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(j.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func set(keys ...json.RawMessage) string {
	var b strings.Builder
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(k)
	}
	return `{"keys":[` + b.String() + `]}`
}

func edKey(b byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = b
	return ed25519.NewKeyFromSeed(seed)
}

func edJWK(t testing.TB, b byte, kid string) json.RawMessage {
	return jwk(t, edKey(b).Public(), kid, false)
}

// issuer is a real server whose answer tests change.
type issuer struct {
	*httptest.Server
	answer atomic.Value // http.HandlerFunc
	hits   atomic.Int64
}

func newIssuer(t *testing.T, doc string) *issuer {
	t.Helper()
	is := &issuer{}
	is.say(doc)
	is.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is.hits.Add(1)
		is.answer.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(is.Close)
	return is
}

func (is *issuer) do(f http.HandlerFunc) { is.answer.Store(f) }

func (is *issuer) say(doc string) {
	is.do(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(doc)) })
}

func open(t *testing.T, o Options) *Set {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func has(t *testing.T, s *Set, kid string, want crypto.PublicKey) {
	t.Helper()
	k, alg, err := s.Key(t.Context(), kid)
	if err != nil {
		t.Fatalf("key %q: %v", kid, err)
	}
	if !k.(interface{ Equal(crypto.PublicKey) bool }).Equal(want) || token.CheckKey(k, alg) != nil {
		t.Fatalf("key %q is another one (%s)", kid, alg)
	}
}

func hasNot(t *testing.T, s *Set, kid string, want error) {
	t.Helper()
	k, alg, err := s.Key(t.Context(), kid)
	if !errors.Is(err, want) || k != nil || alg != "" {
		t.Fatalf("key %q: %v %q %v, want %v", kid, k, alg, err, want)
	}
}

func TestRealKeysOfEveryKind(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	is := newIssuer(t, set(edJWK(t, 1, "ed"), jwk(t, &ec.PublicKey, "ec", false), jwk(t, &r.PublicKey, "rsa", false)))
	s := open(t, Options{URL: is.URL})
	has(t, s, "ed", edKey(1).Public())
	has(t, s, "ec", &ec.PublicKey)
	has(t, s, "rsa", &r.PublicKey)
	hasNot(t, s, "", token.ErrUnknownKey)
	hasNot(t, s, "ED", token.ErrUnknownKey)
	if n := is.hits.Load(); n != 1 {
		t.Errorf("%d readings, want 1", n)
	}
	if st := s.Status(); len(st.Keys) != 3 || !st.Fresh || st.Failed != nil || st.Where != is.URL {
		t.Errorf("%+v", st)
	}
}

// A token from signature to refusal after rotation, through the verifier.
func TestK2_FP2_rotation_end_to_end(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Now: c.Now})
	v, err := token.NewVerifier(token.Issuer{Name: "iss", Audience: "aud", Keys: s})
	if err != nil {
		t.Fatal(err)
	}
	mint := func(b byte, kid string) holdfast.Secret {
		j := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "iss", "aud": "aud", "sub": "s", "jti": kid, "tenant_id": "t",
			"roles": []string{}, "exp": c.Now().Add(12 * time.Hour).Unix()})
		j.Header["kid"] = kid
		text, err := j.SignedString(edKey(b))
		if err != nil {
			t.Fatal(err)
		}
		return holdfast.NewSecret(text)
	}
	check := func(tok holdfast.Secret, want holdfast.Kind) {
		t.Helper()
		if _, err := v.Verify(t.Context(), tok, c.Now()); holdfast.KindOf(err) != want {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	old, next := mint(1, "k1"), mint(2, "k2")
	check(old, "")
	check(next, holdfast.KindJWT) // not published yet; within the pause
	c.add(pause)
	is.say(set(edJWK(t, 1, "k1"), edJWK(t, 2, "k2")))
	check(next, "") // an unknown kid reads the set again
	check(old, "")
	is.say(set(edJWK(t, 2, "k2")))
	c.add(pause)
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(old, holdfast.KindJWT) // although its claims were cached
	check(next, "")
	is.Close()
	c.add(time.Hour)
	check(next, holdfast.KindPermissionRegistry)
}

func TestAStaleSetIsReadAgainWithoutWaiting(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Now: c.Now})
	has(t, s, "k1", edKey(1).Public())
	is.say(set(edJWK(t, 2, "k2")))
	c.add(defaultRefresh)
	has(t, s, "k1", edKey(1).Public()) // starts the reading and does not wait for it
	waitIdle(t, s)
	hasNot(t, s, "k1", token.ErrUnknownKey)
	has(t, s, "k2", edKey(2).Public())
	if n := is.hits.Load(); n != 2 {
		t.Errorf("%d readings", n)
	}
}

func waitIdle(t *testing.T, s *Set) {
	t.Helper()
	s.mu.Lock()
	wait := s.flight
	s.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-time.After(time.Minute):
			t.Fatal("a reading does not end")
		}
	}
}

func TestK2_FP9_outage(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	var warned atomic.Int64
	s := open(t, Options{URL: is.URL, Now: c.Now, Warn: func(error) { warned.Add(1) }})
	has(t, s, "k1", edKey(1).Public())
	is.do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	for range 5 { // up to the greatest age the known key holds
		c.add(11 * time.Minute)
		has(t, s, "k1", edKey(1).Public())
		waitIdle(t, s)
		hasNot(t, s, "other", token.ErrKeysUnavailable)
	}
	c.add(5*time.Minute - time.Nanosecond)
	has(t, s, "k1", edKey(1).Public())
	waitIdle(t, s)
	c.add(time.Nanosecond)
	hasNot(t, s, "k1", token.ErrKeysUnavailable)
	if warned.Load() == 0 {
		t.Error("nobody was told")
	}
	is.say(set(edJWK(t, 1, "k1")))
	hasNot(t, s, "k1", token.ErrKeysUnavailable) // not before the pause is over
	c.add(pause)
	has(t, s, "k1", edKey(1).Public())
}

func TestAClockThatGoesBackIsNotBelieved(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Now: c.Now})
	has(t, s, "k1", edKey(1).Public())
	is.do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	c.add(-time.Hour)
	hasNot(t, s, "k1", token.ErrKeysUnavailable)
}

// While a reading hangs, whoever knows the key does not wait for it.
func TestKnownKeysDoNotWait(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Now: c.Now})
	has(t, s, "k1", edKey(1).Public())
	release := make(chan struct{})
	is.do(func(w http.ResponseWriter, r *http.Request) {
		<-release
		_, _ = w.Write([]byte(set(edJWK(t, 1, "k1"), edJWK(t, 2, "k2"))))
	})
	c.add(pause)
	var unknown sync.WaitGroup
	for range 10 {
		unknown.Go(func() {
			if _, _, err := s.Key(t.Context(), "k2"); err != nil {
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(time.Minute); is.hits.Load() < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	for range 100 {
		has(t, s, "k1", edKey(1).Public())
	}
	s.mu.Lock()
	if s.flight == nil {
		t.Error("the reading ended before the known keys were answered")
	}
	s.mu.Unlock()
	close(release)
	unknown.Wait()
	if n := is.hits.Load(); n != 2 {
		t.Errorf("%d readings", n)
	}
}

func TestNoStampede(t *testing.T) {
	c := newClock()
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Now: c.Now})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			kid := fmt.Sprint("unknown", i)
			if i%2 == 0 {
				kid = "k1"
			}
			_, _, err := s.Key(t.Context(), kid)
			if (err == nil) != (i%2 == 0) {
				t.Errorf("%s: %v", kid, err)
			}
		})
	}
	wg.Wait()
	if n := is.hits.Load(); n != 1 {
		t.Errorf("200 callers caused %d readings", n)
	}
	for range 50 {
		c.add(time.Second)
		hasNot(t, s, "unknown", token.ErrUnknownKey)
	}
	if n := is.hits.Load(); n > 11 {
		t.Errorf("%d readings in 50 s", n)
	}
}

// What a server may do to us, each with its twin at the end.
func TestHostileServers(t *testing.T) {
	good := set(edJWK(t, 1, "k1"))
	elsewhere := newIssuer(t, good)
	huge := `{"keys":[],"x":"` + strings.Repeat("x", maxBody) + `"}`
	for name, answer := range map[string]http.HandlerFunc{
		"500":                    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = w.Write([]byte(good)) },
		"204":                    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"404":                    http.NotFound,
		"redirect to other host": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"redirect to https": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusTemporaryRedirect)
		},
		"redirect to metadata": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		},
		"redirect to a file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"redirect for ever": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"huge body":         func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(huge)) },
		"slow": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
		},
		"slow drip": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(" ")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		},
		"huge header": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
		"cut":         func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(good[:len(good)-3])) },
		"empty":       func(http.ResponseWriter, *http.Request) {},
		"html":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"hang up":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			is := newIssuer(t, "")
			is.do(answer)
			s := open(t, Options{URL: is.URL + "/jwks", Timeout: 200 * time.Millisecond})
			began := time.Now()
			hasNot(t, s, "k1", token.ErrKeysUnavailable)
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
			if s.Status().Failed == nil {
				t.Error("no reason is kept")
			}
		})
	}
	if n := elsewhere.hits.Load(); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
	t.Run("twin: a redirect on the same host", func(t *testing.T) {
		is := newIssuer(t, "")
		is.do(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", http.StatusFound)
				return
			}
			_, _ = w.Write([]byte(good))
		})
		has(t, open(t, Options{URL: is.URL}), "k1", edKey(1).Public())
	})
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(set(edJWK(t, 1, "k1")))) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	hasNot(t, open(t, Options{URL: srv.URL}), "k1", token.ErrKeysUnavailable) // an unknown authority
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	has(t, open(t, Options{URL: srv.URL, Roots: roots}), "k1", edKey(1).Public())
}

// TestOldTLSIsRefused: a server that speaks nothing newer than TLS 1.1 gives no keys.
func TestOldTLSIsRefused(t *testing.T) {
	give := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(set(edJWK(t, 1, "k1")))) }
	srv := httptest.NewUnstartedServer(http.HandlerFunc(give))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	srv.StartTLS()
	defer srv.Close()
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	hasNot(t, open(t, Options{URL: srv.URL, Roots: roots}), "k1", token.ErrKeysUnavailable)
}

func TestOIDC(t *testing.T) {
	is := newIssuer(t, "")
	other := newIssuer(t, set(edJWK(t, 1, "k1")))
	name := is.URL + "/application/o/holdfast/"
	serve := func(meta string) {
		is.do(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/application/o/holdfast/.well-known/openid-configuration":
				_, _ = w.Write([]byte(meta))
			case "/jwks":
				_, _ = w.Write([]byte(set(edJWK(t, 1, "k1"))))
			default:
				http.NotFound(w, r)
			}
		})
	}
	meta := func(issuer, uri string) string {
		return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"scopes_supported":["openid"]}`, issuer, uri)
	}
	for _, c := range []struct {
		name, meta string
		ok         bool
	}{
		{"exact", meta(name, is.URL+"/jwks"), true},
		{"keys on another host", meta(name, other.URL+"/x"), true},
		{"issuer without slash", meta(strings.TrimSuffix(name, "/"), is.URL+"/jwks"), false},
		{"issuer in upper case", meta(strings.ToUpper(name), is.URL+"/jwks"), false},
		{"another issuer", meta("https://evil.example/", is.URL+"/jwks"), false},
		{"no issuer", `{"jwks_uri":"` + is.URL + `/jwks"}`, false},
		{"issuer twice", `{"issuer":"https://evil.example/","issuer":"` + name + `","jwks_uri":"` + is.URL + `/jwks"}`, false},
		{"case of issuer", `{"Issuer":"` + name + `","jwks_uri":"` + is.URL + `/jwks"}`, false},
		{"no jwks_uri", meta(name, ""), false},
		{"plain http elsewhere", meta(name, "http://192.0.2.1/jwks"), false},
		{"a file", meta(name, "file:///etc/passwd"), false},
		{"user in jwks_uri", meta(name, strings.Replace(is.URL, "http://", "http://u:p@", 1)+"/jwks"), false},
		{"not JSON", "<html>", false},
		{"an array", "[]", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			serve(c.meta)
			s := open(t, Options{Issuer: name})
			if !c.ok {
				hasNot(t, s, "k1", token.ErrKeysUnavailable)
				return
			}
			has(t, s, "k1", edKey(1).Public())
		})
	}
	if _, err := jwksURI([]byte(`{"issuer":"https://a","jwks_uri":"http://127.0.0.1/x"}`), "https://a", "https"); err == nil {
		t.Error("an https issuer may point to http")
	}
}

func TestAddresses(t *testing.T) {
	for _, raw := range []string{
		"", "x", "http://example.com/jwks", "http://10.0.0.1/", "http://localhost.example.com/", "http://127.0.0.1.example.com/", "ftp://localhost/",
		"https://", "https:jwks", "https://u@h/", "https://u:p@h/", "https://h/#f", "https://h/#", "file:///etc/passwd", "//h/x", "https://h/" + strings.Repeat("x", 3000),
		"http://[::2]/", "http://0.0.0.0/", "http://2130706433/", "https://h/\x00", "http://127.0.0.1%00/",
	} {
		if _, err := New(Options{URL: raw}); err == nil {
			t.Errorf("%.60q accepted", raw)
		}
		if _, err := New(Options{Issuer: raw}); err == nil {
			t.Errorf("issuer %.60q accepted", raw)
		}
	}
	for _, raw := range []string{"https://id.example.com/jwks?x=1", "http://127.0.0.1:9/", "http://127.9.9.9/", "http://[::1]:8080/x", "http://localhost/x", "http://[::ffff:127.0.0.1]/"} {
		if _, err := New(Options{URL: raw}); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if _, err := New(Options{Issuer: "https://h/?q"}); err == nil {
		t.Error("an issuer with a query")
	}
	// The dialer looks at the address itself, whatever name led to it.
	for address, ok := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "192.0.2.1:80": false, "[fe80::1]:80": false, "0.0.0.0:80": false, "": false} {
		if err := loopbackOnly("tcp", address, nil); (err == nil) != ok {
			t.Errorf("dialling %q: %v", address, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {File: "a", URL: "https://h/"}, {URL: "https://h/", Issuer: "https://h/"}, {File: "a", Issuer: "https://h/"},
		{File: "a", Timeout: time.Minute}, {File: "a", MaxAge: 25 * time.Hour}, {File: "a", Refresh: 2 * time.Hour}, {File: "a", Refresh: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestFile(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "jwks.json")
	s := open(t, Options{File: path, Now: c.Now})
	hasNot(t, s, "k1", token.ErrKeysUnavailable) // not there yet
	write := func(doc string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		c.add(pause)
		_ = s.Refresh(t.Context())
	}
	write(set(edJWK(t, 1, "")))
	has(t, s, "", edKey(1).Public())
	hasNot(t, s, "k1", token.ErrUnknownKey)
	write(set(edJWK(t, 1, "k1")))
	has(t, s, "k1", edKey(1).Public())
	has(t, s, "", edKey(1).Public())
	write("{") // damaged: the last good set holds
	has(t, s, "k1", edKey(1).Public())
	write(set(edJWK(t, 1, "k1"), jwk(t, edKey(2), "k2", true))) // private: nothing holds
	hasNot(t, s, "k1", token.ErrKeysUnavailable)
	if !errors.Is(s.Status().Failed, errPrivate) {
		t.Error(s.Status().Failed)
	}
	write(set(edJWK(t, 1, "k1")))
	has(t, s, "k1", edKey(1).Public())
	write(`{"keys":[]}`) // withdrawn: nothing holds
	hasNot(t, s, "k1", token.ErrUnknownKey)
	write(strings.Repeat(" ", maxBody+1))
	if s.Status().Failed == nil {
		t.Error("a huge file was read")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err == nil {
		t.Error("a directory was read")
	}
}

func TestRefreshAndCloseAndContext(t *testing.T) {
	is := newIssuer(t, "")
	release := make(chan struct{})
	is.do(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	s := open(t, Options{URL: is.URL})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Key(ctx, "k1"); !errors.Is(err, token.ErrKeysUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := s.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	began := time.Now()
	s.Close()
	if time.Since(began) > 4*time.Second {
		t.Error("Close waits for the server")
	}
	close(release)
	hasNot(t, s, "k1", token.ErrKeysUnavailable)
	if err := s.Refresh(t.Context()); !errors.Is(err, token.ErrKeysUnavailable) {
		t.Error(err)
	}
	s.Close()
}

func TestRunNoticesARemovedKey(t *testing.T) {
	is := newIssuer(t, set(edJWK(t, 1, "k1")))
	s := open(t, Options{URL: is.URL, Refresh: 20 * time.Millisecond})
	has(t, s, "k1", edKey(1).Public())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	is.say(`{"keys":[]}`)
	for end := time.Now().Add(time.Minute); len(s.Status().Keys) != 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the key stays")
		}
	}
	cancel()
	<-done
}
