package daemon

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/ledger"
)

// world is a service over TLS on this machine, and a daemon whose proxy an agent
// reaches it by.
type world struct {
	t       *testing.T
	d       *Daemon
	client  *api.Client
	dir     string
	service *httptest.Server
	port    string
	// more is what the service is told to wait for in /stream.
	more chan string
	down func() // ends the daemon, once
}

// newWorld starts both. PORT in the rows is the service's; its certificate is for
// example.com.
func newWorld(t *testing.T, rows string, change ...func(config string) string) *world {
	t.Helper()
	w := &world{t: t, more: make(chan string)}
	w.service = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.service.EnableHTTP2 = true
	w.service.StartTLS()
	t.Cleanup(w.service.Close)
	_, w.port, _ = net.SplitHostPort(w.service.Listener.Addr().String())
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.service.Certificate().Raw})
	t.Setenv("HF_TEST_SERVICE_KEY", "key-of-the-service-0123456789")
	config := w.config(rows)
	for _, f := range change {
		config = f(config)
	}
	d, c, down := up(t, config, func(o *Options) {
		w.dir = filepath.Dir(o.Config)
		if err := os.WriteFile(filepath.Join(w.dir, "roots.pem"), roots, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	w.down = sync.OnceFunc(down)
	t.Cleanup(w.down)
	w.d, w.client = d, c
	return w
}

func (w *world) config(rows string) string {
	return quiet + "egress:\n  listen: [{address: '127.0.0.1:0', agent: nightly}]\n  domains: {" +
		strings.NewReplacer("PORT", w.port, "HERE", "addresses: [127.0.0.1], roots: roots.pem").Replace(rows) + "}\n"
}

// serve is the service: what came, a secret, a stream.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		rw.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text, ok := <-w.more:
				if !ok {
					return
				}
				fmt.Fprintf(rw, "data: %s\n\n", text)
				_ = http.NewResponseController(rw).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case "/leak":
		fmt.Fprintf(rw, "ask ann@example.com, the key is %s", r.Header.Get("X-Api-Key"))
	default:
		b, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(rw).Encode(map[string]any{"authorization": r.Header.Get("Authorization"), "has_key": r.Header.Get("X-Api-Key") == "key-of-the-service-0123456789", "body": string(b)})
	}
}

