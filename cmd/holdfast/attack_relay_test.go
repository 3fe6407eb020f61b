package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// talk is one holdfast mcp over stdio, and how often it answered each id.
type talk struct {
	s   *site
	cmd *exec.Cmd
	in  io.WriteCloser

	mu       sync.Mutex
	answered map[string]int
	bad      int // lines that are no JSON
	cut      int // how many of them a kill explains: the line that it cut off
	ended    chan struct{}
}

func overStdio(t *testing.T) *talk {
	t.Helper()
	s := newSite(t, notesServer)
	s.write("a", "hello")
	return s.talk()
}

func (s *site) talk() *talk {
	t := s.t
	t.Helper()
	k := &talk{s: s, cmd: s.command("mcp", "notes"), answered: map[string]int{}, ended: make(chan struct{})}
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.in.Close(); s.stop(k.cmd) })
	go k.read(out)
	k.say(initialize)
	k.wait("1")
	k.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return k
}

func (k *talk) read(out io.Reader) {
	defer close(k.ended)
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		var m struct {
			ID     json.RawMessage
			Method string
		}
		k.mu.Lock()
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &m) != nil {
			k.bad++
			k.s.t.Logf("no JSON: %d bytes, %.200q ... %v", len(line), line, err)
		} else if m.ID != nil && m.Method == "" {
			k.answered[string(m.ID)]++
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (k *talk) say(line string) { _, _ = io.WriteString(k.in, line+"\n") }

func (k *talk) count(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answered[id]
}

func (k *talk) wait(id string) {
	k.s.t.Helper()
	k.s.soon("an answer to "+id, func() bool { return k.count(id) > 0 })
}

// over waits for the end of the stream.
func (k *talk) over() {
	k.s.t.Helper()
	select {
	case <-k.ended:
	case <-time.After(time.Minute):
		k.s.t.Fatal("the stream does not end")
	}
}

// once fails where a request was answered more than once, or a line was none.
func (k *talk) once(ids ...string) {
	k.s.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, n := range k.answered {
		if n > 1 && id != "null" {
			k.s.t.Errorf("%s was answered %d times", id, n)
		}
	}
	for _, id := range ids {
		if k.answered[id] != 1 {
			k.s.t.Errorf("%s was answered %d times", id, k.answered[id])
		}
	}
	if k.bad > k.cut {
		k.s.t.Errorf("%d lines are no JSON", k.bad)
	}
}

// kill ends the daemon as a crash does.
func (k *talk) kill() {
	k.s.t.Helper()
	k.mu.Lock()
	k.cut = 1
	k.mu.Unlock()
	if err := syscall.Kill(k.s.pid(), syscall.SIGKILL); err != nil {
		k.s.t.Fatal(err)
	}
}

// TestAttackRelay_killed_in_mid_call: when the daemon is killed, what waits is
// answered once: calls under way, one whose id was cancelled and given again, and
// none that was answered before, whatever stood between them.
func TestAttackRelay_killed_in_mid_call(t *testing.T) {
	k := overStdio(t)
	k.say(callTool(2, "read", `{"path":"a"}`))
	k.wait("2")
	for range 1100 { // more than are remembered
		k.say("junk")
		k.say(`{"jsonrpc":"2.0","id":{},"method":"ping"}`)
	}
	k.say(callTool(3, "linger", `{"path":"three"}`))
	k.s.soon("the call", func() bool { return there(filepath.Join(k.s.dir, "three")) })
	k.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	time.Sleep(300 * time.Millisecond)
	k.say(callTool(3, "linger", `{"path":"again"}`))
	k.say(callTool(`"3"`, "linger", `{"path":"text"}`))
	for _, name := range []string{"again", "text"} {
		k.s.soon("the call", func() bool { return there(filepath.Join(k.s.dir, name)) })
	}
	k.say(callTool(4, "read", `{"path":"a"}`))
	k.wait("4")
	before := k.count("3")
	k.kill()
	k.over()
	if n := k.count("3") - before; n != 1 {
		t.Errorf("3 was answered %d times after it was given again, %d before", n, before)
	}
	k.once("2", `"3"`, "4")
}

// TestAttackRelay_killed_in_a_storm: at whatever moment the daemon is killed, no
// request is answered twice, and what was not answered saw the stream end.
func TestAttackRelay_killed_in_a_storm(t *testing.T) {
	for round := range testrepeat.Times(3, 1) {
		k := overStdio(t)
		go func() {
			for i := range 20_000 {
				k.say(callTool(i+10, "read", `{"path":"a"}`))
			}
		}()
		k.wait("10")
		time.Sleep(rand.N(200 * time.Millisecond))
		k.kill()
		k.over()
		k.once()
		if t.Failed() {
			t.Fatal("round ", round)
		}
	}
}

// TestAttackRelay_what_is_no_message: binary junk, lines of 8 MB and more, ids
// that repeat and answers to questions nobody asked change nothing for the next
// request.
func TestAttackRelay_what_is_no_message(t *testing.T) {
	k := overStdio(t)
	junk := make([]byte, 1<<20)
	for i := range junk {
		junk[i] = byte(rand.Uint32())
	}
	text := strings.Repeat("x", 8<<20)
	for i, line := range []string{string(junk), "\x00\xff", text, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"path":"` + text + `"}}}`,
		text + text + text, `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":"h1","result":{}}`, `[]`, strings.Repeat("[", 1<<20)} {
		k.say(line)
		id := fmt.Sprint(100 + i)
		k.say(callTool(id, "read", `{"path":"a"}`))
		k.wait(id)
	}
	k.say(callTool(200, "linger", `{"path":"w"}`))
	k.s.soon("the call", func() bool { return there(filepath.Join(k.s.dir, "w")) })
	k.say(callTool(200, "read", `{"path":"a"}`)) // in flight: refused, under the same id
	k.wait("200")
	k.say(callTool(201, "read", `{"path":"a"}`))
	k.wait("201")
	k.kill()
	k.over()
	if n := k.count("200"); n != 2 {
		t.Errorf("two requests with one id have %d answers", n)
	}
	k.mu.Lock()
	delete(k.answered, "200")
	k.mu.Unlock()
	k.once("201")
}

