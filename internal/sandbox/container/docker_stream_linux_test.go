//go:build linux

package container

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(stream byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, uint32(len(text))), text...)
}

// TestDemux: frames come apart however they are cut, and a stream that ends in the
// middle of one is no end.
func TestDemux(t *testing.T) {
	all := bytes.Join([][]byte{frame(1, "out"), frame(2, "err"), frame(1, ""), frame(1, strings.Repeat("x", 100_000))}, nil)
	for n := range len(all) + 1 {
		if n > 40 && n < len(all)-3 && n%9973 != 0 {
			continue
		}
		var out, errs bytes.Buffer
		err := demux(iotest.HalfReader(bytes.NewReader(all[:n])), func(b []byte) { out.Write(b) }, func(b []byte) { errs.Write(b) })
		whole := n == 0 || n == 11 || n == 22 || n == 30 || n == len(all)
		if whole != (err == nil) || err != nil && !errors.Is(err, errBroken) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if n == len(all) && (out.Len() != 100_003 || errs.String() != "err") {
			t.Errorf("%d and %q", out.Len(), errs.String())
		}
	}
	for _, bad := range []string{"\x00\x00\x00\x00\x00\x00\x00\x01x", "\x03\x00\x00\x00\x00\x00\x00\x01x", "\x01\x00\x00\x01\x00\x00\x00\x01x", "HTTP/1.1 200 OK\r\n"} {
		if err := demux(strings.NewReader(bad), func([]byte) {}, func([]byte) {}); err == nil || errors.Is(err, errBroken) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := demux(bytes.NewReader([]byte{1, 0, 0, 0, 255, 255, 255, 255, 'x'}), func([]byte) {}, func([]byte) {}); !errors.Is(err, errBroken) {
		t.Errorf("four gigabytes that do not come: %v", err)
	}
}