// agent is an HTTP client that knows the proxy and trusts its authority.
func (w *world) agent() *http.Client {
	w.t.Helper()
	ca, err := w.client.EgressAuthority(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		w.t.Fatal("the authority is no certificate")
	}
	proxy := &url.URL{Scheme: "http", Host: w.d.egress.Listeners()[0].Address}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// get asks for a path of the service; want is the status.
func (w *world) get(c *http.Client, path string, want int) string {
	w.t.Helper()
	resp, err := c.Get("https://example.com:" + w.port + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		w.t.Fatalf("%s: %v, %d, want %d: %s", path, err, resp.StatusCode, want, b)
	}
	return string(b)
}

// stream begins a stream of the service, which says first at once.
func (w *world) stream(c *http.Client, first string) *http.Response {
	w.t.Helper()
	go func() {
		select {
		case w.more <- first:
		case <-w.t.Context().Done():
		}
	}()
	resp, err := c.Get("https://example.com:" + w.port + "/stream")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// entries are the ledger's of egress, once there are so many.
func (w *world) entries(n int) []*ledger.Entry {
	w.t.Helper()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var out []*ledger.Entry
		err := w.d.Store().View(w.t.Context(), func(tx kernel.Tx) error {
			return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
				if l.Kind != ledger.KindEntry {
					return nil
				}
				e, err := ledger.ParseEntry(l.Record)
				if err == nil && strings.HasPrefix(e.Boundary, "egress/") {
					out = append(out, e)
				}
				return err
			})
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(out) >= n || time.Since(start) > 10*time.Second {
			if len(out) != n {
				w.t.Fatalf("%d entries, want %d", len(out), n)
			}
			return out
		}
	}
}

const withKey = "'example.com:PORT': {HERE, credential: {header: X-Api-Key, env: HF_TEST_SERVICE_KEY}}"

// A request through a listener is sent with the tenant's credential and without
// the agent's, its answer is masked, and both are one entry of that agent.
func TestEgress_Daemon_throughAListener(t *testing.T) {
	w := newWorld(t, withKey)
	c := w.agent()
	req, err := http.NewRequest("POST", "https://example.com:"+w.port+"/v1/x", strings.NewReader(`{"to":"bob@example.com"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer of-the-agent-itself")
	req.Header.Set("X-Api-Key", "of-the-agent-itself")
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Authorization, Body string
		HasKey              bool `json:"has_key"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp.Status)
	}
	if got.Authorization != "" || !got.HasKey || got.Body != `{"to":"[email]"}` {
		t.Errorf("%+v", got)
	}
	if text := w.get(c, "/leak", 200); text != "ask [email], the key is [secret]" {
		t.Errorf("%q", text)
	}
	es := w.entries(2)
	for _, e := range es {
		if e.Agent != "nightly" || e.Boundary != "egress/example.com:"+w.port || e.Outcome != ledger.Done {
			t.Errorf("%s %s %s", e.Agent, e.Boundary, e.Outcome)
		}
	}
	st, err := w.client.Status(t.Context())
	if err != nil || st.Egress == nil || len(st.Egress.Requests) != 1 || st.Egress.Requests[0].Count != 2 || len(st.Egress.Stages) < 4 || st.Egress.RedactedOut == 0 || st.Egress.RedactedIn == 0 {
		t.Errorf("%v %+v", err, st.Egress)
	}
}

// What is not listed is refused with its reason, and recorded.
func TestEgress_Daemon_refusalsAreSaidAndRecorded(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE, paths: [/v1/*], rate_limit: 2}, mail.example.com: {type: email, addresses: [127.0.0.1]}")
	c := w.agent()
	if text := w.get(c, "/admin", http.StatusForbidden); !strings.Contains(text, "path") || !strings.Contains(text, "hint: ") {
		t.Errorf("%q", text)
	}
	_, err := c.Get("https://elsewhere.example.org/")
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a CONNECT to what is not listed: %v", err)
	}
	resp, err := c.Get("https://mail.example.com/send")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusPreconditionRequired || !strings.Contains(string(b), "review: rv_") {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	w.get(c, "/v1/a", 200)
	w.get(c, "/v1/b", 200)
	if text := w.get(c, "/v1/c", http.StatusTooManyRequests); !strings.Contains(text, "2 a minute per tenant") {
		t.Errorf("%q", text)
	}
	kinds := map[holdfast.Kind]int{}
	for _, e := range w.entries(5) { // a held crossing has none yet
		kinds[e.ErrorKind]++
	}
	if kinds[holdfast.KindDomainBlocked] != 2 || kinds[holdfast.KindRateLimit] != 1 || kinds[""] != 2 {
		t.Errorf("%v", kinds)
	}
	ans, err := w.client.EgressCheck(t.Context(), api.EgressAsk{URL: "https://example.com:" + w.port + "/v1/d", Method: "GET", Agent: "nightly"})
	if err != nil || ans.Outcome.Verdict != holdfast.Deny || len(ans.Rates) != 1 || ans.Rates[0].Left != 0 {
		t.Errorf("%v %+v", err, ans)
	}
}

// A reload in the middle of a stream leaves the stream its row, and new requests
// go by the new list.
func TestEgress_Daemon_reloadInMidStream(t *testing.T) {
	w := newWorld(t, withKey)
	c := w.agent()
	resp := w.stream(c, "it goes on")
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			if lines.Text() != "data: "+want {
				t.Fatalf("%q", lines.Text())
			}
			return
		}
		t.Fatal("the stream ended", lines.Err())
	}
	next("it goes on")
	l := w.reload("elsewhere.example.com: {}")
	if _, err := c.Get("https://example.com:" + w.port + "/v1/x"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Error(err)
	}
	w.more <- "bob@example.com wrote two words"
	close(w.more)
	next("[email] wrote two words")
	if lines.Scan() && lines.Text() != "" || lines.Err() != nil {
		t.Error(lines.Text(), lines.Err())
	}
	if l.Policy.Version != w.d.Kernel.Policy().Version {
		t.Error("the policy is not the new one")
	}
}

// reload puts other rows in force.
func (w *world) reload(rows string) *config.Loaded {
	w.t.Helper()
	if err := os.WriteFile(w.d.opt.Config, []byte(w.config(rows)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	l, err := config.Load(w.d.opt.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.d.apply(l); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// An empty allowlist refuses everything, and a mistake changes nothing.
func TestEgress_Daemon_emptyAllowlistRefuses(t *testing.T) {
	w := newWorld(t, "")
	c := w.agent()
	if _, err := c.Get("https://example.com:" + w.port + "/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Error(err)
	}
	if e := w.entries(1)[0]; e.ErrorKind != holdfast.KindDomainBlocked || e.Outcome != ledger.Denied {
		t.Errorf("%+v", e)
	}
	w.reload(withKey)
	w.get(c, "/v1/x", 200)
}

// A budget of one host, and a row that would rather refuse than mask.
func TestEgress_Daemon_budgetAndRefusal(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE, budget: token_count, redact: {request: refuse}}")
	limited := w.config("'example.com:PORT': {HERE, budget: token_count, redact: {request: refuse}}") +
		"budgets: [{scope: agent, resource: llm_tokens, boundary: 'egress/example.com:" + w.port + "', amount: 2200}]\n"
	if err := os.WriteFile(w.d.opt.Config, []byte(limited), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(w.d.opt.Config)
	if err == nil {
		err = w.d.apply(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := w.agent()
	post := func(body string, want int, said string) {
		t.Helper()
		resp, err := c.Post("https://example.com:"+w.port+"/v1/x", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want || !strings.Contains(string(b), said) {
			t.Fatalf("%d, want %d: %s", resp.StatusCode, want, b)
		}
	}
	words := strings.Repeat("many ordinary words ", 99) // each of 1980 bytes may be a token
	post(words, 200, "many")
	post(words, http.StatusPaymentRequired, "1980 asked, 220 of 2200 left")
	post("a few words", 200, "few")
	post("write to ann@example.com", http.StatusForbidden, "hint: ")
	kinds := map[holdfast.Kind]int{}
	for _, e := range w.entries(4) {
		kinds[e.ErrorKind]++
	}
	if kinds[""] != 2 || kinds[holdfast.KindBudgetExceeded] != 1 || kinds[holdfast.KindDomainBlocked] != 1 {
		t.Errorf("%v", kinds)
	}
}

// A credential that cannot be had sends nothing.
func TestEgress_Daemon_withoutItsCredentialNothingIsSent(t *testing.T) {
	w := newWorld(t, "'example.com:PORT': {HERE, credential: {header: X-Api-Key, command: ['false']}}")
	if text := w.get(w.agent(), "/v1/x", http.StatusBadGateway); !strings.Contains(text, "credential") {
		t.Errorf("%q", text)
	}
	if e := w.entries(1)[0]; e.ErrorKind != holdfast.KindForward {
		t.Errorf("%+v", e)
	}
}

// A halt cuts what is under way and refuses what is new.
func TestEgress_Daemon_haltCutsAndRefuses(t *testing.T) {
	w := newWorld(t, withKey)
	c := w.agent()
	resp := w.stream(c, "it goes on")
	if _, err := w.client.Halt(t.Context(), api.Word{Who: "ann", Why: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a stream that was cut looks whole")
	}
	text := w.get(c, "/v1/x", http.StatusServiceUnavailable)
	if !strings.Contains(text, "halted") {
		t.Errorf("%q", text)
	}
}

// The proxy serves curl, which knows of it by two variables.
func TestEgress_Daemon_curl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl")
	}
	w := newWorld(t, withKey)
	ca := filepath.Join(w.dir, "ca.pem")
	text, err := w.client.EgressAuthority(t.Context())
	if err == nil {
		err = os.WriteFile(ca, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, curl, append([]string{"-sS", "-w", "\n%{http_code} %{http_connect} %{http_version}"}, args...)...)
		cmd.Env = []string{"HTTPS_PROXY=http://" + w.d.egress.Listeners()[0].Address, "CURL_CA_BUNDLE=" + ca}
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "403") {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	at := "https://example.com:" + w.port
	if got := run(at + "/leak"); got != "ask [email], the key is [secret]\n200 200 2" && got != "ask [email], the key is [secret]\n200 200 1.1" {
		t.Errorf("%q", got)
	}
	if got := run("-d", "mail=ann%40example.com", at+"/v1/x"); !strings.Contains(got, `"body":"mail=`) || strings.Contains(got, "ann") || !strings.Contains(got, "200 200") {
		t.Errorf("%q", got)
	}
	if got := run("https://elsewhere.example.org/"); !strings.Contains(got, " 403") {
		t.Errorf("%q", got)
	}
}

// What the runs' sockets are given is of the run's agent and in its flow.
func TestEgress_Daemon_servesTheSocketsOfARun(t *testing.T) {
	w := newWorld(t, withKey)
	terms, err := w.d.egress.Terms()
	if err != nil || !strings.HasPrefix(string(terms.Authority), "-----BEGIN CERTIFICATE") || len(terms.Ports) != 1 || fmt.Sprint(terms.Ports[0]) != w.port {
		t.Fatalf("%v %v", terms.Ports, err)
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const flow = "6f6e2f2e-4b1c-4d8e-9d51-3f1f4c0b8d11"
	token := func() (holdfast.Secret, error) { return w.d.Mint(holdfast.Identity{Agent: "runner"}) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.d.egress.Serve(ctx, api.Runner{Token: token, Correlation: flow, Run: "run"}, api.Sockets{Proxy: proxy, Names: names})
	}()
	c := w.agent()
	c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy.Addr().String()})
	w.get(c, "/v1/x", 200)
	if st := w.d.egress.Status(t.Context()); st.Runs != 1 {
		t.Errorf("%+v", st)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on after its run")
	}
	if e := w.entries(1)[0]; e.Agent != "runner" || e.Correlation != flow {
		t.Errorf("%s %s", e.Agent, e.Correlation)
	}
	if _, err := c.Get("https://example.com:" + w.port + "/v1/x"); err == nil {
		t.Error("the sockets are still served")
	}
}

// A broken authority is said, keeps a run from the proxy and no more, and stays as
// it is until somebody mends it.
func TestEgress_Daemon_brokenAuthority(t *testing.T) {
	d, c, down := up(t, quiet+"egress: {domains: {example.com: {}}}\n")
	defer down()
	if _, err := d.egress.Terms(); err != nil {
		t.Fatal(err)
	}
	cert := filepath.Join(d.Paths.Dir, "egress-ca.pem")
	good, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": good[:len(good)/2],
		"empty": nil, "another": testfile.NewAuthority(t).PEM} {
		if err := os.WriteFile(cert, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		s := d.newEgress(nil, nil)
		if _, err := s.Terms(); err == nil || !strings.Contains(err.Error(), "authority") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Authority(); err == nil || len(s.Health()) != 1 {
			t.Errorf("%s: %v %q", name, err, s.Health())
		}
		if now, err := os.ReadFile(cert); err != nil || string(now) != string(bad) {
			t.Errorf("%s: it was replaced: %v", name, err)
		}
		if err := os.WriteFile(cert, good, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Terms(); err != nil || len(s.Health()) != 0 {
			t.Errorf("%s: mended, and %v %q", name, err, s.Health())
		}
	}
	// The one that is in use serves on.
	if text, err := c.EgressAuthority(t.Context()); err != nil || text != string(good) {
		t.Error(err)
	}
}
