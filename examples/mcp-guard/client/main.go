// Command client is an ordinary MCP client, written with the official Go SDK.
// It knows nothing of Holdfast but what a tool's result says. It does what an
// agent might do with a file server, prints every answer, and fails where an
// answer is not the expected one.
//
//	client -dir DIR -outside FILE -record FILE [-once] -- COMMAND [ARGUMENT...]
//
// DIR is shared and FILE is not. The crossings that matter go to the record,
// one "name id" a line, for whoever looks for them in the ledger.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience is how long the client asks again for what a person must decide.
const patience = 2 * time.Minute

func main() {
	dir := flag.String("dir", "", "the shared directory")
	outside := flag.String("outside", "", "a file that is not shared")
	record := flag.String("record", "", "where crossings are noted")
	once := flag.Bool("once", false, "end with what was approved: do not try to use the approval a second time, nor what nobody may")
	flag.Parse()
	if err := run(*dir, *outside, *record, *once, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(dir, outside, record string, once bool, argv []string) error {
	if dir == "" || outside == "" || record == "" || len(argv) == 0 {
		return fmt.Errorf("usage: client -dir DIR -outside FILE -record FILE [-once] -- COMMAND")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	note, err := os.Create(record)
	if err != nil {
		return err
	}
	defer note.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "mcp-guard-client", Version: "1"}, nil)
	s, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	return (&client{ctx: ctx, session: s, dir: dir, outside: outside, once: once, record: note}).work()
}

type client struct {
	ctx          context.Context
	session      *mcp.ClientSession
	dir, outside string
	once         bool
	record       io.Writer
}

// work is the whole visit. It stops at the first answer that it does not
// expect.
func (c *client) work() error {
	for _, step := range []func() error{c.list, c.inside, c.outsider, c.move, c.prohibited, c.paused} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// list wants the tools, without the one that is forbidden.
func (c *client) list() error {
	var names []string
	for t, err := range c.session.Tools(c.ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, t.Name)
	}
	fmt.Println("tools:", strings.Join(names, " "))
	for _, want := range []string{"read_text_file", "write_file", "move_file"} {
		if !slices.Contains(names, want) {
			return fmt.Errorf("the tool %s is not listed", want)
		}
	}
	if slices.Contains(names, "edit_file") {
		return fmt.Errorf("edit_file is prohibited, and listed")
	}
	return nil
}

// inside reads, writes and reads what was written.
func (c *client) inside() error {
	notes, report := filepath.Join(c.dir, "notes.txt"), filepath.Join(c.dir, "report.txt")
	if err := c.done("read", "read_text_file", map[string]any{"path": notes}, "buy milk"); err != nil {
		return err
	}
	if err := c.done("write", "write_file", map[string]any{"path": report, "content": "milk was bought\n"}, ""); err != nil {
		return err
	}
	return c.done("read-back", "read_text_file", map[string]any{"path": report}, "milk was bought")
}

// outsider tries to get at what is not shared, by its name and around it.
func (c *client) outsider() error {
	around := c.dir + "/../" + filepath.Base(filepath.Dir(c.outside)) + "/" + filepath.Base(c.outside)
	for _, try := range []struct {
		name, tool string
		args       map[string]any
	}{
		{"read-outside", "read_text_file", map[string]any{"path": c.outside}},
		{"read-around", "read_text_file", map[string]any{"path": around}},
		{"write-outside", "write_file", map[string]any{"path": c.outside, "content": "overwritten\n"}},
		{"write-around", "write_file", map[string]any{"path": around, "content": "overwritten\n"}},
	} {
		if err := c.refused(try.name, try.tool, try.args, "K8", "paths-inside"); err != nil {
			return err
		}
	}
	return c.refused("move-outside", "move_file",
		map[string]any{"source": filepath.Join(c.dir, "report.txt"), "destination": filepath.Join(filepath.Dir(c.outside), "stolen.txt")},
		"K8", "moves-inside")
}

// prohibited calls the tool that is not listed.
func (c *client) prohibited() error {
	if c.once {
		return nil
	}
	return c.refused("edit", "edit_file", map[string]any{"path": filepath.Join(c.dir, "notes.txt"),
		"edits": []map[string]any{{"oldText": "milk", "newText": "beer"}}}, "K7", "")
}

// paused finds that who tries what nobody may is paused until a person has looked:
// it is refused then what it was given before.
func (c *client) paused() error {
	if c.once {
		return nil
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		a, err := c.call("read_text_file", map[string]any{"path": filepath.Join(c.dir, "notes.txt")})
		if err != nil {
			return err
		}
		err = a.wants("refused", "halt", "")
		if err != nil && time.Now().Before(end) {
			continue // nobody who crosses waits for what follows from it
		}
		a.print("read-paused")
		c.note("paused", a)
		return err
	}
}

// move asks for what a person must decide, asks again until one has, and finds
// that the approval was for once.
func (c *client) move() error {
	args := map[string]any{"source": filepath.Join(c.dir, "report.txt"), "destination": filepath.Join(c.dir, "archive.txt")}
	first, err := c.call("move_file", args)
	if err != nil {
		return err
	}
	if first.verdict() == "hold" || first.IsError {
		if err := c.askAgain(first, args); err != nil {
			return err
		}
	} else {
		first.print("moved") // somebody decided while the call waited
	}
	if c.once {
		return nil
	}
	spent, err := c.call("move_file", args)
	if err != nil {
		return err
	}
	if err := spent.wants("held", "K7", ""); err != nil {
		return fmt.Errorf("the approval was good for a second move: %w", err)
	}
	spent.print("again")
	if spent.meta("review") == first.meta("review") {
		return fmt.Errorf("the review %s was used and is asked again", spent.meta("review"))
	}
	return nil
}

// askAgain notes what is held, and calls again until a person has decided.
func (c *client) askAgain(first *answer, args map[string]any) error {
	if err := first.wants("held", "K7", ""); err != nil {
		return err
	}
	first.print("held")
	c.note("held", first)
	fmt.Fprintln(c.record, "review", first.meta("review"))
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		again, err := c.call("move_file", args)
		switch {
		case err != nil:
			return err
		case again.verdict() == "hold" && again.meta("review") != first.meta("review"):
			return fmt.Errorf("the same call opened the review %s beside %s", again.meta("review"), first.meta("review"))
		case again.verdict() == "hold" && time.Now().Before(end):
			continue
		case again.IsError:
			return fmt.Errorf("after the decision: %s", again.text())
		}
		again.print("moved")
		return nil
	}
}

