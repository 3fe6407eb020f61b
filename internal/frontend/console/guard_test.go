package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func TestLinkWorksOnce(t *testing.T) {
	w := newWorld(t)
	link, err := w.site.Link("")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/in/[A-Za-z0-9_-]{43}$`).MatchString(link) {
		t.Error(link)
	}
	// Whoever only fetches it, as often as they like, does not use it up.
	for range 3 {
		b := w.browser()
		b.get(link).wants(200, "Sign in")
		if len(b.head.Values("Set-Cookie")) > 0 {
			t.Error("looking at a link gives a cookie")
		}
	}
	b := w.browser()
	b.get(link).submit("/in/", nil).wants(200, "Queue")
	path := strings.TrimPrefix(link, w.base)
	w.browser().post(path, nil).wants(401, "used already")
	late, err := w.site.Link("")
	if err != nil {
		t.Fatal(err)
	}
	w.advance(LinkTime - time.Second)
	w.browser().get(late).wants(200, "Sign in")
	w.advance(time.Second)
	w.browser().post(strings.TrimPrefix(late, w.base), nil).wants(401, "ten minutes")
	for _, bad := range []string{"/in/", "/in/x", "/in/" + strings.Repeat("A", 43), "/in/..%2f"} {
		w.browser().post(bad, nil).wants(401)
	}
	// More links than are kept: the oldest is worth nothing, the newest works.
	oldest, _ := w.site.Link("")
	for range maxTickets {
		late, _ = w.site.Link("")
	}
	w.browser().post(strings.TrimPrefix(oldest, w.base), nil).wants(401)
	w.browser().post(strings.TrimPrefix(late, w.base), nil).wants(200)
	for id, kind := range map[string]holdfast.Kind{"rv_0123456789": "", "../x": holdfast.KindUsage, "rv_0123456789/../..": holdfast.KindUsage} {
		if _, err := w.site.Link(id); holdfast.KindOf(err) != kind {
			t.Errorf("%s: %v", id, err)
		}
	}
	r := w.held(`{"n":1}`)
	to, _ := w.site.Link(r.ID)
	b = w.browser()
	b.get(to).submit("/in/", nil).wants(200, r.PreviewHash)
}

func TestCookies(t *testing.T) {
	w := newWorld(t)
	link, _ := w.site.Link("")
	b := w.browser()
	b.hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.get(link).submit("/in/", nil)
	got := b.head.Get("Set-Cookie")
	for _, want := range []string{"holdfast_" + w.site.port + "=", "Path=/;", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(got+";", want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if b.code != http.StatusSeeOther || b.head.Get("Location") != "/" {
		t.Error(b.code, b.head.Get("Location"))
	}
}

func TestSessionsEnd(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	w.advance(LookTime - time.Second)
	b.get("/").wants(200)
	w.advance(LookTime - time.Second)
	b.get("/").wants(200)
	w.advance(LookTime)
	b.get("/").wants(401, "Sign in to Holdfast")
	// Looking again by itself is no sign of a person.
	b = w.signedIn()
	w.advance(LookTime - time.Second)
	r, _ := http.NewRequest("GET", w.base+"/", nil)
	r.Header.Set("Holdfast-Live", "1")
	b.do(r).wants(200)
	w.advance(time.Second)
	b.get("/").wants(401)
	b = w.signedIn()
	b.submit("/out", nil).wants(401)
	b.get("/").wants(401)
	// More sessions than are kept: the one that was idle longest ends.
	first := w.signedIn()
	w.advance(time.Second)
	for range maxSessions {
		w.signedIn()
		w.advance(time.Second)
	}
	first.get("/").wants(401)
}

// The key is there for a quarter of an hour without a decision, for one
// browser, behind one path, and then it is wiped.
func TestKeyIsForOneBrowserAndAWhile(t *testing.T) {
	w := newWorld(t)
	r, other := w.held(`{"n":1}`), w.held(`{"n":2}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	action, v, _ := b.form("/approve")
	inside := b.at
	var se *session
	for _, s := range w.site.sessions.m {
		se = s
	}
	key := se.key
	// The same session outside of the path decides nothing, and does not learn
	// the path.
	b.get("/review/"+r.ID).wants(200, "The operator's passphrase")
	area := strings.Split(inside, "/")[2]
	if strings.Contains(b.body, area) {
		t.Error("the path is told to whoever has the session's cookie")
	}
	b.post("/review/"+r.ID+"/approve", v).wants(200, "the passphrase is needed again")
	// Somebody with the session's cookie, and even the path, lacks the other.
	thief := w.browser()
	u, _ := url.Parse(w.base)
	thief.hc.Jar.SetCookies(u, b.hc.Jar.Cookies(u))
	thief.get("/").wants(200)
	thief.get(inside).wants(200, "The operator's passphrase")
	thief.post(action, v).wants(200, "the passphrase is needed again")
	// Another browser, with a session of its own.
	w.signedIn().get(inside).wants(200, "The operator's passphrase")
	if w.state1(r.ID) != review.Pending {
		t.Fatal("decided")
	}
	w.advance(KeyTime - time.Second)
	b.post(action, v).wants(200, "approved:")
	w.advance(KeyTime - time.Second) // the decision counted
	b.get("/k/"+area+"/review/"+other.ID).wants(200, "Approve once")
	w.advance(time.Second)
	action, v, _ = b.form("/approve")
	b.post(action, v).wants(200, "the passphrase is needed again")
	if key.Public().ID() != "" {
		t.Error("the key is still there")
	}
	b.get("/review/"+other.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	b.submit("/lock", nil).wants(200, "deciding is locked", "The operator's passphrase")
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	key = se.key
	w.advance(KeyTime)
	w.site.sessions.sweep(w.now())
	if key.Public().ID() != "" {
		t.Error("the sweep left the key")
	}
}

func TestPassphrase(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	said := map[string]bool{}
	for _, p := range []string{"", "wrong wrong", passphrase + " ", strings.Repeat("x", 5000)} {
		b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": p}).wants(200, "that does not open the operator key")
		said[regexp.MustCompile(`role="alert">([^<]*)`).FindStringSubmatch(b.body)[1]] = true
	}
	if len(said) != 1 {
		t.Error("the answers differ:", said)
	}
	b.submit("/unlock", map[string]string{"passphrase": "nope nope"})
	tried := w.opened
	// Now not even the right one is tried in this session.
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "wrong 5 times", "holdfast review")
	if w.opened != tried || tried != 5 {
		t.Error("tried", w.opened)
	}
	w.advance(wrongTime)
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	for range 4 {
		b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": "bad bad bad"})
	}
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
}

