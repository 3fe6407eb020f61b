package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// unwatched returns a directory for the front of a script's path, where the race
// detector is on: its holdfast is the product as it is built, but for what serves
// several at once (serving), which stays this test's own program with the
// detector. A command that asks and ends pays for the detector with most of
// its time, and the packages that it is made of have tests with it.
func unwatched(t *testing.T) string {
	t.Helper()
	product := builtOnce(t, ours)
	watched, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in %s) exec '%s' \"$@\";; esac; done\nexec '%s' \"$@\"\n", serving, watched, product)
	if err := os.WriteFile(filepath.Join(dir, "holdfast"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serving are the commands that serve several at once, or have several goroutines
// for as long as somebody else lives, as the patterns of a shell.
const serving = "up|mcp|run"
