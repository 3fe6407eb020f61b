// Package register reads secrets to be masked from files, environment variables and commands.
package register

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Limits of what is registered. Where more is given, nothing is: a secret that
// is left out would be shown.
const (
	// maxRegister bounds one source, in bytes.
	maxRegister = 64 << 10
	// MaxSources is the number of sources that can be given.
	MaxSources = 256
	// registerTime bounds a command that prints secrets.
	registerTime = 10 * time.Second
	// leastSecret is the shortest text that can be told from ordinary ones.
	leastSecret = 4
)

// Source says where secrets are that are masked at every place, in any encoding. What it names is read once,
// into memory that is not swapped.
type Source struct {
	File    string   `yaml:"file" doc:"a file of yours (0600) with one secret in each line, relative to this file"`
	Whole   bool     `yaml:"whole" doc:"the file is one secret, such as a key of several lines"`
	Env     string   `yaml:"env" doc:"the environment variable of the daemon that holds one"`
	Command []string `yaml:"command" doc:"program and arguments that prints one in each line, within 10s; what it says on standard error is not shown"`
	At      string   `yaml:"-"`

	// shared says that the file may be one that others can read: a person
	// named it on a command line, to redact with.
	shared bool `yaml:"-"`
}

// Parse reads what a command line says: file:PATH, whole:PATH,
// env:NAME or cmd:COMMAND, which a shell runs. The error is a UsageError that
// does not repeat what may be a secret.
func Parse(text string) (Source, error) {
	kind, what, ok := strings.Cut(text, ":")
	r := Source{shared: true, At: "--register"}
	switch {
	case !ok || what == "" || strings.ContainsRune(what, 0):
	case kind == "file" || kind == "whole":
		r.File, r.Whole = what, kind == "whole"
		return r, nil
	case kind == "env" && IsEnvName(what):
		r.Env = what
		return r, nil
	case kind == "cmd":
		r.Command = []string{"/bin/sh", "-c", what}
		return r, nil
	}
	return r, usage.HintErrorf("write file:PATH, whole:PATH, env:NAME or cmd:COMMAND; no value stands on the command line", "--register says where secrets are")
}

// SharedFile is a file with one secret in each line that others may be able to
// read: a person named it.
func SharedFile(path string) Source { return Source{File: path, shared: true} }

// Read reads the secrets of all sources into m: at most 64 KiB each. A
// source that cannot be read, or holds none, is an error, which names the place
// and never a value.
func Read(ctx context.Context, m *redact.Memory, from []Source) ([]holdfast.Secret, error) {
	if len(from) == 0 {
		return nil, nil
	}
	if len(from) > MaxSources {
		return nil, usage.Errorf("at most %d sources of secrets can be registered", MaxSources)
	}
	buf := m.Buffer(maxRegister + 1)
	var out []holdfast.Secret
	for _, r := range from {
		n, err := r.readInto(ctx, buf)
		if err == nil {
			out, err = r.addSecrets(m, buf[:n], out)
		}
		clear(buf)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// describeSource returns what messages call a source.
func (r Source) describeSource() string {
	switch {
	case r.File != "":
		return r.File
	case r.Env != "":
		return "the variable " + r.Env
	}
	return "the command of " + r.At
}

// readInto fills buf and returns how much there is.
func (r Source) readInto(ctx context.Context, buf []byte) (n int, err error) {
	switch {
	case r.File != "":
		n, err = r.readFile(buf)
	case r.Env != "":
		text, ok := os.LookupEnv(r.Env)
		if !ok {
			return 0, usage.HintErrorf("set it where holdfast is started", "secrets to register: %s is not set",
				r.describeSource())
		}
		n = copy(buf, text)
	default:
		n, err = r.readCommand(ctx, buf)
	}
	if err == nil && n > maxRegister {
		err = usage.Errorf("secrets to register: %s holds more than %d bytes", r.describeSource(), maxRegister)
	}
	return n, err
}

func (r Source) readFile(buf []byte) (int, error) {
	check := guard.CheckPrivate(r.File)
	if r.shared {
		check = func(os.FileInfo) error { return nil }
	}
	f, err := guard.OpenRegular(r.File, check)
	if err != nil {
		why, hint := usage.Explain(guard.ExplainReadError(r.File, err))
		return 0, usage.HintErrorf(hint, "secrets to register: %s", why)
	}
	defer f.Close()
	return credential.FillBuffer(f, buf)
}

// readCommand reads what the command prints.
func (r Source) readCommand(ctx context.Context, buf []byte) (int, error) {
	n, err := credential.ReadOutput(ctx, r.Command, buf, registerTime)
	if err != nil {
		why, hint := usage.Explain(err)
		return 0, usage.HintErrorf(hint, "secrets to register: %s %s", r.describeSource(), why)
	}
	return n, nil
}

// addSecrets adds the secrets that text holds. It is in a buffer that is
// cleared.
func (r Source) addSecrets(m *redact.Memory, text []byte, to []holdfast.Secret) ([]holdfast.Secret, error) {
	lines, found := [][]byte{text}, false
	if !r.Whole && r.Env == "" {
		lines = bytes.Split(text, []byte{'\n'})
	}
	for i, l := range lines {
		l = bytes.TrimSpace(l)
		if len(l) == 0 {
			continue
		}
		if len(l) < leastSecret {
			where := r.describeSource()
			if len(lines) > 1 {
				where = fmt.Sprintf("line %d of %s", i+1, where)
			}
			return nil, usage.Errorf(
				"secrets to register: %s has %d bytes, which is too short to be told from ordinary text", where, len(l),
			)
		}
		found, to = true, append(to, m.Secret(l))
	}
	if !found {
		return nil, usage.Errorf("secrets to register: %s holds none", r.describeSource())
	}
	return to, nil
}

var envName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })

// IsEnvName reports whether s can be the name of an environment variable.
func IsEnvName(s string) bool { return envName().MatchString(s) }
