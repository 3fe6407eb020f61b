package detector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

const (
	// maxPending bounds the texts that wait for one process, with those whose caller no longer does.
	maxPending = 64
	// maxSaid bounds what is kept of the standard error, in bytes.
	maxSaid = 1 << 10
	// grace is the time to end after the standard input was closed.
	grace = 300 * time.Millisecond
	// lastWords is the time to read on from a pipe of a process that has ended.
	lastWords = 100 * time.Millisecond
)

// firstText is the first text that a process gets. It shows that the process is ready.
const firstText = "Holdfast starts this detector."

// process is one run of the program.
type process struct {
	opt   *Options
	cmd   *exec.Cmd
	in    *os.File // its standard input
	out   *os.File
	err   *os.File
	since time.Time

	lines  chan *request // to be written
	ready  chan struct{} // closed at the first answer
	broken chan struct{} // closed when it can be used no longer
	ended  chan struct{} // closed when the process has ended

	// said has what it wrote to its standard error before it got a text of a caller: later words may quote one. It is
	// read after serveTexts.
	said   *excerpt.First
	saying sync.Mutex
	mute   bool // guarded by saying; a caller's text was written

	mu      sync.Mutex
	why     error              // guarded by mu; of broken
	pending map[int64]*request // guarded by mu
	next    int64              // guarded by mu
}

// request is a text that waits for its answer.
type request struct {
	id       int64
	text     []byte
	since    time.Time
	left     context.Context // done if no one waits any longer
	answered chan found      // takes one
	own      bool            // it is firstText
}

// found is the result of a text.
type found struct {
	list []finding.Finding
	err  error
}

// startProcess starts the program. serveTexts must be called after it.
func startProcess(o *Options) (*process, error) {
	p := &process{opt: o, since: time.Now(), lines: make(chan *request), ready: make(chan struct{}),
		broken: make(chan struct{}), ended: make(chan struct{}), said: excerpt.NewFirst(maxSaid),
		pending: map[int64]*request{}}
	p.cmd = exec.Command(o.Command[0], o.Command[1:]...)
	p.cmd.Env = pickEnvironment(os.Environ())
	p.cmd.SysProcAttr = processAttributes()
	var theirs [3]*os.File
	var err error
	if theirs[0], p.in, err = os.Pipe(); err == nil {
		if p.out, theirs[1], err = os.Pipe(); err == nil {
			p.err, theirs[2], err = os.Pipe()
		}
	}
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
		started := make(chan error)
		go p.awaitExit(started)
		err = <-started
	}
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(p.in, p.out, p.err)
		return nil, err
	}
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // nil is an error too
	}
}

// startFailure returns the system's words without the paths that were tried.
func startFailure(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// pickEnvironment returns what the program gets of the environment.
func pickEnvironment(have []string) []string {
	env := []string{} // never nil, which would be all of it
	for _, kv := range have {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"}, name) {
			env = append(env, kv)
		}
	}
	return env
}

// awaitExit starts the process and waits for it on one thread: on Linux the process dies with the thread that started
// it.
func (p *process) awaitExit(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	p.killGroup() // what it left in its group
	if err == nil {
		err = errors.New("exit status 0")
	}
	// What it answered before is still read; a descendant that left the group must not hold the reader.
	_ = p.out.SetReadDeadline(time.Now().Add(lastWords))
	_ = p.err.SetReadDeadline(time.Now().Add(lastWords))
	close(p.ended)
	t := time.AfterFunc(lastWords, func() { p.setBroken(err) })
	defer t.Stop()
	<-p.broken
}

// killGroup kills the process group. The number of a group that has a process is not given to another.
func (p *process) killGroup() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// serveTexts serves texts until the process ends, fails or stop is closed, and returns why. Nothing of it is left then.
func (p *process) serveTexts(stop <-chan struct{}) error {
	var all sync.WaitGroup
	for _, f := range []func(){p.writeRequests, p.readAnswers, p.readStderr} {
		all.Go(f)
	}
	all.Go(p.sendFirst)
	select {
	case <-p.broken:
	case <-stop:
		p.setBroken(ErrClosed)
		_ = p.in.Close()
		t := time.NewTimer(grace)
		select {
		case <-p.ended:
		case <-t.C:
		}
		t.Stop()
	}
	select {
	case <-p.ended: // its group is killed, and its number may be another's
	default:
		p.killGroup()
	}
	<-p.ended
	closeAll(p.in, p.out, p.err)
	all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// sendFirst sends the first text and waits for its answer.
func (p *process) sendFirst() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), p.opt.starting, ErrLate)
	defer cancel()
	_, err := p.askProcess(ctx, &request{text: []byte(firstText), own: true})
	if err != nil {
		p.setBroken(fmt.Errorf("its first text: %w", err))
		return
	}
	close(p.ready)
}

