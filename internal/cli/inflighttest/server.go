package inflighttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// ServeMCP is an MCP server with three tools: echo answers, wait does not
// before it is cancelled, and work does something until it is. What wait is asked,
// what work does, and when they are cancelled, stands in the file record, in
// nanoseconds of the clock.
func ServeMCP(in io.Reader, out io.Writer, record string) error {
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

// effectsApart is the time between two effects of everything in flight.
const effectsApart = time.Millisecond

// steadily calls f again and again until it fails or ctx ends.
func steadily(ctx context.Context, f func() error) error {
	t := time.NewTicker(effectsApart)
	defer t.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}
