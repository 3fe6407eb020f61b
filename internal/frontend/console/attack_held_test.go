package console

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// One link is used by many at once: one of them is signed in.
func TestAttack_link_raced(t *testing.T) {
	w := newWorld(t)
	link, err := w.site.Link("")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(link, w.base)
	var all sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for range 40 {
		b := w.browser()
		all.Go(func() {
			r, err := b.hc.Post(w.base+path, "application/x-www-form-urlencoded", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				mu.Lock()
				in++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if in != 1 {
		t.Errorf("%d are signed in by one link", in)
	}
}

// A cookie that somebody gave the browser before it signed in is worth nothing
// afterwards.
func TestAttack_session_fixed(t *testing.T) {
	w := newWorld(t)
	const fixed = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	link, err := w.site.Link("")
	if err != nil {
		t.Fatal(err)
	}
	with := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: w.site.cookie(), Value: fixed}) }
	w.browser().post(strings.TrimPrefix(link, w.base), nil, with).wants(200)
	r, err := http.NewRequest("GET", w.base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	with(r)
	w.browser().do(r).wants(401)
}

// An area is guessed, or written in another way, by who may only look.
func TestAttack_area_guessed(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).wants(200, r.PreviewHash)
	_, form, ok := b.form("/unlock")
	if !ok {
		t.Fatal("no form")
	}
	form.Set("exact", r.Exact)
	form.Set("preview", r.PreviewHash)
	form.Set("policy", r.Policy)
	form.Set("nonce", r.Nonce)
	for _, at := range []string{"", "/k/", "/k/x", "/k/%2e%2e", "/k/..", "/", "/k/x/../"} {
		b.post(at+"/review/"+r.ID+"/approve", form, func(q *http.Request) { q.AddCookie(&http.Cookie{Name: w.site.keyCookie(), Value: "x"}) })
		if s := w.state1(r.ID); s != "pending" {
			t.Fatalf("%s: the review is %s", at, s)
		}
	}
}
