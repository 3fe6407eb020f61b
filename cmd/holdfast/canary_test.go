package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// mayReach is everything that a planted secret may reach: who was given it by
// its owner, or by the one who asked. Nothing else may hold it. A door is named
// by its prefix, a place by its prefix too.
var mayReach = []struct{ place, door, why string }{
	{"reached by server", "argument", "a call's arguments pass to the tool as they are"},
	{"reached by server", "env", "the owner gave the server that variable"},
	{"reached by far server", "header file", "the owner's header goes to the server it is for"},
	{"agent", "result", "a tool's answer is its caller's"},
	{"agent", "held result", "a tool's answer is its caller's"},
	{"agent", "structured", "a tool's answer is its caller's"},
	{"agent", "error", "a tool's answer is its caller's"},
	{"agent", "argument", "what the caller sent itself"},
	{"agent", "description", "tools are listed as the server lists them"},
	{"agent", "tool name", "tools are listed as the server lists them"},
	{"pages", "path", "a page is given back the address at which it was asked for"},
}

// doors are where secrets are planted.
var doors = []string{"stderr", "server name", "server title", "server version", "instructions", "description", "result", "result's cut", "structured", "held result",
	"error", "tool name", "resource", "argument", "argument held", "argument name", "argument refused", "argument broken", "env", "header file", "halt reason", "halt who",
	"pause reason", "reject reason", "resume reason", "agent", "kind", "session", "boundary", "action", "payload", "idempotency key", "token", "bearer",
	"user agent", "header", "query", "path", "far body", "api body", "api query", "revoke", "page reason", "intent", "correlation", "register command", "register env"}

// world is a state directory, a configuration that registers every canary, the
// real daemon, and everything that anybody said.
type canaries struct {
	t        *testing.T
	dir      string
	env      []string
	pages    string
	link     string
	pass     string
	mu       sync.Mutex
	said     map[string]*bytes.Buffer // guarded by mu
	far, tap *httptest.Server
}

func (w *canaries) at(name string) string { return filepath.Join(w.dir, name) }

// hear keeps what was said at a place.
func (w *canaries) hear(place string) io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[place] == nil {
		w.said[place] = &bytes.Buffer{}
	}
	return lockedWriter{&w.mu, w.said[place]}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// run runs one command; what it says is heard at place. It returns its
// standard output.
func (w *canaries) run(place string, argv ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = w.env
	var out bytes.Buffer
	heard := w.hear(place)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, heard), heard
	_ = cmd.Run() // many of these are refused
	return out.String()
}

