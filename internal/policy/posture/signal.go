package posture

import (
	"errors"
	"log/slog"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
)

// Signal is one row of the document's error tables (003 2.1 and 2.2): how loud
// it is, and the trace event that it leaves. Where the document names no level,
// as in all of 2.1, it is WARN for what a limit, a wall or a request did, ERROR
// for what Holdfast could not do, and INFO for the program's own failure.
type Signal struct {
	Level slog.Level
	Event string
}

// The trace events of 003 2.1 and 2.2.
const (
	TraceTimeout  = "trace.sandbox_timeout"
	TraceOOM      = "trace.sandbox_oom"
	TraceSyscall  = "trace.sandbox_seccomp"
	TraceSpawn    = "trace.sandbox_spawn_error"
	TraceProtocol = "trace.sandbox_protocol_error"
	TraceCode     = "trace.sandbox_code_error"

	TraceNamespace = "trace.sandbox_ns_error"
	TraceSeccomp   = "trace.sandbox_seccomp_error"
	TraceCgroup    = "trace.sandbox_cgroup_error"
	TraceMount     = "trace.sandbox_mount_error"
	TraceTmpfs     = "trace.sandbox_tmpfs_error"
	TraceEscape    = "trace.sandbox_escape_attempt"
)

// Tmpfs marks a MountError as that of a scratch: its inner cause is one.
type Tmpfs struct{ Err error }

// Error is that of the cause.
func (t *Tmpfs) Error() string { return t.Err.Error() }

// Unwrap returns the cause.
func (t *Tmpfs) Unwrap() error { return t.Err }

// StateOf is the executor's state where an error kept a run from beginning:
// PROTOCOL_ERROR where the request was at fault, SPAWN_ERROR where a wall was,
// and "" of an error that is none of the sandbox's.
func StateOf(err error) State {
	switch holdfast.KindOf(err) {
	case holdfast.KindProtocol, holdfast.KindLanguage, holdfast.KindCodeSize, holdfast.KindLimit:
		return ProtocolError
	case holdfast.KindSpawn, holdfast.KindNamespace, holdfast.KindSeccomp, holdfast.KindCgroup, holdfast.KindMount:
		return SpawnError
	}
	return ""
}

// Refused are the rows of the tables that an error of StateOf is: the wall's own
// first, then the executor's.
func Refused(err error) []Signal {
	spawn := Signal{slog.LevelError, TraceSpawn}
	wall := func(event string) []Signal { return []Signal{{slog.LevelError, event}, spawn} }
	if StateOf(err) == ProtocolError {
		return []Signal{{slog.LevelWarn, TraceProtocol}}
	}
	switch holdfast.KindOf(err) {
	case holdfast.KindNamespace:
		return wall(TraceNamespace)
	case holdfast.KindSeccomp:
		return wall(TraceSeccomp)
	case holdfast.KindCgroup:
		return wall(TraceCgroup)
	case holdfast.KindMount:
		if t := (*Tmpfs)(nil); errors.As(err, &t) {
			return wall(TraceTmpfs)
		}
		return wall(TraceMount)
	case holdfast.KindSpawn:
		return []Signal{spawn}
	}
	return nil
}

// Signals are the rows of the tables that a run is: none of one that ended well,
// or that a person ended.
func (r *Result) Signals() []Signal {
	switch r.State {
	case Timeout:
		return []Signal{{slog.LevelWarn, TraceTimeout}}
	case OOM:
		return []Signal{{slog.LevelWarn, TraceOOM}}
	case SyscallBlocked:
		if r.Reason == ReasonEscape {
			return []Signal{{holdfast.LevelCritical, TraceEscape}, {slog.LevelWarn, TraceSyscall}}
		}
		return []Signal{{slog.LevelWarn, TraceSyscall}}
	case SpawnError:
		return []Signal{{slog.LevelError, TraceSpawn}}
	case Completed:
		if r.ExitCode != 0 && (r.Reason == "" || r.Signal != 0) {
			return []Signal{{slog.LevelInfo, TraceCode}}
		}
	}
	return nil
}

// News is what a run has to tell beside its output: the rows of the error tables
// that it is. An act returns it as its error; whoever settles the run takes it
// off, tells it, and goes on with Err, which is nil where the output stands.
type News struct {
	Run     string
	State   State
	Exit    int
	Signals []Signal
	Err     error
}

// Error is that of the inner error, or says how the run ended.
func (n *News) Error() string {
	if n.Err != nil {
		return n.Err.Error()
	}
	return "the run ended as " + string(n.State)
}

// Unwrap returns the inner error.
func (n *News) Unwrap() error { return n.Err }

// TakeNews takes the news off an act's error.
func TakeNews(err error) (*News, error) {
	var n *News
	if errors.As(err, &n) {
		return n, n.Err
	}
	return nil, err
}

// EventData returns what the ledger keeps of a run that a limit or a wall ended, or kept from
// beginning; nil of any other. What the code did to its walls has an event of its own, and the
// entry has the exit code of a program that fails by itself.
func (n *News) EventData() map[string]any {
	if n == nil || len(n.Signals) == 0 || n.Signals[0].Level < slog.LevelWarn || n.State == SyscallBlocked {
		return nil
	}
	first := n.Signals[0]
	data := map[string]any{"level": levelWord(first.Level), "trace": first.Event, "request_id": visible.Shorten(n.Run),
		"state": visible.Shorten(string(n.State)), "exit_code": n.Exit}
	if n.Err != nil {
		data["kind"] = string(holdfast.KindOf(n.Err))
	}
	return data
}

// levelWord returns a level as spec 003 writes it.
func levelWord(l slog.Level) string {
	switch {
	case l >= holdfast.LevelCritical:
		return "CRITICAL"
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARNING"
	}
	return "INFO"
}

// News is the error that an act returns with the result of a run: nil where
// there is nothing to tell, and with Broke inside where the code did something to
// its walls.
func (r *Result) News() error {
	rows, broke := r.Signals(), r.Broke()
	if len(rows) == 0 {
		return broke
	}
	return &News{Run: r.ID, State: r.State, Exit: r.ExitCode, Signals: rows, Err: broke}
}

// Walk fills in the states that the run went through.
func (r *Result) Walk(at Instants) {
	var err error
	if r.States, r.Around, err = Trails(r.State, at); err != nil {
		r.States, r.Around = nil, nil // a trail that cannot be is none
	}
}
