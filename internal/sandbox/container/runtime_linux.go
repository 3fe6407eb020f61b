package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// runtime is an OCI runtime of this machine.
type runtime struct {
	path     string
	version  version
	state    string // where it keeps what it knows of containers
	platform string // of runsc: by what it comes to answer a program's calls
}

// names are the runtimes that are looked for, the best first.
var names = []string{"runc", "crun", "runsc"}

const (
	// tellWithin is how long a runtime may take to tell its version, or to take
	// a container away.
	tellWithin = 10 * time.Second
	installOne = "install one (Debian: `apt install runc`), or name its path as `sandbox: container: runtime:`"
)

// find returns the runtimes that asked means ("", auto, a name or a path), the
// best first. An error is a SpawnError that says which are not there and why.
func find(ctx context.Context, asked, state string) ([]runtime, error) {
	wanted := []string{asked}
	if asked == "" || asked == "auto" {
		wanted = names
	}
	var list []runtime
	var errs []string
	for _, w := range wanted {
		path, err := lookUp(w)
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		v, err := ask(ctx, path)
		if err == nil && v.old() != "" {
			err = errors.New(v.old())
		}
		if err != nil {
			errs = append(errs, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		for _, platform := range v.platforms() {
			list = append(list, runtime{path, v, state, platform})
		}
	}
	if len(list) == 0 {
		return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: "there is no container runtime that can be used: " + strings.Join(errs, "; "), Hint: installOne}
	}
	return list, nil
}

// lookUp finds a program by its name, in the system's directories too, which an
// ordinary user's PATH may not have.
func lookUp(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("%s is no absolute path", name)
		}
		if unix.Access(name, unix.X_OK) != nil {
			return "", fmt.Errorf("%s is no program", name)
		}
		return name, nil
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%.80s is not installed", name)
}

// ask makes a runtime tell its version, within tellWithin.
func ask(ctx context.Context, path string) (version, error) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	cmd := quietly(ctx, path, "--version")
	out := &bounded{most: 4 << 10}
	cmd.Stdout = out
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return version{}, fmt.Errorf("it does not tell its version within %s", tellWithin)
	case err != nil:
		return version{}, fmt.Errorf("it does not tell its version: %w", err)
	}
	return parseVersion(out.String())
}

// quietly is a command of a runtime in a process group of its own, which ends
// with Holdfast, and of which nothing is waited for longer than for itself. It has
// pipes where its caller sets nothing else: runtimes give what they are started with
// away, and the host's /dev/null is not theirs.
func quietly(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = "/", environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), io.Discard, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// environ is what a runtime finds in its environment.
func environ() []string {
	list := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{"XDG_RUNTIME_DIR", "HOME"} {
		if v := os.Getenv(name); v != "" {
			list = append(list, name+"="+v)
		}
	}
	return list
}

// remove takes a container away, with all of its processes. That there is none
// is no error.
func (r runtime) remove(id string) error {
	if len(r.knows(id)) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	said := &bounded{most: 4 << 10}
	cmd := quietly(ctx, r.path, "--root", r.state, "delete", "--force", id)
	cmd.Stderr = said
	if err := cmd.Run(); err != nil {
		if len(r.knows(id)) == 0 {
			return nil
		}
		return fmt.Errorf("%s did not take the container %s away: %w: %.200s", r.version.name, id, err, said)
	}
	return nil
}

// knows are the names that a runtime keeps of a container.
func (r runtime) knows(id string) []string {
	list, _ := filepath.Glob(filepath.Join(r.state, "*"+id+"*")) // runsc has several, with words around
	return list
}

// forget takes away what a runtime keeps of a container that is no more.
func (r runtime) forget(id string) error {
	var errs []error
	for _, name := range r.knows(id) {
		errs = append(errs, os.RemoveAll(name))
	}
	return errors.Join(errs...)
}

// bounded keeps the first of what is written to it, and takes the rest.
type bounded struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

const silent = "it says nothing"

// complaint is the last thing that a runtime said of itself: of its log (one
// JSON object a line), or else of what it wrote.
func complaint(log string, wrote []byte) string {
	f, err := os.Open(log)
	if err == nil {
		defer f.Close()
		b := make([]byte, 64<<10)
		n, _ := f.Read(b)
		for _, line := range reversed(bytes.Split(b[:n], []byte("\n"))) {
			var said struct{ Level, Msg string }
			if json.Unmarshal(line, &said) == nil && said.Msg != "" && said.Level != "debug" && said.Level != "info" {
				return fmt.Sprintf("%.400s", said.Msg) + beside(said.Msg, wrote)
			}
		}
	}
	if text := strings.TrimSpace(string(wrote)); text != "" {
		return fmt.Sprintf("%.400s", text[max(0, len(text)-400):])
	}
	return silent
}

// beside is the first that was written and is not said yet: the complaint itself
// stands there again, and what a container's first process ended with before it.
func beside(said string, wrote []byte) string {
	for line := range bytes.Lines(wrote) {
		if text := strings.TrimSpace(string(line)); text != "" && !strings.Contains(text, said) {
			return fmt.Sprintf(" (%.200s)", text)
		}
	}
	return ""
}

func reversed(lines [][]byte) [][]byte {
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}
