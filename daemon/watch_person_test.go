package daemon

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// surfer is a browser of the real pages; what it answers is where it came to, and the
// page.
type surfer struct {
	t  *testing.T
	hc *http.Client
}

func (v surfer) ask(address string, form url.Values) (at, body string) {
	v.t.Helper()
	get := func() (*http.Response, error) { return v.hc.Get(address) }
	if form != nil {
		get = func() (*http.Response, error) { return v.hc.PostForm(address, form) }
	}
	resp, err := get()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.Request.URL.String(), string(b)
}

// Test001_Layer4_HumanCheckOnThePages: on the real daemon a look at the agents with the
// operator key open ends the wait for a person; one by a link alone does not.
func Test001_Layer4_HumanCheckOnThePages(t *testing.T) {
	d, _, down := up(t, strings.Replace(watched, "pages: none", "pages: '127.0.0.1:0'", 1))
	defer down()
	const pass = "correct horse battery staple"
	sealed, public, err := operator.New(holdfast.NewSecret(pass), operator.Options{WorkFactor: 15})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{d.Paths.OperatorKey: sealed, d.Paths.OperatorPub: []byte(public.String() + "\n")} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := acts(t, d, "ada", "test/act", `{}`, nil); err != nil {
		t.Fatal(err)
	}
	d.condition(holdfast.Local, "", watch.NoHumanCheck, true, "nobody looked for 25 hours while agents acted")
	answerTo(t, d, "", watch.NoHumanCheck)
	holds := func() bool {
		return slices.ContainsFunc(d.watching.Watch.Hold(),
			func(s watch.State) bool { return s.Condition == watch.NoHumanCheck })
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := surfer{t, &http.Client{Jar: jar}}
	link, err := d.PageLink("")
	if err != nil {
		t.Fatal(err)
	}
	base := link[:strings.Index(link, "/in/")]
	v.ask(link, url.Values{})
	_, page := v.ask(base+"/agents", nil)
	if !strings.Contains(page, "no_human_check") || !holds() {
		t.Fatalf("a browser with a link alone is taken for a person, or sees nothing of it: %s", page)
	}
	m := regexp.MustCompile(`name="csrf" value="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal(page)
	}
	at, page := v.ask(base+"/unlock", url.Values{"csrf": {html.UnescapeString(m[1])}, "to": {"/agents"}, "passphrase": {pass}})
	if !strings.Contains(at, "/k/") || !strings.HasSuffix(at, "/agents") || strings.Contains(page, "no_human_check") || holds() {
		t.Errorf("at %s somebody looked, and it is waited on: %s", at, page)
	}
	until(t, "the record that it is over", func() bool {
		all, _ := answersIn(t, d)
		return slices.ContainsFunc(all, func(g given) bool { return g.Condition == watch.NoHumanCheck && g.name == "anomaly_cleared" })
	})
	if at, ok := d.watching.Watch.Looked(holdfast.Local); !ok || at.IsZero() {
		t.Error("the time since the last human check does not know of it")
	}
}
