// Package detector asks an external program for names and addresses in texts.
//
// The program is started once and kept running. It reads one JSON object a line and answers each, in any order:
//
//	{"id":1,"text":"Ann Lee called."}
//	{"id":1,"findings":[{"start":0,"end":7,"kind":"name"}]}
//
// start and end are bytes of the text in UTF-8. The kinds are name and address; another word is reported as other. An
// answer with "error" instead of findings fails its text. Other members are ignored.
//
// A line that is sent has less than 64 KiB. A longer text is sent in several lines that are cut between characters and
// share maxOverlap bytes, so what is shorter than that is whole in one of them. Line breaks and control characters are
// escaped. Each byte that is not UTF-8 is sent as "?", so offsets stay the same.
//
// Every failure is an error of Find, and its caller must not show or send the text. A program that writes
// other lines than answers to pending ids, or stops answering, is killed with its process group. One that ends is
// started again after a pause that doubles from one second to one minute.
package detector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// DefaultTimeout is the time for one answer. A configured time is between MinTimeout and MaxTimeout.
const (
	DefaultTimeout = time.Second
	MinTimeout     = 10 * time.Millisecond
	MaxTimeout     = 30 * time.Second
)

// MaxText is the length of the longest text that Find takes, in bytes.
const MaxText = 4 << 20

// The causes of a failure, for errors.Is.
var (
	ErrDown      = errors.New("the detector is not running")
	ErrBusy      = errors.New("too many texts wait for the detector")
	ErrLate      = errors.New("the detector did not answer in time")
	ErrMalformed = errors.New("the detector's answer is malformed")
	ErrReported  = errors.New("the detector reported an error")
	ErrTooLong   = errors.New("the text is too long for the detector")
	ErrClosed    = errors.New("the detector is closed")
)

// Options say what to run.
type Options struct {
	// Command is the program, looked up in PATH, and its arguments. It gets PATH, HOME, LANG, LC_ALL, TMPDIR and TZ of
	// the environment, and nothing else.
	Command []string
	// Timeout bounds each answer; 0 is DefaultTimeout.
	Timeout time.Duration
	// Log, if not nil, gets a warning when the program ends, and never a text.
	Log *slog.Logger

	// first and longest bound the pause before a restart, starting the time until the first answer. stall is the least
	// age of an unanswered text at which the program is killed. Tests shorten them; 0 is the package's value.
	first, longest, starting, stall time.Duration
}

// Detector is a program that is kept running. Many goroutines may use it. Its owner calls Close.
type Detector struct {
	opt  Options
	stop chan struct{} // closed by Close
	done chan struct{} // closed when nothing of it is left
	once sync.Once

	mu     sync.Mutex
	now    *process  // guarded by mu; nil while none runs
	last   error     // guarded by mu; why the latest process ended
	warned time.Time // guarded by mu; when a failed text was logged
}

// Start starts the program and sends it a first text. It does not wait for the answer, but Find does, within its time.
// The error is a holdfast.Error: there is no command, or the program cannot be started.
func Start(o Options) (*Detector, error) {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "no command for the redaction detector",
			Hint: "list the program and its arguments"}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.first, time.Second)
	setDefault(&o.longest, time.Minute)
	setDefault(&o.starting, 30*time.Second)
	setDefault(&o.stall, 5*time.Second)
	d := &Detector{opt: o, stop: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error, 1)
	go d.keepRunning(started)
	if err := <-started; err != nil {
		<-d.done
		return nil, &holdfast.Error{Kind: holdfast.KindNotFound, Err: err,
			Why:  fmt.Sprintf("cannot start the redaction detector %.64q: %v", o.Command[0], startFailure(err)),
			Hint: "check the program's name, its permissions and PATH"}
	}
	return d, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// WaitReady waits until the program has answered its first text, has ended, or ctx has. It may be called on nil.
func (d *Detector) WaitReady(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	p, last := d.now, d.last
	d.mu.Unlock()
	if p == nil {
		return wrapFailure(fmt.Errorf("%w: %w", ErrDown, last))
	}
	select {
	case <-p.ready:
		return nil
	case <-p.broken:
		return wrapFailure(p.downError())
	case <-ctx.Done():
		return wrapFailure(fmt.Errorf("its first text: %w", context.Cause(ctx)))
	}
}

