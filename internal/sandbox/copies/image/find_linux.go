package image

import (
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Find returns the first of names, absolute paths inside, that is a program which
// everybody may execute, and is one of this machine. An error says why none is.
func (i *Image) Find(names ...string) (string, error) {
	root, err := unix.Open(i.Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	var why []string
	for _, name := range names {
		err := program(root, name)
		if err == nil {
			return name, nil
		}
		why = append(why, fmt.Sprintf("%s %v", name, err))
	}
	return "", errors.New(strings.Join(why, ", "))
}

func program(root int, name string) error {
	fd, err := openInside(root, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return errors.New("is not there")
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	head := make([]byte, 20)
	switch err := unix.Fstat(fd, &st); {
	case err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("is no file")
	case st.Mode&0o005 != 0o005:
		return errors.New("may not be executed by everybody")
	}
	if n, _ := unix.Pread(fd, head, 0); n == len(head) && string(head[:4]) == "\x7fELF" && !(head[4] == 2 && head[5] == 1 && uint16(head[18])|uint16(head[19])<<8 == machine()) {
		return fmt.Errorf("is a program of another machine (ELF %s)", hex.EncodeToString(head[18:]))
	}
	return nil
}

// machine is this one's number in ELF files.
func machine() uint16 {
	if runtime.GOARCH == "arm64" {
		return 183
	}
	return 62
}
