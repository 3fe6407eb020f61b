package escape

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Unfold writes out the escapes \u0020 to \u007e of s, so that a secret in
// JSON inside a string is seen. It returns nil where there is none.
func Unfold(s []byte) ([]byte, []span.Edit) {
	if bytes.IndexByte(s, '\\') < 0 || !bytes.Contains(s, []byte(`\u00`)) {
		return nil, nil
	}
	var f Folded
	f.Write(s, true)
	if f.Edits == nil {
		return nil, nil
	}
	return f.S, f.Edits
}

// Folded is a text whose escapes are being written out; in and out count the
// bytes read and written.
type Folded struct {
	S       []byte
	Edits   []span.Edit
	In, Out int
}

// Write reads t, but for an escape at its end that is cut off and not final.
func (f *Folded) Write(t []byte, final bool) {
	for len(t) > 0 {
		n := bytes.IndexByte(t, '\\')
		if n < 0 {
			n = len(t)
		}
		if n == 0 {
			c, w := unescape(t)
			if w < 0 && !final {
				return
			}
			if w > 0 {
				f.Edits = append(f.Edits, span.Edit{Start: f.In, End: f.In + w, Out: f.Out, N: 1})
				f.S = append(f.S, c)
				f.In, f.Out, t = f.In+w, f.Out+1, t[w:]
				continue
			}
			n = 1
		}
		f.S = append(f.S, t[:n]...)
		f.In, f.Out, t = f.In+n, f.Out+n, t[n:]
	}
}

// unescape reads the escape that t begins with; its width is 0 where there is
// none and -1 where t is too short to tell.
func unescape(t []byte) (c byte, width int) {
	if n := min(len(t), 4); string(t[:n]) != `\u00`[:n] {
		return 0, 0
	}
	if len(t) < 6 {
		return 0, -1
	}
	hi, lo := char.Unhex(t[4]), char.Unhex(t[5])
	c = hi<<4 | lo
	if hi < 2 || hi > 7 || lo > 15 || c == 0x7f || c == '"' || c == '\\' {
		return 0, 0
	}
	return c, 6
}

// Has says whether an escape stands in s, or may begin at its end.
func Has(s []byte) bool {
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return false
		}
		if _, w := unescape(s[n:]); w != 0 {
			return true
		}
		s = s[n+1:]
	}
}

// MaxLen is the length of an escape.
const MaxLen = 6