// One attempt is made at a time.
func TestPassphraseOneAtATime(t *testing.T) {
	w := newWorld(t)
	w.site.opener.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := w.site.opener.open(ctx, &tally{}, passphrase, w.now, w.open)
	if holdfast.KindOf(err) != holdfast.KindTimeout || w.opened != 0 {
		t.Error(err, w.opened)
	}
}

func TestGuard(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	port := w.site.port
	for host, code := range map[string]int{"127.0.0.1:" + port: 200, "localhost:" + port: 401, "LOCALHOST:" + port: 401, "[::1]:" + port: 401, "127.9.9.9:" + port: 401,
		"evil.example:" + port: 421, "127.0.0.1.evil.example:" + port: 421, "localhost.evil.example:" + port: 421, "127.0.0.1": 421, "127.0.0.1:1": 421,
		"10.0.0.1:" + port: 421, "0.0.0.0:" + port: 421, "": 421, "localhost.:" + port: 421} {
		req, _ := http.NewRequest("GET", w.base+"/", nil)
		req.Host = host
		if host == "" {
			req.Host = "%"
			req.Header.Set("Host", "")
			continue
		}
		if b.do(req); b.code != code && b.code != 200 {
			t.Errorf("host %q: %d, want %d", host, b.code, code)
		}
		if code == 421 && b.code != 421 {
			t.Errorf("host %q: %d, want %d", host, b.code, code)
		}
	}
	b.get("/halt")
	action, v, _ := b.form("/halt")
	for name, change := range map[string]func(*http.Request){
		"another origin":  func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another port":    func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"another scheme":  func(r *http.Request) { r.Header.Set("Origin", "https://127.0.0.1:"+port) },
		"no origin":       func(r *http.Request) { r.Header.Set("Origin", "null") },
		"cross-site":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"nothing of site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
	} {
		if b.post(action, v, change); b.code != 403 {
			t.Errorf("%s: %d", name, b.code)
		}
	}
	for _, csrf := range []string{"", "x", v.Get("csrf") + "x"} {
		bad := url.Values{"csrf": {csrf}}
		b.post(action, bad).wants(403)
	}
	b.post(action+"?csrf="+url.QueryEscape(v.Get("csrf")), nil).wants(403)
	b.post(action, url.Values{"csrf": v["csrf"], "reason": {strings.Repeat("x", maxForm)}}).wants(413)
	b.post("/review/"+r.ID+"/approve", nil).wants(403)
	w.browser().post(action, v).wants(401)
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "PATCH"} {
		req, _ := http.NewRequest(method, w.base+"/halt", nil)
		b.do(req).wants(405)
	}
	b.get("/" + strings.Repeat("x", 3000)).wants(414)
	if w.latch.Halted() {
		t.Error("something halted")
	}
	b.post(action, v, func(r *http.Request) { r.Header.Set("Origin", w.base); r.Header.Set("Sec-Fetch-Site", "same-origin") }).wants(200, "halted: 0 crossings were cut")
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	link, _ := w.site.Link("")
	for _, path := range []string{"/", "/halt", "/crossings", "/nothing", "/review/rv_0123456789", strings.TrimPrefix(link, w.base)} {
		b.get(path)
		csp := b.head.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "base-uri 'none'") {
			t.Errorf("%s: %s", path, csp)
		}
		if b.head.Get("Cache-Control") != "no-store" || b.head.Get("X-Content-Type-Options") != "nosniff" || b.head.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, b.head)
		}
		for _, bad := range []string{"<style", " style=", "onclick", "javascript:", "<script>", "http://", "https://"} {
			if strings.Contains(strings.ToLower(b.body), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		if !strings.Contains(b.body, `name="viewport"`) || !strings.Contains(b.body, `lang="en"`) {
			t.Errorf("%s: %s", path, b.body)
		}
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(b.get("/").body, -1) {
		if !regexp.MustCompile(`^/assets/[a-z]+\.[0-9a-f]{16}\.(css|js|svg)$`).MatchString(m[1]) {
			t.Error("no hash in", m[1])
		}
		w.browser().get(m[1]).wants(200)
	}
	w.browser().get("/assets/style.css").wants(401)
}

// The passphrase never crosses a network, even where the pages do.
func TestPassphraseFromThisMachineOnly(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	b.get("/halt").submit("/halt", nil)
	action, v, _ := b.form("/unlock")
	v.Set("passphrase", passphrase)
	for from, opens := range map[string]int{"10.0.0.7:4444": 0, "[2001:db8::1]:4444": 0, "": 0, "@": 0, "127.0.0.1:4444": 1, "[::1]:4444": 1, "[::ffff:127.0.0.1]:4444": 1} {
		r := httptest.NewRequest("POST", w.base+action, strings.NewReader(v.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = from
		u, _ := url.Parse(w.base)
		for _, c := range b.hc.Jar.Cookies(u) {
			r.AddCookie(c)
		}
		was := w.opened
		rec := httptest.NewRecorder()
		w.site.Handler().ServeHTTP(rec, r)
		if rec.Code != http.StatusSeeOther {
			t.Errorf("%q: %d", from, rec.Code)
		}
		if tried := w.opened - was; tried != opens {
			t.Errorf("%q: the key was tried %d times", from, tried)
		}
	}
	// Where the configured host is a name, a browser may use it.
	for host, own := range map[string]bool{"desk.example": true, "DESK.example": true, "other.example": false, "0.0.0.0": false} {
		c, err := New(Config{Address: "0.0.0.0:7411", Host: "desk.example", Now: w.now})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ownHost(&http.Request{Host: host + ":7411", Header: http.Header{}}); got != own {
			t.Errorf("%s: %v", host, got)
		}
		if !strings.HasPrefix(c.ReviewURL("rv_0123456789"), "http://127.0.0.1:7411/review/") {
			t.Error(c.ReviewURL("rv_0123456789"))
		}
		c.Close()
	}
}

// Somebody who reaches the pages through a tunnel that ends on this machine, as
// SSH's do, decides there as at the machine: the pages' own port is what the
// browser names, and the tunnel's end is what connects.
func TestDecideThroughATunnel(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	tunnel, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tunnel.Close() })
	go func() {
		for {
			near, err := tunnel.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
			if err != nil {
				near.Close()
				return
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
		}
	}()
	link, err := w.site.Link(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	b.hc.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", tunnel.Addr().String())
	}}
	b.get(link).submit("/in/", nil).wants(200, r.ID)
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	b.submit("/approve", nil).wants(200, "approved: the agent may do exactly this once")
	// A tunnel under another name or port is none of these pages' names.
	b.base = "http://" + tunnel.Addr().String()
	b.get("/").wants(http.StatusMisdirectedRequest)
}