// wasReady reports whether it answered its first text.
func (p *process) wasReady() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// setBroken makes the process unusable. The first cause counts.
func (p *process) setBroken(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return
	}
	p.why = why
	for _, r := range p.pending {
		r.answered <- found{err: fmt.Errorf("%w: %w", ErrDown, why)}
	}
	clear(p.pending)
	close(p.broken)
}

// findWhenReady asks for one text once the process is ready.
func (p *process) findWhenReady(ctx context.Context, text []byte) ([]finding.Finding, error) {
	select {
	case <-p.ready:
	case <-p.broken:
		return nil, p.downError()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return p.askProcess(ctx, &request{text: text})
}

func (p *process) downError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%w: %w", ErrDown, p.why)
}

// askProcess sends a request and waits for its answer.
func (p *process) askProcess(ctx context.Context, r *request) ([]finding.Finding, error) {
	r.left, r.since, r.answered = ctx, time.Now(), make(chan found, 1)
	if err := p.registerRequest(r); err != nil {
		return nil, err
	}
	select {
	case p.lines <- r:
	case f := <-r.answered: // it failed before
		return f.list, f.err
	case <-ctx.Done():
		p.dropRequest(r)
		return nil, p.giveUp(ctx)
	}
	select {
	case f := <-r.answered:
		return f.list, f.err
	case <-ctx.Done():
		return nil, p.giveUp(ctx)
	}
}

// registerRequest gives the request an id.
func (p *process) registerRequest(r *request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.why != nil:
		return fmt.Errorf("%w: %w", ErrDown, p.why)
	case len(p.pending) >= maxPending:
		return ErrBusy
	}
	p.next++
	r.id = p.next
	p.pending[r.id] = r
	return nil
}

// dropRequest drops a request that was not written.
func (p *process) dropRequest(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, r.id)
}

// giveUp returns why ctx ended. The id of a text that was written stays pending, so that a late answer is known; the
// process is killed once one is unanswered for too long.
func (p *process) giveUp(ctx context.Context) error {
	p.mu.Lock()
	stalled := false
	for _, r := range p.pending {
		stalled = stalled || !r.own && time.Since(r.since) >= p.stallAfter()
	}
	p.mu.Unlock()
	if stalled {
		p.setBroken(ErrLate)
	}
	return context.Cause(ctx)
}

// stallAfter returns the age at which an unanswered text shows that the process hangs.
func (p *process) stallAfter() time.Duration { return max(3*p.opt.Timeout, p.opt.stall) }

// writeRequests writes requests. A process that does not read holds it, and not the callers.
func (p *process) writeRequests() {
	var line []byte
	for {
		var r *request
		select {
		case r = <-p.lines:
		case <-p.broken:
			return
		}
		if r.left.Err() != nil {
			p.dropRequest(r)
			continue
		}
		line = strconv.AppendInt(append(line[:0], `{"id":`...), r.id, 10)
		line, _ = jsontext.AppendQuote(append(line, `,"text":`...), r.text) // it is UTF-8
		line = append(line, '}', '\n')
		if !r.own {
			p.saying.Lock()
			p.mute = true
			p.saying.Unlock()
		}
		_, err := p.in.Write(line)
		clear(line)
		if err != nil {
			p.setBroken(fmt.Errorf("cannot write to the detector: %w", startFailure(err)))
			return
		}
	}
}

// readAnswers reads answers until the process can be used no longer.
func (p *process) readAnswers() {
	lines := bufio.NewScanner(p.out)
	lines.Buffer(make([]byte, 0, 64<<10), maxAnswer)
	for lines.Scan() {
		if err := p.deliverAnswer(lines.Bytes()); err != nil {
			p.setBroken(err)
			return
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		p.setBroken(fmt.Errorf("%w: a line of more than %d bytes", ErrMalformed, maxAnswer))
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed):
		select {
		case <-p.broken: // awaitExit reports how the process ended
		case <-time.After(2 * lastWords):
			p.setBroken(errors.New("it closed its standard output"))
		}
	default:
		p.setBroken(fmt.Errorf("cannot read from the detector: %w", startFailure(err)))
	}
}

// deliverAnswer gives one answer to who waits for it. After an error the lines mean nothing.
func (p *process) deliverAnswer(line []byte) error {
	a, err := parseAnswer(line)
	if err != nil {
		return err
	}
	p.mu.Lock()
	r := p.pending[*a.ID]
	delete(p.pending, *a.ID)
	p.mu.Unlock()
	if r == nil {
		return fmt.Errorf("%w: an id that no text waits for", ErrMalformed)
	}
	list, err := a.checkFindings(r.text)
	r.answered <- found{list, err}
	return nil
}

// readStderr reads the standard error, and keeps the first of it.
func (p *process) readStderr() {
	buf := make([]byte, 4<<10)
	for {
		n, err := p.err.Read(buf)
		p.saying.Lock()
		if !p.mute {
			_, _ = p.said.Write(buf[:n]) // it never fails
		}
		p.saying.Unlock()
		if err != nil {
			return
		}
	}
}
