package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// timeless is when a file was last changed that never was.
var timeless time.Time

// clients is a site whose runs reach the services and nothing else. Nothing is set
// in them but what Holdfast sets.
type clients struct {
	*site
	services *services
	tools    string // a toolbox: goclient
}

func newClients(t *testing.T) *clients {
	t.Helper()
	s := newServices(t)
	var rows strings.Builder
	for _, name := range []string{"git", "npm", "pypi"} {
		fmt.Fprintf(&rows, "    '%s.example.com:%s': {type: package, addresses: [127.0.0.1], roots: roots.pem, binary: allow}\n", name, s.port)
	}
	fmt.Fprintf(&rows, "    'api.example.com:%s': {methods: [GET, PUT, POST], addresses: [127.0.0.1], roots: roots.pem}\n", s.port)
	for name, provider := range map[string]string{"claude": "anthropic", "gpt": "openai"} {
		fmt.Fprintf(&rows, "    '%s.example.com:%s': {type: llm, models: {provider: %s}, addresses: [127.0.0.1], roots: roots.pem}\n", name, s.port, provider)
	}
	const prices = "prices: {models: {messages_text: {input: $1, output: $2}, chat_text_stream: {input: $1, output: $2}, responses_text_stream: {input: $1, output: $2}}}\n"
	c := &clients{site: newSite(t, "version: 1\n"+anyRepeats+"\n"+prices+"listen: {pages: none}\nboundaries:\n  - {boundary: run/*, risk: LOW, "+hostedWalls+"}\negress:\n  domains:\n"+rows.String()), services: s}
	c.write("roots.pem", string(s.roots))
	c.tools = c.goClient()
	c.start("up", "up", "--no-operator")
	c.after("up", "listening")
	return c
}

// goClient builds an ordinary client in Go, which needs no library, and returns
// its directory.
func (c *clients) goClient() string {
	c.t.Helper()
	dir, tools := filepath.Join(c.dir, "goclient"), filepath.Join(c.dir, "tools")
	for _, d := range []string{dir, tools} {
		if err := os.Mkdir(d, 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	c.write("goclient/go.mod", "module goclient\n\ngo 1.24\n")
	c.write("goclient/main.go", goClient)
	cmd := exec.Command("go", "run", "-exec", "cp", ".", filepath.Join(tools, "goclient")) // it links once
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return tools
}

// goClient gets one URL, through the proxy of the environment or, as `goclient
// direct URL`, past it. As `goclient ask PROVIDER PATH BODY` it asks a model where its
// environment says.
const goClient = `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func ask(provider, path, body string) {
	r, err := http.NewRequest("POST", os.Getenv(provider+"_BASE_URL")+path, strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+os.Getenv(provider+"_API_KEY")+os.Getenv(provider+"_AUTH_TOKEN"))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	b, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %d %v %s\n", r.URL, resp.StatusCode, err, b)
}

func main() {
	if os.Args[1] == "ask" {
		ask(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	url, tr := os.Args[len(os.Args)-1], http.DefaultTransport.(*http.Transport)
	if os.Args[1] == "direct" {
		tr.Proxy = nil
	}
	resp, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	b, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %s", resp.Proto, b)
	if err != nil || resp.StatusCode >= 400 {
		os.Exit(3)
	}
}
`

// script runs a shell script in an empty tree of its own, with HOST, as in
// api.HOST/path, for where the services are. It returns all that was said.
func (c *clients) script(t *testing.T, text string) (out string, code int, tree string) {
	t.Helper()
	tree = filepath.Join(c.dir, "tree-"+strings.ReplaceAll(strings.ToLower(filepath.Base(t.Name())), "/", "-"))
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "HOST", "example.com:"+c.services.port)
	if err := os.WriteFile(filepath.Join(tree, "script"), []byte("set -eu\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := c.command("run", "--dir", tree, "--toolbox", c.tools, "--timeout", "100s", "--", "/bin/sh", "script")
	cmd.Env = append(cmd.Env, "PATH="+c.tools+":"+os.Getenv("PATH"))
	b, err := cmd.CombinedOutput()
	if err == nil {
		return string(b), 0, tree
	}
	e, ok := err.(*exec.ExitError)
	if !ok {
		t.Fatal(err)
	}
	return string(b), e.ExitCode(), tree
}

// works wants a script to end well and to say all of it.
func (c *clients) works(text string, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		out, code, _ := c.script(t, text)
		c.says(t, out, want)
		if code != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}

// refused wants it not to end well, and to say all of it: why, where the client
// shows bodies.
func (c *clients) refused(text string, want ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		out, code, _ := c.script(t, text)
		c.says(t, out, want)
		if code == 0 || code > 128 {
			t.Errorf("exit %d: %s", code, out)
		}
	}
}

func (c *clients) says(t *testing.T, out string, want []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, strings.ReplaceAll(w, "HOST", "example.com:"+c.services.port)) {
			t.Errorf("%q is not in the output:\n%s", w, out)
		}
	}
}

