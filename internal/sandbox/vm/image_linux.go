package vm

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// guestProgram is where a guest has its first process's program.
const guestProgram = "/holdfast"

// guestWhole is the last file of a guest's file system, so that it is there where
// all of them are: a kernel that runs out of memory unpacks no further and goes on.
// It says for how many languages there are runtimes.
const guestWhole = "whole"

// maxImage is the most that a guest's file system may take: it is unpacked into
// the guest's memory.
const maxImage = 2 << 30

// packImage writes a guest's file system, of the program and the roots, into
// memory that has no name, and returns that with its digest.
func packImage(program string, roots []string) (_ *os.File, digest string, err error) {
	out, err := memory("image", 0)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(out, sum), 1<<20)
	a := newArchive(w)
	for _, d := range []string{"dev", "new", "proc", "sys", "tmp", "usr/bin"} {
		a.dir(d)
	}
	a.put("dev/console", entry{mode: modeChar | 0o600, major: 5, minor: 1}, 0, nil)
	a.file(guestProgram, program, true, time.Time{})
	seen, total := map[string]bool{}, int64(0)
	for _, root := range roots {
		if err := a.tree(root, seen, &total); err != nil {
			return nil, "", err
		}
	}
	roster := strconv.Itoa(len(roots))
	a.put(guestWhole, entry{mode: modeFile | 0o444}, int64(len(roster)), strings.NewReader(roster))
	if err := errors.Join(a.close(), w.Flush()); err != nil {
		return nil, "", err
	}
	return out, hex.EncodeToString(sum.Sum(nil)), nil
}

// file adds a regular file of the host.
func (a *archive) file(name, from string, executable bool, mtime time.Time) {
	if a.err != nil {
		return
	}
	f, err := os.Open(from)
	if err != nil {
		a.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.err = err
		return
	}
	mode := uint32(modeFile | 0o644)
	if executable {
		mode |= 0o111
	}
	a.put(name, entry{mode: mode, mtime: mtime}, info.Size(), f)
}

// tree adds the regular files below root; of what stands in two roots the first
// is taken. Times are kept: interpreters compare them.
func (a *archive) tree(root string, seen map[string]bool, total *int64) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil || seen[rel] {
			return err
		}
		seen[rel] = true
		info, err := d.Info()
		if err != nil {
			return err
		}
		if *total += info.Size(); *total > maxImage {
			return fmt.Errorf("the runtimes are larger than %d MB together", maxImage>>20)
		}
		a.file(rel, p, info.Mode()&0o111 != 0, info.ModTime())
		return a.err
	})
}

// selfContained says of a program that needs a loader that it does: in a guest
// there is none for it.
func selfContained(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s is no program for Linux: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs the libraries of the system that it was linked with, which no guest has", program)
		}
	}
	return nil
}

// memory is a file without a name, in memory, of a size.
func memory(name string, size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// copied is a file's content in memory, which a machine may read whoever the file
// is of.
func copied(name string) (*os.File, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := memory("copy", 0)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(out, io.LimitReader(in, maxImage)); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// seal makes a file of memory such that nobody can write it any more, whoever
// holds it: a machine maps it for itself, and changes its own copy.
func seal(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return os.NewSyscallError("seal", err)
}

// hashFile is the digest of a file's content.
func hashFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// firstLine is what a program says of its version.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
