package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// BoundaryPrefix begins the boundaries of judges, which are made, not listed.
const BoundaryPrefix = "judge/"

// DefaultTime and LongestTime bound one answer: a request is entered within 30 s with all
// its judges. pureTime bounds a judge that needs no I/O.
const (
	DefaultTime = 10 * time.Second
	LongestTime = 20 * time.Second
	pureTime    = 5 * time.Second
)

// Command is a program that reads a request as JSON on its standard input and
// writes the five criteria as JSON on its standard output. Zero values ask
// nobody.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env names the variables of this process that it is given; no others.
	Env []string
	// Within bounds it; 0 is DefaultTime, at most LongestTime.
	Within time.Duration
}

// Score implements Judge.
func (c Command) Score(ctx context.Context, of Request) (review.Scores, error) {
	in, err := json.Marshal(of)
	if err != nil {
		return review.Scores{}, err
	}
	out, err := c.Ask(ctx, in)
	if err != nil {
		return review.Scores{}, err
	}
	return review.ParseScores(out)
}

// Ask runs the program once with in on its standard input and returns all that
// it printed, at most review.MaxScores bytes: more is an error, as are an exit
// other than 0 and the end of its time. Whatever it has started in its group is
// killed with it.
func (c Command) Ask(ctx context.Context, in []byte) ([]byte, error) {
	return c.run(ctx, in, review.MaxScores)
}

// run is Ask of at most so many bytes.
func (c Command) run(ctx context.Context, in []byte, most int) ([]byte, error) {
	if len(c.Argv) == 0 {
		return nil, unusable("there is no program")
	}
	within := c.Within
	if within <= 0 {
		within = DefaultTime
	}
	ctx, cancel := context.WithTimeout(ctx, min(within, LongestTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Env = bytes.NewReader(in), environment(os.Environ(), c.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = 100 * time.Millisecond
	out := &bounded{left: most, full: cancel}
	said := excerpt.NewFirst(maxCause)
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Start(); err != nil {
		return nil, because("the program cannot be started", err)
	}
	waited := cmd.Wait()
	_ = kill() // what it left behind in its group
	switch {
	case out.over:
		return nil, unusable(fmt.Sprintf("the program printed more than %d bytes", most))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, because("the program took longer than "+min(within, LongestTime).String(), withWords(ctx.Err(), said))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case waited != nil && !errors.Is(waited, syscall.EPIPE):
		return nil, because("the program failed", withWords(waited, said))
	}
	return out.buf.Bytes(), nil
}

// environment picks the named variables.
func environment(have, names []string) []string {
	env := []string{} // never nil, which would be all of them
	for _, kv := range have {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(names, name) {
			env = append(env, kv)
		}
	}
	return env
}

// bounded keeps so many bytes, and calls full for the first one more.
type bounded struct {
	buf  bytes.Buffer
	left int
	over bool
	full func()
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.over = true
		b.full()
		return 0, io.ErrShortWrite
	}
	b.left -= len(p)
	return b.buf.Write(p)
}

// maxCause bounds what a judge says of its own failure, in bytes.
const maxCause = 1 << 10

// withWords is err with what was said of it.
func withWords(err error, said *excerpt.First) error {
	if len(said.Bytes()) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

func unusable(why string) error { return because(why, nil) }

// because is unusable with the cause, which is for the log alone: it may hold what
// an agent or a model wrote.
func because(why string, cause error) error {
	return &holdfast.Error{Kind: holdfast.KindConfidence, Gate: holdfast.K7, Why: why, Err: cause}
}
