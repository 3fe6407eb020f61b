package console

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"errors"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/subagent"
	"github.com/holdfast-dev/holdfast/internal/feature/toolpin"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/health"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
)

const (
	passphrase = "correct horse battery"
	runtimeID  = "11111111-2222-4333-8444-555555555555"
)

// sealed is one operator key for all tests.
var sealed = sync.OnceValues(func() ([]byte, operator.Public) {
	b, pub, err := operator.New(holdfast.NewSecret(passphrase), operator.Options{WorkFactor: 15})
	if err == nil {
		b, err = lowerWork(b)
	}
	if err != nil {
		panic(err)
	}
	return b, pub
})

// lowerWork seals the operator key again so that opening it takes no time.
func lowerWork(sealed []byte) ([]byte, error) {
	id, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	key, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(1)
	var out bytes.Buffer
	text := armor.NewWriter(&out)
	w, err := age.Encrypt(text, r)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, key); err != nil {
		return nil, err
	}
	err = errors.Join(w.Close(), text.Close())
	return out.Bytes(), err
}

// front is what the pages need of the kernel.
type front struct {
	*kernel.Kernel
	*toolpin.Catalog
}

// world is a kernel on a real store and latch, and the pages in front of it on
// a real port.
type world struct {
	day   func(time.Time) (health.Report, error) // nil for one of which nothing is known
	odd   []story.Anomaly                        // what is out of the ordinary
	t     testing.TB
	k     *kernel.Kernel
	tools *toolpin.Catalog
	store *sqlite.Store
	latch *latch.Latch
	mint  *token.Minter
	site  *Console
	base  string
	mask  *redact.Engine
	pages atomic.Int64 // of the store, that were looked at
	seen  atomic.Int64 // how often a person was there

	mu     sync.Mutex
	offset time.Duration // guarded by mu
	opened int           // guarded by mu; how often a key was tried
	state  State         // guarded by mu; what is added to the latch's
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += d
}

type gcm struct{ cipher.AEAD }

func (g gcm) Seal(plain, bound []byte) ([]byte, error) {
	return g.AEAD.Seal(nil, nil, plain, bound), nil
}
func (g gcm) Open(sealed, bound []byte) ([]byte, error) { return g.AEAD.Open(nil, nil, sealed, bound) }

// abroad is a verifier by which the agents "acme-..." are of another tenant.
type abroad struct{ *token.Verifier }

func (v abroad) Verify(ctx context.Context, tok holdfast.Secret, now time.Time) (holdfast.Identity, error) {
	who, err := v.Verifier.Verify(ctx, tok, now)
	if strings.HasPrefix(who.Agent, "acme-") {
		who.Tenant = "acme"
	}
	return who, err
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "holdfast.db"), Now: w.now,
		Tables: feature.Tables(),
		Looked: func(n int) { w.pages.Add(int64(n)) }})
	must(err)
	t.Cleanup(func() { w.store.Close() })
	w.latch, err = latch.New(filepath.Join(dir, "HALT"))
	must(err)
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "a seed for tests only, thirty-two")
	w.mint, err = token.NewMinter(ed25519.NewKeyFromSeed(seed), "test", "holdfast")
	must(err)
	verifier, err := token.NewVerifier(w.mint.Issuer())
	must(err)
	engine, err := redact.New(redact.Options{})
	must(err)
	w.mask = engine
	rules, err := constitution.Load(nil)
	must(err)
	block, err := aes.NewCipher([]byte("0123456789abcdef0123456789abcdef"))
	must(err)
	aead, err := cipher.NewGCMWithRandomNonce(block)
	must(err)
	policy := &kernel.Policy{Version: strings.Repeat("1", 64), Rules: rules, Roles: map[string][]string{"agent": {"mcp:call"}},
		Contracts: []holdfast.Contract{{Boundary: "test/low", Risk: holdfast.Low, Source: "test:1"}, {Boundary: "test/high", Risk: holdfast.High, Source: "test:2"},
			{Boundary: "test/never", Risk: holdfast.Prohibited, Source: "test:3"}, {Boundary: "test/perm", Risk: holdfast.Low, Permissions: []string{"goal:write"}, Source: "test:4"}}}
	_, pub := sealed()
	w.tools = toolpin.New(engine)
	w.k, err = kernel.New(kernel.Config{Store: w.store, Features: feature.All(), Catalog: w.tools,
		Lineage: subagent.New(engine), Latch: w.latch,
		Verifier: abroad{verifier}, Redact: engine, Sealer: gcm{aead}, Policy: policy,
		Operator: func() []operator.Public { return []operator.Public{pub} }, Runtime: runtimeID, Now: w.now})
	must(err)
	_, err = w.k.Recover(0)
	must(err)
	w.serve()
	return w
}

func (w *world) serve() {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.base = "http://" + l.Addr().String()
	w.site, err = New(Config{Kernel: front{w.k, w.tools}, View: w.store.View, State: w.how, Open: w.open,
		Runtime: runtimeID, Version: "test", Address: l.Addr().String(),
		Host: "127.0.0.1", Who: "ann, on the pages", Log: slog.New(slog.DiscardHandler), Now: w.now, Health: w.went,
		Attended: func() { w.seen.Add(1) }, Anomalies: func() []story.Anomaly { return w.odd }})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{Handler: w.site.Handler()}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	w.t.Cleanup(func() { w.site.Close(); _ = s.Close(); <-done })
}

