package memory

import (
	"bytes"
	"fmt"
	"testing"
)

func TestMemoryKeepsWhatIsPutInAndClearsWhatItCameFrom(t *testing.T) {
	var m Memory
	from := []byte("hunter22-hunter22")
	s := m.Secret(from)
	if s.Reveal() != "hunter22-hunter22" || !bytes.Equal(from, make([]byte, len(from))) {
		t.Errorf("kept %q, left %q", s.Reveal(), from)
	}
	if fmt.Sprint(s) != "REDACTED" || m.Secret(nil).Reveal() != "" {
		t.Error("it prints itself")
	}
	for n := range 40 {
		b := m.Buffer(n * 1000)
		if len(b) != n*1000 || cap(b) != n*1000 {
			t.Fatalf("asked for %d, got %d of %d", n*1000, len(b), cap(b))
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatal("it is not fresh")
			}
			b[i] = 1
		}
	}
	if s.Reveal() != "hunter22-hunter22" {
		t.Error("what came later overwrote it")
	}
	t.Logf("trouble: %q", m.Trouble())
}
