package process

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"runtime"

	"github.com/holdfast-dev/holdfast"
)

// findStatic: the code is the program, so that nothing has to be there.
func findStatic(context.Context) ([]language, error) {
	return []language{{
		name: "static", exact: "static", codeName: "program",
		env:    common,
		parts:  func(*manifest) error { return nil },
		allows: staticProfile(),
		check:  checkStatic,
	}}, nil
}

// checkStatic refuses (ProtocolError) what is no statically linked program for
// this machine: it would not start, because its root holds no library.
func checkStatic(code []byte) (err error) {
	defer func() {
		if recover() != nil { // the parser and a hostile file
			err = notStatic("its headers cannot be read")
		}
	}()
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return notStatic("it is no ELF file (%v)", err)
	}
	if want := machine(); f.Machine != want || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return notStatic("it is for %v (%v), and this machine is %v", f.Machine, f.Class, want)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return notStatic("it is no executable (%v)", f.Type)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return notStatic("it is dynamically linked")
		}
	}
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
		return notStatic("it needs libraries (%q)", libs)
	}
	if f.Entry == 0 {
		return notStatic("it has no entry point: a library, perhaps")
	}
	return nil
}

func notStatic(why string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindProtocol, Why: "the code is no static program for this machine: " + fmt.Sprintf(why, args...),
		Hint: "link it statically (Go: CGO_ENABLED=0; C: -static) for linux/" + runtime.GOARCH}
}

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}
