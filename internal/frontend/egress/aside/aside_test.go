package aside

import (
	"io"
	"testing"
)

// A panic of what is done aside is an error, and goroutines that are kept end.
func TestAsides(t *testing.T) {
	var s Pool
	if err := s.Do(func() error { panic("x") }); err == nil {
		t.Error("a panic is no error")
	}
	if err := s.Do(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("%v", err)
	}
	if n := len(s.idle); n != 1 {
		t.Errorf("%d are kept", n)
	}
	s.Stop()
	if err := s.Do(func() error { return nil }); err != nil || len(s.idle) > 0 {
		t.Errorf("%v, %d are kept", err, len(s.idle))
	}
}
