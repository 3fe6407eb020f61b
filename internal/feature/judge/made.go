package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// maxProgram bounds a program's file, in bytes.
const maxProgram = 256 << 20

// Made implements Made: 64 hex digits over the contents of the program's
// file, and of the first argument that is no flag where that names one, which is
// the script of an interpreter. What these load themselves it does not see. A file
// that cannot be read is an error.
func (c Command) Made() (string, error) {
	if len(c.Argv) == 0 {
		return "", unusable("there is no program")
	}
	path, err := exec.LookPath(c.Argv[0])
	if err != nil {
		return "", because("the program cannot be started", err)
	}
	all := sha256.New()
	if err := contents(all, path); err != nil {
		return "", because("the program's file cannot be read", err)
	}
	for _, arg := range c.Argv[1:] {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			if err := contents(all, arg); err != nil {
				return "", because("the script cannot be read", err)
			}
		}
		break
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// contents adds the hash of a regular file to w.
func contents(w io.Writer, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxProgram+1))
	if err == nil && n > maxProgram {
		err = errors.New("it has more than 256 MiB")
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return err
}
