package console

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whoever took the looking cookie, which every port of this machine is sent,
// guesses a passphrase wrong: the person's own opened key stays, and a new link
// opens it anew. What is tried with that cookie is not tried any more.
func TestAttackStolenCookieLocksTheOwner(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once")
	at := b.at
	u, _ := url.Parse(w.base + "/")
	thief := w.browser()
	thief.hc.Jar.SetCookies(u, b.hc.Jar.Cookies(u))
	for range maxWrong {
		thief.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": "a guess a guess"})
	}
	tried := w.opened
	thief.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase})
	if w.opened != tried || strings.Contains(thief.body, "Approve once") {
		t.Error("the cookie that was wrong too often is still tried")
	}
	if b.get(at); !strings.Contains(b.body, "Approve once") {
		t.Error("a wrong guess with a stolen cookie forgets the person's key")
	}
	again := w.signedIn()
	again.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase})
	if !strings.Contains(again.body, "Approve once") {
		t.Error("and the person with a new link is kept out")
	}
}

// Over all sessions each wrong passphrase beyond five doubles the time until
// the next try, up to a minute: never a quarter of an hour.
func TestWrongInManySessionsIsSlow(t *testing.T) {
	now := time.Unix(1e9, 0)
	var all tally
	var tries int
	for end := now.Add(wrongTime); now.Before(end); tries++ {
		wait := all.slow(now)
		if wait > maxDelay || tries <= maxWrong && wait > 0 {
			t.Fatal("try", tries, "waits", wait)
		}
		now = now.Add(max(wait, 0))
		all.note(now)
	}
	if tries < 10 || tries > 30 {
		t.Error(tries, "tries in", wrongTime)
	}
	if wait := all.slow(now.Add(maxDelay)); wait > 0 {
		t.Error("a minute later it still waits", wait)
	}
	if wait := all.slow(now.Add(wrongTime)); wait > 0 {
		t.Error("and after all it waits", wait)
	}
}
