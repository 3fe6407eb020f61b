package router

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// panicWords are what the panics of these tests say. Only the hook gets them.
const panicWords = "lost canary-hunter2"

// hearPanics returns a hook that sends panics to heard.
func hearPanics(heard chan<- string) func(what, stack string) {
	return func(what, stack string) {
		if !strings.Contains(stack, "goroutine") {
			what += " without its stack"
		}
		heard <- what
	}
}

// brokenClient panics where it is read.
type brokenClient struct{}

func (brokenClient) Next() (mcp.Message, error) { panic(panicWords) }
func (brokenClient) Write(string, []byte) error { return nil }
func (brokenClient) Close() error               { return nil }

// TestPanicsOfTheReaderEndTheRouter: a panic of the goroutine that reads the client
// ends the router, and the hook of its servers hears it once.
func TestPanicsOfTheReaderEndTheRouter(t *testing.T) {
	heard := make(chan string, 8)
	one := (&backend{name: "one"}).upstream(t, &kernel{})
	two := (&backend{name: "two"}).upstream(t, &kernel{})
	one.Panicked, two.Panicked = hearPanics(heard), hearPanics(heard)
	if err := Serve(t.Context(), brokenClient{}, []Upstream{one, two}); !errors.Is(err, mcp.ErrPanicked) {
		t.Errorf("ServeAll: %v", err)
	}
	if n := len(heard); n != 1 || <-heard != panicWords {
		t.Errorf("the hook heard %d panics", n)
	}
}

// TestPanicsOfARouter: a panic in what belongs to no one server ends the router.
func TestPanicsOfARouter(t *testing.T) {
	heard := make(chan string, 8)
	r := &router{panicked: hearPanics(heard), mistaken: make(chan error, 1)}
	r.spawn(func() { panic(panicWords) })
	r.work.Wait()
	if err := <-r.mistaken; !errors.Is(err, mcp.ErrPanicked) {
		t.Error(err)
	}
	if n := len(heard); n != 1 || <-heard != panicWords {
		t.Errorf("the hook heard %d panics", n)
	}
}
