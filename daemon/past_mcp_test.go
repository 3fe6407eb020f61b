package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const threePayments = `rules:
  - {id: payments, on: request, boundary: mcp/a/pay, when: "past('mcp/a/pay', '24h').where(args.amount > 100).count() >= 3 && args.amount > 100", message: at most 3 payments above 100 in 24 hours}
`

// payingTo is a configuration whose server takes payments, under rules of a file.
func payingTo(t *testing.T, dir, rules string) string {
	t.Helper()
	t.Setenv(mcpServerEnv, "yes")
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("version: 1\nlisten:\n  pages: 127.0.0.1:0\nrules:\n  files: [%s]\nboundaries:\n  - {boundary: mcp/a/pay, risk: MEDIUM, permissions: [mcp:call]}\nmcp:\n  servers:\n    a: {command: [%s], env: [%s]}\n",
		file, os.Args[0], mcpServerEnv)
}

// pay pays, and says what came back and whether it was refused.
func pay(t *testing.T, s *sdk.ClientSession, amount int) (string, bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay", Arguments: map[string]any{"to": "ann@example.com", "amount": amount}})
	if err != nil {
		return err.Error(), true
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// The rule of one line, over a real MCP server: of all agents together three
// payments above 100 pass, the fourth is refused with the rule's reason, and it is
// after a restart.
func TestThreePaymentsADay(t *testing.T) {
	d, c, down := up(t, payingTo(t, t.TempDir(), threePayments))
	opt := d.opt
	at, _ := d.pagesAt()
	one := reachMCP(t, at+"/mcp/a", "2025-11-25", &asking{giveToken(t, c, "one").Token})
	two := reachMCP(t, at+"/mcp/a", "2025-11-25", &asking{giveToken(t, c, "two").Token})
	for i, s := range []*sdk.ClientSession{one, two, one} {
		if said, no := pay(t, s, 101+i); no || !strings.HasPrefix(said, "paid") {
			t.Fatalf("payment %d: %s", i+1, said)
		}
	}
	refused := func(s *sdk.ClientSession) {
		t.Helper()
		if said, no := pay(t, s, 500); !no || !strings.Contains(said, "at most 3 payments above 100 in 24 hours") {
			t.Errorf("the fourth: %s", said)
		}
		if said, no := pay(t, s, 100); no {
			t.Errorf("below the limit: %s", said)
		}
	}
	refused(two)
	st, err := c.Status(t.Context())
	if err != nil || st.Past == nil || !st.Past.Ready || len(st.Past.Past) != 1 || st.Past.Past[0].Entries != 3 {
		t.Errorf("%v %+v", err, st.Past)
	}
	one.Close()
	two.Close()
	down()

	d, c, down = serve(t, opt)
	t.Cleanup(down)
	at, _ = d.pagesAt()
	refused(reachMCP(t, at+"/mcp/a", "2025-11-25", &asking{giveToken(t, c, "three").Token}))
}

// A rule that the tool's own schema shows to be one that can never speak refuses
// the tool, and status says so.
func TestRuleThatCouldNeverSpeak(t *testing.T) {
	d, c, down := up(t, payingTo(t, t.TempDir(), strings.ReplaceAll(threePayments, "args.amount", "args.amuont")))
	t.Cleanup(down)
	at, _ := d.pagesAt()
	s := reachMCP(t, at+"/mcp/a", "2025-11-25", &asking{giveToken(t, c, "one").Token})
	if said, no := pay(t, s, 1); !no || !strings.Contains(said, "amuont") {
		t.Errorf("%s", said)
	}
	st, err := c.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(st.Problems, "\n"), "every call is refused of mcp/a/pay: ") {
		t.Errorf("%v %q", err, st.Problems)
	}
}