// refuse is a function of the shell that runs a command and wants it to fail.
const refuse = `refuse() { if "$@"; then echo "it went through: $*"; exit 1; fi; }
`

// blocked is what every refused client that shows bodies says.
const blocked = "not in the allowlist"

// TestClientsInARun: ordinary clients work inside of a run against hosts that are allowed, with
// nothing set but what Holdfast sets, and are refused for all other hosts, each
// with the reason as far as it shows any. Those that install packages are in
// TestPackageClientsInARun.
func TestClientsInARun(t *testing.T) {
	t.Parallel()
	c := newClients(t)
	lines := testrepeat.Times(300<<10, 30<<10)
	upload := strings.Repeat("nine byte\n", lines)
	sum := fmt.Sprintf("with %d bytes %x", len(upload), sha256.Sum256([]byte(upload)))
	t.Run("clients", func(t *testing.T) {
		t.Run("curl", c.works("curl -sSf --http1.1 -w '%{http_version}\\n' https://api.HOST/one\ncurl -sSf --http2 -w '%{http_version}\\n' https://api.HOST/two\n"+
			"curl -sSf --noproxy '*' -w 'past the proxy %{http_version}\\n' https://api.HOST/three",
			"reached /one by GET with 0 bytes", "\n1.1\n", "reached /two by GET with 0 bytes", "\n2\n", "reached /three by GET", "past the proxy 2\n"))
		t.Run("curl-upload", c.works("yes 'nine byte' | head -n "+fmt.Sprint(lines)+" >f\ncurl -sSf --http1.1 -T f https://api.HOST/put\ncurl -sSf --http2 --data-binary @f https://api.HOST/post",
			"reached /put by PUT "+sum, "reached /post by POST "+sum))
		t.Run("curl-range", c.works("curl -sS -r 0-9 -w '%{http_code} %{size_download}\\n' https://api.HOST/digits", "200 1000\n"))
		t.Run("curl-events", c.works(curlEvents, "1.1: data: two", "2: data: two"))
		t.Run("curl-refused", c.works(refuse+"refuse curl -sS --fail-with-body https://api.example.org/\n"+
			"refuse curl -sS --fail-with-body -X DELETE https://api.HOST/one\n"+
			"refuse curl -sS --noproxy '*' --fail-with-body https://api.example.net/\n"+
			"refuse curl -sS --fail-with-body http://plain.example.org/\n"+
			"refuse curl -sSk --noproxy '*' --fail-with-body http://169.254.169.254/latest/meta-data/",
			"holdfast: ", "hint: ", "api.example.org is "+blocked, "DELETE", "kind: DomainBlockedError",
			"api.example.net is "+blocked, "plain.example.org is "+blocked, "169.254.169.254 is "+blocked))

		t.Run("git", c.git)
		t.Run("git-refused", c.works(refuse+"refuse git clone https://git.example.org/work.git\ngit clone -q https://git.HOST/work.git w\ncd w\n"+
			"echo pushing\nrefuse git push https://push.example.org/work.git main", "remote: holdfast: git.example.org is "+blocked, "403", "remote: holdfast: push.example.org is "+blocked))

		t.Run("go", c.works("goclient https://api.HOST/go\ngoclient direct https://api.HOST/direct", "HTTP/2.0 reached /go by GET", "HTTP/2.0 reached /direct by GET"))
		t.Run("go-refused", c.works(refuse+"refuse goclient https://api.example.org/\nrefuse goclient direct https://go.example.org/",
			"api.example.org is "+blocked, "go.example.org is "+blocked))

		t.Run("models", c.works(asksModels, "http://127.0.0.1:7412/llm/anthropic/v1/messages 200 <nil> {", "The sky is blue.",
			"http://127.0.0.1:7412/llm/openai/v1/chat/completions 200 <nil> data: {", "data: [DONE]", "http://127.0.0.1:7412/llm/openai/v1/responses 200 <nil> event: response.created",
			"v1/chat/completions 402 <nil> {", "no price for model", "v1/embeddings 402 <nil> {"))

		t.Run("node", c.works(nodeFetch+"https://api.HOST/node", "200 reached /node by POST with 5 bytes"))
		t.Run("node-refused", c.refused(nodeFetch+"https://api.example.org/", "403 ", blocked))

		t.Run("python", c.works(pythonGet+"https://api.HOST/python", "200 reached /python by GET"))
		t.Run("python-refused", c.refused(pythonGet+"https://api.example.org/", "403 ", blocked))
	})
	if n, m := c.services.visits("GET api.example.com /one"), c.services.visits("DELETE"); n != 1 || m != 0 {
		t.Errorf("the server saw the allowed request %d times, and %d that are not allowed", n, m)
	}
	c.recorded("/digits  200  0 B out, 1000 B in", "git-receive-pack", "/python", "/direct", "git.example.org", "push.example.org", "169.254.169.254")
	c.charged()
}

