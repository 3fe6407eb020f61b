package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Ten run, a hundred wait for thirty seconds, one of the large ones at a time.
func TestExecutionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x executions
		var leave []func()
		for range maxExecutions {
			l, err := x.enter(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		waited := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				l, err := x.enter(context.Background(), 1)
				if err == nil {
					l()
				}
				waited <- err
			}()
		}
		synctest.Wait()
		if _, err := x.enter(t.Context(), 1); holdfast.KindOf(err) != holdfast.KindTimeout {
			t.Error("one too many waits:", err)
		}
		leave[0]()
		for range maxWaiting {
			if err := <-waited; err != nil {
				t.Error(err)
			}
		}
		start := time.Now()
		l, err := x.enter(t.Context(), -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.enter(t.Context(), largeBody+1); holdfast.KindOf(err) != holdfast.KindTimeout || time.Since(start) != executionWait {
			t.Error("two large ones at once:", err, time.Since(start))
		}
		l()
		for _, l := range leave[1:] {
			l()
		}
		if len(x.running)+len(x.large) != 0 || x.waiting.Load() != 0 {
			t.Error("somebody is counted who has left")
		}
	})
}
