package format

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// maxGap is the largest descriptor that may follow a member's data
// (APPNOTE 4.3.9).
const maxGap = 24

// zip reads the members of an archive, their names and comments.
func (n *nest) zip(b []byte, level int, opaque bool) ([]finding.Finding, error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil && z == nil || err != nil && len(z.File) == 0 {
		return nil, unscannable("a zip archive without a readable directory", err)
	}
	if len(z.File) > maxOpened {
		return nil, unscannable(fmt.Sprintf("a zip archive of %d members", len(z.File)), nil)
	}
	spans, err := n.spans([]byte(z.Comment), level)
	if err != nil {
		return nil, err
	}
	list := finding.FromSpans(spans, 0, nil)
	if err := gapless(b, z); err != nil {
		return nil, err
	}
	for i, f := range z.File {
		more, err := n.member(f, level, opaque)
		if err != nil {
			return nil, within(err, "member "+strconv.Itoa(i+1)+" of a zip archive")
		}
		list = append(list, more...)
	}
	return list, nil
}

// gapless says whether the members and the directory fill the archive: one
// that the directory does not name would pass unread.
func gapless(b []byte, z *zip.Reader) error {
	files := slices.Clone(z.File)
	start := make(map[*zip.File]int64, len(files))
	tail := 22 + len(z.Comment)
	for _, f := range files {
		data, err := f.DataOffset()
		if err != nil || data > int64(len(b)) || f.CompressedSize64 > uint64(int64(len(b))-data) {
			return unscannable("a zip archive with a broken member", err)
		}
		start[f] = data
		tail += 46 + len(f.Name) + len(f.Extra) + len(f.Comment)
	}
	slices.SortFunc(files, func(a, b *zip.File) int { return cmp.Compare(start[a], start[b]) })
	last := 0
	for _, f := range files {
		if !followsHead(b, last, int(start[f])) {
			return unscannable("a zip archive with bytes between its members", nil)
		}
		last = int(start[f] + int64(f.CompressedSize64))
	}
	rest := len(b) - last - tail
	// Before the directory a descriptor, after it the records of zip64.
	if rest < 0 || rest > maxGap && rest != 76 && rest-76 > maxGap {
		return unscannable("a zip archive with bytes that belong to no member", nil)
	}
	return nil
}

// followsHead reports whether the member whose data begins at data has its head
// at last, or after the descriptor that may be there.
func followsHead(b []byte, last, data int) bool {
	for _, d := range [...]int{0, 12, 16, 20, maxGap} {
		h := last + d
		if h+30 > data || h+30 > len(b) || string(b[h:h+4]) != "PK\x03\x04" {
			continue
		}
		name, extra := int(binary.LittleEndian.Uint16(b[h+26:])), int(binary.LittleEndian.Uint16(b[h+28:]))
		return h+30+name+extra == data && extra <= maxExtra
	}
	return false
}

// maxExtra bounds the extra field of a member's own head, which is not read;
// times and owners take 64 bytes.
const maxExtra = 128

// member reads one member.
func (n *nest) member(f *zip.File, level int, opaque bool) ([]finding.Finding, error) {
	if err := n.open(); err != nil {
		return nil, err
	}
	if f.Flags&1 != 0 {
		return nil, unscannable("an encrypted zip member", nil)
	}
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return nil, unscannable(fmt.Sprintf("a zip member compressed by method %d", f.Method), nil)
	}
	spans, err := n.spans([]byte(f.Name+"\n"+f.Comment+"\n"+string(f.Extra)), level)
	if err != nil {
		return nil, err
	}
	list := finding.FromSpans(spans, 0, nil)
	r, err := f.Open()
	if err != nil {
		return nil, unscannable("a zip member that cannot be opened", err)
	}
	defer r.Close()
	text, err := n.inflate(r, int(f.CompressedSize64), "zip")
	if err != nil {
		return nil, err
	}
	more, err := n.inside(packZip, text, level, opaque)
	return append(list, more...), err
}
