package deadline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func closed(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// A limited context is a context: it ends by its time, its parent and its end,
// and what Err and Done say agrees, whichever is asked first.
func TestLimit(t *testing.T) {
	ends := []struct {
		name string
		end  func(parent, own context.CancelFunc)
		want error
	}{
		{"by time", func(context.CancelFunc, context.CancelFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"by its parent", func(parent, _ context.CancelFunc) { parent() }, context.Canceled},
		{"by its own end", func(_, own context.CancelFunc) { own() }, context.Canceled},
	}
	for _, e := range ends {
		for _, waited := range []bool{false, true} {
			for _, doneFirst := range []bool{false, true} {
				t.Run(e.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						parent, stop := context.WithCancel(t.Context())
						defer stop()
						ctx, end := After(parent, time.Second)
						defer end()
						if ctx.Err() != nil || (waited && closed(ctx)) {
							t.Fatal("over before its end")
						}
						e.end(stop, end)
						synctest.Wait()
						if doneFirst && !closed(ctx) {
							t.Fatal("not done")
						}
						if err := ctx.Err(); !errors.Is(err, e.want) {
							t.Fatalf("got %v, want %v", err, e.want)
						}
						if !closed(ctx) {
							t.Fatal("has an error and is not done")
						}
					})
				})
			}
		}
	}
}

func TestLimitDeadline(t *testing.T) {
	parent, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for d, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: time.Minute} {
		ctx, end := After(parent, d)
		at, ok := ctx.Deadline()
		if left := time.Until(at); !ok || left > want || left < want-10*time.Second {
			t.Errorf("%v: the deadline is in %v", d, left)
		}
		end()
	}
}
