package posture

import "fmt"

// Escape is how a run that tried to get out comes back from its hand (D16,
// D21): the act's error wraps it, and whoever settles the run answers the
// attempt. The code was killed; the zero Call is one that could not be named.
type Escape struct {
	// Run is the run's id (Spec.ID): the request_id of spec 003 section 2.1.
	Run  string
	Call Call
	// Code is the code's SHA-256 in hexadecimal, for whoever looks at the
	// attempt; empty where nobody knows it.
	Code string
}

// Error says what was tried, in one line.
func (e *Escape) Error() string {
	return "the code tried to leave its sandbox with " + e.Call.String()
}

// Violation is how a run comes back that was killed for a call outside its
// allowlist which is no way out (D16). The act returns it beside its output,
// which stands: the program was ended, and nobody is suspected.
type Violation struct {
	Run  string
	Call Call
}

// Error says what was called, in one line.
func (e *Violation) Error() string {
	return "the code was ended for " + e.Call.String() + ", which its sandbox does not allow"
}

// Stopped is how a run comes back that was ended from outside: by a person, by
// its caller who gave up, or because its act's time was over. The act returns it
// beside its output, which is what the code had written until then.
type Stopped struct {
	Run string
	Err error // why the act's context ended
}

// Error says that it was stopped, and why.
func (s *Stopped) Error() string { return "the run was stopped: " + s.Err.Error() }

// Unwrap returns why.
func (s *Stopped) Unwrap() error { return s.Err }

// Broke is the error that an act returns with the result of a run: an *Escape,
// a *Violation, or nil where the run kept within its walls. Calls that were
// refused while the program ran on (D16) are none; they stand in Refused.
func (r *Result) Broke() error {
	var call Call
	if r.Call != nil {
		call = *r.Call
	}
	switch r.Reason {
	case ReasonEscape:
		return &Escape{Run: r.ID, Call: call}
	case ReasonSyscall:
		return &Violation{Run: r.ID, Call: call}
	}
	return nil
}

// String names the call for people: "ptrace (call 101, x86_64)".
func (c Call) String() string {
	name := c.Name
	if name == "" && c == (Call{}) {
		return "a call that could not be named"
	}
	if name == "" {
		name = "an unknown call"
	}
	if c.Arch == "" {
		return fmt.Sprintf("%s (call %d)", name, c.Nr)
	}
	return fmt.Sprintf("%s (call %d, %s)", name, c.Nr, c.Arch)
}
