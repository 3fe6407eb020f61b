package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// unwatched puts a holdfast at the front of the path, where the race detector is on,
// that has none but for what serves several at once (serving), which stays this
// test's own program with the detector. A command that asks and ends pays for the
// detector with most of its time, and the packages that it is made of have tests
// with it. It is this test's program too, made without the detector.
func unwatched() error {
	watched, err := exec.LookPath("holdfast")
	if err != nil {
		return err
	}
	root, err := shared()
	if err != nil {
		return err
	}
	made, front := filepath.Join(root, "plain", "holdfast"), filepath.Join(root, "front")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-o", made, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	if err := os.Mkdir(front, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in %s) exec '%s' \"$@\";; esac; done\nexec '%s' \"$@\"\n", serving, watched, made)
	if err := os.WriteFile(filepath.Join(front, "holdfast"), []byte(text), 0o755); err != nil {
		return err
	}
	return os.Setenv("PATH", front+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// serving are the commands that serve several at once, or have several goroutines
// for as long as somebody else lives, as the patterns of a shell.
const serving = "up|mcp|run"
