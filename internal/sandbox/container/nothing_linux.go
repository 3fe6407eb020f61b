package container

import (
	"encoding/binary"
	goruntime "runtime"
)

// nothing is a static program that ends at once with code 7: what a runtime is
// tried with. It is an ELF file of one segment, header and code.
func nothing() []byte {
	const base, entry = 0x400000, 64 + 56
	code := []byte{0xbf, 7, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05} // mov edi, 7; mov eax, exit_group; syscall
	machine := uint16(62)
	if goruntime.GOARCH == "arm64" {
		code = nil
		for _, word := range []uint32{0xd28000e0, 0xd2800bc8, 0xd4000001} { // mov x0, 7; mov x8, exit_group; svc 0
			code = binary.LittleEndian.AppendUint32(code, word)
		}
		machine = 183
	}
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(le.AppendUint16(b, 2), machine)                         // an executable
	b = le.AppendUint64(le.AppendUint64(le.AppendUint32(b, 1), base+entry), 64) // where it begins, where segments are told
	b = le.AppendUint32(le.AppendUint64(b, 0), 0)                               // no sections, no flags
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(le.AppendUint32(b, 1), 5) // loaded, to be read and executed
	for _, v := range []uint64{0, base, base, entry + uint64(len(code)), entry + uint64(len(code)), 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}
