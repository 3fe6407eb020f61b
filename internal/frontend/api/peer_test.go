package api

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const foreignSock = "HOLDFAST_TEST_FOREIGN_SOCK"

// TestForeignUser is the program that another user runs in the test below.
func TestForeignUser(t *testing.T) {
	sock := os.Getenv(foreignSock)
	if sock == "" {
		return
	}
	c, err := net.Dial("unix", sock)
	if err != nil {
		os.Exit(3)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if b, err := io.ReadAll(c); err != nil || len(b) != 0 {
		os.Exit(4)
	}
	os.Exit(0)
}

// Another user of this machine is turned away even where the socket's mode
// would let them in (D48).
func TestForeignUserIsTurnedAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exe := filepath.Join(dir, "test")
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	raw, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, p := range []string{dir, sock} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	turned, admitted := make(chan error, 1), make(chan net.Conn, 1)
	l := &Listener{Listener: raw, Refused: func(err error) { turned <- err }}
	go func() {
		if c, err := l.Accept(); err == nil {
			admitted <- c
		}
	}()
	cmd := exec.Command(exe, "-test.run=^TestForeignUser$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), foreignSock+"="+sock)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case err := <-turned:
		t.Log(err)
	case <-admitted:
		t.Fatal("another user was admitted")
	}
}
