package remote

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// canned is a transport that answers each POST with the same bytes.
type canned struct {
	status int
	kind   string
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r}, nil
}

// FuzzResponse: whatever a server's response is, each line that comes of it is
// one message, the request is answered once, under its id, and nothing of the
// credential is in it.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{fine, "data: " + fine + "\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: " + fine + "\n\ndata: " + fine + "\n\n",
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"swordfish-1"}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":"x\"swordfish-1\\"}}`, "{\n}", "\xEF\xBB\xBF" + fine,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"properties":{"b":{"type":"string","x-mcp-header":"B"}}}}]}}`} {
		f.Add(200, false, []byte(s))
		f.Add(200, true, []byte(s))
		f.Add(404, false, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, events bool, body []byte) {
		kind := map[bool]string{true: "text/event-stream", false: "application/json"}[events]
		c, err := Dial(t.Context(), Config{URL: "https://x/", Header: map[string]holdfast.Secret{"A": holdfast.NewSecret("Key swordfish-1")},
			Client: &http.Client{Transport: canned{status, kind, body}}, Mask: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("a"), []byte(`"`)) }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, list+"\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReaderSize(c, 1<<16)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			m, err := mcp.Parse([]byte(line))
			if err != nil {
				t.Fatalf("%q is no message: %v", line, err)
			}
			if strings.Contains(line, "swordfish-1") {
				t.Fatalf("the credential is in %q", line)
			}
			if m.IsResponse() {
				if string(m.ID) != "1" {
					t.Fatalf("the answer has the id %s", m.ID)
				}
				break
			}
		}
		c.work.Wait()
		select {
		case l := <-c.lines:
			t.Fatalf("after the answer came %q", l)
		default:
		}
	})
}
