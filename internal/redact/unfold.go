package redact

import "bytes"

// unfold writes out the escapes \u0020 to \u007e of s, so that a secret in
// JSON inside a string is seen. It returns nil where there is none.
func unfold(s []byte) ([]byte, []edit) {
	if bytes.IndexByte(s, '\\') < 0 || !bytes.Contains(s, []byte(`\u00`)) {
		return nil, nil
	}
	var f folded
	f.write(s, true)
	if f.edits == nil {
		return nil, nil
	}
	return f.s, f.edits
}

// folded is a text whose escapes are being written out; in and out count the
// bytes read and written.
type folded struct {
	s       []byte
	edits   []edit
	in, out int
}

// write reads t, but for an escape at its end that is cut off and not final.
func (f *folded) write(t []byte, final bool) {
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
				f.edits = append(f.edits, edit{f.in, f.in + w, f.out, 1})
				f.s = append(f.s, c)
				f.in, f.out, t = f.in+w, f.out+1, t[w:]
				continue
			}
			n = 1
		}
		f.s = append(f.s, t[:n]...)
		f.in, f.out, t = f.in+n, f.out+n, t[n:]
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
	hi, lo := unhex(t[4]), unhex(t[5])
	c = hi<<4 | lo
	if hi < 2 || hi > 7 || lo > 15 || c == 0x7f || c == '"' || c == '\\' {
		return 0, 0
	}
	return c, 6
}

// hasEscape says whether an escape stands in s, or may begin at its end.
func hasEscape(s []byte) bool {
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

// maxEscape is the length of an escape.
const maxEscape = 6
