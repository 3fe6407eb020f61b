package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pipeEnd is the writing end of a pipe as a Prompt.
type pipeEnd struct{ *os.File }

func (p pipeEnd) Prompt() (syscall.RawConn, error) { return p.SyscallConn() }

// piped is an outbox on a pipe, and the pipe's other end.
func piped(t *testing.T) (*outbox, *os.File, func() error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	o := newOutbox(promptly(pipeEnd{w}))
	if o.now == nil {
		t.Fatal("a pipe is no prompt")
	}
	return o, r, func() error {
		return o.run(func(_ string, line []byte) error { _, err := w.Write(append(line, '\n')); return err })
	}
}

// TestOutboxPrompt: a line that nothing waits before leaves without the writer.
func TestOutboxPrompt(t *testing.T) {
	o, r, _ := piped(t)
	in := bufio.NewReader(r)
	for _, line := range []string{"a", "b"} {
		if q, err := o.put(t.Context(), "", []byte(line)); err != nil || o.withdraw(q) {
			t.Fatalf("%v, or a line that has left was taken back", err)
		}
		if got, err := in.ReadString('\n'); got != line+"\n" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if o.bytes != 0 || len(o.lines) != 0 || o.left {
		t.Errorf("%d bytes and %d lines are counted", o.bytes, len(o.lines))
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errCanceled)
	if q, err := o.put(ended, "", []byte("c")); q != nil || !errors.Is(err, errCanceled) {
		t.Errorf("taken after its end: %v", err)
	}
}

// TestOutboxPromptFull: where the peer has no room, what it did not take follows,
// whole and in order, whatever came meanwhile and though the end drops the rest.
func TestOutboxPromptFull(t *testing.T) {
	for _, drop := range []bool{false, true} {
		o, r, run := piped(t)
		long := strings.Repeat("x", 1<<20)
		ended, end := context.WithCancelCause(t.Context())
		q, err := o.put(ended, "", []byte(long))
		if err != nil || q.rest == nil || o.withdraw(q) {
			t.Fatalf("%v, or a pipe took a megabyte", err)
		}
		if _, err := o.put(t.Context(), "", []byte("after")); err != nil {
			t.Fatal(err)
		}
		end(errCanceled) // half a line cannot be taken back
		o.end(drop)
		wrote := make(chan error, 1)
		go func() { wrote <- run(); o.now.Writer.(pipeEnd).Close() }()
		got, err := io.ReadAll(r)
		want := long + "\nafter\n"
		if drop {
			want = long + "\n"
		}
		if err != nil || string(got) != want || <-wrote != nil || o.bytes != 0 {
			t.Errorf("drop %v: read %d bytes, not %d: %v", drop, len(got), len(want), err)
		}
	}
}

// TestOutboxPromptGone: a peer that has gone is found by the writer, once, and
// nothing is taken any more.
func TestOutboxPromptGone(t *testing.T) {
	o, r, run := piped(t)
	r.Close()
	if _, err := o.put(t.Context(), "", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := run(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the writer ended with %v", err)
	}
	if _, err := o.put(t.Context(), "", []byte("b")); !errors.Is(err, ErrPeerGone) {
		t.Errorf("taken after the end: %v", err)
	}
}

// TestOutboxPromptRace: lines of many senders, with a peer that reads slowly and
// a writer beside them, leave whole and once each.
func TestOutboxPromptRace(t *testing.T) {
	o, r, run := piped(t)
	wrote := make(chan error, 1)
	go func() { wrote <- run(); o.now.Writer.(pipeEnd).Close() }()
	var senders sync.WaitGroup
	for i := range 8 {
		senders.Go(func() {
			line := bytes.Repeat([]byte{byte('a' + i)}, 1+i*9000)
			for range 100 {
				if _, err := o.put(t.Context(), "", bytes.Clone(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { senders.Wait(); o.end(false) }()
	count := map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if n := len(count); n%50 == 0 {
			time.Sleep(time.Microsecond)
		}
		if line := lines.Text(); line == strings.Repeat(line[:1], 1+int(line[0]-'a')*9000) {
			count[line[:1]]++
		} else {
			t.Fatalf("a line of %d bytes is torn", len(line))
		}
	}
	if err := <-wrote; err != nil || lines.Err() != nil {
		t.Fatal(err, lines.Err())
	}
	for i := range 8 {
		if n := count[string(byte('a'+i))]; n != 100 {
			t.Errorf("%c came %d times", 'a'+i, n)
		}
	}
}