// asksModels asks both providers with what the run's environment says, and nothing
// else: two models of OpenAI's by two formats, one that has no price by two.
const asksModels = `goclient ask ANTHROPIC /v1/messages '{"model":"messages_text","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}'
goclient ask OPENAI /chat/completions '{"model":"chat_text_stream","stream":true,"messages":[{"role":"user","content":"hello"}]}'
goclient ask OPENAI /responses '{"model":"responses_text_stream","stream":true,"max_output_tokens":50,"input":"hello"}'
goclient ask OPENAI /chat/completions '{"model":"dear","messages":[]}'
goclient ask OPENAI /embeddings '{"model":"dear","input":"hello"}'
`

// charged wants the run's models among the crossings and in the spend, by what their
// providers said of their use, and the run's own key nowhere.
func (c *clients) charged() {
	c.t.Helper()
	tail := c.must("egress", "tail", "-n", "1000")
	for _, want := range []string{"claude.example.com:" + c.services.port + "/v1/messages  200", "gpt.example.com:" + c.services.port + "/v1/chat/completions  200", "gpt.example.com:" + c.services.port + "/v1/responses  200"} {
		if !strings.Contains(tail, want) {
			c.t.Errorf("%q is not in the ledger's tail:\n%s", want, tail)
		}
	}
	var s api.Status
	if err := json.Unmarshal([]byte(c.must("status", "--json")), &s); err != nil || s.Spend == nil {
		c.t.Fatalf("%v, %+v", err, s.Spend)
	}
	got := map[string][4]int64{}
	for _, x := range s.Spend.Today {
		got[x.Model] = [4]int64{x.Input, x.Output, x.Micro, x.Calls - x.Estimated}
	}
	want := map[string][4]int64{"messages_text": {25, 7, 25 + 2*7, 1}, "chat_text_stream": {19, 10, 19 + 2*10, 1}, "responses_text_stream": {36, 17, 36 + 2*17, 1}}
	if !maps.Equal(got, want) {
		c.t.Errorf("spent %v, not %v", got, want)
	}
	asked := c.services.model.Asked()
	for _, a := range asked {
		if key := a.Header.Get("Authorization") + a.Header.Get("X-Api-Key"); key != "" {
			c.t.Errorf("%s was asked with the key %q", a.Path, key)
		}
	}
	if len(asked) != 3 {
		c.t.Errorf("the providers were asked %d times", len(asked))
	}
}

// curlEvents reads a stream, and tells the server of the first event, which says
// the second only then: were anything held back, it would never come.
const curlEvents = `for v in 1.1 2; do
	curl -sSfN --http$v --max-time 60 https://api.HOST/events?name=$v | while read -r line; do
		echo "$v: $line"
		case $line in *one) curl -sSf https://api.HOST/read?name=$v ;; esac
	done
done
`

const nodeFetch = `node -e '
fetch(process.argv[1], {method: "POST", body: "hello"})
	.then(async r => { console.log(r.status, await r.text()); process.exit(r.ok ? 0 : 1) })
	.catch(e => { console.log(e, e.cause); process.exit(2) })' `

const pythonGet = `/usr/bin/python3 -c '
import sys, urllib.error, urllib.request
try:
    r = urllib.request.urlopen(sys.argv[1])
except urllib.error.HTTPError as e:
    r = e
print(r.status, r.read().decode())
sys.exit(r.status >= 400)' `

// git clones, pushes a branch and fetches what somebody else pushed.
func (c *clients) git(t *testing.T) {
	t.Parallel()
	out, code, tree := c.script(t, `git clone https://git.HOST/work.git w
cd w
git branch -r
seq 20000 60000 >more && git add more
git -c user.name=Bob -c user.email=bob@example.com commit -qm second
git push origin HEAD:refs/heads/of-the-run
git clone -q --depth 1 --branch of-the-run https://git.HOST/work.git ../again
cd ../again && seq 7 >seven && git add seven
git -c user.name=Bob -c user.email=bob@example.com commit -qm third
git push -q origin HEAD:of-the-run
cd ../w && git fetch origin of-the-run && git log --format='log: %s' FETCH_HEAD && git fsck --full`)
	c.says(t, out, []string{"origin/ann@example.com/key-0123456789", "of-the-run", "log: third\nlog: second\nlog: first\n"})
	if code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	cmd := exec.Command("git", "log", "--format=%s %an", "of-the-run")
	cmd.Dir = filepath.Join(c.services.dir, "work.git")
	if b, err := cmd.CombinedOutput(); err != nil || string(b) != "third Bob\nsecond Bob\nfirst Ann\n" {
		t.Errorf("what the server has: %v\n%s", err, b)
	}
	if b, err := os.ReadFile(filepath.Join(tree, "w", "numbers")); err != nil || !strings.HasSuffix(string(b), "\n20000\n") {
		t.Errorf("what was cloned: %v, %d bytes", err, len(b))
	}
}

// recorded wants each of it in the ledger, and the ledger whole.
func (c *clients) recorded(want ...string) {
	c.t.Helper()
	c.soon("all of it in the ledger", func() bool {
		tail := c.must("egress", "tail", "-n", "1000")
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(tail, w) })
	})
	c.must("ledger", "verify", "--semantics")
}
