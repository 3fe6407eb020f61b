package inflighttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// listensAt is where a gateway says that it listens. What else it says is read and
// forgotten.
func listensAt(said io.Reader) (string, error) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, at, found := strings.Cut(lines.Text(), "listening on "); found {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			at, _, _ = strings.Cut(at, " ")
			return strings.TrimSpace(at), nil
		}
	}
	return "", errors.Join(errors.New("the gateway does not listen"), lines.Err())
}

// mcpOverHTTP is a client of MCP over HTTP.
type mcpOverHTTP struct{ at, session string }

func (c *mcpOverHTTP) initialize(ctx context.Context) error {
	for _, m := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
		if _, err := c.post(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// post sends a message and returns all of the answer.
func (c *mcpOverHTTP) post(ctx context.Context, message string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, excerpt.Printable(string(b)))
	}
	return b, err
}
