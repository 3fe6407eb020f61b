package gateway

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what the transcripts expect")

// rig is a running gateway with both far ends in the test's hands.
type rig struct {
	k              *table
	client, server *gatewaytest.Peer
	serverEnd      *gatewaytest.Stream
	done           chan error
	cancel         context.CancelFunc
	log            *bytes.Buffer
}

func start(t *testing.T, k *table, change ...func(*Config)) *rig {
	t.Helper()
	c, client := gatewaytest.Pair()
	s, server := gatewaytest.Pair()
	var buf bytes.Buffer
	cfg := Config{Kernel: k, Server: "fs", Traceparent: trace, Log: slog.New(slog.NewTextHandler(&buf, nil)),
		Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &rig{k: k, client: client, server: server, serverEnd: s, done: make(chan error, 1), cancel: cancel, log: &buf}
	go func() { g.done <- Serve(ctx, Lines(c), s, cfg) }()
	t.Cleanup(func() { cancel(); g.client.Input.Close(); g.server.Input.Close() })
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
			g.client.Send(t, what)
		case "server":
			g.server.Send(t, what)
		case "to client", "to server":
			p := g.client
			if who == "to server" {
				p = g.server
			}
			got, ok := p.Line()
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
	g.client.Input.Close()
	if err := g.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for name, p := range map[string]*gatewaytest.Peer{"client": g.client, "server": g.server} {
		for l := range p.Lines {
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
