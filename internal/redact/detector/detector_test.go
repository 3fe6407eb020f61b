package detector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// startMode starts the test binary as a detector.
func startMode(t *testing.T, o Options, mode string, args ...string) *Detector {
	t.Helper()
	o.Command = append([]string{os.Args[0], programMark, mode}, args...)
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	d, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func runningProcess(t *testing.T, d *Detector) *process {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now == nil {
		t.Fatal(d.last)
	}
	return d.now
}

// wantFailure checks that a text fails by the cause, as a RedactionError that does not quote the text.
func wantFailure(t *testing.T, d *Detector, text string, cause error) {
	t.Helper()
	list, err := d.Find(t.Context(), []byte(text))
	if list != nil || !errors.Is(err, cause) || holdfast.KindOf(err) != holdfast.KindRedaction {
		t.Fatalf("%.60q: %v, %v; want %v", text, list, err, cause)
	}
	if strings.Contains(err.Error(), "Ann") {
		t.Errorf("the error quotes the text: %v", err)
	}
}

// wantFound checks that a text has the findings, eventually: a process may be about to start again.
func wantFound(t *testing.T, d *Detector, text string, want ...finding.Finding) {
	t.Helper()
	var list []finding.Finding
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if list, err = d.Find(t.Context(), []byte(text)); err == nil {
			break
		}
	}
	if err != nil || !slices.Equal(list, want) {
		t.Fatalf("%.60q: %v, %v; want %v", text, list, err, want)
	}
}

func TestFindReturnsNamesAndAddresses(t *testing.T) {
	d := startMode(t, Options{}, "find")
	wantFound(t, d, "Ann Lee of Main St 1 likes red", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7},
		finding.Finding{Rule: "detector.address", Offset: 11, Length: 9},
		finding.Finding{Rule: "detector.other", Offset: 27, Length: 3})
	wantFound(t, d, "nothing")
	wantFound(t, d, "")
}

func TestFindCountsBytesOfUTF8(t *testing.T) {
	d := startMode(t, Options{}, "find")
	wantFound(t, d, "日本 Åsa Öberg", finding.Finding{Rule: "detector.name", Offset: 7, Length: 11})
}

func TestFindSendsLineBreaksEscaped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	d := startMode(t, Options{}, "record", file)
	wantFound(t, d, "a\r\nb\x00\u2028\"\\ Ann Lee\n", finding.Finding{Rule: "detector.name", Offset: 11, Length: 7})
	b, err := os.ReadFile(file)
	if err != nil || bytes.Count(b, []byte("\n")) != 2 {
		t.Errorf("%q, %v", b, err)
	}
}

func TestFindReplacesInvalidUTF8ByOneByte(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	d := startMode(t, Options{}, "record", file)
	wantFound(t, d, "\xff\xc3 Ann Lee \xe2\x82", finding.Finding{Rule: "detector.name", Offset: 3, Length: 7})
	if b, _ := os.ReadFile(file); !bytes.Contains(b, []byte(`"text":"?? Ann Lee ??"`)) {
		t.Errorf("%q", b)
	}
}

