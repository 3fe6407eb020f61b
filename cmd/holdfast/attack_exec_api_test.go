//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// posts sends the daemon's door to the sandbox what no command sends, and returns
// the status with what was answered.
func (s *site) posts(ctx context.Context, body io.Reader) (int, string) {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", daemon.PathsIn(filepath.Join(s.dir, "s")).Sock)
	}}}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://holdfast/v1/exec", body)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// code is the field of a request with a program in Python.
func code(program string) string {
	return `"agent":"eve","language":"python3.11","request_id":"r1","code":"` + base64.StdEncoding.EncodeToString([]byte(program)) + `"`
}

// TestAttackExec attacks one daemon that runs code, in one way after the other.
func TestAttackExec(t *testing.T) {
	t.Parallel()
	s := confined(t)
	for _, attack := range []struct {
		name string
		do   func(s *site)
	}{
		{"malformed requests", (*site).attackMalformedRequests},
		{"forged results", (*site).attackForgedResults},
		{"only real escapes pause", (*site).attackEscapes},
		{"callers that go away", (*site).attackCallersThatLeave},
		{"bodies that never come", (*site).attackMissingBodies},
		{"a halt ends a run", (*site).attackByHalt},
	} {
		t.Run(attack.name, func(t *testing.T) { attack.do(&site{t: t, dir: s.dir}) })
	}
	s.must("ledger", "verify", "--semantics")
}

