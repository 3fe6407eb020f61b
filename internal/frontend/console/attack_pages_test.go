package console

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// raw sends bytes as they are and returns what comes back.
func (w *world) raw(text string) (code int, head http.Header, body string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(text)[0]})
	if err != nil {
		w.t.Fatalf("%.80q: %v", text, err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b)
}

// What a stranger sees tells nothing of what is there: a review that exists and
// one that does not give the same answer, whatever the method and the path.
func TestAttackStrangerLearnsNothing(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"secret_of_the_request":"s3cr3t-of-the-request"}`)
	host := strings.TrimPrefix(w.base, "http://")
	same := map[string]string{}
	for _, id := range []string{r.ID, "rv_0000000000"} {
		var all strings.Builder
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"} {
			for _, path := range []string{"/review/ID", "/k/x/review/ID", "//review/ID", "/review/../review/ID", "/%72eview/ID", "/review/ID/approve", "/crossing/ID", "/k/%2e%2e/review/ID",
				"/assets/../review/ID", "/assets/%2e%2e%2freview%2fID", "/k//review/ID", "/review/ID%00", "/review/ID?note=x", "/events", "/k/x/events", "/healthz/../review/ID"} {
				if method == "CONNECT" {
					path = "/review/ID"
				}
				code, head, body := w.raw(method + " " + strings.ReplaceAll(path, "ID", id) + " HTTP/1.1\r\nHost: " + host + "\r\nRange: bytes=0-10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				if code == 200 || code == 206 {
					t.Errorf("%s %s: %d", method, path, code)
				}
				if strings.Contains(body, "s3cr3t") || strings.Contains(body, "test/high") {
					t.Errorf("%s %s tells: %.300s", method, path, body)
				}
				fmt.Fprintln(&all, method, path, code, head.Get("Location"), strings.ReplaceAll(body, id, "ID"))
			}
		}
		same[id] = strings.ReplaceAll(all.String(), id, "ID")
	}
	if same[r.ID] != same["rv_0000000000"] {
		t.Error("a review that is there is told from one that is not")
	}
}

// Many browsers press the button of one link at once.
func TestAttackLinkRace(t *testing.T) {
	w := newWorld(t)
	link, err := w.site.Link("")
	if err != nil {
		t.Fatal(err)
	}
	var in int
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			hc := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			<-start
			resp, err := hc.Post(link, "application/x-www-form-urlencoded", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if resp.StatusCode == http.StatusSeeOther {
				in++
			}
		})
	}
	close(start)
	wg.Wait()
	if in != 1 {
		t.Errorf("%d browsers signed in with one link", in)
	}
}

// The looking cookie was taken, by a server on another port: who has it must
// not decide, not through the path that is not to be guessed either.
func TestAttackStolenCookieDecidesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	area := b.at[:strings.Index(b.at, "/review")]
	u, _ := url.Parse(w.base + "/")
	cookies := b.hc.Jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatalf("the browser sends %d cookies to /", len(cookies))
	}
	thief := w.browser()
	thief.hc.Jar.SetCookies(u, cookies)
	thief.get("/review/" + r.ID).wants(200)
	if strings.Contains(thief.body, area) || strings.Contains(thief.body, "Approve once") {
		t.Error("a page without the key's path tells it")
	}
	_, v, _ := b.form("/approve")
	for _, path := range []string{"/review/" + r.ID + "/approve", area + "/review/" + r.ID + "/approve", "/k//review/" + r.ID + "/approve", "/k/x/review/" + r.ID + "/approve"} {
		thief.post(path, v)
		if got := w.state1(r.ID); got != review.Pending {
			t.Fatalf("%s decided: %s", path, got)
		}
	}
}

// Odd heads, long ids, and forms of every wrong kind end in an error by name.
func TestAttackOddForms(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	action, good, _ := b.form("/approve")
	for name, change := range map[string]func(url.Values){
		"doubled_exact": func(v url.Values) { v["exact"] = []string{strings.Repeat("0", 64), v.Get("exact")} },
		"other_nonce":   func(v url.Values) { v.Set("nonce", "x") },
		"other_policy":  func(v url.Values) { v.Set("policy", strings.Repeat("2", 64)) },
		"other_preview": func(v url.Values) { v.Set("preview", strings.Repeat("2", 64)) },
		"no_csrf":       func(v url.Values) { v.Del("csrf") },
		"csrf_of_another": func(v url.Values) {
			_, o, _ := w.signedIn().form("/out")
			v.Set("csrf", o.Get("csrf"))
		},
		"to_elsewhere": func(v url.Values) { v.Set("to", "//evil.example/review/x"); v.Set("nonce", "x") },
	} {
		v := url.Values{}
		for k, s := range good {
			v[k] = append([]string{}, s...)
		}
		change(v)
		b.post(action, v)
		if strings.Contains(b.at, "evil") || w.state1(r.ID) != review.Pending {
			t.Errorf("%s: %s at %s", name, w.state1(r.ID), b.at)
		}
	}
	for _, q := range []string{"?exact=" + good.Get("exact") + "&csrf=" + good.Get("csrf")} {
		b.post(action+q, url.Values{})
	}
	b.post("/review/"+strings.Repeat("a", 1500)+"/approve", good)
	b.get("/crossing/" + strings.Repeat("%00", 400))
	b.get("/crossings?tenant=" + strings.Repeat("%F0%9F%98%80", 100) + "&before=-99999999999999999999")
	if b.code >= 500 {
		t.Error(b.code, b.body)
	}
	// Every other origin, and every way to say it.
	for _, o := range []string{"http://evil.example", "null", "http://localhost:1", "https://" + strings.TrimPrefix(w.base, "http://"), "file://"} {
		b.post(action, good, func(r *http.Request) { r.Header.Set("Origin", o) }).wants(http.StatusForbidden)
	}
	for _, s := range []string{"cross-site", "same-site", "none "} {
		b.post(action, good, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", s) }).wants(http.StatusForbidden)
	}
	if got := w.state1(r.ID); got != review.Pending {
		t.Errorf("decided: %s", got)
	}
}
