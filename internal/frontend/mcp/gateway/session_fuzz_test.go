package gateway

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/rogpeppe/go-internal/txtar"
)

// seeds are the conversations of testdata, as FuzzSession plays them: a byte
// for the mode, then lines that begin with who says them.
func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, part := range txtar.Parse(b).Files {
			out := []byte{byte(i)}
			for line := range strings.Lines(string(part.Data)) {
				if said, ok := strings.CutPrefix(line, "client: "); ok {
					out = append(append(out, 'c'), said...)
				}
				if said, ok := strings.CutPrefix(line, "server: "); ok {
					out = append(append(out, 's'), said...)
				}
			}
			f.Add(out)
		}
	}
}

// FuzzSession lets both peers say anything. Whatever it is, Serve returns, and
// where the kernel allows nothing, nothing that needs a crossing passes.
func FuzzSession(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 64<<10 {
			return
		}
		mode := script[0]
		k := newTable()
		cfg := Config{Kernel: k, Server: "fs", Token: goodToken, MaxInFlight: 8, Log: slog.New(slog.DiscardHandler)}
		allowed := mode&1 == 0
		if !allowed {
			cfg.Kernel = never{k}
		}
		for i, b := range []string{"client/fs/*", "mcp/fs/tools/call", "mcp/fs/x/y"} {
			if mode&(2<<i) != 0 {
				k.listed[b] = holdfast.Contract{Boundary: b, Risk: holdfast.Medium}
			}
		}
		if mode&16 != 0 {
			cfg.Wait, cfg.Page = time.Millisecond, func(r string) string { return "http://127.0.0.1/review/" + r }
		}
		c, client := gatewaytest.Pair()
		s, server := gatewaytest.Pair()
		done := make(chan error, 1)
		go func() { done <- Serve(t.Context(), Lines(c), s, cfg) }()
		for line := range bytes.Lines(script[1:]) {
			to := client.Input
			if line[0] == 's' {
				to = server.Input
			}
			if _, err := to.Write(line[1:]); err != nil {
				break
			}
		}
		client.Input.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		server.Input.Close()
		for l := range client.Lines {
			m := message(t, l)
			if asked := m.IsRequest() && m.Method != "ping" || strings.Contains(l, `"inputRequests"`); asked && !allowed {
				t.Fatalf("the client is asked what nobody allowed: %s", l)
			}
		}
		for l := range server.Lines {
			checkForServer(t, message(t, l), allowed)
		}
	})
}

// message is a line that one peer got.
func message(t *testing.T, l string) mcp.Message {
	t.Helper()
	m, err := mcp.Parse([]byte(strings.Replace(l, `"id":null`, `"id":0`, 1)))
	if err != nil {
		t.Fatalf("%v in %s", err, l)
	}
	return m
}

func checkForServer(t *testing.T, m mcp.Message, allowed bool) {
	t.Helper()
	switch m.Method {
	case "", "initialize", mcp.MethodDiscover, "ping", "logging/setLevel", mcp.MethodListTools,
		mcp.MethodListResources, mcp.MethodListTemplates, mcp.MethodListPrompts, mcp.MethodCancelled,
		"notifications/initialized":
		if m.Method == "" && m.Result != nil && string(m.Result) != "{}" && !allowed {
			t.Fatalf("the server learns of the client: %s", m.Raw)
		}
	case mcp.MethodListen:
		if uris := mcp.Get(m.Params, "notifications", "resourceSubscriptions"); uris != nil && string(uris) != "[]" && !allowed {
			t.Fatalf("the server tells of what nobody allowed: %s", m.Raw)
		}
	case "notifications/roots/list_changed":
	default:
		if !allowed {
			t.Fatalf("the server gets what nobody allowed: %s", m.Raw)
		}
	}
}

// FuzzState: no text but our own is taken for a state of ours.
func FuzzState(f *testing.F) {
	s := newSession(nil, nil, Config{Seal: []byte(strings.Repeat("k", SealSize))})
	c := &call{boundary: "mcp/fs/cat", asked: fingerprint([]byte(`{}`), nil)}
	theirs := "theirs"
	good, err := s.seal(state{Boundary: c.boundary, Request: c.asked, Until: 1 << 40, Review: "r", Theirs: &theirs,
		Asked: map[string]askedOf{"a": {askRoots, "{}"}}, Answers: "{}"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good + "A")
	f.Add("e30." + strings.SplitN(good, ".", 2)[1])
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.unseal(text, c, time.Unix(0, 0)); (err == nil) != (text == good) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
