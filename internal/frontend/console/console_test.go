package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

func (w *world) state1(id string) review.State {
	w.t.Helper()
	r, err := w.k.Review(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.State
}

// D11: a person signs in by the link, sees what waits, types the passphrase,
// approves, and the call acts, once; all of it without script.
func TestD11_ApproveWithoutScript(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"to":"bob","amount":2000}`)
	b := w.signedIn()
	b.wants(200, "1 waits for an answer", "test/high", "alice", r.ID, `<p class="asked">{&#34;amount&#34;:2000,&#34;to&#34;:&#34;bob&#34;}</p>`)
	if strings.Contains(b.body, review.AlwaysAsked) {
		t.Error("the card says what every card of its risk says")
	}
	b.get("/review/"+r.ID).wants(200, "What it wants to do", "amount", "2000", r.PreviewHash, r.Exact, r.Key, "K7 human", "held for a person", "K1 schema", "passed", "armed", "it will write down what comes of this", "it will judge what comes out of this")
	// The hashes that nobody reads do not stand between the question and its answer.
	if at := strings.Index(b.body, "Your answer</h2>"); at < 0 || strings.Contains(b.body[:at], "exact hash") || !strings.Contains(b.body[:at], `"mono">`+r.PreviewHash) {
		t.Error("what stands before the answer:", b.body[:max(at, 0)])
	}
	if _, _, there := b.form("/approve"); there {
		t.Error("a page that cannot decide has the form")
	}
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Approve once", "You can decide, as operator:")
	if !strings.HasPrefix(b.at, "/k/") || !strings.Contains(b.at, "/review/"+r.ID) {
		t.Error("after the passphrase it is at", b.at)
	}
	b.submit("/approve", nil).wants(200, "approved: the agent may do exactly this once", "approved, has not run yet")
	got, err := w.k.Review(t.Context(), r.ID)
	_, pub := sealed()
	if err != nil || got.State != review.Approved || got.Reviewer != pub.ID() {
		t.Fatal(err, got.State, got.Reviewer)
	}
	o, err := w.cross("test/high", `{"to":"bob","amount":2000}`)
	if err != nil || o.Crossing != r.Crossing {
		t.Fatal(err, o.Crossing, r.Crossing)
	}
	b.get("/review/"+r.ID).wants(200, "approved, and it ran")
	b.get("/crossing/"+r.Crossing).wants(200, "done", "review proposed", "review decided", "begin", "entry: done", "&lt;b&gt;done&lt;/b&gt;", "approved by "+pub.ID(), "2000")
	if n := strings.Count(b.body, `class="gate lit"`); n != 8 {
		t.Errorf("%d gates are lit", n)
	}
	b.get("/").wants(200, "Nobody waits", "approved, and it ran")
	if _, err := w.cross("test/high", `{"to":"bob","amount":2000}`); holdfast.KindOf(err) != holdfast.KindHeld {
		t.Error("a second use:", err)
	}
}

func TestEveryAnswer(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	rs := []review.Review{w.held(`{"n":1}`), w.held(`{"n":2}`), w.held(`{"n":3}`)}
	b.get("/").submit("/out", nil)
	b = w.signedIn()
	b.get("/review/"+rs[0].ID).submit("/unlock", map[string]string{"passphrase": passphrase})
	area, _, _ := strings.Cut(b.at, "/review/")
	b.submit("/reject", nil).wants(200, "say why")
	b.submit("/reject", map[string]string{"reason": " not on\r\na Friday "}).wants(200, "rejected: the agent is told", "not on a Friday")
	if _, _, there := b.form("/approve"); there {
		t.Error("a decided review has the form")
	}
	b.get(area+"/review/"+rs[1].ID).submit("/defer", map[string]string{"hours": "99"}).wants(200, "for how many hours")
	b.submit("/defer", map[string]string{"hours": "4"}).wants(200, "put off until")
	_, v, _ := b.form("/reject")
	v.Set("reason", "into archive/, please")
	b.post(area+"/review/"+rs[1].ID+"/changes", v).wants(200, "changes requested")
	b.post(area+"/review/"+rs[2].ID+"/accept", v).wants(200, "there is no such answer")
	for i, want := range []review.State{review.Rejected, review.Changes, review.Pending} {
		if got := w.state1(rs[i].ID); got != want {
			t.Errorf("%d is %s, want %s", i, got, want)
		}
	}
	b.get("/").wants(200, "rejected", "changes requested", "1 waits")
}

// A decision is for what the page showed: where the review holds something else
// now, nothing is decided.
func TestD11_BoundToWhatWasShown(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	other := w.held(`{"n":2}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase})
	action, shown, _ := b.form("/approve")
	page := b.at
	for name, value := range map[string]string{"preview": other.PreviewHash, "exact": other.Exact, "nonce": other.Nonce, "policy": strings.Repeat("2", 64)} {
		v := url.Values{}
		for k := range shown {
			v.Set(k, shown.Get(k))
		}
		v.Set(name, value)
		b.post(action, v).wants(200, "not decided", "something other than what review")
		v.Del(name)
		b.post(action, v).wants(200, "not decided")
	}
	// The form of one review sent for another.
	b.post(strings.Replace(action, r.ID, other.ID, 1), shown).wants(200, "not decided")
	// The preview changes between the look and the answer.
	err := w.store.Update(t.Context(), func(tx kernel.Tx) error {
		now, err := tx.Review(r.ID)
		if err != nil {
			return err
		}
		now.Preview, now.PreviewHash = `{"n":9}`, other.PreviewHash
		return tx.PutReview(now, now.State)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.post(action, shown).wants(200, "not decided", "something other than what review")
	if w.state1(r.ID) != review.Pending || w.state1(other.ID) != review.Pending {
		t.Error("something was decided")
	}
	b.get(page).wants(200, "&#34;n&#34;:9")
}

func TestD11_CutPreviewNeedsTheBox(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"text":"` + strings.Repeat("long ", 2000) + `"}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).wants(200, "only its beginning is shown").submit("/unlock", map[string]string{"passphrase": passphrase})
	b.wants(200, "I have seen only a part of it")
	b.submit("/approve", nil).wants(200, "you did not say that you saw only a part")
	if w.state1(r.ID) != review.Pending {
		t.Fatal("approved without the box")
	}
	b.submit("/approve", map[string]string{"in_part": "yes"}).wants(200, "approved")
}

func TestD11_MaskedPreviewNeedsTheBox(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"secret":{"then":"rm -rf /"}}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).wants(200, "something in it is masked").submit("/unlock", map[string]string{"passphrase": passphrase})
	b.wants(200, "I have not seen what is masked in it")
	b.submit("/approve", nil).wants(200, "something in it is masked, and you did not say")
	if w.state1(r.ID) != review.Pending {
		t.Fatal("approved without the box")
	}
	b.submit("/approve", map[string]string{"in_part": "yes"}).wants(200, "approved")
}

// What stands beside the payload is shown as the payload is.
func TestD11_WhatStandsBesideIsShown(t *testing.T) {
	w := newWorld(t)
	req := w.request("test/high", `{"cmd":"pay"}`)
	req.Beside = []byte(`{"inputResponses":{"much":{"n":1000000}}}`)
	o, err := w.k.Cross(w.t.Context(), req, func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil })
	if holdfast.KindOf(err) != holdfast.KindHeld {
		t.Fatal("not held:", err)
	}
	w.signedIn().get("/review/"+o.Review).wants(200, "<dt>cmd <", "<dt>beside the payload: inputResponses <", "beside the payload: {&#34;inputResponses&#34;:{&#34;much&#34;")
}

// What an agent wrote stays text, and what cannot be seen is seen.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	evil := `</pre><script>alert(1)</script><img src=x onerror=alert(1)>{{.CSRF}}" autofocus onfocus="x`
	r := w.held(`{"x":` + fmt.Sprintf("%q", evil) + `,"` + `<b>name</b>` + `":"a\u202eb\u0007c\u200bd\n<i>e</i>","link":"http://evil.example/?q=1","n":[1,{"<u>":"</pre>"}]}`)
	b := w.signedIn()
	w.mu.Lock()
	w.state = State{Problems: []string{evil}, Weakened: []string{evil}, Paused: []string{evil + "\u202e"}}
	w.mu.Unlock()
	for _, path := range []string{"/", "/review/" + r.ID, "/crossing/" + r.Crossing, "/crossings"} {
		b.get(path).wants(200)
		for _, bad := range []string{"<script>alert", "<img src=x", "<b>name", "<i>e", "<u>", "\u202e", "\u200b", "\a", `href="http`, "onfocus=\"x"} {
			if strings.Contains(b.body, bad) {
				t.Errorf("%s holds %q", path, bad)
			}
		}
	}
	b.get("/review/"+r.ID).wants(200, `<span class="odd">U+202E</span>`, `<span class="odd">U+0007</span>`, "&lt;script&gt;alert(1)")
	w.held(`{"n":"` + strings.Repeat("y", 100_000) + `"}`)
	if b.get("/"); len(b.body) > 64<<10 {
		t.Errorf("the queue is %d bytes", len(b.body))
	}
	b.get("/crossing/" + r.Crossing + "?tenant=%3Cscript%3E").wants(404)
	b.get("/?note=%3Cscript%3Ealert").wants(200)
	if strings.Contains(b.body, "alert&lt;") || strings.Contains(b.body, "<script>alert") {
		t.Error("a note that nobody wrote is shown")
	}
	for _, to := range []string{"//evil.example", "https://evil.example/", "/\\evil.example", "/review/../../x\r\nSet-Cookie: a=b", "javascript:alert(1)", "/assets/x"} {
		if ownPath(to) {
			t.Errorf("%q is a path of these pages", to)
		}
	}
}

