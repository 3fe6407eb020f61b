package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// ErrPanicked is the end of what panicked: holdfast is wrong there, and nobody
// knows what it left.
var ErrPanicked = errors.New("holdfast made a mistake here and ended this; its log has the cause")

// Guard runs f and returns its error. Where f panics, hook is told with what,
// and the stack, and the error is ErrPanicked. Go itself would end the program
// and write the words to standard error as they are; they may be anybody's, and
// whoever writes hook's elsewhere masks them first.
func Guard(hook func(what, stack string), f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			hook(fmt.Sprint(p), string(debug.Stack()))
			err = ErrPanicked
		}
	}()
	return f()
}

// LogPanic returns a hook for Guard that writes to log.
func LogPanic(log *slog.Logger) func(what, stack string) {
	return func(what, stack string) { log.Error("the MCP gateway panicked", "panic", what, "stack", stack) }
}
