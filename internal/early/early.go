// Package early runs the commands that must start fast: version, help and the filters.
//
// Go initialises packages in the order of their import paths, each after those that it
// imports (Go specification, "Program initialization"). This package imports few
// others, so its init runs before those of protobuf, gRPC, OpenTelemetry, Prometheus
// and SQLite, which take longer than such a command. A command line that is not in
// its table is left to main, and so is every error, which main reports.
package early

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
)

// outcome is the result of a command that ran here and failed.
var outcome struct {
	ran bool
	err error
}

func init() {
	// A helper that the sandbox starts has another name, and a guest's init is process 1.
	if filepath.Base(os.Args[0]) != "holdfast" || os.Getpid() == 1 {
		return
	}
	run, known := findCommand(os.Args[1:])
	if !known {
		return
	}
	outcome.ran = true
	if outcome.err = runCommand(run); outcome.err == nil {
		os.Exit(0)
	}
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

// command is one of the commands that run here. A write error is its error: an answer
// that no one could read is none.
type command func(ctx context.Context) error

func runCommand(run command) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	_ = LimitCore()              // main says if it fails
	return run(ctx)
}

// LimitCore keeps the memory of this process, and of those that it starts, from being
// written to a disk if it crashes (with GOTRACEBACK=crash): the memory holds secrets
// that agents sent. One byte is too little for a core file, and tells Linux to pass
// none to a program that takes them.
func LimitCore() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Cur == 0 && l.Max == 0 {
		return nil // only such a program could have one
	}
	l.Cur = 1
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
