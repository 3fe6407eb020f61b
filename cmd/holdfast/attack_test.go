package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// site is a state directory with the program working on it, as somebody who
// attacks it from outside has it before him.
type site struct {
	t   *testing.T
	dir string
}

// newSite makes an empty one with that configuration, under a path that is
// short enough for a socket.
func newSite(t *testing.T, config string) *site {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	s := &site{t: t, dir: dir}
	s.write("holdfast.yaml", config)
	return s
}

func (s *site) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// command is holdfast with args, on this state.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command("holdfast", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+filepath.Join(s.dir, "s"), "HOLDFAST_CONFIG="+filepath.Join(s.dir, "holdfast.yaml"),
		"XDG_CONFIG_HOME="+filepath.Join(s.dir, "x"), "LANG=C.UTF-8", "USER=ann")
	return cmd
}

// run runs holdfast to its end and returns what it printed, with its exit code.
func (s *site) run(args ...string) (string, int) {
	s.t.Helper()
	cmd := s.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// apart is run, and standard output alone.
func (s *site) apart(args ...string) (string, int) {
	s.t.Helper()
	cmd := s.command(args...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is run where anything but 0 is a failure.
func (s *site) must(args ...string) string {
	s.t.Helper()
	out, code := s.run(args...)
	if code != 0 {
		s.t.Fatalf("holdfast %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// operator makes an operator key that opens fast, and returns the file with its
// passphrase.
func (s *site) operator() string {
	s.t.Helper()
	if err := writeKey(filepath.Join(s.dir, "s")); err != nil {
		s.t.Fatal(err)
	}
	return s.write("pass", passphrase+"\n")
}

// asks takes a step that a person must answer for, and returns the review.
func (s *site) asks(agent, payload string) string {
	s.t.Helper()
	cmd := s.command("step", agent, "deploy", payload, "--json")
	out, err := cmd.Output()
	var v struct{ Outcome struct{ Review string } }
	if json.Unmarshal(out, &v) != nil || v.Outcome.Review == "" {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return v.Outcome.Review
}

// token is a bearer token for an agent.
func (s *site) token(agent string) string {
	s.t.Helper()
	out, err := s.command("agent", "token", agent, "--ttl", "1h").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// start runs holdfast until the test ends; its output goes to the file out.
func (s *site) start(out string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(args...)
	s.begin(out, cmd)
	return cmd
}

// begin starts what was prepared, likewise.
func (s *site) begin(out string, cmd *exec.Cmd) {
	s.t.Helper()
	f, err := os.Create(filepath.Join(s.dir, out))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.stop(cmd) })
}

// stop ends what start began, as Ctrl-C does.
func (s *site) stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(os.Interrupt)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-done
		s.t.Errorf("%s does not end", strings.Join(cmd.Args, " "))
	}
}

// soon waits until what is.
func (s *site) soon(what string, is func() bool) {
	s.t.Helper()
	for start := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			log, _ := os.ReadFile(filepath.Join(s.dir, "s", "holdfast.log"))
			s.t.Fatalf("waited too long for %s\n%.4000s", what, log)
		}
	}
}

// after waits for a word in a file, and returns the one behind it.
func (s *site) after(file, word string) (next string) {
	s.t.Helper()
	s.soon(word, func() bool {
		b, _ := os.ReadFile(filepath.Join(s.dir, file))
		_, rest, found := strings.Cut(string(b), word)
		if words := strings.Fields(rest); found && len(words) > 0 && strings.Contains(rest, "\n") {
			next = words[0]
		}
		return next != ""
	})
	return next
}

// pid is the daemon's process.
func (s *site) pid() int {
	s.t.Helper()
	var v struct{ PID int }
	if err := json.Unmarshal([]byte(s.must("status", "--json")), &v); err != nil || v.PID == 0 {
		s.t.Fatal(v, err)
	}
	return v.PID
}

// openFiles is how many files the daemon has open, held how much memory it has
// in bytes.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	return len(fds)
}

func held(t *testing.T, pid int) (bytes int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	var all int
	if _, err := fmt.Sscan(string(b), &all, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes * os.Getpagesize()
}

// outsider is one MCP client over HTTP, by hand.
type outsider struct {
	url, token, session string
	http                *http.Client
}

func (v *outsider) request(method, body string) *http.Request {
	r, err := http.NewRequest(method, v.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if v.session != "" {
		r.Header.Set("Mcp-Session-Id", v.session)
	}
	return r
}

// post sends a message and returns the answer, whole.
func (v *outsider) post(body string) (int, string, error) {
	resp, err := v.http.Do(v.request(http.MethodPost, body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		v.session = id
	}
	return resp.StatusCode, b.String(), err
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func callTool(id any, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// begin opens a session.
func (v *outsider) begin() error {
	if v.http == nil {
		v.http = &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	}
	v.session = ""
	code, body, err := v.post(initialize)
	if err != nil || code != 200 || v.session == "" {
		return fmt.Errorf("initialize: %d %s %v", code, body, err)
	}
	_, _, err = v.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// reads says whether a whole new client is served: it begins, reads the note a
// and leaves.
func (v *outsider) reads() error {
	if err := v.begin(); err != nil {
		return err
	}
	if err := v.read(2); err != nil {
		return err
	}
	resp, err := v.http.Do(v.request(http.MethodDelete, ""))
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// read says whether the session it has is served.
func (v *outsider) read(id int) error {
	code, body, err := v.post(callTool(id, "read", `{"path":"a"}`))
	if err != nil || !strings.Contains(body, "hello") {
		return fmt.Errorf("read: %d %s %v", code, body, err)
	}
	return nil
}
