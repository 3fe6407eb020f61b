package code

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// peer is a client of one server.
type peer struct {
	t *testing.T
	*Conn
	lines *bufio.Scanner
}

func connect(t *testing.T, run Run, panicked func(what, stack string)) *peer {
	t.Helper()
	if panicked == nil {
		panicked = func(what, _ string) { t.Error("it panicked:", what) }
	}
	c := Connect(Config{Run: run, Panicked: panicked, Version: "test"})
	t.Cleanup(func() {
		c.Close()
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := c.Exit(ctx); err != nil {
			t.Error("it does not end:", err)
		}
	})
	return &peer{t, c, bufio.NewScanner(c)}
}

func (p *peer) say(line string) {
	p.t.Helper()
	if _, err := p.Write([]byte(line + "\n")); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) hear() map[string]any {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("it said nothing:", p.lines.Err())
	}
	var m map[string]any
	if err := json.Unmarshal(p.lines.Bytes(), &m); err != nil {
		p.t.Fatalf("%v: %s", err, p.lines.Bytes())
	}
	return m
}

func code(m map[string]any) int {
	e, _ := m["error"].(map[string]any)
	n, _ := e["code"].(float64)
	return int(n)
}

func callLine(id int, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_code","arguments":%s}}`, id, args)
}

// What is no message is passed over, what is no request of its own is refused,
// and the server goes on.
func TestRubbish(t *testing.T) {
	p := connect(t, func(context.Context, Request) Answer { return Answer{Text: "ran"} }, nil)
	for _, line := range []string{"", "x", "[]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "\xff", strings.Repeat("[", 500)} {
		p.say(line)
	}
	for line, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`:                            mcp.CodeNoMethod,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                mcp.CodeBadParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}`:         mcp.CodeBadParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["run_code"]}}`: mcp.CodeBadParams,
	} {
		p.say(line)
		if got := code(p.hear()); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
	for _, args := range []string{`{"language":7}`, `{"shell":"x"}`, `[]`, `{"files":{"a":7}}`, `{"timeout_seconds":1e999}`} {
		p.say(callLine(1, args))
		m := p.hear()
		if r, _ := m["result"].(map[string]any); r["isError"] != true {
			t.Errorf("%s: %v", args, m)
		}
	}
	p.say(`{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":"1999-01-01"}}`)
	if m := p.hear(); m["id"] != "last" || m["result"].(map[string]any)["protocolVersion"] != "2025-11-25" {
		t.Errorf("%v", m)
	}
	p.say(callLine(2, `{"language":"python3","code":"1"}`))
	if m := p.hear(); code(m) != 0 || m["result"].(map[string]any)["isError"] != false {
		t.Errorf("%v", m)
	}
}

// One client has so many calls and no more, none twice by one id; one that is
// taken back ends, and closing ends all.
func TestCallsAreBounded(t *testing.T) {
	ended := make(chan error, 100)
	p := connect(t, func(ctx context.Context, _ Request) Answer {
		<-ctx.Done()
		ended <- ctx.Err()
		return Answer{}
	}, nil)
	for i := range maxCalls {
		p.say(callLine(i, "{}"))
	}
	for _, id := range []int{maxCalls, 3} {
		p.say(callLine(id, "{}"))
		if m := p.hear(); code(m) == 0 || m["id"] != float64(id) {
			t.Errorf("call %d: %v", id, m)
		}
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if m := p.hear(); m["id"] != 5.0 {
		t.Errorf("%v", m)
	}
	p.say(callLine(99, "{}"))
	p.Close()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := p.Exit(ctx); err != nil || len(ended) < maxCalls {
		t.Errorf("%v, %d ended", err, len(ended))
	}
}

// A panic is told to the hook, answered, and harms no other call.
func TestPanic(t *testing.T) {
	told := make(chan string, 1)
	p := connect(t, func(_ context.Context, r Request) Answer {
		if r.Code == "bad" {
			panic("bad")
		}
		return Answer{Text: "ran"}
	}, func(what, _ string) { told <- what })
	p.say(callLine(1, `{"code":"bad"}`))
	if m := p.hear(); code(m) != mcp.CodeInternal || <-told != "bad" {
		t.Errorf("%v", m)
	}
	p.say(callLine(2, `{"code":"good"}`))
	if m := p.hear(); code(m) != 0 {
		t.Errorf("%v", m)
	}
}
