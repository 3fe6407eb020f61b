package main

import (
	"embed"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/config"
)

// contracts are ready contracts of public MCP servers, one file a server: items
// of the configuration's boundaries. Risks are judged by what a tool does, not by
// what its server says of it (D37).
//
//go:embed contracts/*.yaml
var contracts embed.FS

// contracted are the servers that have one, in the order in which init writes
// them.
func contracted() []string { return []string{"filesystem", "git", "fetch", "github"} }

// chosen reads the flag --servers: names apart by commas, all if absent, none
// for "none".
func chosen(flag string) ([]string, error) {
	switch flag {
	case "":
		return contracted(), nil
	case "none":
		return nil, nil
	}
	var out []string
	for name := range strings.SplitSeq(flag, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(contracted(), name) {
			return nil, usage("there are contracts for "+strings.Join(contracted(), ", "), "init has no contracts for %q", name)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// boundariesKey stands in the example where its commented contracts begin.
const boundariesKey = "\n#boundaries:\n"

// inForce introduces the contracts.
const inForce = `
#
# The contracts below are in force wherever a server of that name runs behind
# "holdfast mcp". Looking acts, changing is put to a person, and what a server
# asks of its client is refused. Lower a risk where you trust the agent with it.
# A tool whose line is gone falls to the pattern at the end of its server.
boundaries:
`

// configuration is the text of the first holdfast.yaml: the example, with the
// contracts of these servers in force.
func configuration(servers []string) (string, error) {
	text := "# yaml-language-server: $schema=holdfast.schema.json\n" + string(config.Example())
	if len(servers) == 0 {
		return text, nil
	}
	var b strings.Builder
	b.WriteString(inForce)
	for _, name := range servers {
		items, err := contracts.ReadFile("contracts/" + name + ".yaml")
		if err != nil {
			return "", err
		}
		b.Write(items)
		b.WriteString("\n")
	}
	b.WriteString("# More of what a contract can say.\n")
	before, after, found := strings.Cut(text, boundariesKey)
	if !found {
		return "", fail("", "the example has no place for contracts")
	}
	return before + b.String() + after, nil
}
