package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/cli/early"
)

var writeHelp = flag.Bool("write-help", false, "write internal/cli/early/help.txt from the commands")

// TestHelpTextIsThatOfTheCommands compares the help that is printed early with that of
// the commands.
func TestHelpTextIsThatOfTheCommands(t *testing.T) {
	var want strings.Builder
	want.WriteString(early.FormatHelpTitle("") + overview())
	var add func(list []command, path string)
	add = func(list []command, path string) {
		for _, c := range list {
			name := join(path, c.name)
			want.WriteString(early.FormatHelpTitle(name) + helpText(c, name))
			add(c.sub, name)
		}
	}
	add(commands(), "")
	want.WriteString("\n-- ")
	if *writeHelp {
		if err := os.WriteFile("../../internal/cli/early/help.txt", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if early.HelpText != want.String() {
		t.Error("internal/cli/early/help.txt is not the help of the commands: run `go test ./cmd/holdfast -run TestHelpText -write-help`")
	}
	for _, words := range [][]string{nil, {"exec"}, {"ledger", "tail"}, {"agent"}, {"rules"}} {
		args := append([]string{"help"}, words...)
		err := (&app{}).dispatch(args)
		slow, ok := err.(*helpWanted)
		if fast, known := early.FindHelp(args); !ok || !known || fast != slow.text {
			t.Errorf("help %q differs", words)
		}
	}
	if _, known := early.FindHelp([]string{"help", "nothing"}); known {
		t.Error("there is help of a command that does not exist")
	}
}
