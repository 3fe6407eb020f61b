// Package sandboxtest is the escape suite: what every tier of the sandbox has
// to withstand, whatever its walls are made of (spec 003 sections 2.1 and 2.2,
// decisions D15 to D21a). Each attempt runs alone in a run of its own, and has a
// twin: the same action outside the wall, where it gets through. An attempt that
// fails everywhere shows nothing about a wall.
package sandboxtest

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Runner is a tier that runs code.
type Runner interface {
	Run(context.Context, sandbox.Spec) (*posture.Result, error)
}

// least is what every attempt asks for; which walls stand beyond it, each run
// says.
var least = []posture.Wall{posture.WallPID, posture.WallNet, posture.WallMount, posture.WallUTS, posture.WallIPC, posture.WallUser, posture.WallSeccomp, posture.WallRights, posture.WallScratch}

// try is one attempt.
type try struct {
	name string
	// code is Python behind the prelude, or where js or static is set empty.
	code string
	// js is JavaScript behind a prelude of its own.
	js string
	// static names a trick of the compiled program (testdata/tricks).
	static string
	want   want
	twin   twin
	spec   func(*sandbox.Spec)
	// patient: it waits for most of a limit, and uses nothing meanwhile.
	patient bool
	// costly: it takes long, and meets a wall that a cheaper attempt meets too.
	costly bool
}

// family are attempts of one kind.
type family struct {
	name  string
	tries []try
}

// Suite makes the attempts of part, at most eight at a time, in the runner that open
// returns. open is called once, and the test that it is given outlives all attempts.
func Suite(t *testing.T, part Part, open func(t *testing.T) Runner) {
	(&suite{part: part}).whole(t, open)
}

// Again is Suite for other runners of the same machine and user, without the
// twins: that those get through, Suite shows in the same run of tests.
func Again(t *testing.T, part Part, open func(t *testing.T) Runner) {
	(&suite{part: part, again: true}).whole(t, open)
}

func (s *suite) whole(t *testing.T, open func(t *testing.T) Runner) {
	t.Helper()
	s.open(t, func(t *testing.T, _ string) Runner { return open(t) })
	for _, f := range families() {
		var together map[string]*batch
		if s.part.brief && len(s.part.names) == 0 {
			together = batchesOf(f)
		}
		for _, a := range f.tries {
			if a.costly && s.part.brief && len(s.part.names) == 0 {
				continue
			}
			s.begin(t, f.name+"/"+a.name, a.patient, func(t *testing.T) { s.attempt(t, a, together[a.name]) })
		}
	}
	for _, p := range append(properties(), channels()...) {
		s.begin(t, "property/"+p.name, false, func(t *testing.T) { p.holds(t, s) })
	}
	s.begun.Wait()
	s.checkNames(t)
	s.tell(t)
}

// open makes ready whatever the attempts need, and runs something that harms
// nobody.
func (s *suite) open(t *testing.T, open func(t *testing.T, program string) Runner) {
	t.Helper()
	Heed(t)
	s.tricks, s.turn = tricks(t), make(chan struct{}, min(8, 2*runtime.NumCPU()))
	s.program = filepath.Join(t.TempDir(), "tricks")
	startable(t, s.program, s.tricks)
	s.no386 = s.shut386(t)
	s.Runner = open(t, s.program)
	first, err := s.run(t, sandbox.Spec{ID: "first", Language: "python3", Code: []byte("print('hello')")})
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Stdout) != "hello\n" || first.ExitCode != 0 {
		t.Fatalf("nothing runs here: %q %q", first.Stdout, first.Stderr)
	}
	s.posture = first.Posture
}

// begin runs one of the attempts, of which two for each processor run at once, eight
// at most; who is patient only waits, and is not one of them. (Go's own parallel tests would be as
// many as there are processors.)
func (s *suite) begin(t *testing.T, name string, patient bool, f func(*testing.T)) {
	s.attempts++
	if !s.isChosen(name, patient) {
		return
	}
	s.begun.Go(func() {
		if !patient {
			s.turn <- struct{}{}
			defer func() { <-s.turn }()
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s.tally(&s.made)
			f(t)
		})
	})
}

