package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
	"golang.org/x/sys/unix"
)

// ask is one system call of a probe: its number and up to six arguments, which
// are numbers (int) or text (string), whose address is then given.
type ask struct {
	nr   int
	args [6]any
}

func asking(nr int, args ...any) ask {
	a := ask{nr: nr}
	copy(a.args[:], args)
	return a
}

// Where a probe's two segments stand. Linux wants each at the same place within
// a page as it has in the file, and pages have up to 64 KiB.
const (
	probeText = 0x400000
	probeData = 0x600200
	probeHead = 0x200 // bytes of the file before the data
	askSize   = 7 * 8
	noAnswer  = -4095 // below every errno
)

// probe makes a static program of a few hundred bytes that makes the calls in
// their order and writes what each returned to standard output, as 64-bit words;
// answers reads them. It needs no compiler and no language: so walls can be
// tried wherever there are any.
func probe(asks ...ask) []byte {
	n := len(asks)
	asks = append(asks[:n:n], asking(unix.SYS_WRITE, 1, probeData, n*askSize), asking(unix.SYS_EXIT_GROUP, 0))
	var table, text bytes.Buffer
	texts := probeData + len(asks)*askSize
	for _, a := range asks {
		words := [7]uint64{uint64(a.nr)}
		for i, arg := range a.args {
			switch v := arg.(type) {
			case int:
				words[i+1] = uint64(v)
			case string:
				words[i+1] = uint64(texts + text.Len())
				text.WriteString(v + "\x00")
			}
		}
		binary.Write(&table, binary.LittleEndian, words)
	}
	table.Write(text.Bytes())
	return probeFile(table.Bytes())
}

func probeFile(data []byte) []byte {
	code := probeCode()
	var head bytes.Buffer
	const headers = 64 + 2*56
	binary.Write(&head, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(language.Machine()), Version: uint32(elf.EV_CURRENT),
		Entry: probeText + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2,
	})
	size := uint64(headers + len(code))
	binary.Write(&head, binary.LittleEndian, [2]elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: probeText, Paddr: probeText, Filesz: size, Memsz: size, Align: 0x10000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: probeHead, Vaddr: probeData, Paddr: probeData, Filesz: uint64(len(data)), Memsz: uint64(len(data)), Align: 0x10000},
	})
	head.Write(code)
	return append(append(head.Bytes(), make([]byte, probeHead-head.Len())...), data...)
}

// probeCode is a loop over the table at probeData: load the number and the
// arguments, call, store the answer over the number, go on. The last call of
// the table ends the process.
func probeCode() []byte {
	if runtime.GOARCH == "arm64" {
		return words32(
			0xd2804013,                         // mov x19, #0x200
			0xf2a00c13,                         // movk x19, #0x60, lsl #16
			0xf9400268,                         // ldr x8, [x19]
			0xf9400660, 0xf9400a61, 0xf9400e62, // ldr x0, [x19, #8]; x1; x2
			0xf9401263, 0xf9401664, 0xf9401a65, // x3; x4; x5
			0xd4000001, // svc #0
			0xf9000260, // str x0, [x19]
			0x9100e273, // add x19, x19, #56
			0x17fffff6, // b, to the load of x8
		)
	}
	return []byte{
		0xbb, 0x00, 0x02, 0x60, 0x00, // mov ebx, 0x600200
		0x48, 0x8b, 0x03, // mov rax, [rbx]
		0x48, 0x8b, 0x7b, 0x08, // mov rdi, [rbx+8]
		0x48, 0x8b, 0x73, 0x10, // mov rsi, [rbx+16]
		0x48, 0x8b, 0x53, 0x18, // mov rdx, [rbx+24]
		0x4c, 0x8b, 0x53, 0x20, // mov r10, [rbx+32]
		0x4c, 0x8b, 0x43, 0x28, // mov r8, [rbx+40]
		0x4c, 0x8b, 0x4b, 0x30, // mov r9, [rbx+48]
		0x0f, 0x05, // syscall
		0x48, 0x89, 0x03, // mov [rbx], rax
		0x48, 0x83, 0xc3, 0x38, // add rbx, 56
		0xeb, 0xda, // jmp, to the load of rax
	}
}

func words32(list ...uint32) []byte {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// answers are what a probe's calls returned; an errno is negative, and a call
// that was not reached has noAnswer.
func answers(out []byte, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = noAnswer
		if at := i * askSize; at+8 <= len(out) {
			list[i] = int64(binary.LittleEndian.Uint64(out[at:]))
		}
	}
	return list
}
