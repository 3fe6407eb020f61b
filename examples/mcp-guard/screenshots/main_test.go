package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// needs says what is missing here; CI lacks nothing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser and a real MCP server: not in -short")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing", p)
			}
			t.Skipf("%s is missing: see `make deps`", p)
		}
	}
}

// TestMain removes the binary that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// shared is where the one binary of all tests is.
var shared struct {
	once sync.Once
	dir  string
	err  error
}

func binary(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "hf"); shared.err != nil {
			return
		}
		// `go run` keeps what it linked in the build cache, which `go build` does not.
		cmd := exec.Command("go", "run", "-exec", "cp", "github.com/holdfast-dev/holdfast/cmd/holdfast", filepath.Join(shared.dir, "holdfast"))
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			shared.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return filepath.Join(shared.dir, "holdfast")
}

func stage(t *testing.T, d time.Duration) (context.Context, *scene, *browser) {
	t.Helper()
	needs(t, "npx", "chromium", "chromedriver")
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	s, err := openScene(ctx, "../../..", binary(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	b, err := openBrowser(ctx, s.path("home"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return ctx, s, b
}

// TestChromium_ApproveWhatReallyWaits: a real call of a real MCP server waits,
// a person opens the page by its link, types the passphrase, clicks, and the
// call goes on. On the way every page is looked at on a desk, in the dark and
// on a phone that must not be moved sideways, and the browser complains of
// nothing: neither of the script nor of what the policy refused.
func TestChromium_ApproveWhatReallyWaits(t *testing.T) {
	ctx, s, b := stage(t, 5*time.Minute)
	dir := t.TempDir()
	if err := (&tour{s: s, b: b, dir: dir}).walk(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || len(got) < 20 {
		t.Error("pictures:", len(got), err)
	}
	said := s.said.String()
	if !strings.Contains(said, "moved") || !strings.Contains(said, "milk was bought") {
		t.Errorf("the agent says:\n%s", said)
	}
}

// TestChromium_WithoutScriptAndByKeyboard: the same with script switched off and
// no mouse: Tab and Enter reach the answer.
func TestChromium_WithoutScriptAndByKeyboard(t *testing.T) {
	ctx, s, b := stage(t, 5*time.Minute)
	must := func(err error) {
		t.Helper()
		if err != nil {
			text, _ := b.text()
			t.Fatalf("%v\n%s", err, text)
		}
	}
	must(s.ask(ctx))
	id, _, err := s.review(ctx)
	must(err)
	must(b.get(s.link))
	must(b.script(false))
	must(b.device(360, 740, true, false))
	const tab, enter = "\ue004", "\ue007"
	// press goes on with Tab until that has the focus, and presses Enter.
	press := func(name string) {
		t.Helper()
		var seen []string
		for range 60 {
			at, err := b.focused()
			must(err)
			if at == name || strings.HasPrefix(at, "/k/") && strings.HasSuffix(at, name) {
				must(b.key(enter))
				return
			}
			seen = append(seen, at)
			must(b.key(tab))
		}
		t.Fatalf("Tab does not reach %s: %q", name, seen)
	}
	press("signin")
	must(b.waitFor("1 waits for an answer"))
	press("/review/" + id)
	must(b.waitFor("What it wants to do", "held for a person"))
	must(b.write("#passphrase", passphrase+enter))
	must(b.waitFor("Approve once"))
	press("approve")
	must(b.waitFor("approved: the agent may do exactly this once"))
	must(s.served())
}

// TestStrangersOnOtherPorts: a page on another port of this machine is the same
// site to a browser. It gets the session's cookie, and can decide nothing with
// it; and it can send no form.
func TestStrangersOnOtherPorts(t *testing.T) {
	ctx, s, b := stage(t, 5*time.Minute)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.ask(ctx))
	id, _, err := s.review(ctx)
	must(err)
	must(b.get(s.link))
	must(b.click("#signin"))
	must(b.waitFor("1 waits for an answer"))
	must(b.click(`a[href="/review/` + id + `"]`))
	must(b.write("#passphrase", passphrase))
	must(b.click("#unlock button"))
	must(b.waitFor("Approve once"))
	inside, err := b.url()
	must(err)
	base, _, _ := strings.Cut(s.link, "/in/")
	area := strings.Split(strings.TrimPrefix(inside, base), "/")[2]

	var mu sync.Mutex
	var stolen []*http.Cookie
	var paths []string
	l, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = append(stolen, r.Cookies()...)
		paths = append(paths, r.Header.Get("Referer"))
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<body><form id=f method=post action="%s/halt"><button id=go>free money</button></form><iframe src="%s/"></iframe>`, base, inside)
	})
	defer l.Close()
	must(b.get("http://" + addr + "/"))
	mu.Lock()
	defer mu.Unlock()
	names := []string{}
	for _, c := range stolen {
		names = append(names, c.Name)
	}
	t.Logf("another port was sent the cookies %q, from %q", names, paths)
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_key") }) || strings.Contains(strings.Join(paths, " "), area) {
		t.Error("another port learned what decides")
	}
	must(b.click("#go"))
	must(b.waitFor("this form did not come from these pages"))

	// With the stolen cookie, and whatever its pages say, nothing is decided.
	text := fetch(t, stolen, base+"/review/"+id)
	if strings.Contains(text, area) || strings.Contains(text, "/approve") {
		t.Errorf("who has the cookie is shown what decides:\n%s", text)
	}
	if out, err := s.run(ctx, s.path("home"), s.holdfast, "status", "--json"); err != nil || strings.Contains(string(out), `"halted": true`) {
		t.Errorf("%v %s", err, out)
	}
	// The person's own page goes on.
	must(b.get(inside))
	must(b.click("#approve"))
	must(b.waitFor("approved: the agent may do exactly this once"))
	must(s.served())
}