func newCanaries(t *testing.T) *canaries {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hf") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	w := &canaries{t: t, dir: dir, said: map[string]*bytes.Buffer{}}
	listen := func(place, answer string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintln(w.hear(place), r.Method, r.URL, r.Header, string(b))
			if answer != "" {
				out.WriteHeader(http.StatusTeapot)
				fmt.Fprintln(out, answer)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	w.far, w.tap = listen("reached by far server", plant("far body").text()), listen("webhook", "")
	w.env = append(os.Environ(), "HOLDFAST_STATE="+w.at("s"), "HOLDFAST_CONFIG="+w.at("holdfast.yaml"), "LEAKY_ENV="+plant("env").text(),
		"CANARY_REGISTERED="+plant("register env").Registered, "HOOK_SECRET=0123456789abcdef0123456789abcdef")
	var lines []string
	for _, d := range doors {
		lines = append(lines, plant(d).Registered)
	}
	w.write("secrets.txt", strings.Join(lines, "\n")+"\n")
	w.write("far.header", "Bearer "+plant("header file").Known+"\n")
	w.write("printed", plant("register command").Registered+"\n")
	w.write("holdfast.yaml", fmt.Sprintf(`version: 1
`+anyRepeats+`
listen: {pages: "127.0.0.1:0"}
redact:
  register:
    - {file: secrets.txt}
    - {env: CANARY_REGISTERED}
    - {command: [cat, %[1]s/printed]}
mcp:
  servers:
    leaky: {command: [leakyserver, %[1]s/reached], env: [LEAKY_ENV, PATH, HOME], trusted_hints: true}
    far: {url: "%[2]s/mcp?k=plain", headers: {Authorization: {file: far.header}}}
boundaries:
  - {boundary: mcp/leaky/resources/read, risk: LOW}
  - {boundary: test/low, risk: LOW, schema: {type: object, additionalProperties: false, properties: {n: {type: number}}}}
  - {boundary: test/high, risk: HIGH}
review:
  wait: 0s
  notify: [sh, -c, "cat >> %[1]s/notified"]
  webhook: {url: "%[3]s/hook", secret_env: HOOK_SECRET}
telemetry: {endpoint: "%[3]s/traces"}
alerts:
  halt_hooks: [{name: hook, command: [sh, -c, "cat >> %[1]s/halted; cat %[1]s/printed; exit 1"]}]
`, dir, w.far.URL, w.tap.URL))
	w.operator()
	return w
}

func (w *canaries) write(name, text string) {
	if err := os.WriteFile(w.at(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *canaries) operator() {
	if err := writeKey(w.at("s")); err != nil {
		w.t.Fatal(err)
	}
	w.pass = w.at("pass")
	w.write("pass", passphrase+"\n")
}

// up runs the daemon until the returned function ends it.
func (w *canaries) up() (end func()) {
	w.t.Helper()
	cmd, out := w.start()
	return func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(w.hear("daemon"), out)
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("the daemon ended: %v", err)
		}
	}
}

// crash has a daemon that was given secrets write where each of its goroutines
// is, and die; with all its memory, if it would let the system do that.
func (w *canaries) crash() {
	var had syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &had); err != nil {
		w.t.Fatal(err)
	}
	all := syscall.Rlimit{Cur: had.Max, Max: had.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &all); err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "GOTRACEBACK=crash")
	cmd, out := w.start()
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &had); err != nil {
		w.t.Fatal(err)
	}
	if testrepeat.Enduring {
		w.agents()
	} else {
		w.calls("leak", w.text("argument"))
	}
	_ = cmd.Process.Signal(syscall.SIGQUIT)
	_, _ = io.Copy(w.hear("daemon"), out)
	if err := cmd.Wait(); err == nil {
		w.t.Error("the daemon did not crash")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !bytes.Contains(w.said["daemon's log"].Bytes(), []byte("\ngoroutine ")) {
		w.t.Error("the crash says nothing of its goroutines: the test looks at less than it should")
	}
}

// start starts a daemon, and returns once its pages can be opened.
func (w *canaries) start() (*exec.Cmd, io.Reader) {
	w.t.Helper()
	w.link = ""
	cmd := exec.Command("holdfast", "up", "--notify", "cat >> "+w.at("notified"))
	cmd.Env, cmd.Dir = w.env, w.dir // what it lets fall is looked at
	cmd.Stderr = w.hear("daemon's log")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && w.link == "" {
		fmt.Fprintln(w.hear("daemon"), lines.Text())
		if _, at, ok := strings.Cut(lines.Text(), " and http"); ok {
			w.pages = "http" + at
		}
		if at, ok := strings.CutPrefix(lines.Text(), "open "); ok {
			w.link = at
			break
		}
	}
	if w.link == "" {
		_ = cmd.Process.Kill()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.t.Fatalf("the daemon does not come up:\n%s", w.said["daemon's log"])
	}
	return cmd, out
}

// TestCanariesReachNobodyElse plants secrets, registered ones and ones that
// their form tells, at every door of the real daemon and the real command, and
// then looks for them in every encoding in all that was written and said.
func TestCanariesReachNobodyElse(t *testing.T) {
	t.Parallel()
	w := newCanaries(t)
	end := w.up()
	w.agents()
	w.commands()
	w.socket()
	w.browser()
	w.readers()
	w.halts()
	w.collect("while it runs")
	end()
	w.collect("afterwards")
	w.crash()
	w.collect("after a crash")
	w.search()
}