func TestHaltAndResume(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	b.get("/halt").wants(200, "Halt everything?")
	if w.latch.Halted() {
		t.Fatal("a look halted")
	}
	b.submit("/halt", map[string]string{"reason": "it deletes <b>everything</b>"}).wants(200, "Everything is halted", "&lt;b&gt;everything")
	if _, err := w.cross("test/low", `{}`); holdfast.KindOf(err) != holdfast.KindHalted {
		t.Error("it went on:", err)
	}
	b.get("/").wants(200, "Everything is halted by ann, on the pages")
	b.get("/halt")
	if _, _, there := b.form("/resume"); there {
		t.Error("it can be resumed without the passphrase")
	}
	_, v, _ := b.form("/unlock")
	b.post("/resume", v).wants(200, "the passphrase is needed again")
	b.submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "Resume everything")
	action, v, _ := b.form("/resume")
	v.Set("when", stamp(time.Now().Add(-time.Hour)))
	b.post(action, v).wants(200, "halted anew since you looked")
	if !w.latch.Halted() {
		t.Fatal("a halt that the page did not show was lifted")
	}
	b.submit("/resume", map[string]string{"reason": "mended"}).wants(200, "resumed")
	if w.latch.Halted() {
		t.Error("it is still halted")
	}
	b.get(strings.TrimSuffix(b.at[:strings.Index(b.at, "?")], "/")+"/crossings").wants(200, "test/low")
}

