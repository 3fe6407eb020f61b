// Package early prints help before most packages are initialised; its packages filters and
// buildinfo answer key, redact and version.
//
// Go initialises packages in the order of their import paths, each after those that it
// imports (Go specification, "Program initialization"). This package imports only standard
// packages that all others need too. So its init runs before those of protobuf, gRPC,
// OpenTelemetry, Prometheus and SQLite, which take longer than the command does. Package
// runtime/debug, which version needs, is itself initialised late. A command line that is
// not known here is left to main, and so is every error, which main reports.
//
// To add a command: cmd/holdfast has it too; call Run in the init of a package below this
// one, import that package from cmd/holdfast, add it to floors_test.go and README.md, and
// measure with `go run -C bench . kernel --only start`.
package early

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// outcome is the result of a command that ran here and failed.
var outcome struct {
	ran bool
	err error
}

func init() { Run(findCommand) }

// Run runs the command that find returns for the command line, if there is one, and
// ends the process if it succeeds. It is called by an init function.
func Run(find func(args []string) (command func() error, known bool)) {
	// A helper that the sandbox starts has another name, and a guest's init is process 1.
	name := os.Args[0][strings.LastIndexByte(os.Args[0], '/')+1:]
	if name != "holdfast" || os.Getpid() == 1 || outcome.ran {
		return
	}
	command, known := find(os.Args[1:])
	if !known {
		return
	}
	outcome.ran = true
	if outcome.err = protect(command); outcome.err == nil {
		os.Exit(0)
	}
}

// protect calls command and returns its panic as a PanicError.
func protect(command func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := make([]byte, 64<<10)
			err = &PanicError{v, stack[:runtime.Stack(stack, false)]}
		}
	}()
	return command()
}

// Outcome reports whether the command ran here, and returns its error.
func Outcome() (ran bool, err error) { return outcome.ran, outcome.err }

// IsInterrupted reports whether a signal ended the command that ran here.
func IsInterrupted() bool { return errors.Is(outcome.err, context.Canceled) }

// PanicError is a panic of a command that ran here.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprint(e.Value) }

// findCommand returns the command that prints help, if args ask for it. A write error is
// the command's error.
func findCommand(args []string) (func() error, bool) {
	text, known := FindHelp(args)
	return func() error {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}, known
}
