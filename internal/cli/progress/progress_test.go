package progress

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCounterWritesAtMostOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := NewCounter(&out, true, 0)
		c.SetCount(5, 0)
		if out.Len() > 0 {
			t.Errorf("wrote %q within the first interval", out.String())
		}
		time.Sleep(minInterval)
		c.SetCount(7, 0)
		c.SetCount(8, 20)
		time.Sleep(minInterval)
		c.SetCount(9, 20)
		c.Clear()
		if want := "\r7 leaves \r9 of 20 leaves \r\x1b[K"; out.String() != want {
			t.Errorf("wrote %q, want %q", out.String(), want)
		}
	})
}

func TestCounterCountsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := NewCounter(&out, true, 0)
		time.Sleep(minInterval)
		text := strings.Repeat("a\n", checkEvery+1)
		got, err := io.ReadAll(c.CountLines(strings.NewReader(text)))
		if err != nil || string(got) != text {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if want := "\r16384 leaves "; out.String() != want {
			t.Errorf("wrote %q, want %q", out.String(), want)
		}
	})
}

func TestCounterIsSilentInAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := NewCounter(&out, false, 10)
		time.Sleep(minInterval)
		c.SetCount(10, 10)
		c.Clear()
		if out.Len() > 0 {
			t.Errorf("wrote %q", out.String())
		}
	})
}
