package kernel_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/ledger"
)

const writerDir = "HOLDFAST_TEST_CRASH_WRITER"

// TestCrashWriter is the program that TestKill9 kills: it crosses as fast as it
// can and prints each crossing that it was told of.
func TestCrashWriter(t *testing.T) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		return // it is a program for TestKill9, not a test
	}
	w := reopen(t, dir, "", unlimited)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 8 {
		tok := w.who("alice")
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				req := holdfast.Request{Boundary: "test/cost", Payload: fmt.Appendf(nil, `{"g":%d,"i":%d}`, g, i), Token: tok}
				if i%5 == 4 {
					req.Boundary = "test/never"
				}
				out, err := w.k.Cross(context.Background(), req, func(context.Context) (holdfast.Output, error) {
					return holdfast.Output{Body: []byte(`{}`), Used: map[holdfast.Resource]int64{holdfast.LLMTokens: 3}}, nil
				})
				word := ledger.Done
				if err != nil {
					word = ledger.Denied
				}
				mu.Lock()
				fmt.Printf("ack %s %s\n", out.Crossing, word)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

// TestKill9 kills the writer at random, again and again, ten times on each
// ledger. Afterwards no acknowledged entry is missing, none is doubled, every
// begun crossing is closed, no budget is spent twice, and the tree verifies.
func TestKill9(t *testing.T) {
	const times = 10
	for i := range testrepeat.Times(200, times) / times {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			acked := map[string]ledger.Outcome{}
			for range times {
				killOnce(t, dir, acked)
			}
			w := reopen(t, dir, "", unlimited)
			if len(acked) < times {
				t.Fatalf("only %d acknowledged crossings in %d lives: the writer did not write", len(acked), times)
			}
			unknown := checkAfterCrash(t, w, acked)
			t.Logf("%d lives, %d acknowledged crossings, %d left unknown", times, len(acked), unknown)
		})
	}
}

func killOnce(t *testing.T, dir string, acked map[string]ledger.Outcome) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashWriter$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var once sync.Once
	for lines.Scan() {
		once.Do(func() {
			time.AfterFunc(time.Duration(rand.IntN(40_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		})
		id, outcome, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "ack "), " ")
		if !ok || (outcome != string(ledger.Done) && outcome != string(ledger.Denied)) {
			continue // the line on which it died
		}
		acked[id] = ledger.Outcome(outcome)
	}
	once.Do(func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
}

func checkAfterCrash(t *testing.T, w *world, acked map[string]ledger.Outcome) (unknown int) {
	t.Helper()
	begins, entries, used := map[string]bool{}, map[string]ledger.Outcome{}, int64(0)
	w.leaves(holdfast.Local, func(l ledger.Stored) {
		switch l.Kind {
		case ledger.KindBegin:
			if begins[l.Crossing] {
				t.Errorf("crossing %s begins twice", l.Crossing)
			}
			begins[l.Crossing] = true
		case ledger.KindEntry:
			e, err := ledger.ParseEntry(l.Record)
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := entries[e.ID]; twice {
				t.Errorf("crossing %s has two entries", e.ID)
			}
			entries[e.ID] = e.Outcome
			if e.Outcome == ledger.Unknown {
				unknown++
			}
			for _, u := range e.Uses {
				if u.Used != nil && u.Draw.Limit == 1<<40 {
					used += *u.Used
				}
			}
		}
	})
	for id, outcome := range acked {
		if entries[id] != outcome {
			t.Errorf("crossing %s was acknowledged as %s; the ledger has %q", id, outcome, entries[id])
		}
	}
	for id := range begins {
		if entries[id] == "" {
			t.Errorf("crossing %s began and was never closed", id)
		}
	}
	for _, d := range w.plan(holdfast.LLMTokens, 1) {
		if got := w.used(d); d.Limit == 1<<40 && got != used {
			t.Errorf("the counter says %d, the entries %d", got, used)
		}
	}
	verifyStore(t, w)
	return unknown
}
