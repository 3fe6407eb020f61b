package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// start measures a filter from its start to its end beside a program that does
// nothing, the two in turns.
func (b *bench) start() ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	doc := filepath.Join(b.dir, "tiny.json")
	if err := os.WriteFile(doc, []byte(`{"a":1}`), 0o600); err != nil {
		return nil, err
	}
	empty, err := b.emptyProgram()
	if err != nil {
		b.say("no program to compare with: %v", err)
	}
	var ours, theirs []time.Duration
	for range b.rounds(30) {
		d, err := b.timed(self, "key", doc)
		if err != nil {
			return nil, err
		}
		ours = append(ours, d)
		if empty == "" {
			continue
		}
		if d, err = b.timed(empty); err != nil {
			return nil, err
		}
		theirs = append(theirs, d)
	}
	f := figure{Name: "filter start-up", Measured: millis(at(ours, 50)), Unit: "ms", Target: "<= 12 x"}
	f = f.ratioTo(millis(at(theirs, 50)), "empty program")
	f.Met = f.Ratio > 0 && f.Ratio <= 12
	if empty == "" {
		f.Note = "no Go tool chain was found to make an empty program"
	}
	return []figure{f}, nil
}

// emptyProgram builds a static program that does nothing.
func (b *bench) emptyProgram() (string, error) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no go command in PATH")
	}
	dir := filepath.Join(b.dir, "empty")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	src, out := filepath.Join(dir, "main.go"), filepath.Join(dir, "empty")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return "", err
	}
	build := exec.CommandContext(b.ctx, goTool, "build", "-o", out, src)
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	if said, err := build.CombinedOutput(); err != nil {
		return "", errors.New(clean(string(said)))
	}
	return out, nil
}

func (b *bench) timed(program string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	from := time.Now()
	err := cmd.Run()
	return time.Since(from), err
}