// Close ends the program: it closes the standard input, waits a moment and kills the process group. Texts that wait
// fail. When it returns, no process of the group, goroutine or file is left. It may be called again, and on nil.
func (d *Detector) Close() {
	if d == nil {
		return
	}
	d.once.Do(func() { close(d.stop) })
	<-d.done
}

// Find returns what the program finds in text, in order and apart: Rule is detector.name, detector.address or
// detector.other, Offset and Length are bytes of text. If the error is not nil, nothing is known of the text, which
// must be refused or masked whole. The error is a holdfast.Error with one of the causes above, or ctx's.
func (d *Detector) Find(ctx context.Context, text []byte) ([]finding.Finding, error) {
	return d.findWithin(ctx, text, 0)
}

// findWithin is Find with another time for each answer, at most that of Options; 0 is the one of Options.
func (d *Detector) findWithin(ctx context.Context, text []byte, timeout time.Duration) ([]finding.Finding, error) {
	if d == nil {
		return nil, wrapFailure(ErrClosed)
	}
	if len(text) > MaxText {
		return nil, d.warnOf(fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(text), MaxText))
	}
	if len(text) == 0 {
		return nil, nil
	}
	var found []finding.Finding
	clean := replaceInvalid(text)
	for from := 0; from < len(clean); {
		end := cutWindow(clean, from)
		some, err := d.findInWindow(ctx, clean[from:end], cmp.Or(timeout, d.opt.Timeout))
		if err != nil {
			return nil, d.warnOf(err)
		}
		for _, f := range some {
			f.Offset += from
			found = append(found, f)
		}
		if end == len(clean) {
			break
		}
		from = nextWindow(clean, from, end)
	}
	return joinFindings(found), nil
}

// warnOf logs, at most once a minute, that a text failed, and returns its error.
func (d *Detector) warnOf(err error) error {
	d.mu.Lock()
	warn := time.Since(d.warned) >= time.Minute && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled)
	if warn {
		d.warned = time.Now()
	}
	d.mu.Unlock()
	if warn {
		d.opt.Log.Warn("redaction detector failed", "err", err)
	}
	return wrapFailure(err)
}

// failureRule is the rule of a failed search.
const failureRule = "redact/detector"

// wrapFailure wraps a cause for callers that branch on the kind.
func wrapFailure(err error) error {
	return &holdfast.Error{Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: failureRule, Err: err,
		Why: "names and addresses could not be searched: " + err.Error(), Hint: "check the program of redact: detector"}
}

// findInWindow asks for a text that fits one line.
func (d *Detector) findInWindow(ctx context.Context, text []byte, timeout time.Duration) ([]finding.Finding, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrLate)
	defer cancel()
	d.mu.Lock()
	p, last := d.now, d.last
	d.mu.Unlock()
	select {
	case <-d.stop:
		return nil, ErrClosed
	default:
	}
	if p == nil {
		return nil, fmt.Errorf("%w: %w", ErrDown, last)
	}
	return p.findWhenReady(ctx, text)
}

// keepRunning keeps a process running until Close. It reports the first start.
func (d *Detector) keepRunning(started chan<- error) {
	defer close(d.done)
	pause := d.opt.first
	for first := true; ; first = false {
		p, err := startProcess(&d.opt)
		d.setProcess(p, err)
		if first {
			started <- err
			if err != nil {
				return
			}
		}
		if err == nil {
			err = p.serveTexts(d.stop)
			if p.wasReady() && time.Since(p.since) >= d.opt.longest {
				pause = d.opt.first
			}
		}
		d.setProcess(nil, err)
		select {
		case <-d.stop:
			return
		default:
		}
		attrs := []any{"err", err, "restart_in", pause}
		if p != nil && len(p.said.Bytes()) > 0 {
			attrs = append(attrs, "stderr", p.said.String())
		}
		d.opt.Log.Warn("redaction detector ended", attrs...)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-d.stop:
			t.Stop()
			return
		}
		pause = min(2*pause, d.opt.longest)
	}
}

func (d *Detector) setProcess(p *process, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now, d.last = p, why
}