// calls has an agent call a tool of the leaky server's.
func (w *canaries) calls(tool, args string, more ...string) {
	argv := append([]string{"mcpcall", tool, args, "holdfast", "mcp"}, more...)
	w.run("agent "+tool, append(argv, "leaky")...)
}

// text is a call's arguments with the canary of a door.
func (w *canaries) text(door string) string {
	b, _ := json.Marshal(map[string]string{"text": plant(door).text()})
	return string(b)
}

// agents call tools as MCP clients do.
func (w *canaries) agents() {
	call, text := w.calls, w.text
	call("list", "{}")
	call("leak", text("argument"))
	call("big", text("argument"))
	call("fail", text("argument"))
	call("ask", text("argument held"))
	call(plant("tool name").Known, text("argument"))
	call("leak", fmt.Sprintf(`{%q: 1, "text": 7}`, plant("argument name").text()))
	call("leak", fmt.Sprintf(`{"text": {"a": %q}}`, plant("argument refused").text()))
	call("no-such-"+plant("argument broken").Known, text("argument broken"))
	w.run("agent far", "mcpcall", "list", "{}", "holdfast", "mcp", "far")
	for _, flag := range []string{"agent", "kind", "session"} {
		c := plant(flag)
		call("list", "{}", "--"+flag, c.Known)
		call("leak", `{"text":"x"}`, "--"+flag, c.Registered)
	}
}

// commands say secrets where people and scripts say anything.
func (w *canaries) commands() {
	cli := func(args ...string) string {
		return w.run("command "+args[0], append([]string{"holdfast"}, args...)...)
	}
	picks := []func(canary) string{canary.text} // which has both
	if testrepeat.Enduring {
		picks = append(picks, func(c canary) string { return c.Registered }, func(c canary) string { return c.Known })
	}
	for _, pick := range picks {
		s := func(door string) string { return pick(plant(door)) }
		payload := func(door string) string { return fmt.Sprintf(`{"note":%q}`, s(door)) }
		cli("step", s("agent"), "plan", "--kind", s("kind"), "--session", s("session"))
		cli("step", "nightly", s("action"), payload("payload"), "--key", s("idempotency key"), "--session", "one")
		cli("step", "other", "plan", "--token", s("token"))
		cli("check", "test/low", payload("payload"), "--agent", s("agent"))
		cli("explain", "test/low", fmt.Sprintf(`{%q:1}`, s("argument name")), "--kind", s("kind"))
		cli("explain", "test/"+s("boundary"), "{broken "+s("argument broken"))
		cli("check", "test/"+s("boundary"), "{}", "--session", s("session"))
		cli("agent", "pause", "nightly", s("pause reason"))
		cli("agent", "pause", s("agent"), s("pause reason"))
		cli("agent", "token", s("agent"))
		cli("agent", "revoke", s("revoke"))
		cli("agent", "unpause", "nightly", "--credential-file", w.pass)
	}
	for _, id := range regexp.MustCompile(`rv_[0-9a-f]{10}`).FindAllString(cli("review", "ls"), -1) {
		cli("review", "show", id)
		cli("review", "reject", id, "--reason", plant("reject reason").text(), "--credential-file", w.pass)
		cli("review", "approve", id, "--in-part", "--credential-file", w.pass)
		b, _ := json.Marshal(map[string]string{"text": plant("argument held").text()})
		if got := w.run("agent ask", "mcpcall", "ask", string(b), "holdfast", "mcp", "leaky"); !strings.Contains(got, plant("held result").Known) {
			w.t.Errorf("what was approved did not act: %s\n%s", got, w.said["command review"])
		}
		cli("review", "show", id)
	}
}