// went is how a day went: as w.day says, or as nothing is known of it.
func (w *world) went(_ context.Context, day time.Time) (health.Report, error) {
	if w.day != nil {
		return w.day(day)
	}
	return health.NewDay(day).Report(w.now()), nil
}

func (w *world) how(context.Context, bool) State {
	w.mu.Lock()
	s := w.state
	w.mu.Unlock()
	if h, err := w.latch.Read(); h.Halted || err != nil {
		s.Halted, s.HaltWho, s.HaltWhy, s.HaltWhen = true, h.Who, h.Why, h.When
	}
	return s
}

func (w *world) open(pass holdfast.Secret) (operator.Key, error) {
	w.mu.Lock()
	w.opened++
	w.mu.Unlock()
	b, _ := sealed()
	return operator.Open(b, pass)
}

// request is one of alice's.
func (w *world) request(boundary, payload string) holdfast.Request {
	w.t.Helper()
	tok, _, err := w.mint.Mint(holdfast.Identity{Tenant: holdfast.Local, Principal: "user:alice", Roles: []string{"agent"}, Agent: "alice", Session: "s1"}, 15*time.Minute, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return holdfast.Request{Boundary: boundary, Payload: []byte(payload), Token: tok}
}

func (w *world) cross(boundary, payload string) (*holdfast.Outcome, error) {
	w.t.Helper()
	return w.k.Cross(w.t.Context(), w.request(boundary, payload), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{"ok":"<b>done</b>"}`)}, nil
	})
}

// held makes a crossing that waits for a person.
func (w *world) held(payload string) review.Review {
	w.t.Helper()
	o, err := w.cross("test/high", payload)
	if holdfast.KindOf(err) != holdfast.KindHeld {
		w.t.Fatal("not held:", err)
	}
	r, err := w.k.Review(w.t.Context(), o.Review)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// browser does what a person's browser does, without script: it keeps cookies,
// follows redirects, and fills in forms.
type browser struct {
	t    testing.TB
	hc   *http.Client
	base string
	// at, code and body are the page it is on.
	at   string
	code int
	body string
	head http.Header
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{t: w.t, hc: &http.Client{Jar: jar}, base: w.base}
}

// signedIn is a browser that followed a link and pressed its button.
func (w *world) signedIn() *browser {
	w.t.Helper()
	link, err := w.site.Link("")
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.browser()
	b.get(link).submit("/in/", nil)
	if b.code != 200 || !strings.Contains(b.body, "Sign out") {
		w.t.Fatalf("not signed in: %d %s", b.code, b.body)
	}
	return b
}

func (b *browser) do(r *http.Request) *browser {
	b.t.Helper()
	resp, err := b.hc.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.at, b.code, b.body, b.head = resp.Request.URL.RequestURI(), resp.StatusCode, string(body), resp.Header
	return b
}

func (b *browser) get(where string) *browser {
	b.t.Helper()
	if !strings.HasPrefix(where, "http") {
		where = b.base + where
	}
	r, err := http.NewRequest("GET", where, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b *browser) post(where string, v url.Values, change ...func(*http.Request)) *browser {
	b.t.Helper()
	r, err := http.NewRequest("POST", b.base+where, strings.NewReader(v.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range change {
		c(r)
	}
	return b.do(r)
}

var (
	forms  = regexp.MustCompile(`(?s)<form method="post" action="([^"]*)"[^>]*>(.*?)</form>`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// form finds the form of the page whose action holds text, with its hidden
// fields.
func (b *browser) form(text string) (action string, v url.Values, there bool) {
	for _, m := range forms.FindAllStringSubmatch(b.body, -1) {
		if !strings.Contains(m[1], text) {
			continue
		}
		v = url.Values{}
		for _, f := range hidden.FindAllStringSubmatch(m[2], -1) {
			v.Set(f[1], html.UnescapeString(f[2]))
		}
		return html.UnescapeString(m[1]), v, true
	}
	return "", nil, false
}

// submit sends that form, with what a person types into it.
func (b *browser) submit(text string, typed map[string]string) *browser {
	b.t.Helper()
	action, v, ok := b.form(text)
	if !ok {
		b.t.Fatalf("there is no form %s on %s:\n%s", text, b.at, b.body)
	}
	for name, value := range typed {
		v.Set(name, value)
	}
	return b.post(action, v)
}

// wants says what the page lacks.
func (b *browser) wants(code int, texts ...string) *browser {
	b.t.Helper()
	if b.code != code {
		b.t.Errorf("%s: %d, want %d\n%s", b.at, b.code, code, b.body)
	}
	for _, text := range texts {
		if !strings.Contains(b.body, text) {
			b.t.Errorf("%s does not say %q:\n%s", b.at, text, b.body)
		}
	}
	return b
}
