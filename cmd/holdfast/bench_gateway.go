package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/internal/sqlite"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

func gatewayMeasurements() []measurement {
	return []measurement{{"calls", (*bench).calls}, {"cut", (*bench).cut}}
}

func benchGateway(a *app, args []string) error {
	fs := a.flags("bench gateway")
	server := fs.String("server", "", "")
	return a.measure(fs, args, gatewayMeasurements(), func() (bool, error) {
		if *server != "" {
			return true, benchServer(a.in, a.out, *server)
		}
		return false, nil
	})
}

// behind is a daemon of its own, for MCP clients of the measurement.
type behind struct {
	self, state, config, record string
	up                          *exec.Cmd
}

// openBehind starts the daemon. The server's tools are LOW.
func (b *bench) openBehind(name string) (*behind, error) {
	return b.openBehindWith(name, "boundaries:\n  - {boundary: mcp/bench/*, risk: LOW}\n")
}

// openBehindWith starts a daemon without pages, and with what the text says.
func (b *bench) openBehindWith(name, text string) (*behind, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &behind{self: self, state: filepath.Join(b.dir, name), config: filepath.Join(b.dir, name+".yaml"), record: filepath.Join(b.dir, name+".log")}
	if err := os.WriteFile(g.config, []byte("version: 1\nlisten: {pages: none}\n"+benchRepeats+"\n"+text), 0o600); err != nil {
		return nil, err
	}
	g.up = exec.CommandContext(b.ctx, self, "up", "--no-operator", "--state", g.state, "--config", g.config)
	g.up.Cancel = func() error { return g.up.Process.Signal(syscall.SIGTERM) }
	out, err := g.up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.up.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the daemon did not start: %w", err), end(g.up))
	}
	return g, nil
}

// server is the command of the measured server, and through the same behind
// the gates.
func (g *behind) server() []string {
	return []string{g.self, "bench", "gateway", "--server", g.record}
}

func (g *behind) through() []string {
	return append([]string{g.self, "mcp", "--state", g.state, "--config", g.config, "--name", "bench", "--"}, g.server()...)
}

// peer is an MCP client of one process.
type peer struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Reader
	next  int
}

func (b *bench) peer(argv []string) (*peer, error) {
	p := &peer{cmd: exec.CommandContext(b.ctx, argv[0], argv[1:]...)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.lines = in, bufio.NewReaderSize(out, 64<<10)
	for _, m := range []string{
		`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`,
		`"method":"tools/list"`,
	} {
		if _, err := p.ask(m); err != nil {
			return nil, errors.Join(err, p.end())
		}
		if p.next == 1 {
			if _, err := io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
				return nil, errors.Join(err, p.end())
			}
		}
	}
	return p, nil
}

// send writes one request and returns its id.
func (p *peer) send(rest string) (int, error) {
	p.next++
	_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", p.next, rest)
	return p.next, err
}

