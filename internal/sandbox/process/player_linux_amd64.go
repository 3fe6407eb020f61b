package process

import (
	"bytes"
	"unsafe"
)

// playerAt is where player stands; see player_linux_amd64.s.
func playerAt() uintptr

// playNative runs player here, with a tape that ends in opReturn.
//
//go:noescape
func playNative(tape unsafe.Pointer, at, control uintptr)

// playerCode is player's machine code, which runs wherever it is mapped; nil
// where none was written for the processor.
func playerCode() []byte {
	all := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), playerAt())), 4096)
	n := bytes.Index(all, []byte("yalp.dne"))
	if n < 0 {
		return nil
	}
	return bytes.Clone(all[:n])
}
