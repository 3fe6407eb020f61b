package console

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// One browser opens streams without end: it keeps the newest four, and another
// browser gets its own.
func TestAttack_one_browser_takes_every_stream(t *testing.T) {
	w := newWorld(t)
	a, b := w.signedIn(), w.signedIn()
	open := func(b *browser) io.Reader {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", w.base+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.hc.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		return resp.Body
	}
	first := open(a)
	for range maxStreams + 8 {
		open(a)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(io.Discard, first) }()
	select {
	case <-ended:
	case <-time.After(beat * 3 / 4):
		t.Error("the oldest stream of a browser goes on beside four newer ones")
	}
	open(b)
	for start := time.Now(); len(w.site.streams) > maxOwnStreams+1; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("%d streams are open", len(w.site.streams))
		}
	}
}