func (s *suite) tally(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// within is how long a program may take that says nothing else.
func (s *suite) within() time.Duration { return cmp.Or(s.patience, sandbox.MaxTimeout) }

type suite struct {
	Runner
	posture  posture.Posture
	tricks   []byte // the compiled program
	program  string // the file that it stands in, for twins
	turn     chan struct{}
	tree     bool // the programs run on a work tree
	alone    bool // they run without their twins, which another suite runs
	again    bool // they do too, and nothing else is different
	part     Part // the attempts that are made
	seen     map[string]bool
	patience time.Duration // see within
	no386    bool          // see shut386
	family   string
	inFamily int
	attempts int // all there are
	begun    sync.WaitGroup

	mu    sync.Mutex
	made  int      // attempts
	twins int      // that got through
	other []string // twins that could not be tried here, and why
}

// up says whether a wall stands here.
func (s *suite) up(w posture.Wall) bool { return slices.Contains(s.posture.Up, w) }

func (s *suite) run(t *testing.T, spec sandbox.Spec) (*posture.Result, error) {
	t.Helper()
	if spec.Need == nil {
		spec.Need = least
	}
	if s.tree && spec.Language != sandbox.Static {
		spec.Code = []byte(onTree.Replace(string(spec.Code)))
	}
	if s.alone && spec.Language != sandbox.Static {
		spec.Code = []byte(strings.ReplaceAll(string(spec.Code), "'/tmp", "'/workspace"))
	}
	return s.Run(t.Context(), spec)
}

// python runs code and fails the test where it could not be run at all.
func (s *suite) python(t *testing.T, code string, change ...func(*sandbox.Spec)) *posture.Result {
	t.Helper()
	spec := sandbox.Spec{ID: "try", Language: "python3", Code: []byte(prelude() + code), Timeout: s.within()}
	for _, c := range change {
		c(&spec)
	}
	res, err := s.run(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// compiled runs a trick of the compiled program.
func (s *suite) compiled(t *testing.T, trick string, change ...func(*sandbox.Spec)) *posture.Result {
	t.Helper()
	spec := sandbox.Spec{ID: "try", Language: sandbox.Static, Code: s.tricks, Environment: map[string]string{"TRICK": trick}, Timeout: s.within()}
	for _, c := range change {
		c(&spec)
	}
	res, err := s.run(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// attempt makes an attempt, by itself if b is nil.
func (s *suite) attempt(t *testing.T, a try, b *batch) {
	var res *posture.Result
	change := a.spec
	if change == nil {
		change = func(*sandbox.Spec) {}
	}
	switch {
	case b != nil:
		res = b.run(t, s, a.name)
	case a.static != "":
		res = s.compiled(t, a.static, change)
	case a.js != "":
		res = s.node(t, a.js, change)
	default:
		res = s.python(t, a.code, change)
	}
	if s.no386 && a.enters386() && faulted(res) {
		never(t, res)
	} else {
		a.want.judge(t, s, res)
	}
	if t.Failed() {
		t.Logf("%s %d %s %v %+v\nout %.600q\nerr %.900q", res.State, res.ExitCode, res.Reason, res.Call, res.Refused, res.Stdout, res.Stderr)
	}
	if !s.tree && !s.alone && !s.again {
		s.compare(t, a)
	}
}

// tell says how many twins got through, and which could not be tried. Too few
// is a failure: an attempt without a twin shows little.
func (s *suite) tell(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d of %d attempts; %d twins got through outside; %d could not be tried here", s.made, s.attempts, s.twins, len(s.other))
	for _, o := range s.other {
		t.Log("no twin here: " + o)
	}
	if s.attempts < 120 {
		t.Errorf("only %d attempts", s.attempts)
	}
	if !t.Failed() && 10*len(s.other) > 3*s.made {
		t.Errorf("%d of %d attempts have no twin on this machine", len(s.other), s.made)
	}
}

// want is what has to become of an attempt.
type want func(t *testing.T, s *suite, res *posture.Result)

func (w want) judge(t *testing.T, s *suite, res *posture.Result) {
	t.Helper()
	w(t, s, res)
}

// escape: killed with 159 for the named call, as an attempt to get out.
func escape(call string) want { return killed(call, posture.ReasonEscape) }

// violation: killed with 159 for the named call.
func violation(call string) want { return killed(call, posture.ReasonSyscall) }

func killed(call string, reason posture.Reason) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		if !s.posture.Names {
			endedUnnamed(t, res)
			return
		}
		if res.State != posture.SyscallBlocked || res.ExitCode != posture.ExitSyscall || res.Reason != reason {
			t.Errorf("ended as %s %d %q, want %s 159 %q", res.State, res.ExitCode, res.Reason, posture.SyscallBlocked, reason)
		}
		if res.Call == nil || res.Call.Name != call {
			t.Errorf("the call was named %v, want %s", res.Call, call)
		}
		if line := fmt.Sprintf("Seccomp violation: syscall %s blocked\n", call); !strings.HasSuffix(string(res.Stderr), line) || res.Err+"\n" != line {
			t.Errorf("stderr ends in %q, error %q, want %q", res.Stderr, res.Err, line)
		}
		if res.Call == nil || res.Call.Arch == "" {
			t.Error("the call's architecture is not told")
		}
		never(t, res)
	}
}

// endedUnnamed: killed with 159 where a posture says that nobody can name a call,
// nor tell one kind from the other.
func endedUnnamed(t *testing.T, res *posture.Result) {
	t.Helper()
	never(t, res)
	if res.State != posture.SyscallBlocked || res.ExitCode != posture.ExitSyscall || res.Reason != posture.ReasonSyscall || !strings.HasSuffix(string(res.Stderr), res.Err+"\n") || res.Err == "" {
		t.Errorf("ended as %s %d %q %q, want %s 159", res.State, res.ExitCode, res.Reason, res.Err, posture.SyscallBlocked)
	}
}

// foreign: killed as an attempt to get out, by a call that came in by another
// architecture's door.
func foreign(arch string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		if res.ExitCode != posture.ExitSyscall || res.Reason != posture.ReasonEscape || res.Call == nil || !strings.Contains(res.Call.Arch, arch) {
			t.Errorf("ended as %d %q by %v, want 159 by a call of %s", res.ExitCode, res.Reason, res.Call, arch)
		}
		never(t, res)
	}
}

func never(t *testing.T, res *posture.Result) {
	t.Helper()
	if strings.Contains(string(res.Stdout), "reached") {
		t.Error("IT GOT THROUGH")
	}
}

// refused: the call fails with errno, is counted by its name, and the program
// runs on.
func refused(call, errno string) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		denied(errno)(t, s, res)
		if !s.posture.Names {
			return // nor are those that are refused
		}
		if !s.useRefusal(res.Refused, call) {
			t.Errorf("%s is not among what was refused: %v", call, res.Refused)
		}
	}
}

