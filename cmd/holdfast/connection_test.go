package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCommandsShareOneConnection counts the connections that each command makes to
// the daemon's socket. A command that only reads the store makes none.
func TestCommandsShareOneConnection(t *testing.T) {
	d, c := pastDaemon(t)
	c.Close()
	if err := shareRoots(d.Paths.Dir); err != nil {
		t.Fatal(err)
	}
	opened := countConnections(t, d.Paths.Sock)
	for _, tc := range []struct {
		command string
		want    int64
	}{
		{"status", 1},
		{"status --json", 1},
		{"top --once", 1},
		{"budget ls", 1},
		{"alerts ls", 1},
		{"check test/pay {}", 1},
		{"explain test/pay {}", 1},
		{"step ada plan", 1},
		{"exec --lang python3 -", 1},
		{"exec --explain --lang python3 -", 1},
		{"mcp http://127.0.0.1:1/mcp", 1},
		{"agent token ada", 1},
		{"agent pause ada because", 1},
		{"ledger checkpoint", 1},
		{"review open", 1},
		{"review ls", 0},
		{"agent ls", 0},
		{"ledger tail", 0},
		{"halt because", 1}, // it writes the latch first, then tells the daemon
		{"exec --lang python3 -", 1},
	} {
		before := opened.Load()
		var said bytes.Buffer
		a := &app{ctx: t.Context(), in: strings.NewReader("print(1)"), out: &said, err: &said, lookup: os.LookupEnv}
		code := a.run(append([]string{"--state", d.Paths.Dir}, strings.Fields(tc.command)...))
		if n := opened.Load() - before; n != tc.want {
			t.Errorf("%s: %d connections, want %d (exit code %d)\n%s", tc.command, n, tc.want, code, said.Bytes())
		}
		if code == exitUsage {
			t.Errorf("%s: %s", tc.command, said.Bytes())
		}
	}
	if n := countClients(t, d.Paths.Dir); n != 1 {
		t.Errorf("%d clients are connected, want the one that asks", n)
	}
}

// countClients returns how many clients the daemon counts, the one that asks among
// them.
func countClients(t *testing.T, state string) int {
	t.Helper()
	var out bytes.Buffer
	a := &app{ctx: t.Context(), out: &out, err: io.Discard, lookup: os.LookupEnv, state: state}
	p, err := a.paths()
	if err != nil {
		t.Fatal(err)
	}
	defer a.hangUp()
	_, s, err := a.dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s.Clients
}

// countConnections puts a relay in the place of the socket and returns how many
// connections it has accepted.
func countConnections(t *testing.T, sock string) *atomic.Int64 {
	t.Helper()
	if err := os.Rename(sock, sock+".d"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Int64
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			opened.Add(1)
			relays.Go(func() { relayConnection(conn, sock+".d") })
		}
	})
	t.Cleanup(func() {
		l.Close()
		relays.Wait()
	})
	return &opened
}

// relayConnection copies both ways until both sides have ended.
func relayConnection(conn net.Conn, sock string) {
	defer conn.Close()
	there, err := net.Dial("unix", sock)
	if err != nil {
		return
	}
	defer there.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, there)
		conn.Close()
	})
	_, _ = io.Copy(there, conn)
	there.Close()
	back.Wait()
}
