package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// Who reads an export gets every byte of it, and is done when the command is
// told to end, though nobody writes.
func TestVerifyReadsUntilItIsToldToEnd(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want))} {
		got, err := io.ReadAll(&untilDone{ctx: t.Context(), r: r})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	silent, w := io.Pipe()
	defer w.Close()
	if _, err := (&untilDone{ctx: ctx, r: silent}).Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read that nobody answers: %v", err)
	}
}

func TestVerifyTakesRegularFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fifo, t.TempDir(), "/dev/zero"} {
		if f, err := openPlain(name); err == nil {
			f.Close()
			t.Errorf("%s is taken", name)
		}
	}
}