// TestAttackRelay_input_that_ends: the end of the input ends the stream, and what
// was asked before is answered once or not at all, never twice; half a request is
// not done, and at most refused.
func TestAttackRelay_input_that_ends(t *testing.T) {
	k := overStdio(t)
	for i := range 200 {
		k.say(callTool(i+10, "read", `{"path":"a"}`))
	}
	_, _ = io.WriteString(k.in, callTool(999, "write", `{"path":"half","text":"x"}`)[:60])
	k.in.Close()
	k.over()
	k.once()
	if there(filepath.Join(k.s.dir, "half")) {
		t.Error("half a request was done")
	}
}

// TestAttackHalt_calls_in_flight_and_a_busy_disk: with 200 calls under way and
// programs that sync the disk without end, a halt cuts every one of them.
func TestAttackHalt_calls_in_flight_and_a_busy_disk(t *testing.T) {
	k := overStdio(t)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(stop)
	for i := range 4 {
		busy.Add(1)
		go func() {
			defer busy.Done()
			f, err := os.Create(filepath.Join(k.s.dir, fmt.Sprint("busy", i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for b := make([]byte, 1<<20); ; {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = f.WriteAt(b, 0)
				_ = f.Sync()
			}
		}()
	}
	talks := []*talk{k, k.s.talk(), k.s.talk(), k.s.talk()}
	for _, k := range talks {
		for i := range 50 {
			k.say(callTool(i+10, "linger", fmt.Sprintf(`{"path":"w%d-%d"}`, k.cmd.Process.Pid, i)))
		}
	}
	k.s.soon("the calls", func() bool {
		files, _ := filepath.Glob(filepath.Join(k.s.dir, "w*"))
		return len(files) >= 200
	})
	k.s.must("halt", "enough")
	for _, k := range talks {
		var ids []string
		for i := range 50 {
			ids = append(ids, fmt.Sprint(i+10))
			k.wait(ids[i])
		}
		k.once(ids...)
	}
	k.say(callTool(500, "read", `{"path":"a"}`))
	k.wait("500")
	if out := k.s.must("ledger", "tail", "-n", "500"); strings.Count(out, "mcp/notes/linger") < 200 || strings.Contains(out, "done  mcp/notes/linger") {
		t.Errorf("not every call is recorded:\n%s", out)
	}
}
