package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/api"
)

// lineChild is a process that is spoken to in lines.
type lineChild struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
	said  bytes.Buffer // on standard error
}

func (b *bench) lineChild(program string, args ...string) (*lineChild, error) {
	c := &lineChild{cmd: exec.CommandContext(b.ctx, program, args...)}
	c.cmd.Stderr = &c.said
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.lines = in, bufio.NewReaderSize(out, 64<<10)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// read is the next line.
func (c *lineChild) read() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s ended: %w", filepath.Base(c.cmd.Path), err), c.end(), errors.New(clean(c.said.String())))
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// ask sends a word and reads the document that answers it.
func (c *lineChild) ask(word string, into any) error {
	if _, err := io.WriteString(c.in, word+"\n"); err != nil {
		return err
	}
	line, err := c.read()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), into)
}

func (c *lineChild) end() error {
	_ = c.in.Close() // it may have ended already
	return end(c.cmd)
}

// memoryHeld is what a daemon's memory is made of, in bytes.
type memoryHeld struct {
	Heap  uint64 `json:"heap"`  // what lives
	Stack uint64 `json:"stack"` // of goroutines
	Slack uint64 `json:"slack"` // of the heap, between what lives
}

// measuredDaemon is `holdfast up` that answers questions about itself on its
// standard input: "egress", "memory" and "processor", each with one line of JSON.
func (a *app) measuredDaemon() error {
	a.collectLess()
	d, err := a.open(logger(a.err, false), "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	err = d.Serve(ctx, daemon.Serving{Ready: func(string) {
		fmt.Fprintln(a.out, "listening")
		go func() {
			defer cancel() // whoever measures has gone
			a.tellMeasures(ctx, d)
		}()
	}})
	return errors.Join(err, d.Close())
}

func (a *app) tellMeasures(ctx context.Context, d *daemon.Daemon) {
	out := json.NewEncoder(a.out)
	for lines := bufio.NewScanner(a.in); lines.Scan(); {
		var answer any
		switch lines.Text() {
		case "egress":
			s, err := d.Status(ctx)
			if err != nil {
				return
			}
			answer = s.Egress
		case "processor":
			answer = processorTime()
		case "memory":
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what the first one only marked as finalised
			runtime.ReadMemStats(&m)
			answer = memoryHeld{m.HeapAlloc, m.StackInuse, m.HeapInuse - m.HeapAlloc}
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

// told is what the daemon counted so far.
func (w *wayOut) told() (*api.EgressStatus, error) {
	var s *api.EgressStatus
	err := w.daemon.ask("egress", &s)
	if err == nil && s == nil {
		err = errors.New("the daemon has no proxy")
	}
	return s, err
}

// openGoproxy starts goproxy; where it cannot be had, absent says why, and where
// it was asked for by name that is an error.
func (w *wayOut) openGoproxy(b *bench, program, dir, roots string) error {
	if program == "" {
		program, w.absent = b.builtGoproxy()
		if w.absent != "" {
			return nil
		}
	}
	ca := filepath.Join(dir, "goproxy.pem")
	c, err := b.lineChild(program, "--dial", fmt.Sprintf("127.0.0.1:%d", w.server.port), "--roots", roots, "--ca", ca)
	if err != nil {
		return fmt.Errorf("goproxy: %w", err)
	}
	w.goproxy = c
	line, err := c.read()
	if err != nil {
		return err
	}
	at, ok := strings.CutPrefix(line, "listening on ")
	if !ok {
		return fmt.Errorf("goproxy said %q", clean(line))
	}
	w.goproxyAt = at
	w.goproxyCA, err = os.ReadFile(ca)
	return err
}

// builtGoproxy builds the peer from the folder bench of this repository, which
// is looked for from the working directory upwards.
func (b *bench) builtGoproxy() (program, why string) {
	dir, err := os.Getwd()
	if err != nil {
		return "", clean(err.Error())
	}
	for !there(filepath.Join(dir, "bench", "goproxy", "main.go")) {
		if dir == filepath.Dir(dir) {
			return "", "goproxy is not here: name it with --goproxy, or run this in the repository, which builds it"
		}
		dir = filepath.Dir(dir)
	}
	program = filepath.Join(b.dir, "goproxy")
	if there(program) {
		return program, ""
	}
	b.say("building bench/goproxy")
	if out, err := exec.CommandContext(b.ctx, "go", "build", "-C", filepath.Join(dir, "bench"), "-o", program, "./goproxy").CombinedOutput(); err != nil {
		return "", "bench/goproxy could not be built: " + clean(strings.TrimSpace(err.Error()+" "+string(out)))
	}
	return program, ""
}