// A text longer than a line is sent in lines below 64 KiB that share what a name may be cut by.
func TestFindSplitsLongTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	d := startMode(t, Options{}, "record", file)
	for _, fill := range []string{"x", "é", "日", "\"", "\x01", "\n", "\xff"} {
		text := []byte(strings.Repeat(fill, 150_000/len(fill)))
		var want []finding.Finding
		for at := 0; at+7 < len(text); at += 997 * len(fill) {
			copy(text[at:], "Ann Lee")
			if n := (7 + len(fill) - 1) / len(fill) * len(fill); n > 7 { // whole characters
				copy(text[at+7:at+n], "      ")
			}
			want = append(want, finding.Finding{Rule: "detector.name", Offset: at, Length: 7})
		}
		list, err := d.Find(t.Context(), text)
		if err != nil || !slices.Equal(list, want) {
			t.Errorf("%q: %d findings, want %d, %v", fill, len(list), len(want), err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(b) {
		if n++; len(line) >= 64<<10 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	if n < 20 {
		t.Errorf("%d lines", n)
	}
}

func TestFindRefusesTextsThatAreTooLong(t *testing.T) {
	d := startMode(t, Options{}, "find")
	wantFailure(t, d, strings.Repeat("x", MaxText+1), ErrTooLong)
}

func TestFindFailsOnWrongFindings(t *testing.T) {
	for _, mode := range []string{"no-findings", "cuts-character", "beyond-end", "negative", "empty", "no-end",
		"no-kind",
		"text-as-kind", "long-kind", "many-findings"} {
		t.Run(mode, func(t *testing.T) {
			d := startMode(t, Options{}, mode)
			wantFailure(t, d, "éé Ann Lee", ErrMalformed)
			wantFailure(t, d, "éé Ann Lee", ErrMalformed) // the process was kept
		})
	}
}

func TestFindFailsOnReportedErrors(t *testing.T) {
	d := startMode(t, Options{}, "error")
	wantFailure(t, d, "Ann Lee", ErrReported)
	wantFailure(t, d, "Ann Lee", ErrReported)
}

// After a line that is not an answer no later line can be trusted.
func TestFindKillsAProgramThatWritesOtherLines(t *testing.T) {
	for _, mode := range []string{"not-json", "two-objects", "no-id", "other-id", "long-line", "endless"} {
		t.Run(mode, func(t *testing.T) {
			d := startMode(t, Options{first: time.Hour}, mode)
			wantFailure(t, d, "Ann Lee", ErrMalformed)
			wantFailure(t, d, "Ann Lee", ErrDown)
		})
	}
}

func TestFindKillsAProgramThatAnswersTwice(t *testing.T) {
	d := startMode(t, Options{first: time.Hour}, "twice")
	for range 2 { // the second answer may be read before Find returns
		if _, err := d.Find(t.Context(), []byte("Ann Lee")); err != nil {
			wantFailure(t, d, "Ann Lee", ErrDown)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	wantFailure(t, d, "Ann Lee", ErrDown)
}

func TestFindFailsOnLateAnswersAndContinues(t *testing.T) {
	d := startMode(t, Options{}, "late")
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
	before := runningProcess(t, d)
	d.opt.Timeout = 50 * time.Millisecond
	wantFailure(t, d, "slow Ann Lee", ErrLate)
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
	if runningProcess(t, d) != before {
		t.Error("the process was started again")
	}
}

func TestFindReturnsWhenTheCallerLeaves(t *testing.T) {
	d := startMode(t, Options{}, "hang")
	wantFound(t, d, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Find(ctx, []byte("Ann Lee")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestFindKillsAProgramThatHangs(t *testing.T) {
	for _, mode := range []string{"hang", "deaf"} {
		t.Run(mode, func(t *testing.T) {
			d := startMode(t, Options{first: time.Hour, stall: time.Millisecond}, mode)
			<-runningProcess(t, d).ready
			d.opt.Timeout = 20 * time.Millisecond
			var err error
			for range 100 { // a deaf program takes what its pipe holds
				if _, err = d.Find(t.Context(), bytes.Repeat([]byte("x"), 60_000)); errors.Is(err, ErrDown) {
					return
				}
			}
			t.Error(err)
		})
	}
}

// No caller waits longer than its time, however many there are.
func TestFindBoundsWaitingTexts(t *testing.T) {
	d := startMode(t, Options{}, "hang")
	<-runningProcess(t, d).ready
	d.opt.Timeout = time.Second
	var all sync.WaitGroup
	var mu sync.Mutex
	busy, late := 0, 0
	for range maxPending + 20 {
		all.Go(func() {
			_, err := d.Find(t.Context(), []byte("Ann Lee"))
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, ErrBusy) {
				busy++
			} else if errors.Is(err, ErrLate) {
				late++
			}
		})
	}
	all.Wait()
	if busy < 20 || late == 0 || busy+late != maxPending+20 {
		t.Errorf("%d busy, %d late", busy, late)
	}
}

func TestFindMatchesAnswersByID(t *testing.T) {
	d := startMode(t, Options{}, "reverse")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			text := strings.Repeat(".", i) + "Ann Lee"
			list, err := d.Find(t.Context(), []byte(text))
			if err != nil || len(list) != 1 || list[0].Offset != i {
				t.Error(i, list, err)
			}
		})
	}
	all.Wait()
}

func TestDetectorStartsAProgramAgainThatDies(t *testing.T) {
	d := startMode(t, Options{first: 10 * time.Millisecond}, "die")
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
	wantFailure(t, d, "die Ann Lee", ErrDown)
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
}

func TestDetectorFailsAtOnceWhileTheProgramIsDown(t *testing.T) {
	d := startMode(t, Options{first: time.Hour}, "die")
	wantFailure(t, d, "die Ann Lee", ErrDown)
	for range 1000 {
		wantFailure(t, d, "Ann Lee", ErrDown)
	}
}

// The pause doubles, so a program that dies at its start is not started all the time.
func TestDetectorBoundsTheRateOfRestarts(t *testing.T) {
	var log syncBuffer
	d := startMode(t, Options{first: 20 * time.Millisecond, longest: 80 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, nil))}, "exit")
	for end := time.Now().Add(20 * time.Second); strings.Count(log.String(), "\n") < 5 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	d.Close()
	for i, line := range strings.Split(log.String(), "\n")[:5] {
		want := fmt.Sprintf("restart_in=%s", time.Duration(min(20<<i, 80))*time.Millisecond)
		if !strings.Contains(line, want) || !strings.Contains(line, "cannot import a model") {
			t.Errorf("%q has no %s", line, want)
		}
	}
}

func TestDetectorEndsAProgramThatNeverBecomesReady(t *testing.T) {
	d := startMode(t, Options{Timeout: 50 * time.Millisecond, first: time.Hour, starting: 200 * time.Millisecond},
		"mute")
	wantFailure(t, d, "Ann Lee", ErrLate)
	time.Sleep(400 * time.Millisecond)
	wantFailure(t, d, "Ann Lee", ErrDown)
}

// A program that loads a model is not killed for it: texts fail until it answers.
func TestDetectorWaitsForAProgramThatLoads(t *testing.T) {
	d := startMode(t, Options{Timeout: 20 * time.Millisecond, first: time.Hour}, "loading")
	wantFailure(t, d, "Ann Lee", ErrLate)
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
}

func TestDetectorNoticesAClosedOutput(t *testing.T) {
	d := startMode(t, Options{first: time.Hour}, "closes-output")
	wantFailure(t, d, "Ann Lee", ErrDown)
}

// What it writes to its standard error after it got a text may quote the text.
func TestDetectorKeepsTheStandardErrorFromTheLog(t *testing.T) {
	var log syncBuffer
	d := startMode(t, Options{first: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))}, "noisy")
	wantFound(t, d, "Ann Lee", finding.Finding{Rule: "detector.name", Offset: 0, Length: 7})
	runningProcess(t, d).killGroup()
	for end := time.Now().Add(20 * time.Second); log.String() == "" && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if text := log.String(); !strings.Contains(text, "redaction detector ended") || strings.Contains(text, "Ann") {
		t.Error(text)
	}
}

func TestDetectorGivesAMinimalEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("HOLDFAST_TOKEN", "x")
	file := filepath.Join(t.TempDir(), "environment")
	d := startMode(t, Options{}, "environment", file)
	wantFound(t, d, "nothing")
	b, err := os.ReadFile(file)
	if err != nil || bytes.Contains(b, []byte("AWS_")) || bytes.Contains(b, []byte("HOLDFAST")) ||
		!bytes.Contains(b, []byte("PATH=")) {
		t.Errorf("%q, %v", b, err)
	}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	before := runtime.NumGoroutine()
	d := startMode(t, Options{}, "with-child", file)
	wantFound(t, d, "nothing")
	own := runningProcess(t, d).cmd.Process.Pid
	b, err := os.ReadFile(file)
	child, err2 := strconv.Atoi(string(b))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	d.Close()
	d.Close()
	for _, pid := range []int{own, child} {
		for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil && time.Now().Before(end); {
			if isZombie(pid) {
				break // its reaper is init
			}
			time.Sleep(10 * time.Millisecond)
		}
		if syscall.Kill(pid, 0) == nil && !isZombie(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	wantFailure(t, d, "Ann Lee", ErrClosed)
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func isZombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestCloseEndsAProgramThatIgnoresIt(t *testing.T) {
	for _, mode := range []string{"stubborn", "hang"} {
		t.Run(mode, func(t *testing.T) {
			d := startMode(t, Options{}, mode)
			<-runningProcess(t, d).ready
			var all sync.WaitGroup
			all.Go(func() { wantFailureOf(t, d, ErrDown, ErrClosed) })
			time.Sleep(50 * time.Millisecond)
			begin := time.Now()
			d.Close()
			if took := time.Since(begin); took > 5*time.Second {
				t.Error(took)
			}
			all.Wait()
		})
	}
}

// wantFailureOf checks that a text fails by one of the causes, or is answered.
func wantFailureOf(t *testing.T, d *Detector, causes ...error) {
	_, err := d.Find(t.Context(), []byte("Ann Lee"))
	if err != nil && !slices.ContainsFunc(causes, func(c error) bool { return errors.Is(err, c) }) {
		t.Error(err)
	}
}

func TestCloseDuringThePauseBeforeARestart(t *testing.T) {
	d := startMode(t, Options{first: time.Hour}, "exit")
	time.Sleep(50 * time.Millisecond)
	d.Close()
	wantFailure(t, d, "Ann Lee", ErrClosed)
}

func TestStartFailsWithoutAProgram(t *testing.T) {
	for _, c := range []struct {
		command []string
		kind    holdfast.Kind
	}{
		{nil, holdfast.KindUsage}, {[]string{""}, holdfast.KindUsage},
		{[]string{"/nonexistent/detector"}, holdfast.KindNotFound}, {[]string{t.TempDir()}, holdfast.KindNotFound},
	} {
		d, err := Start(Options{Command: c.command})
		if d != nil || holdfast.KindOf(err) != c.kind {
			t.Errorf("%q: %v", c.command, err)
		}
	}
	var none *Detector
	none.Close()
	wantFailure(t, none, "Ann Lee", ErrClosed)
}

func TestCutWindowCoversEveryByte(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("ab\x01\"é日\U0001F600", 30_000),
		strings.Repeat("\u0000", 70_000)} {
		b, end := []byte(text), 0
		for from := 0; from < len(b); {
			if from > end {
				t.Fatalf("the gap [%d, %d)", end, from)
			}
			next := cutWindow(b, from)
			if next <= end && next < len(b) || !strings.HasPrefix(string(b[from:next]),
				string([]rune(string(b[from:next])))) {
				t.Fatalf("the window [%d, %d) after %d", from, next, end)
			}
			if end = next; end == len(b) {
				break
			}
			from = nextWindow(b, from, end)
		}
	}
}

// syncBuffer may be written and read by several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
