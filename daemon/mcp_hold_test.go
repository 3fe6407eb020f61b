package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// operatorKey returns the key of the person of all tests: to open one takes longer than
// most tests.
var operatorKey = sync.OnceValues(func() (operator.Key, error) {
	pass := holdfast.NewSecret("correct horse battery staple")
	sealed, _, err := operator.New(pass, operator.Options{WorkFactor: 15})
	if err != nil {
		return operator.Key{}, err
	}
	return operator.Open(sealed, pass)
})

// personOf makes an operator key, and returns what a person with it says of a
// review.
func personOf(t *testing.T, d *Daemon, c *api.Client) func(act, review string) error {
	t.Helper()
	key, err := operatorKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Paths.OperatorPub, []byte(key.Public().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(act, review string) error {
		r, err := c.Review(context.Background(), review)
		if err != nil {
			return err
		}
		signed, err := operator.Sign(key, operator.Statement{Act: act, Subject: r.ID, Tenant: r.Tenant, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy,
			Nonce: r.Nonce, Reviewer: "ann", Reason: "looked at", Runtime: d.runtime, ID: uuid.NewString(), At: time.Now().UTC()})
		if err != nil {
			return err
		}
		_, err = c.Decide(context.Background(), api.PersonsWord{Tenant: r.Tenant, Signed: signed})
		return err
	}
}

// TestD11_held_call_over_HTTP: the official client is pointed to the page, a person
// decides meanwhile, and the call that was held is made once, refused, or left
// waiting; the ledger tells the steps apart (D11).
func TestD11_held_call_over_HTTP(t *testing.T) {
	t.Setenv(mcpServerEnv, "yes")
	d, c, down := up(t, fmt.Sprintf("version: 1\nlisten:\n  pages: 127.0.0.1:0\nreview: {wait: 3s}\nboundaries: [{boundary: mcp/a/pid, risk: HIGH}]\n"+
		"mcp:\n  servers:\n    a: {command: [%s], env: [%s]}\n", os.Args[0], mcpServerEnv))
	t.Cleanup(down)
	at, _ := d.pagesAt()
	says := personOf(t, d, c)
	n := 0
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for _, act := range []string{operator.Approve, operator.Reject, ""} {
			t.Run(version+" "+act, func(t *testing.T) {
				var pointed atomic.Int32
				n++
				client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
					Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
					ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						pointed.Add(1)
						if !strings.HasPrefix(r.Params.URL, at+"/review/") {
							t.Errorf("pointed to %s", r.Params.URL)
						}
						if act == "" {
							return &sdk.ElicitResult{Action: "decline"}, nil
						}
						return &sdk.ElicitResult{Action: "accept"}, says(act, path.Base(r.Params.URL))
					}})
				a := &asking{giveToken(t, c, "nightly").Token}
				s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: at + "/mcp/a", HTTPClient: &http.Client{Transport: a}},
					&sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				call := func() (*sdk.CallToolResult, string) {
					r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "pid", Arguments: map[string]any{"n": n}})
					if err != nil {
						t.Fatal(err)
					}
					return r, r.Content[0].(*sdk.TextContent).Text
				}
				r, said := call()
				want := map[string]string{operator.Reject: "refused: rejected by ann: looked at", "": "held for review, nothing has been done"}[act]
				if r.IsError != (act != operator.Approve) || !strings.Contains(said, want) || pointed.Load() != 1 {
					t.Fatalf("pointed %d times, then %s", pointed.Load(), said)
				}
				if act != operator.Approve {
					return
				}
				act = "" // the approval is used: the same call asks again
				if r, said := call(); !r.IsError || !strings.Contains(said, "held for review") {
					t.Errorf("an approval was used twice: %s", said)
				}
			})
		}
	}
	for name, want := range map[string]int{"review_proposed": 8, "review_decided": 4, "review_executed": 2, "review_returned": 2} {
		if got := countEvents(t, d, name); got != want {
			t.Errorf("%d events %s, want %d", got, name, want)
		}
	}
}
