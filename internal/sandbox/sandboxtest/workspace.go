package sandboxtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Workspace runs the same attempts on work trees (D17): whole programs, which
// start others, talk to each other and write their tree, behind a profile of
// their own. Each has to come to what it comes to in a run of code, or to what
// the table of exceptions says by its name. open is given the path of the
// compiled program, for a toolbox. That the attempts get through where there is
// no wall, Suite shows.
func Workspace(t *testing.T, part Part, open func(t *testing.T, program string) Runner) {
	workspace(t, part, nil, open)
}

// Connected is Workspace for those that have a network, in which Holdfast answers
// whoever comes, and each question for a name by itself.
func Connected(t *testing.T, part Part, open func(t *testing.T, program string) Runner) {
	workspace(t, part, connectedExceptions(), open)
}

// workspace runs the attempts; what stands in own goes before the other
// exceptions.
func workspace(t *testing.T, part Part, own reasons, open func(t *testing.T, program string) Runner) {
	s := &suite{tree: true, part: part, patience: 2 * time.Minute} // whose files are on a disk that others use
	s.others(t, exceptions(), own, open)
}

// others runs every attempt, by a table of exceptions; what stands in own goes
// before them.
func (s *suite) others(t *testing.T, table, own reasons, open func(t *testing.T, program string) Runner) {
	t.Helper()
	s.open(t, open)
	left := map[string]int{}
	other := table.byName(t)
	maps.Copy(other, own.byName(t))
	begin := func(name string, same func(*testing.T), differs func(exception) func(*testing.T)) {
		x, ok := other[name]
		delete(other, name)
		switch {
		case !ok:
			s.begin(t, name, false, same)
		case x.none():
			left[x.why]++
			s.isChosen(name, true)
		default:
			s.begin(t, name, false, differs(x))
		}
	}
	for _, f := range families() {
		for _, a := range f.tries {
			begin(f.name+"/"+a.name, func(t *testing.T) { s.attempt(t, a, nil) }, func(x exception) func(*testing.T) {
				return func(t *testing.T) { s.attempt(t, x.of(a), nil) }
			})
		}
	}
	for _, p := range append(properties(), channels()...) {
		begin("property/"+p.name, func(t *testing.T) { p.holds(t, s) }, func(x exception) func(*testing.T) {
			return func(t *testing.T) { x.holds(t, s) }
		})
	}
	s.begun.Wait()
	s.checkNames(t)
	for name := range other {
		t.Errorf("there is no attempt %q, for which there is an exception", name)
	}
	t.Logf("%d attempts, of which %d by a rule of their own; left out: %v", s.attempts, table.count()-sum(left), left)
	if most := 10; sum(left) > most {
		t.Errorf("%d attempts are left out, at most %d may be", sum(left), most)
	}
}

// exception is what an attempt comes to on a work tree, where that rightly is
// something else than in a run of code.
type exception struct {
	why string
	try
	holds func(*testing.T, *suite)
}

// none: the attempt makes no sense there, and why says the reason.
func (x exception) none() bool { return x.want == nil && x.holds == nil }

// of is the attempt a by this exception.
func (x exception) of(a try) try {
	a.want = x.want
	if x.static != "" {
		a.static = x.static
	}
	if x.code != "" {
		a.code, a.static = x.code, x.static
	}
	if x.js != "" {
		a.js = x.js
	}
	if x.spec != nil {
		a.spec = x.spec
	}
	return a
}

// because are exceptions of one reason.
type because struct {
	why   string
	tries []exception
}

type reasons []because

// byName returns the exceptions; none may be there twice.
func (r reasons) byName(t *testing.T) map[string]exception {
	t.Helper()
	m := map[string]exception{}
	for _, b := range r {
		for _, x := range b.tries {
			if _, twice := m[x.name]; twice {
				t.Errorf("there are two exceptions for %q", x.name)
			}
			x.why = b.why
			m[x.name] = x
		}
	}
	return m
}

func (r reasons) count() (n int) {
	for _, b := range r {
		n += len(b.tries)
	}
	return n
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// onTree lets a program know that it is inside: there is no /code there.
var onTree = strings.NewReplacer("os.path.exists('/code')", "True", "fs.existsSync('/code')", "true")

// each makes exceptions of one kind for attempts of a family.
func each(w want, family string, names ...string) []exception {
	var list []exception
	for _, n := range names {
		list = append(list, exception{try: try{name: family + "/" + n, want: w}})
	}
	return list
}

// row is the exception for one attempt, with another program where code is
// given.
func row(name, code string, w want) exception {
	x := exception{try: try{name: name, want: w}}
	if strings.HasPrefix(name, "node/") {
		x.js = code
	} else {
		x.code = code
	}
	return x
}

// may: it gets through, and what it reaches is its own.
func may(t *testing.T, s *suite, res *posture.Result) {
	t.Helper()
	does("reached\n")(t, s, res)
}

// does: the program runs to its end and says words.
func does(words string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		ran(t, res)
		if !strings.Contains(string(res.Stdout), words) {
			t.Errorf("it said %q, want %q", res.Stdout, words)
		}
	}
}

// lives: a kernel whose Landlock knows signals refuses this one; any other
// forgets it, as of any that would be its init's end. The program runs on.
func lives(t *testing.T, _ *suite, res *posture.Result) {
	t.Helper()
	ran(t, res)
	if out := string(res.Stdout); !slices.Contains([]string{"reached\n", "refused EPERM\n", "refused ESRCH\n"}, out) {
		t.Errorf("it was told %q", out)
	}
}

// sure: it said words, never that it got through where it should not, and the
// result is as holds says.
func sure(words string, holds func(*posture.Result) bool) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		if !strings.Contains(string(res.Stdout), words) || !holds(res) {
			t.Errorf("ended as %s %d %q with %d and %d bytes, refused %v", res.State, res.ExitCode, res.Reason, len(res.Stdout), len(res.Stderr), res.Refused)
		}
	}
}

// fails: the program ends by its own error, of this name, and got nowhere.
func fails(name string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		never(t, res)
		if res.State != posture.Completed || res.Reason != "" || res.ExitCode != 1 || strings.Contains(string(res.Stdout), "second") || !strings.Contains(string(res.Stderr), name) {
			t.Errorf("ended as %s %d %q, want an error %s", res.State, res.ExitCode, res.Reason, name)
		}
	}
}

// either: the program runs to its end and says one of these lines.
func either(lines ...string) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		ran(t, res)
		if !slices.Contains(lines, strings.TrimSpace(string(res.Stdout))) {
			t.Errorf("it said %q, want one of %q", res.Stdout, lines)
		}
	}
}

// between: the program runs to its end and says a number from least to most.
func between(format string, least, most int) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		ran(t, res)
		var n int
		if _, err := fmt.Sscanf(string(res.Stdout), format, &n); err != nil || n < least || n > most {
			t.Errorf("it said %q, want %d to %d", res.Stdout, least, most)
		}
	}
}