// ask sends a request and waits for its answer, which must be a result.
func (p *peer) ask(rest string) ([]byte, error) {
	id, err := p.send(rest)
	if err != nil {
		return nil, err
	}
	for {
		got, line, err := p.answer()
		if err != nil {
			return nil, err
		}
		if got != id {
			continue
		}
		if !bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"isError":true`)) {
			return nil, fmt.Errorf("the MCP server did not do it: %s", clean(string(line)))
		}
		return line, nil
	}
}

// answer reads the next line; its id is 0 where it is no answer.
func (p *peer) answer() (int, []byte, error) {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return 0, nil, fmt.Errorf("the MCP server went away: %w", err)
	}
	var m struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
	}
	if err := json.Unmarshal(line, &m); err != nil || m.Method != "" {
		return 0, line, err
	}
	return m.ID, line, nil
}

func (p *peer) end() error {
	if c, ok := p.in.(io.Closer); ok {
		_ = c.Close()
	}
	return end(p.cmd)
}

// calls measures one tool call after another over stdio, straight to the server
// and through the gateway to the same server, with bare commits of what the
// ledger wrote of each, in turns.
func (b *bench) calls() (_ []figure, err error) {
	g, err := b.openBehind("calls")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end(g.up)) }()
	direct, err := b.peer(g.server())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, direct.end()) }()
	through, err := b.peer(g.through())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, through.end()) }()
	bare, err := sqlite.OpenBare(filepath.Join(b.dir, "calls-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	call := `"method":"tools/call","params":{"name":"echo","arguments":` + string(benchPayload()) + `}`
	if _, err := through.ask(call); err != nil {
		return nil, err
	}
	records, err := newest(b, filepath.Join(g.state, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	var took [3][]time.Duration
	for round := range b.rounds(25) {
		for i := range 3 {
			which := (round + i) % 3
			do := func() error { _, err := direct.ask(call); return err }
			switch which {
			case 1:
				do = func() error { _, err := through.ask(call); return err }
			case 2:
				do = func() error { return bare.Put(1, 1, uuid.Must(uuid.NewV7()).String(), records[round%2]) }
			}
			for range 40 {
				from := time.Now()
				if err := do(); err != nil {
					return nil, err
				}
				took[which] = append(took[which], time.Since(from))
			}
		}
	}
	return callFigures(took[0], took[1], took[2]), nil
}

// callFigures holds what the gateway adds at the median against two commits and
// half a millisecond.
func callFigures(direct, through, commit []time.Duration) []figure {
	added, allowed := millis(at(through, 50)-at(direct, 50)), 2*millis(at(commit, 50))+0.5
	f := figure{Name: "added to a tool call over stdio, p50", Measured: added, Unit: "ms", Target: "<= 2 bare commits + 0.5 ms", Met: added <= allowed}
	f = f.ratioTo(2*millis(at(commit, 50)), "two bare commits")
	f.Note = fmt.Sprintf("p50 %s ms through the gateway, %s straight; a bare commit %s; p99 %s, %s and %s; %d calls each, in turns",
		number(millis(at(through, 50))), number(millis(at(direct, 50))), number(millis(at(commit, 50))),
		number(millis(at(through, 99))), number(millis(at(direct, 99))), number(millis(at(commit, 99))), len(through))
	tail := figure{Name: "  a tool call through the gateway, p99", Measured: millis(at(through, 99)), Unit: "ms"}
	return []figure{f, tail.ratioTo(2*millis(at(commit, 99)), "two bare commits")}
}

// newest are the bytes of the newest begin and entry of a store.
func newest(b *bench, path string) (out [2][]byte, err error) {
	s, err := sqlite.Open(b.ctx, sqlite.Options{Path: path, ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.View(b.ctx, func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			err := tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error {
				if l.Kind == ledger.KindBegin {
					out[0] = bytes.Clone(l.Record)
				}
				if l.Kind == ledger.KindEntry {
					out[1] = append(bytes.Clone(l.Record), l.Part...)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && (out[0] == nil || out[1] == nil) {
		err = errors.New("the call left no begin and entry")
	}
	return out, err
}

// benchServer is an MCP server with three tools: echo answers, wait does not
// before it is cancelled, and work does something until it is. What wait is asked,
// what work does, and when they are cancelled, stands in the file record, in
// nanoseconds of the clock.
func benchServer(in io.Reader, out io.Writer, record string) error {
	log, err := os.OpenFile(record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	working, stop := context.WithCancel(context.Background())
	var worked sync.WaitGroup
	defer func() { stop(); worked.Wait() }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		now := time.Now()
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		result := `{}`
		switch {
		case m.Method == "notifications/cancelled":
			stop()
			worked.Wait() // so that it is the last of the work
			fmt.Fprintf(log, "cancelled %d\n", now.UnixNano())
			continue
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"echo","description":"answers","inputSchema":{"type":"object"}},{"name":"wait","description":"waits","inputSchema":{"type":"object"}},{"name":"work","description":"works","inputSchema":{"type":"object"}}]}`
		case m.Params.Name == "work":
			worked.Go(func() {
				_ = steadily(working, func() error { _, err := fmt.Fprintf(log, "works %d\n", time.Now().UnixNano()); return err })
			})
			continue
		case m.Params.Name == "wait":
			fmt.Fprintf(log, "waits %d\n", now.UnixNano())
			continue
		case m.Params.Name == "echo":
			result = `{"content":[{"type":"text","text":"` + strings.Repeat("done ", 20) + `"}]}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result); err != nil {
			return err
		}
	}
	return lines.Err()
}
