package daemon

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestContractRedactsToolCalls: with the real kernel and the official client and server, a secret is denied with its
// place, personal data reaches the tool masked and the client reads so, a replay says the same, and the ledger holds
// neither value.
func TestContractRedactsToolCalls(t *testing.T) {
	const key, mail = "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ann@example.com"
	t.Setenv(mcpServerEnv, "yes")
	d, c, down := up(t, fmt.Sprintf("version: 1\nlisten: {pages: 127.0.0.1:0}\n"+
		"boundaries: [{boundary: mcp/a/pay, risk: MEDIUM, redact: {}}]\n"+
		"mcp:\n  servers:\n    a: {command: [%s], env: [%s]}\n", os.Args[0], mcpServerEnv))
	t.Cleanup(down)
	at, _ := d.pagesAt()
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		s := reachMCP(t, at+"/mcp/a", version, &asking{giveToken(t, c, "nightly").Token})
		call := func(to, key string) *sdk.CallToolResult {
			p := &sdk.CallToolParams{Name: "pay", Arguments: map[string]any{"to": to, "amount": 9007199254740993}}
			if key != "" {
				p.Meta = sdk.Meta{"dev.holdfast/idempotency-key": key}
			}
			r, err := s.CallTool(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		texts := func(r *sdk.CallToolResult) (all []string) {
			for _, part := range r.Content {
				all = append(all, part.(*sdk.TextContent).Text)
			}
			return all
		}
		r := call(mail, version)
		got := texts(r)
		if r.IsError || len(got) != 2 || got[0] != `paid {"amount":9007199254740993,"to":"[email]"}` ||
			!strings.HasPrefix(got[1], "[holdfast] masked=1; kinds=email\n"+
				"masked before the server got it: arguments.to\n") {
			t.Errorf("%s: %q", version, got)
		}
		again := call(mail, version)
		if fmt.Sprint(texts(again)) != fmt.Sprint(got) || again.Meta["dev.holdfast/replayed"] != true {
			t.Errorf("%s: replayed as %q, %v", version, texts(again), again.Meta)
		}
		if r := call("key "+key, ""); !r.IsError || !strings.HasPrefix(texts(r)[0],
			"refused: arguments.to: what is there (secret) may not pass") {
			t.Errorf("%s: %q", version, texts(r))
		}
		if r := call("a shop", ""); r.IsError || len(r.Content) != 1 {
			t.Errorf("%s: %q", version, texts(r))
		}
	}
	denied, told := 0, 0
	err := d.store.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
			text := append(bytes.Clone(l.Record), l.Part...)
			if bytes.Contains(text, []byte(key)) || bytes.Contains(text, []byte(mail)) {
				t.Errorf("the ledger holds a value: %s", text)
			}
			denied += bytes.Count(l.Record, []byte(`"contract/redact"`))
			told += bytes.Count(l.Part, []byte("masked=1; kinds=email"))
			return nil
		})
	})
	if err != nil || denied == 0 || told == 0 {
		t.Errorf("%d denials and %d masked results in the ledger, %v", denied, told, err)
	}
}
