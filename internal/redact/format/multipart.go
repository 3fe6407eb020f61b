package format

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// delimiter returns where the next line that is delim begins in b from i on,
// and what follows it; -1 where there is none (RFC 2046 section 5.1.1). A
// boundary within a line, or at the head of a longer word, is content.
func delimiter(b []byte, delim string, i int) (at, next int) {
	for i < len(b) {
		k := bytes.Index(b[i:], []byte(delim))
		if k < 0 {
			return -1, -1
		}
		at = i + k
		i = at + len(delim)
		if at > 0 && b[at-1] != '\n' {
			continue
		}
		rest := bytes.TrimPrefix(b[i:], []byte("--"))
		rest = bytes.TrimLeft(rest[:min(len(rest), 256)], " \t")
		over := len(b) - i
		switch {
		case len(rest) == 0:
			return at, len(b)
		case rest[0] == '\n', rest[0] == '\r' && len(rest) > 1 && rest[1] == '\n':
			return at, i + bytes.IndexByte(b[i:i+over], '\n') + 1
		}
	}
	return -1, -1
}

// multipart redacts every part by what it is, its head too, and what stands
// before the first and after the last as text. The boundary stays.
func (n *nest) multipart(boundary string, b []byte, level int, opaque bool) (finding.Result, error) {
	if level >= maxLevels {
		return finding.Result{}, unscannable("multipart in multipart more than 4 times", nil)
	}
	if n.e.Text([]byte(boundary)).Found() {
		return finding.Result{}, unscannable("a boundary in which there is something to mask", nil)
	}
	delim := "--" + boundary
	d := draft{in: b}
	at, next := delimiter(b, delim, 0)
	if err := n.plain(&d, 0, at, level); err != nil {
		return finding.Result{}, err
	}
	for number := 1; at >= 0; number++ {
		closing := bytes.HasPrefix(b[at+len(delim):], []byte("--"))
		start := next
		if at, next = delimiter(b, delim, start); at < 0 {
			at = -1
		}
		end := len(b)
		if at >= 0 {
			end = at - len(newlineBefore(b, start, at))
		}
		var err error
		if closing {
			err = n.plain(&d, start, end, level)
		} else {
			err = n.part(&d, start, end, delim, level, opaque)
		}
		if err != nil {
			return finding.Result{}, within(err, "part "+strconv.Itoa(number))
		}
	}
	return d.result(), nil
}

// newlineBefore returns the end of line before at, which belongs to the
// delimiter there.
func newlineBefore(b []byte, from, at int) string {
	switch {
	case at-2 >= from && b[at-2] == '\r' && b[at-1] == '\n':
		return "\r\n"
	case at-1 >= from && b[at-1] == '\n':
		return "\n"
	}
	return ""
}

// part redacts the part in [from, to).
func (n *nest) part(d *draft, from, to int, delim string, level int, opaque bool) error {
	head, body := splitHead(d.in, from, to)
	p, err := n.partHead(d, from, head, level)
	if err != nil {
		return err
	}
	content := d.in[body:to]
	if k := n.e.NameKind(p.name); fieldname.CanHold(k, content) && !p.file {
		if mask.Len(content) != len(content) {
			r := fieldRule(k)
			d.findings = append(d.findings, finding.Finding{Rule: rule.Names[r], Offset: body, Length: to - body})
			d.replace(body, to, n.e.AppendMask(nil, r, content))
		}
		return nil
	}
	r, err := n.content(p, content, level, opaque)
	if err != nil {
		return err
	}
	if at, _ := delimiter(r.Out, delim, 0); r.Found() && at >= 0 {
		return unscannable("what is masked would end the part", nil)
	}
	d.take(body, to, r)
	return nil
}

// splitHead returns where the head of the part in [from, to) ends and its
// content begins. A part may have no head.
func splitHead(b []byte, from, to int) (head, body int) {
	for i := from; i < to; {
		end, next := lineEnd(b[:to], i)
		if end == i {
			return i, next
		}
		i = next
	}
	return to, to
}

// partInfo is what the head of a part says.
type partInfo struct {
	kind     string // Content-Type
	encoding string // Content-Transfer-Encoding, in lower case
	name     []byte
	file     bool
}

// partHead redacts the fields in [from, to) and says what they are.
func (n *nest) partHead(d *draft, from, to int, level int) (partInfo, error) {
	var p partInfo
	for i := from; i < to; {
		end, next := lineEnd(d.in[:to], i)
		for next < to && char.Class[d.in[next]]&char.Blank != 0 {
			end, next = lineEnd(d.in[:to], next)
		}
		line := d.in[i:end]
		name, value, _ := bytes.Cut(line, []byte(":"))
		text := strings.TrimSpace(string(value))
		switch strings.ToLower(strings.TrimSpace(string(name))) {
		case "content-type":
			p.kind = text
		case "content-transfer-encoding":
			p.encoding = strings.ToLower(text)
		case "content-disposition":
			p.disposition(value)
		}
		r, err := n.fieldLine(line, level)
		if err != nil {
			return p, err
		}
		d.take(i, end, r)
		i = next
	}
	return p, nil
}

// disposition reads a form field's name and whether it is a file.
func (p *partInfo) disposition(value []byte) {
	for _, a := range params(value) {
		text := a.text(value)
		switch a.key {
		case "name", "name*":
			p.name = text
		case "filename", "filename*":
			p.file = true
		}
	}
}

// content redacts a part's content, decoded from what its head says.
func (n *nest) content(p partInfo, b []byte, level int, opaque bool) (finding.Result, error) {
	var text []byte
	switch p.encoding {
	case "", "7bit", "8bit", "binary":
		return n.doc(p.kind, b, level+1, opaque)
	case "base64":
		var err error
		if text, err = base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(b), nil))); err != nil {
			return n.doc(p.kind, b, level+1, opaque) // to most readers it is what it is
		}
	case "quoted-printable":
		var err error
		if text, err = io.ReadAll(quotedprintable.NewReader(bytes.NewReader(b))); err != nil {
			return n.doc(p.kind, b, level+1, opaque)
		}
	default:
		return finding.Result{}, unscannable("a part in an encoding that is not known", nil)
	}
	if err := n.spend(len(text)); err != nil {
		return finding.Result{}, err
	}
	r, err := n.doc(p.kind, text, level+1, opaque)
	if err != nil || !r.Found() {
		if err != nil {
			return r, err
		}
		return n.doc("", b, level+1, opaque)
	}
	d := draft{in: b}
	d.whole(0, len(b), r.Findings)
	if p.encoding == "base64" {
		d.replace(0, len(b), mimeLines(r.Out))
		return d.result(), nil
	}
	var q bytes.Buffer
	w := quotedprintable.NewWriter(&q)
	_, _ = w.Write(r.Out) // a buffer takes everything
	_ = w.Close()
	d.replace(0, len(b), q.Bytes())
	return d.result(), nil
}

// mimeLines is base64 in lines of 76 (RFC 2045 section 6.8).
func mimeLines(text []byte) []byte {
	b := []byte(base64.StdEncoding.EncodeToString(text))
	var out []byte
	for len(b) > 76 {
		out = append(append(out, b[:76]...), "\r\n"...)
		b = b[76:]
	}
	return append(out, b...)
}
