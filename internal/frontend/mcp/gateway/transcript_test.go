package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// peer is the far end of one side: what it wrote, read line by line.
type peer struct {
	w     io.WriteCloser
	lines chan string
}

// pair returns our end of a connection and the peer's.
func pair() (*rwc, *peer) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{w: inW, lines: make(chan string, 1024)}
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(outR)
		for {
			l, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- strings.TrimSuffix(l, "\n")
		}
	}()
	return &rwc{Reader: inR, Writer: outW, close: func() { inR.Close(); outW.Close() }}, p
}

type rwc struct {
	io.Reader
	io.Writer
	close func()
	once  sync.Once
	exit  error
}

func (c *rwc) Close() error { c.once.Do(c.close); return nil }

func (c *rwc) Exit(context.Context) error {
	if c.exit == nil {
		return errors.New("exit status 0")
	}
	return c.exit
}

func (p *peer) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.w, line+"\n"); err != nil {
		t.Fatalf("send %.200s: %v", line, err)
	}
}

func (p *peer) next(t *testing.T) string {
	t.Helper()
	l, ok := p.line()
	if !ok {
		t.Fatal("no line came within a minute")
	}
	return l
}

// line is the next line, where one comes.
func (p *peer) line() (string, bool) {
	select {
	case l, ok := <-p.lines:
		return l, ok
	case <-time.After(time.Minute):
		return "", false
	}
}

// rig is a running gateway with both far ends in the test's hands.
type rig struct {
	k              *table
	client, server *peer
	serverEnd      *rwc
	done           chan error
	cancel         context.CancelFunc
	log            *bytes.Buffer
}

func start(t *testing.T, k *table, change ...func(*Config)) *rig {
	t.Helper()
	c, client := pair()
	s, server := pair()
	var buf bytes.Buffer
	cfg := Config{Kernel: k, Server: "fs", Traceparent: trace, Log: slog.New(slog.NewTextHandler(&buf, nil)),
		Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &rig{k: k, client: client, server: server, serverEnd: s, done: make(chan error, 1), cancel: cancel, log: &buf}
	go func() { g.done <- Serve(ctx, Lines(c), s, cfg) }()
	t.Cleanup(func() { cancel(); g.client.w.Close(); g.server.w.Close() })
	return g
}

// wait returns what Serve returned.
func (g *rig) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-g.done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("Serve did not return")
		return nil
	}
}

// TestTranscripts plays the conversations of testdata. A line says who does
// what: "client: X" and "server: X" send X; "to client: X" and "to server: X"
// expect X, byte for byte, as the next line there; "kernel: W..." changes the
// table. At the end nobody may have received anything more.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range ar.Files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+f.Name, func(t *testing.T) {
				ar.Files[i].Data = play(t, string(f.Data))
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func play(t *testing.T, script string) []byte {
	k := newTable()
	var g *rig
	trusted := strings.Contains(script, "config: trusted_hints\n")
	g = start(t, k, func(c *Config) { c.TrustedHints = trusted })
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimSuffix(script, "\n"), "\n") {
		who, what, _ := strings.Cut(line, ": ")
		switch who {
		case "client":
			g.client.send(t, what)
		case "server":
			g.server.send(t, what)
		case "to client", "to server":
			p := g.client
			if who == "to server" {
				p = g.server
			}
			got, ok := p.line()
			if !ok {
				t.Fatalf("line %d: nothing came %s", n+1, who)
			}
			if got != what {
				if !*update {
					t.Errorf("line %d: %s\n got %s\nwant %s", n+1, who, got, what)
				}
				line = who + ": " + got
			}
		case "kernel":
			k.order(t, strings.Fields(what))
		case "config", "#", "":
		default:
			if !strings.HasPrefix(line, "#") {
				t.Fatalf("line %d: unknown %q", n+1, who)
			}
		}
		out.WriteString(line + "\n")
	}
	g.client.w.Close()
	if err := g.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for name, p := range map[string]*peer{"client": g.client, "server": g.server} {
		for l := range p.lines {
			t.Errorf("more to %s: %s", name, l)
		}
	}
	return []byte(out.String())
}

// order changes the table: "risk B R" over what is observed, "list B R" in
// configuration, "approve REVIEW", "withhold B" and "fail WHY"; "asked B P",
// "asked-before B P" and "settled E B" check what the kernel was given.
func (k *table) order(t *testing.T, w []string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch w[0] {
	case "risk":
		var r holdfast.Risk
		if err := r.UnmarshalText([]byte(w[2])); err != nil {
			t.Fatal(err)
		}
		k.risks[w[1]] = r
	case "approve":
		k.approved[w[1]] = true
	case "withhold":
		k.withhold[w[1]] = true
	case "fail":
		k.fail = errors.New(strings.Join(w[1:], " "))
	case "asked":
		r := k.requests[len(k.requests)-1]
		if got := fmt.Sprintf("%s %s", r.Boundary, r.Payload); got != strings.Join(w[1:], " ") {
			t.Errorf("the kernel was asked %s, want %s", got, strings.Join(w[1:], " "))
		}
	case "list":
		c := holdfast.Contract{Boundary: w[1]}
		if err := c.Risk.UnmarshalText([]byte(w[2])); err != nil {
			t.Fatal(err)
		}
		k.listed[w[1]] = c
	case "asked-before":
		r := k.requests[len(k.requests)-2]
		if got := fmt.Sprintf("%s %s", r.Boundary, r.Payload); got != strings.Join(w[1:], " ") {
			t.Errorf("the kernel was asked %s before, want %s", got, strings.Join(w[1:], " "))
		}
	case "settled":
		o := k.outputs[len(k.outputs)-1]
		if got := fmt.Sprintf("%d %s", o.ExitCode, o.Body); got != strings.Join(w[1:], " ") {
			t.Errorf("the act gave %s, want %s", got, strings.Join(w[1:], " "))
		}
	default:
		t.Fatalf("unknown order %q", w)
	}
}
