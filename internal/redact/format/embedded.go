package format

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// embedded are the archives that are looked for after other bytes: a reader
// of archives finds them there, and no text holds their heads.
var embedded = [...]signature{
	{0, "PK\x03\x04", "zip"},
	{0, "\xfd7zXZ\x00", "xz"},
	{0, "\x28\xb5\x2f\xfd", "zstd"},
	{0, "7z\xbc\xaf\x27\x1c", "7z"},
	{0, "Rar!\x1a\x07", "rar"},
	{0, "1AY&SY", "bzip2"},
}

// behindOthers refuses what is compressed in the middle of b.
func behindOthers(b []byte) error {
	for i := range embedded {
		if at := bytes.Index(b, []byte(embedded[i].text)); at >= 0 && (embedded[i].name != "bzip2" || !utf8.Valid(b)) {
			return unscannable(embedded[i].name+" data behind other bytes, at byte "+strconv.Itoa(at), nil)
		}
	}
	for i := 0; ; i++ {
		k := bytes.Index(b[i:], []byte("\x1f\x8b\x08"))
		if k < 0 {
			return nil
		}
		i += k
		// Flags, effort and system leave no room for chance (RFC 1952 section 2.3.1).
		if h := b[i:]; len(h) >= 18 && h[3]&0xe0 == 0 && (h[8] == 0 || h[8] == 2 || h[8] == 4) && (h[9] < 14 ||
			h[9] == 255) {
			return unscannable("gzip data behind other bytes, at byte "+strconv.Itoa(i), nil)
		}
	}
}

// pngTexts reads the compressed texts of a PNG (its specification, 11.3.3):
// keyword, NUL, method and a zlib stream.
func (n *nest) pngTexts(b []byte, level int) ([]finding.Finding, error) {
	var list []finding.Finding
	for _, chunk := range []string{"zTXt", "iTXt", "iCCP"} {
		for rest := b; ; {
			k := bytes.Index(rest, []byte(chunk))
			if k < 0 {
				break
			}
			rest = rest[k+len(chunk):]
			head := rest[:min(len(rest), 512)]
			z := bytes.IndexByte(head, 'x')
			for z >= 0 && packing(head[z:]) != packZlib {
				next := bytes.IndexByte(head[z+1:], 'x')
				if next < 0 {
					z = -1
					break
				}
				z += 1 + next
			}
			if z < 0 {
				continue
			}
			if err := n.open(); err != nil {
				return nil, err
			}
			text, _, err := n.unpack(packZlib, bytes.NewReader(rest[z:]))
			if err == errNotPacked {
				continue
			}
			if err != nil {
				return nil, within(err, "a text of a PNG")
			}
			spans, err := n.spans(text, level)
			if err != nil {
				return nil, err
			}
			list = finding.FromSpans(spans, 0, list)
		}
	}
	return list, nil
}
