package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
)

// helpWanted asks for a text on standard output and exit code 0.
type helpWanted struct{ text string }

func (*helpWanted) Error() string { return "help" }

const intro = `Holdfast is a safety runtime for autonomous agents. Whatever an agent does is
one crossing: judged by eight gates, written down before it takes effect, and
stopped by a person at any moment.

    holdfast COMMAND [flags] [arguments]

`

const outro = `
Every command takes, before or after its name:

    --state DIR     the state directory; $HOLDFAST_STATE (absolute), else
                    ~/.local/state/holdfast
    --config FILE   the configuration; $HOLDFAST_CONFIG, else
                    ~/.config/holdfast/holdfast.yaml, if there is one
    --json          print JSON, on everything that reads
    --tenant NAME   whose reviews, agents and ledger; local if absent
    --verbose       say which state is used, and a run's crossing

Exit codes: 0 yes, 1 error, 2 usage, 3 refused, 4 held for a person, 5 halted.

Look at what would happen, take a step, and see what was written down:

    holdfast explain agent/step '{"action":"plan"}'
    holdfast step nightly plan
    holdfast ledger tail

Then ` + "`holdfast init`" + ` makes the key with which you approve and resume. An MCP
server stands behind the gates when your client starts it as

    holdfast mcp -- npx -y @modelcontextprotocol/server-filesystem .

` + "`holdfast help COMMAND` says more.\n"

func overview() string {
	var b strings.Builder
	b.WriteString(intro)
	list(&b, commands())
	b.WriteString(outro)
	return b.String()
}

func list(b *strings.Builder, cs []command) {
	for _, c := range cs {
		fmt.Fprintf(b, "    %-10s  %s\n", c.name, c.about)
	}
}

func helpText(c command, path string) string {
	var b strings.Builder
	b.WriteString(strings.TrimLeft(c.help, "\n"))
	if c.sub != nil {
		b.WriteString("\n")
		list(&b, c.sub)
		fmt.Fprintf(&b, "\n`holdfast help %s COMMAND` says more.\n", path)
	}
	return b.String()
}

func helpFor(words []string) error {
	cs, path := commands(), ""
	if len(words) == 0 {
		return &helpWanted{overview()}
	}
	for i, w := range words {
		c, ok := find(cs, w)
		if !ok {
			return unknown(path, w, cs)
		}
		path = join(path, c.name)
		if i == len(words)-1 {
			return &helpWanted{helpText(c, path)}
		}
		cs = c.sub
	}
	return nil
}

func names(cs []command) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}

// unknown is the error for a command that is not there, with the nearest one.
func unknown(path, word string, cs []command) error {
	best, distance := "", 3
	for _, c := range cs {
		if d := suggest.CountEdits(word, c.name); d < distance && 2*d < max(len(word), len(c.name)) {
			best, distance = c.name, d
		}
	}
	hint := "`holdfast help" + prefix(" ", path) + "` lists the commands"
	if best != "" {
		hint = "did you mean `holdfast " + join(path, best) + "`?"
	}
	return usage(hint, "there is no command %q", strings.TrimSpace(path+" "+word))
}