// socket sends the API what no command sends.
func (w *canaries) socket() {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", daemon.PathsIn(w.at("s")).Sock)
	}}}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string) {
		req, err := http.NewRequestWithContext(w.t.Context(), method, "http://holdfast"+path, strings.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		w.answer("socket", client, req)
	}
	c := plant("api body")
	q := url.QueryEscape(plant("api query").text())
	ask("POST", "/v1/cross", fmt.Sprintf(`{%q:1}`, c.text()))
	ask("POST", "/v1/cross", fmt.Sprintf(`{"boundary":%q,"agent":"a","payload":"e30="}`, plant("boundary").text()))
	ask("POST", "/v1/cross", fmt.Sprintf(`{"boundary":"test/high","agent":"a","payload":"e30=","correlation_id":%q}`, plant("correlation").text()))
	ask("POST", "/v1/cross", fmt.Sprintf(`{"boundary":"test/low","agent":"a","intent":%q,"payload":"e30=","idempotency_key":%q}`, plant("intent").Known, plant("idempotency key").Known))
	ask("POST", "/v1/pause", fmt.Sprintf(`{"subject":"a","who":%q,"why":%q}`, plant("halt who").text(), plant("pause reason").text()))
	ask("POST", "/v1/mcp", fmt.Sprintf(`{"name":%q,"command":["x"],"agent":"a"}`, c.Known))
	ask("POST", "/v1/open", fmt.Sprintf(`{"review":%q}`, c.text()))
	ask("POST", "/v1/backup", fmt.Sprintf(`{"file":%q}`, c.text()))
	for _, path := range []string{"/v1/status", "/v1/agents", "/v1/reviews?state=", "/v1/remembered", "/v1/reviews/" + plant("path").Known, "/v1/" + plant("path").Known,
		"/v1/reviews?state=" + q, "/v1/changed?boundary=" + q, "/v1/agents?tenant=" + q} {
		ask("GET", path, "")
	}
}

func (w *canaries) answer(place string, client *http.Client, req *http.Request) string {
	w.t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil && len(b) == 0 {
		w.t.Log(err)
	}
	fmt.Fprintf(w.hear(place), "%s %s\n%v\n%s\n", req.Method, resp.Status, resp.Header, b)
	return string(b)
}

// browser signs in and reads every page there is a link to.
func (w *canaries) browser() {
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Timeout: 10 * time.Second, Jar: jar}
	get := func(path string) string {
		req, err := http.NewRequestWithContext(w.t.Context(), "GET", w.pages+path, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, name := range []string{"User-Agent", "X-Api-Key", "Referer"} {
			req.Header.Set(name, plant("header").text())
		}
		req.Header.Set("Authorization", "Bearer "+plant("bearer").Known)
		return w.answer("pages", client, req)
	}
	q := url.QueryEscape(plant("query").text())
	for _, path := range []string{"/?q=" + q, "/mcp?q=" + q, "/mcp/" + plant("path").Known, "/" + plant("path").Known, "/in/" + plant("path").Known, "/healthz?" + q} {
		get(path)
	}
	get(strings.TrimPrefix(w.link, w.pages))
	form := func(to string, fields url.Values) string {
		req, err := http.NewRequestWithContext(w.t.Context(), "POST", to, strings.NewReader(fields.Encode()))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return w.answer("pages", client, req)
	}
	queue := form(w.link, nil)
	seen, todo := map[string]bool{}, links(queue)
	if len(todo) == 0 {
		w.t.Errorf("the pages link to nothing:\n%s", queue)
	}
	for len(todo) > 0 && len(seen) < 120 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] || strings.HasSuffix(path, "/events") {
			continue
		}
		seen[path] = true
		page := get(path)
		todo = append(todo, links(page)...)
		for _, m := range regexp.MustCompile(`(?s)<form[^>]*action="([^"]*/halt)".*?</form>`).FindAllStringSubmatch(page, 1) {
			fields := url.Values{"reason": {plant("page reason").text()}, "why": {plant("page reason").text()}}
			for _, hidden := range regexp.MustCompile(`<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"`).FindAllStringSubmatch(m[0], -1) {
				fields.Set(hidden[1], hidden[2])
			}
			form(w.pages+m[1], fields)
		}
	}
	if len(seen) < 5 {
		w.t.Errorf("only %d pages were found", len(seen))
	}
}

func links(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`href="(/[^"#]*)"`).FindAllStringSubmatch(page, -1) {
		out = append(out, strings.ReplaceAll(m[1], "&amp;", "&"))
	}
	return out
}