// useRefusal takes one from the count of a call's refusals, which attempts of one batch
// share, and reports whether there was one.
func (s *suite) useRefusal(list []posture.Refusal, call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(list, func(r posture.Refusal) bool { return r.Name == call && r.Count > 0 })
	if i >= 0 {
		list[i].Count--
	}
	return i >= 0
}

// denied: the action fails with one of the errors (by a wall that stands in the
// kernel's own answers), and the program runs on.
func denied(errnos ...string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		ran(t, res)
		never(t, res)
		if !slices.ContainsFunc(errnos, func(e string) bool { return strings.Contains(string(res.Stdout), "refused "+e+"\n") }) {
			t.Errorf("it was told %q, want refused %v", res.Stdout, errnos)
		}
	}
}

func ran(t *testing.T, res *posture.Result) {
	t.Helper()
	if res.State != posture.Completed || res.ExitCode != 0 || res.Reason != "" {
		t.Errorf("the program did not run on: %s %d %q", res.State, res.ExitCode, res.Reason)
	}
}

// says: the program runs to its end and says words, which tell that it got
// nowhere.
func says(words string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		ran(t, res)
		never(t, res)
		if !strings.Contains(string(res.Stdout), words) {
			t.Errorf("it was told %q, want %q", res.Stdout, words)
		}
	}
}

// ends: the run ended in a state, for a reason, with an exit code.
func ends(state posture.State, reason posture.Reason, code int) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		if res.State != state || res.Reason != reason || res.ExitCode != code {
			t.Errorf("ended as %s %q %d, want %s %q %d", res.State, res.Reason, res.ExitCode, state, reason, code)
		}
		never(t, res)
	}
}

// where picks what is wanted by whether a wall stands.
func where(w posture.Wall, there, otherwise want) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		if s.up(w) {
			there(t, s, res)
			return
		}
		t.Logf("the wall %s is down here (%s)", w, s.posture.Down[w])
		otherwise(t, s, res)
	}
}

// killedAny: killed with 159 for a call that may have no name, as either kind.
func killedAny() want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		if res.State != posture.SyscallBlocked || res.ExitCode != posture.ExitSyscall || res.Call == nil || res.Call.Name == "" {
			t.Errorf("ended as %s %d by %v, want %s 159 by a call with some name", res.State, res.ExitCode, res.Call, posture.SyscallBlocked)
		}
		never(t, res)
	}
}
