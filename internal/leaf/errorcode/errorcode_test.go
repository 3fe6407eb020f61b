package errorcode

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestLookupReturnsRecordedCodes compares the table with what the command and each frontend
// answered on 2026-11-27, when each had a separate table (testdata/codes.tsv). A kind that
// is not there needs a row: its codes are decided, not inherited.
func TestLookupReturnsRecordedCodes(t *testing.T) {
	b, err := os.ReadFile("testdata/codes.tsv")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[holdfast.Kind]string{}
	for line := range strings.Lines(string(b)) {
		kind, _, _ := strings.Cut(line, "\t")
		recorded[holdfast.Kind(kind)] = strings.TrimSuffix(line, "\n")
	}
	for _, kind := range append(readKinds(t), "(any other)") {
		c := Lookup(kind)
		p := LookupProvider(c.Egress)
		got := fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s", kind, c.Exit, c.GRPC, c.RPC, c.API, c.Pages, c.MCP,
			c.Egress, p.Anthropic, p.OpenAI)
		if got != recorded[kind] {
			t.Errorf("%s\n%q is recorded", got, recorded[kind])
		}
		delete(recorded, kind)
	}
	delete(recorded, "kind") // the head
	for kind := range recorded {
		t.Errorf("testdata/codes.tsv has %s, which is not a kind", kind)
	}
}

// readKinds returns the kinds that the root package declares.
func readKinds(t *testing.T) (kinds []holdfast.Kind) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../../error.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Kind") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, holdfast.Kind(text))
		return true
	})
	if len(kinds) < 70 {
		t.Fatalf("%d kinds found in error.go", len(kinds))
	}
	return kinds
}

// TestLookupProviderKnowsOtherStatuses: the proxy also answers with statuses that no kind
// has.
func TestLookupProviderKnowsOtherStatuses(t *testing.T) {
	for status, want := range map[int]ProviderTypes{
		401: {"authentication_error", "authentication_error"},
		418: {"invalid_request_error", "invalid_request_error"},
		599: {"api_error", "server_error"},
	} {
		if got := LookupProvider(status); got != want {
			t.Errorf("%d: %+v", status, got)
		}
	}
}
