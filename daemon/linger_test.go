package daemon

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestLingerWaitsForConnections: a person who types a passphrase asks nothing, and the
// daemon must not end meanwhile.
func TestLingerWaitsForConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clients
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		ended := false
		go c.linger(ctx, func() { ended = true })
		c.trackConn(here, http.StateNew)
		c.trackConn(here, http.StateActive)
		c.enter(true)
		c.leave(true)
		c.trackConn(here, http.StateIdle)
		time.Sleep(2 * lingerFirst)
		if synctest.Wait(); ended || c.count() != 1 {
			t.Errorf("with a connection that rests: ended %v, %d clients", ended, c.count())
		}
		c.trackConn(here, http.StateActive)
		c.enter(true) // as a handler that takes the connection over
		c.trackConn(here, http.StateHijacked)
		time.Sleep(2 * lingerFirst)
		if synctest.Wait(); ended || c.count() != 1 {
			t.Errorf("with a connection that was taken over: ended %v, %d clients", ended, c.count())
		}
		c.leave(true)
		time.Sleep(2 * lingerAfter)
		if synctest.Wait(); !ended {
			t.Error("it did not end after its last client")
		}
	})
}