// attackMalformedRequests: each is answered with an error that says what is wrong,
// nothing of it runs, and the next one is served.
func (s *site) attackMalformedRequests() {
	t := s.t
	ran := code("print('r'+'an')")
	var files []string
	for i := range 10_001 {
		files = append(files, fmt.Sprintf(`"f%d":""`, i))
	}
	for name, body := range map[string]string{
		"nothing": "", "half": "{", "a list": "[]", "null": "null", "a number": "1e999", "an empty one": "{}", "not JSON": "\xff\xfe{}",
		"deep":               `{"files":` + strings.Repeat("[", 200_000),
		"more behind":        "{" + ran + "}{" + ran + "}",
		"another field":      "{" + ran + `,"root":true}`,
		"code of a number":   `{"agent":"eve","language":"python3.11","request_id":"r1","code":7}`,
		"code not base64":    `{"agent":"eve","language":"python3.11","request_id":"r1","code":"&&&"}`,
		"code not text":      `{"agent":"eve","language":"python3.11","request_id":"r1","code":"//79"}`,
		"no code":            `{"agent":"eve","language":"python3.11","request_id":"r1"}`,
		"a language twice":   "{" + ran + `,"language":"../sh"}`,
		"a language's end":   "{" + ran + `,"language":"python3.11\u0000"}`,
		"a path":             "{" + ran + `,"language":"python3.11/../../bin/sh"}`,
		"an id that climbs":  "{" + ran + `,"request_id":"../../x"}`,
		"an id of lines":     "{" + ran + `,"request_id":"a\nb"}`,
		"a long id":          "{" + ran + `,"request_id":"` + strings.Repeat("a", 65) + `"}`,
		"time as text":       "{" + ran + `,"timeout":"1s"}`,
		"time without end":   "{" + ran + `,"timeout":1e300}`,
		"time that wraps":    "{" + ran + `,"timeout":9223372036854775808}`,
		"a year":             "{" + ran + `,"timeout":31536000000000000}`,
		"time before now":    "{" + ran + `,"timeout":-1}`,
		"memory below none":  "{" + ran + `,"memory_limit_mb":-1}`,
		"memory that wraps":  "{" + ran + `,"memory_limit_mb":9223372036854775807}`,
		"half a megabyte":    "{" + ran + `,"memory_limit_mb":0.5}`,
		"cores below none":   "{" + ran + `,"cpu_period":100000000,"cpu_quota":-1}`,
		"cores that wrap":    "{" + ran + `,"cpu_period":1,"cpu_quota":9223372036854775807}`,
		"a file that climbs": "{" + ran + `,"files":{"../../x":"eA=="}}`,
		"a file at the root": "{" + ran + `,"files":{"/etc/cron.d/x":"eA=="}}`,
		"a file with a NUL":  "{" + ran + `,"files":{"a\u0000b":"eA=="}}`,
		"a file as a folder": "{" + ran + `,"files":{"a":"eA==","a/b":"eA=="}}`,
		"10001 files":        "{" + ran + `,"files":{` + strings.Join(files, ",") + `}}`,
		"the loader":         "{" + ran + `,"environment":{"LD_PRELOAD":"/tmp/x.so"}}`,
		"a name's =":         "{" + ran + `,"environment":{"A=B":"c"}}`,
		"a value's NUL":      "{" + ran + `,"environment":{"A":"b\u0000LD_PRELOAD=x"}}`,
		"a call to add":      "{" + ran + `,"narrow":["+ptrace"]}`,
		"every call":         "{" + ran + `,"narrow":["*"]}`,
		"nobody":             strings.Replace("{"+ran+"}", `"eve"`, `""`, 1),
		"two lines":          strings.Replace("{"+ran+"}", `"eve"`, `"eve\nHALT"`, 1),
	} {
		status, out := s.posts(t.Context(), strings.NewReader(body))
		var v struct {
			Result any             `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || status >= 500 || status == 0 || len(v.Error) == 0 || v.Result != nil || strings.Contains(out, "ran\\n") {
			t.Errorf("%s: %d %.300s", name, status, out)
		}
	}
	if status, out := s.posts(t.Context(), strings.NewReader("{"+ran+"}")); status != 200 || !strings.Contains(out, `ran\n`) {
		t.Errorf("a good one: %d %s", status, out)
	}
}

// attackCallersThatLeave: connections that are cut while their program runs, waits or
// is still being sent take their runs with them.
func (s *site) attackCallersThatLeave() {
	t, pid := s.t, s.pid()
	before := openFiles(t, pid)
	const spin = "import threading, time\nfor _ in range(20): threading.Thread(target=time.sleep, args=(20,)).start()\nwhile True: pass"
	body := "{" + code(spin) + `,"timeout":20000000000}`
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for j := range testrepeat.Times(4, 1) {
				// An agent that asks for the same again and again would be paused.
				body := "{" + code(fmt.Sprint(spin, " # ", i, j)) + `,"timeout":20000000000}`
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(400))*time.Millisecond)
				s.posts(ctx, strings.NewReader(body))
				cancel()
			}
		})
	}
	for range 20 { // bodies of which half comes
		wg.Go(func() {
			c, err := net.Dial("unix", daemon.PathsIn(filepath.Join(s.dir, "s")).Sock)
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "POST /v1/exec HTTP/1.1\r\nHost: holdfast\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:rand.IntN(len(body))])
			time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		})
	}
	wg.Wait()
	if out, code := s.run("exec", "--lang", "python3.11", "ok.py"); code != 0 || !strings.HasPrefix(out, "42\n") {
		t.Errorf("after that: %d %s", code, out)
	}
	s.soon("their end", func() bool { return !strings.Contains(s.must("status"), "in flight") })
	s.soon("closed files", func() bool { return openFiles(t, pid) < before+20 })
}

// attackMissingBodies: callers that ask for a run and do not send it keep no one else
// from one. They hold every slot until their time is over: were it without a bound, the
// run would wait until they are closed.
func (s *site) attackMissingBodies() {
	t, pid := s.t, s.pid()
	before := openFiles(t, pid)
	for range 15 {
		c, err := net.Dial("unix", daemon.PathsIn(filepath.Join(s.dir, "s")).Sock)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/exec HTTP/1.1\r\nHost: holdfast\r\nContent-Length: 1000\r\n\r\n{")
	}
	s.soon("the connections", func() bool { return openFiles(t, pid) >= before+15 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body := strings.Replace("{"+code("print(6 * 7)")+"}", `"eve"`, `"mona"`, 1)
	if status, out := s.posts(ctx, strings.NewReader(body)); status != 200 || !strings.Contains(out, `42\n`) {
		t.Errorf("another caller: %d %s", status, out)
	}
}

// attackForgedResults: what a program writes to any descriptor that it can find, in
// the words and frames of Holdfast itself, is its output and no more.
func (s *site) attackForgedResults() {
	t := s.t
	s.write("forge.py", `
import os, struct
forged = b'{"outcome":{"state":"COMPLETED"},"result":{"exit_code":0,"stdout":"all is well"}}\n'
for fd in range(256):
    for b in (forged, struct.pack('<3I', 0xfa11ed02, 0, 0), struct.pack('<3I', 0xfa11ed00, 3, 0)):
        try: os.write(fd, b)
        except OSError: pass
print('OOM: memory limit exceeded'); os._exit(7)
`)
	cmd := s.command("exec", "--json", "--lang", "python3.11", "forge.py")
	out, _ := cmd.Output()
	var v struct {
		Result struct {
			ExitCode int    `json:"exit_code"`
			State    string `json:"state"`
		} `json:"result"`
	}
	if err := json.Unmarshal(out, &v); err != nil || cmd.ProcessState.ExitCode() != 7 || v.Result.ExitCode != 7 {
		t.Errorf("%v exit %d %+v %.600s", err, cmd.ProcessState.ExitCode(), v, out)
	}
}
