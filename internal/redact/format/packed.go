package format

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// pack is a way of compressing that can be opened.
type pack uint8

const (
	packNone pack = iota
	packGzip
	packZlib
	packBzip2
	packZip
)

var packNames = [...]string{packNone: "none", packGzip: "gzip", packZlib: "zlib", packBzip2: "bzip2", packZip: "zip"}

// packing tells what b is compressed with by its first bytes (RFC 1950, 1952).
func packing(b []byte) pack {
	if len(b) < 6 {
		return packNone
	}
	switch {
	case b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 && b[3]&0xe0 == 0:
		return packGzip
	case b[0] == 0x78 && (b[1] == 0x01 || b[1] == 0x5e || b[1] == 0x9c || b[1] == 0xda):
		return packZlib
	case string(b[:3]) == "BZh" && b[3] >= '1' && b[3] <= '9' && (b[4] == 0x31 && b[5] == 0x41 || b[4] == 0x17 &&
		b[5] == 0x72):
		return packBzip2
	case string(b[:4]) == "PK\x03\x04" || string(b[:4]) == "PK\x05\x06" || string(b[:4]) == "PK\x07\x08":
		return packZip
	}
	return packNone
}

const (
	// maxInflated bounds what one compressed part may become, and maxRatio
	// how much more than it is, where that is beyond a megabyte.
	maxInflated = 32 << 20
	maxRatio    = 200
	// minStream is how much a stream without a checked head must give before
	// it counts as one that broke off.
	minStream = 64
)

// errNotPacked says that bytes only looked compressed.
var errNotPacked = errors.New("not compressed")

// packed reads what b holds compressed, and what follows it. It returns
// what was found inside.
func (n *nest) packed(b []byte, level int, opaque bool) ([]finding.Finding, error) {
	p := packing(b)
	if err := n.open(); err != nil {
		return nil, err
	}
	if level >= maxLevels {
		return nil, unscannable(packNames[p]+" data wrapped more than 4 times", nil)
	}
	if p == packZip {
		return n.zip(b, level, opaque)
	}
	src := bytes.NewReader(b)
	text, head, err := n.unpack(p, src)
	if err != nil {
		return nil, err
	}
	list, err := n.inside(p, text, level, opaque)
	if err != nil {
		return nil, err
	}
	if len(head) > 0 {
		spans, err := n.spans(head, level)
		if err != nil {
			return nil, err
		}
		list = finding.FromSpans(spans, 0, list)
	}
	rest := bytes.TrimLeft(b[len(b)-src.Len():], "\x00")
	if len(rest) == 0 {
		return list, nil
	}
	more, err := n.behind(rest, level, opaque)
	return append(list, more...), err
}

// behind reads what follows a compressed stream: members one after the other
// are one level.
func (n *nest) behind(rest []byte, level int, opaque bool) ([]finding.Finding, error) {
	if n.opened++; n.opened > maxOpened/4 {
		// Each is a call on the stack.
		return nil, unscannable("too many compressed members one after the other", nil)
	}
	if f := packing(rest); f != packNone {
		return n.packed(rest, level, opaque)
	}
	r, err := n.doc("", rest, level+1, opaque)
	return r.Findings, err
}

// inside reads what came out of a compressed part.
func (n *nest) inside(p pack, text []byte, level int, opaque bool) ([]finding.Finding, error) {
	r, err := n.doc("", text, level+1, opaque)
	if err != nil {
		return nil, within(err, "in "+packNames[p]+" data")
	}
	return r.Findings, nil
}

// unpack decompresses one stream of src to its end, and returns the texts of
// its head.
func (n *nest) unpack(p pack, src *bytes.Reader) (text, head []byte, err error) {
	size := src.Len()
	var r io.Reader
	switch p {
	case packGzip:
		g, e := gzip.NewReader(src)
		if e != nil {
			return nil, nil, unscannable("gzip data with a broken head", e)
		}
		g.Multistream(false)
		head = fmt.Appendf(nil, "%s\n%s\n%s", g.Name, g.Comment, g.Extra)
		r = g
	case packZlib:
		if r, err = zlib.NewReader(src); err != nil {
			return nil, nil, errNotPacked
		}
	default:
		r = bzip2.NewReader(src)
	}
	text, err = n.inflate(r, size, packNames[p])
	if p == packZlib && err != nil && len(text) < minStream && n.left >= 0 {
		return nil, nil, errNotPacked
	}
	return text, head, err
}

// inflate reads r to its end, within the bounds.
func (n *nest) inflate(r io.Reader, size int, name string) ([]byte, error) {
	limit := min(maxInflated, max(1<<20, maxRatio*size), max(n.left, 0))
	var buf bytes.Buffer
	_, err := io.Copy(&buf, io.LimitReader(r, int64(limit)+1))
	if buf.Len() > limit {
		return nil, unscannable(fmt.Sprintf("%s data of %d bytes that becomes more than %d", name, size, limit), nil)
	}
	if e := n.spend(buf.Len()); e != nil {
		return nil, e
	}
	if err != nil {
		return buf.Bytes(), unscannable(name+" data that breaks off", err)
	}
	return buf.Bytes(), nil
}
