package daemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

const hookSecret = "0123456789abcdef0123456789abcdef"

// receiver is the other side of a webhook: it checks each signature as a
// receiver does, and answers what the test wants.
type receiver struct {
	t   *testing.T
	srv *httptest.Server

	mu     sync.Mutex
	answer int              // guarded by mu
	tries  int              // guarded by mu
	got    []map[string]any // guarded by mu; what it took
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, answer: http.StatusNoContent}
	r.srv = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.srv.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	t, sum, _ := strings.Cut(req.Header.Get("Holdfast-Signature"), ",v1=")
	t = strings.TrimPrefix(t, "t=")
	m := hmac.New(sha256.New, []byte(hookSecret))
	fmt.Fprintf(m, "%s.%s", t, body)
	at, err := strconv.ParseInt(t, 10, 64)
	if err != nil || hex.EncodeToString(m.Sum(nil)) != sum || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		r.t.Errorf("the signature %q is not of this body", req.Header.Get("Holdfast-Signature"))
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil || req.Method != "POST" || v["id"] != req.Header.Get("Holdfast-Delivery") {
		r.t.Errorf("%s %v %s", req.Method, err, body)
	}
	if r.answer == http.StatusFound {
		w.Header().Set("Location", "/elsewhere")
	}
	if r.answer/100 == 2 {
		r.got = append(r.got, v)
	}
	w.WriteHeader(r.answer)
}

func (r *receiver) set(answer int) { r.mu.Lock(); r.answer = answer; r.mu.Unlock() }

// wait is the nth notice that was taken, once it is there.
func (r *receiver) wait(n int) map[string]any {
	r.t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		if len(r.got) > n {
			defer r.mu.Unlock()
			return r.got[n]
		}
		r.mu.Unlock()
	}
	r.t.Fatalf("notice %d did not come", n)
	return nil
}

func (r *receiver) count() (tries, got int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries, len(r.got)
}

// hooked starts a daemon whose steps are put to a person and whose webhook is
// the receiver.
func hooked(t *testing.T, r *receiver) (*Daemon, *api.Client, func()) {
	t.Helper()
	return hookedAt(t, r, "HIGH")
}