// readers print what is kept.
func (w *canaries) readers() {
	cli := func(args ...string) string {
		return w.run("command "+args[0], append([]string{"holdfast"}, args...)...)
	}
	cli("resume", "--reason", plant("resume reason").text(), "--credential-file", w.pass)
	if got := cli("resume", "--credential-file", w.pass); !strings.Contains(got, "resumed") {
		w.t.Errorf("the page halted nothing: %s", got)
	}
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"doctor"}, {"agent", "ls"}, {"review", "ls", "--all"}, {"review", "ls", "--all", "--json"},
		{"ledger", "checkpoint"}, {"ledger", "tail", "-n", "500", "--events"}, {"ledger", "verify"}, {"ledger", "export", w.at("exported")}, {"state", "backup", w.at("backup.db")}} {
		cli(args...)
	}
	tail := cli("ledger", "tail", "-n", "500", "--events", "--json")
	if strings.Count(tail, "\n") < 30 {
		w.t.Errorf("little is recorded:\n%s", tail)
	}
	n := 0
	for _, m := range regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(tail, -1) {
		if n++; n > 12 {
			break
		}
		cli("ledger", "show", m[1])
		cli("ledger", "show", m[1], "--json")
	}
}

// halts come with reasons.
func (w *canaries) halts() {
	cli := func(args ...string) { w.run("command "+args[0], append([]string{"holdfast"}, args...)...) }
	cli("halt", plant("halt reason").text(), "--who", plant("halt who").text())
	w.collect("while it is halted")
	cli("status")
	cli("doctor")
	w.run("agent halted", "mcpcall", "leak", `{"text":"x"}`, "holdfast", "mcp", "leaky")
	cli("step", "nightly", "plan", "--session", "two")
	if h := w.said["file s/HALT"]; h == nil || !bytes.Contains(h.Bytes(), []byte("[secret")) {
		w.t.Error("the latch says nothing of why")
	}
	cli("resume", "--credential-file", w.pass)
	cli("ledger", "tail", "-n", "20", "--events", "--json")
}

// collect reads every file that came to be, but those that the owner wrote.
func (w *canaries) collect(when string) {
	own := map[string]bool{"secrets.txt": true, "far.header": true, "printed": true, "holdfast.yaml": true, "pass": true}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it went meanwhile, or is the socket
		}
		name, _ := filepath.Rel(w.dir, path)
		if own[name] {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		place := "file " + name
		if name == "reached" {
			place = "reached by server"
		}
		fmt.Fprintf(w.hear(place), "\n%s:\n%s", when, b)
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// search looks for every canary in everything that was said.
func (w *canaries) search() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, must := range []string{"reached by server", "webhook", "file notified", "file halted", "file s/holdfast.db", "file exported", "file backup.db", "pages", "socket", "daemon's log"} {
		if w.said[must] == nil || w.said[must].Len() == 0 {
			w.t.Errorf("nothing was said at %q: the test looks at less than it should", must)
		}
	}
	var all []spelling
	for _, door := range doors {
		for kind, heart := range plant(door).Hearts {
			for name, form := range spellings(heart) {
				all = append(all, spelling{door, [...]string{"registered", "known by its form"}[kind], name, form})
			}
		}
	}
	find := newFinder(all)
	for place, said := range w.said {
		b := said.Bytes()
		for i, s := range find.all(b) {
			if !reaches(place, s.door+" ("+s.kind+")") {
				w.t.Errorf("%s at %q (%s, %s): ...%q...", place, s.door, s.kind, s.name, b[max(0, i-120):min(len(b), i+len(s.form)+40)])
			}
		}
	}
	for _, must := range []string{"argument", "env"} {
		if !bytes.Contains(w.said["reached by server"].Bytes(), []byte(plant(must).Hearts[1])) {
			w.t.Errorf("the server did not get the %s as it was sent", must)
		}
	}
}

func reaches(place, door string) bool {
	for _, m := range mayReach {
		if strings.HasPrefix(place, m.place) && strings.HasPrefix(door, m.door) {
			return true
		}
	}
	return false
}