// done calls a tool and wants its result, with that text in it.
func (c *client) done(name, tool string, args map[string]any, want string) error {
	a, err := c.call(tool, args)
	if err != nil {
		return err
	}
	a.print(name)
	if a.IsError || !strings.Contains(a.text(), want) {
		return fmt.Errorf("%s: not done as expected", name)
	}
	return nil
}

// refused calls a tool and wants a refusal by that gate and rule, with its
// reason.
func (c *client) refused(name, tool string, args map[string]any, gate, rule string) error {
	a, err := c.call(tool, args)
	if err != nil {
		return err
	}
	a.print(name)
	if err := a.wants("refused", gate, rule); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.note(name, a)
	return nil
}

func (c *client) note(name string, a *answer) {
	fmt.Fprintln(c.record, name, a.meta("crossing"))
}

func (c *client) call(tool string, args map[string]any) (*answer, error) {
	r, err := c.session.CallTool(c.ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	return &answer{r}, nil
}

// answer is a tool's result, and what Holdfast says in it.
type answer struct{ *mcp.CallToolResult }

func (a *answer) text() string {
	var b strings.Builder
	for _, c := range a.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

// meta is a word of Holdfast's own in the result, "" if there is none.
func (a *answer) meta(name string) string {
	s, _ := a.Meta["dev.holdfast/"+name].(string)
	return s
}

func (a *answer) verdict() string { return a.meta("verdict") }

// wants says how an answer differs from a refusal, or a hold, with its reason.
func (a *answer) wants(word, gate, rule string) error {
	verdict := map[string]string{"refused": "deny", "held": "hold"}[word]
	switch {
	case !a.IsError || a.verdict() != verdict || !strings.HasPrefix(a.text(), word):
		return fmt.Errorf("it was not %s: %s", word, a.text())
	case a.meta("gate") != gate || !strings.HasPrefix(a.meta("rule"), rule):
		return fmt.Errorf("it was %s by gate %s, rule %s", word, a.meta("gate"), a.meta("rule"))
	case a.meta("crossing") == "":
		return fmt.Errorf("it was %s without a crossing's id", word)
	}
	return nil
}

// print writes the answer under its step's name.
func (a *answer) print(name string) {
	lines := bufio.NewScanner(strings.NewReader(a.text()))
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) != "" {
			fmt.Printf("%-13s | %s\n", name, lines.Text())
		}
	}
}