// hookedAt is hooked with another risk of agent/step.
func hookedAt(t *testing.T, r *receiver, risk string) (*Daemon, *api.Client, func()) {
	t.Helper()
	d, c, down := up(t, "", func(o *Options) {
		dir := filepath.Dir(o.State)
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(hookSecret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Config = filepath.Join(dir, "holdfast.yaml")
		text := "version: 1\nlisten: {pages: '127.0.0.1:0'}\nboundaries:\n  - {boundary: agent/step, risk: " + risk + "}\nreview:\n  webhook: {url: '" + r.srv.URL + "/hook?token=inurl', secret_file: secret}\n"
		if err := os.WriteFile(o.Config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	return d, c, down
}

// webhookTrouble returns what the status says of the webhook, or "".
func webhookTrouble(d *Daemon) string {
	for _, p := range d.alerts.ListProblems() {
		if strings.HasPrefix(p, "the webhook cannot be told") {
			return p
		}
	}
	return ""
}

// tryNow tries what waits, as a reload does.
func tryNow(d *Daemon) {
	d.alerts.Reload(d.config().AlertSettings())
	time.Sleep(5 * time.Millisecond)
}

func asks(t *testing.T, c *api.Client, payload string) string {
	t.Helper()
	a, err := c.Cross(t.Context(), api.Ask{Boundary: "agent/step", Agent: "bob", Payload: []byte(payload)})
	if err != nil || a.Failure == nil || a.Failure.Kind != holdfast.KindHeld {
		t.Fatalf("%+v %v", a, err)
	}
	return a.Outcome.Review
}

// A question is pushed, signed, with what a person may see of it and no more;
// a halt is pushed as well.
func TestK7_D11_webhook_tells(t *testing.T) {
	r := newReceiver(t)
	_, c, down := hooked(t, r)
	defer down()
	id := asks(t, c, `{"action":"deploy","password":"hunter22"}`)
	got := r.wait(0)
	q, _ := got["review"].(map[string]any)
	if got["event"] != "review_opened" || got["agent"] != "bob" || q["id"] != id || q["state"] != "pending" || len(q["preview_hash"].(string)) != 64 || len(q["exact_hash"].(string)) != 64 {
		t.Fatalf("%v", got)
	}
	if url, _ := q["url"].(string); !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/review/"+id) {
		t.Fatalf("the page is %q", q["url"])
	}
	if text := fmt.Sprint(got); strings.Contains(text, "hunter22") || !strings.Contains(text, "deploy") {
		t.Fatalf("%s", text)
	}
	if _, err := c.Halt(t.Context(), api.Word{Who: "ann", Why: "smoke"}); err != nil {
		t.Fatal(err)
	}
	if got := r.wait(1); got["event"] != "halted" || got["review"] != nil {
		t.Fatalf("%v", got)
	}
}

// One that fails is an alarm, holds nobody up, and is told once it answers
// again, each notice once; a redirect is a failure and is not followed.
func TestK7_D11_webhook_that_fails(t *testing.T) {
	r := newReceiver(t)
	d, c, down := hooked(t, r)
	defer down()
	r.set(http.StatusFound)
	start := time.Now()
	id := asks(t, c, `{"action":"a"}`)
	if time.Since(start) > 8*time.Second {
		t.Fatal("the question waited for the webhook")
	}
	for webhookTrouble(d) == "" {
		time.Sleep(time.Millisecond)
	}
	st, err := c.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(st.Problems, "\n"), "webhook cannot be told") || strings.Contains(strings.Join(st.Problems, "\n"), "inurl") {
		t.Fatalf("%q %v", st.Problems, err)
	}
	r.set(http.StatusInternalServerError)
	for tries, _ := r.count(); tries < 4; tries, _ = r.count() {
		tryNow(d)
	}
	r.set(http.StatusOK)
	tryNow(d)
	if got := r.wait(0); got["review"].(map[string]any)["id"] != id {
		t.Fatalf("%v", got)
	}
	for webhookTrouble(d) != "" {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if _, got := r.count(); got != 1 {
		t.Fatalf("told %d times", got)
	}
}

// A question that could not be told before a restart is told after it, and one
// that was told is not told again.
func TestK7_D11_webhook_after_a_restart(t *testing.T) {
	r := newReceiver(t)
	d, c, down := hooked(t, r)
	told := asks(t, c, `{"action":"told"}`)
	r.wait(0)
	r.set(http.StatusServiceUnavailable)
	missed := asks(t, c, `{"action":"missed"}`)
	for webhookTrouble(d) == "" {
		time.Sleep(time.Millisecond)
	}
	opt := d.opt
	down()
	r.set(http.StatusOK)
	_, _, down = serve(t, opt)
	defer down()
	if got := r.wait(1); got["review"].(map[string]any)["id"] != missed {
		t.Fatalf("%v, not %s", got, missed)
	}
	time.Sleep(100 * time.Millisecond)
	if _, got := r.count(); got != 2 {
		t.Fatalf("%s was told again: %d", told, got)
	}
}

func TestK7_webhook_configuration(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	file("secret", hookSecret, 0o600)
	file("open", hookSecret, 0o644)
	for text, want := range map[string]string{
		"url: https://x.example/h, secret_file: secret":                      "",
		"url: 'http://127.0.0.1:8080/h', secret_file: secret":                "",
		"url: https://x.example/h, secret_env: HOOK_SECRET":                  "",
		"url: 'http://x.example/h', secret_file: secret":                     "http crosses the network unencrypted",
		"url: https://x.example/h":                                           "needs one of secret_file and secret_env",
		"url: https://x.example/h, secret_file: secret, secret_env: A":       "needs one of secret_file and secret_env",
		"secret_file: secret":                                                "has no url",
		"url: https://x.example/h, secret_env: 'A=B'":                        "no name of an environment variable",
		"url: https://x.example/h, secret_file: none":                        "none",
		"url: https://x.example/h, secret_file: open":                        "open",
		"url: 'https://u:p@x.example/h', secret_file: secret":                "a user or a password",
		"url: https://x.example/h, secret_file: secret, retries: 3":          "unknown key",
		"url: 'file:///etc/passwd', secret_file: secret":                     "is not",
		"url: https://x.example/h, secret: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": "unknown key",
	} {
		file("holdfast.yaml", "version: 1\nreview:\n  webhook: {"+text+"}\n", 0o600)
		_, err := config.Load(filepath.Join(dir, "holdfast.yaml"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	t.Setenv("HOOK_SECRET", "short")
	if _, err := (&config.WebhookConfig{SecretEnv: "HOOK_SECRET"}).ReadSecret(); err == nil ||
		strings.Contains(err.Error(), "short") {
		t.Fatal(err)
	}
}