func TestStories(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	done, err := w.cross("test/low", `{"a":1}`)
	if err != nil {
		t.Fatal(err)
	}
	b.get("/crossing/"+done.Crossing).wants(200, "done", done.Key, "K8 eval", "begin", "entry: done")
	if n := strings.Count(b.body, `class="gate lit"`); n != 8 {
		t.Errorf("%d gates are lit", n)
	}
	refused, err := w.cross("test/never", `{"a":1}`)
	if err == nil {
		t.Fatal("it acted")
	}
	b.get("/crossing/"+refused.Crossing).wants(200, "denied", "ProhibitedError", `class="gate dark"`, "refused")
	perm, err := w.cross("test/perm", `{"a":1}`)
	if holdfast.KindOf(err) != holdfast.KindPermission {
		t.Fatal(err)
	}
	b.get("/crossing/"+perm.Crossing).wants(200, "K2 permission", `class="gate dark"`, "not asked", `class="gate off"`)
	r := w.held(`{"a":1}`)
	b.get("/crossing/"+r.Crossing).wants(200, "held for a person", "review proposed", r.PreviewHash)
	for _, bad := range []string{"x", "00000000-0000-7000-8000-000000000000", strings.ToUpper(done.Crossing), "..%2f..%2f"} {
		b.get("/crossing/" + bad).wants(404)
	}
	for _, bad := range []string{"rv_0123456789", "x", "rv_"} {
		b.get("/review/" + bad).wants(404)
	}
	for i := range 120 {
		if _, err := w.cross("test/low", fmt.Sprintf(`{"i":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for path := "/crossings"; ; {
		b.get(path).wants(200)
		for _, m := range regexp.MustCompile(`/crossing/([0-9a-f-]{36})`).FindAllStringSubmatch(b.body, -1) {
			if seen[m[1]] {
				t.Errorf("%s is shown twice", m[1])
			}
			seen[m[1]] = true
		}
		m := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(b.body)
		if m == nil {
			break
		}
		path = m[1]
	}
	if len(seen) != 123 {
		t.Errorf("%d entries on all pages, want 123", len(seen))
	}
	for _, before := range []string{"-1", "0", "x", "99999999999999999999", "9223372036854775807"} {
		b.get("/crossings?before=" + before).wants(200)
	}
}

// The tree of signed heads is named for what it is, and holds no crossings.
func TestTreeOfSignedHeads(t *testing.T) {
	w := newWorld(t)
	w.held(`{"n":1}`)
	signer, err := ledger.GenerateKey(rand.Reader, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Checkpoint(signer); err != nil {
		t.Fatal(err)
	}
	b := w.signedIn()
	b.get("/crossings").wants(200, ">the log of signed heads</a>")
	b.get("/crossings?tenant="+ledger.CheckpointsTenant).wants(200, "It holds the signed heads of the other trees")
}

// What was approved and never ran is told apart from what ran.
func TestLife(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).submit("/approve", nil)
	w.advance(25 * time.Hour)
	b = w.signedIn()
	b.get("/").wants(200, "approved, never ran")
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	b.get("/").wants(200, "approved, never ran: the time ran out")
	w.held(`{"n":2}`)
	w.advance(25 * time.Hour)
	if _, err := w.k.Sweep(); err != nil {
		t.Fatal(err)
	}
	w.signedIn().wants(200, "nobody answered in time")
}

// A page is told at once that something waits, and its stream ends with its
// session.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", w.base+"/events", nil)
	resp, err := b.hc.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp.Status)
	}
	defer resp.Body.Close()
	got := make(chan string, 64)
	go func() {
		defer close(got)
		buf := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			if err != nil {
				return
			}
			got <- string(buf[:n])
		}
	}()
	until := func(text string) time.Duration {
		t.Helper()
		start := time.Now()
		for all := ""; ; {
			select {
			case s, ok := <-got:
				if all += s; strings.Contains(all, text) {
					return time.Since(start)
				}
				if !ok {
					t.Fatalf("the stream ended without %q: %q", text, all)
				}
			case <-time.After(time.Minute):
				t.Fatalf("no %q in %q", text, all)
			}
		}
	}
	until(": open")
	held := w.held(`{"n":1}`)
	took := until("event: changed")
	t.Logf("a new question was told after %v", took)
	start := time.Now()
	b.get("/").submit("/out", nil)
	for text := range got {
		if strings.Contains(text, held.ID) {
			t.Error("the stream says what waits")
		}
	}
	if took := time.Since(start); took > beat*3/4 { // before anything is written to it again
		t.Errorf("the stream ended %v after its session", took)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	for range maxStreams {
		w.site.streams <- struct{}{}
	}
	b.get("/events").wants(503)
	<-w.site.streams
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", w.base+"/events", nil)
	resp, err := b.hc.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	for start := time.Now(); len(w.site.streams) == maxStreams; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("a stream whose browser went still takes its place")
		}
	}
	w.browser().get("/events").wants(401)
}

// An approval can be remembered for exactly these arguments: the rule is shown
// in words before it is made, and what is made is what was shown.
func TestRemember(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase})
	if _, _, there := b.form("/remember"); there {
		t.Error("what nobody approved can be remembered")
	}
	b.submit("/approve", nil).wants(200, "with exactly the arguments of review "+r.ID, "Remember that", "decided</strong>", "executed</strong> <span class=\"meta\">not yet")
	action, own, _ := b.form("/remember")
	if _, err := w.cross("test/high", `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cross("test/high", `{"n":1}`); holdfast.KindOf(err) != holdfast.KindHeld {
		t.Error("remembered before it was said:", err)
	}
	for name, change := range map[string]map[string]string{"no rule": {"rule": ""}, "another rule": {"rule": strings.Replace(own.Get("rule"), "test/high", "test/never", 1)},
		"no days": {"days": ""}, "for ever": {"days": "9999"}, "another nonce": {"days": "7", "nonce": "x"}, "another preview": {"days": "7", "preview": strings.Repeat("0", 64)}} {
		bad := url.Values{"days": {"7"}}
		for k := range own {
			bad.Set(k, own.Get(k))
		}
		for k, to := range change {
			bad.Set(k, to)
		}
		if b.post(action, bad); !strings.Contains(b.body, "not remembered") {
			t.Errorf("%s: %s", name, b.body)
		}
	}
	own.Set("days", "7")
	outside := strings.TrimPrefix(action, action[:strings.Index(action, "/review/")])
	b.post(outside, own).wants(200, "the passphrase is needed again")
	b.post(action, own).wants(200, "remembered as", "not asked about again")
	for range 2 {
		if o, err := w.cross("test/high", `{"n":1}`); err != nil {
			t.Error(err, o)
		}
	}
	if _, err := w.cross("test/high", `{"n":2}`); holdfast.KindOf(err) != holdfast.KindHeld {
		t.Error("another payload:", err)
	}
}

// What ran and failed, and what began and never came back, are told apart from
// what ran.
func TestLifeAfterApproval(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn()
	approve := func(payload string) review.Review {
		r := w.held(payload)
		b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).submit("/approve", nil).wants(200, "approved:")
		return r
	}
	failed, gone := approve(`{"n":1}`), approve(`{"n":2}`)
	_, err := w.k.Cross(t.Context(), w.request("test/high", `{"n":1}`), func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{}, &holdfast.Error{Kind: holdfast.KindOperation, Why: "the disk is full"}
	})
	if err == nil {
		t.Fatal("it did not fail")
	}
	b.get("/review/"+failed.ID).wants(200, "approved, and it ran: failed", "returned</strong> <span class=\"meta\">failed")
	began, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := w.k.Cross(context.Background(), w.request("test/high", `{"n":2}`), func(context.Context) (holdfast.Output, error) {
			close(began)
			<-end
			return holdfast.Output{Body: []byte(`{}`)}, nil
		})
		done <- err
	}()
	<-began
	b.get("/review/"+gone.ID).wants(200, "approved, it began, and has not returned")
	b.get("/crossing/"+gone.Crossing).wants(200, "under way", `class="gate lit"`)
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.get("/review/"+gone.ID).wants(200, "approved, and it ran")
}

// A page is told that what it approved has returned.
func TestReturnIsTold(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	b := w.signedIn()
	b.get("/review/"+r.ID).submit("/unlock", map[string]string{"passphrase": passphrase}).submit("/approve", nil)
	var told <-chan struct{}
	stop := func() {}
	_, err := w.k.Cross(t.Context(), w.request("test/high", `{"n":1}`), func(context.Context) (holdfast.Output, error) {
		told, stop = w.k.Watch()
		return holdfast.Output{Body: []byte(`{}`)}, nil
	})
	defer func() { stop() }()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("nothing was told after the act returned")
	}
	b.get("/review/"+r.ID).wants(200, "approved, and it ran")
}
