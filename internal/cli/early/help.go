package early

import (
	_ "embed"
	"strings"
)

// HelpText has the help of every command, each after a line "-- COMMAND --". It is
// written from the commands themselves: see TestHelpTextIsThatOfTheCommands in
// cmd/holdfast.
//
//go:embed help.txt
var HelpText string

// FindHelp returns the help that args ask for, of a command that exists.
func FindHelp(args []string) (string, bool) {
	switch {
	case len(args) == 0:
	case args[0] == "help":
		args = args[1:]
	case args[len(args)-1] == "--help" || args[len(args)-1] == "-h":
		args = args[:len(args)-1]
	default:
		return "", false
	}
	for _, arg := range args {
		if arg == "" || strings.Contains(arg, " ") {
			return "", false
		}
	}
	_, text, ok := strings.Cut(HelpText, FormatHelpTitle(strings.Join(args, " ")))
	text, _, _ = strings.Cut(text, "\n-- ")
	return text, ok
}

// FormatHelpTitle returns the line before the help of a command.
func FormatHelpTitle(command string) string { return "\n-- " + command + " --\n" }
