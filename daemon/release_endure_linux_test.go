//go:build endure

package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleaseProgramOfAPositionIndependentOne: data that was relocated stays.
func TestReleaseProgramOfAPositionIndependentOne(t *testing.T) {
	dir := t.TempDir()
	source, err := os.ReadFile("release_linux.go")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(source), "func releaseProgram()")
	main := `package main

import ("bufio"; "fmt"; "io"; "os"; "strconv"; "strings"; "syscall")

var unix = struct{ SYS_MADVISE, MADV_DONTNEED uintptr }{syscall.SYS_MADVISE, syscall.MADV_DONTNEED}

func main() {
	if err := releaseProgram(); err != nil { panic(err) }
	fmt.Println("ran on", strings.ToUpper("well"), []error{io.EOF})
}

` + strings.ReplaceAll(string(source[from:]), "unix.Syscall", "syscall.Syscall")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pie")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=pie", "-o", program,
		filepath.Join(dir, "main.go"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil || string(out) != "ran on WELL [EOF]\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestReleaseProgramKeepsRunning: what is released is mapped again when it is used.
func TestReleaseProgramKeepsRunning(t *testing.T) {
	for range 3 {
		if err := releaseProgram(); err != nil {
			t.Fatal(err)
		}
	}
}
