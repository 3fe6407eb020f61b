package language

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// static: the code is the program, so that nothing has to be there.
func static() Language {
	return Language{
		Name: "static", Exact: "static", CodeName: "program",
		env:    common,
		parts:  func(*manifest) error { return nil },
		Allows: seccomp.StaticProfile(),
		Check:  checkStatic,
	}
}

// checkStatic refuses (ProtocolError) what is no statically linked program for
// this machine: it would not start, because its root holds no library.
func checkStatic(code []byte) (err error) {
	defer func() {
		if recover() != nil { // the parser and a hostile file
			err = notStatic("its headers cannot be read")
		}
	}()
	f, err := elf.NewFile(segments{code})
	if err != nil {
		return notStatic("it is no ELF file (%v)", err)
	}
	if want := Machine(); f.Machine != want || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return notStatic("it is for %v (%v), and this machine is %v", f.Machine, f.Class, want)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return notStatic("it is no executable (%v)", f.Type)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return notStatic("it is dynamically linked")
		}
		if p.Type == elf.PT_DYNAMIC && needsLibraries(code, p.ProgHeader) {
			return notStatic("it needs libraries")
		}
	}
	if f.Entry == 0 {
		return notStatic("it has no entry point: a library, perhaps")
	}
	return nil
}

// segments reads a program as if it had no sections: the kernel needs none, and
// the parser would unpack them.
type segments struct{ code []byte }

// ReadAt implements io.ReaderAt.
func (s segments) ReadAt(b []byte, at int64) (int, error) {
	n, err := bytes.NewReader(s.code).ReadAt(b, at)
	for _, field := range [][2]int64{{0x28, 0x30}, {0x3c, 0x40}} { // e_shoff; e_shnum and e_shstrndx
		for i := max(field[0], at); i < min(field[1], at+int64(n)); i++ {
			b[i-at] = 0
		}
	}
	return n, err
}

// needsLibraries looks for DT_NEEDED in the program's dynamic table, where the
// loader would. Sections are not looked at: they may be compressed, and are
// whatever their author says.
func needsLibraries(code []byte, p elf.ProgHeader) bool {
	if p.Off > uint64(len(code)) || p.Filesz > uint64(len(code))-p.Off {
		return true
	}
	for table := code[p.Off:][:p.Filesz]; len(table) >= 16; table = table[16:] {
		switch elf.DynTag(binary.LittleEndian.Uint64(table)) {
		case elf.DT_NEEDED:
			return true
		case elf.DT_NULL:
			return false
		}
	}
	return false
}

func notStatic(why string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindProtocol, Why: "the code is no static program for this machine: " + fmt.Sprintf(why, args...),
		Hint: "link it statically (Go: CGO_ENABLED=0; C: -static) for linux/" + runtime.GOARCH}
}

func Machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}
