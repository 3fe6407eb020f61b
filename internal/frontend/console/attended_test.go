package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// Test001_Layer4_HumanCheck: who looks at a page with the operator key open was there;
// who only looks, guesses, comes with another's path, or leaves a page open, was not
// (spec 001 "Time since last human check").
func Test001_Layer4_HumanCheck(t *testing.T) {
	w := newWorld(t)
	r := w.held(`{"n":1}`)
	w.odd = []story.Anomaly{{Tenant: "local", Condition: watch.NoHumanCheck, Severity: "MEDIUM"}}
	b := w.signedIn()
	for _, page := range []string{"/", "/agents", "/crossings", "/review/" + r.ID, "/k/" + strings.Repeat("A", 43) + "/"} {
		b.get(page)
	}
	b.get("/agents").submit("/unlock", map[string]string{"passphrase": "a guess a guess"})
	if n := w.seen.Load(); n != 0 {
		t.Fatalf("without the key %d visits are a person's", n)
	}
	b.get("/agents").submit("/unlock", map[string]string{"passphrase": passphrase}).wants(200, "You can decide, as operator:")
	if n := w.seen.Load(); n != 1 || !strings.HasPrefix(b.at, "/k/") {
		t.Fatalf("at %s after the passphrase: %d", b.at, n)
	}
	own := b.at
	b.get(own)
	if n := w.seen.Load(); n != 2 {
		t.Errorf("a look with the key: %d", n)
	}
	// The page asks for itself, others know the path alone, or send a form that is no
	// page's.
	live, err := http.NewRequest("GET", w.base+own, nil)
	if err != nil {
		t.Fatal(err)
	}
	live.Header.Set("Holdfast-Live", "1")
	b.do(live)
	w.signedIn().get(own)
	w.browser().get(own)
	b.post(own, url.Values{"csrf": {"guessed"}})
	if n := w.seen.Load(); n != 2 {
		t.Errorf("%d visits are a person's, not 2", n)
	}
	w.advance(KeyTime + 1)
	b.get(own)
	if n := w.seen.Load(); n != 2 {
		t.Errorf("after the key's time: %d", n)
	}
}
