package stream

import (
	"io"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/literal"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// pattern is an endless text made of one unit.
type pattern struct {
	unit []byte
	left int
	at   int
}

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), p.left)
	for i := range n {
		b[i] = p.unit[p.at]
		if p.at++; p.at == len(p.unit) {
			p.at = 0
		}
	}
	p.left -= n
	return n, nil
}

// kept is how much memory a stream has in use.
func kept(s *Stream) int {
	n := 0
	for t := s.first; t != nil; t = t.next {
		n += cap(t.raw.s) + cap(t.folded.S) + cap(t.piece) + 64*(cap(t.edits)+cap(t.raw.out))
		if u := t.unfolded; u != nil {
			n += cap(u.s) + 64*(cap(u.edits)+cap(u.out))
		}
	}
	return n
}

// A stream's memory does not grow with its text, whatever that is; each is
// longer than what may be held, and without a line break.
func TestStreamMemoryIsConstant(t *testing.T) {
	secrets, err := literal.New([]holdfast.Secret{
		holdfast.NewSecret("canary-of-the-tenant"), holdfast.NewSecret(strings.Repeat("a", 40)),
	})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(secrets, mask.Style{})
	const little, much = 1 << 19, 5 << 18 // bytes that may be held
	units := map[string]int{
		"a": little, "the quick brown fox ": little, "aB3": little, "password=hunter2 ": little, "bob@example.com ": little, "cookie: x ": little,
		`\u0041`: much, `\u0041 `: little, "-----BEGIN PRIVATE KEY-----": little, "4111 ": little, "eyJa": little, "\x00": little, "(": little,
	}
	for unit, most := range units {
		s := Open(e, io.Discard)
		in := &pattern{unit: []byte(unit), left: most + most/8}
		if testrepeat.Enduring {
			in.left = 8 << 20
		}
		if _, err := io.WriteString(s, "x "); err != nil {
			t.Fatal(err)
		}
		peak, buf := 0, make([]byte, 16<<10)
		for {
			n, err := in.Read(buf)
			if err != nil {
				break
			}
			if _, err := s.Write(buf[:n]); err != nil {
				t.Fatal(err)
			}
			peak = max(peak, kept(s))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if peak > most {
			t.Errorf("%q: %d bytes held", unit, peak)
		}
		t.Logf("%q: %d KiB", unit, peak>>10)
	}
}
