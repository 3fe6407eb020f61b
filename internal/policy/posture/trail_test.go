package posture

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// documentMoves are the columns "State" and "Transitions" of 003 2.1 and 2.2. The
// two moves behind a + are those that Moves says are the document's words.
const documentMoves = `
1 IDLE: RECEIVING
1 RECEIVING: REQUEST_PARSED PROTOCOL_ERROR
1 REQUEST_PARSED: SPAWNING
1 SPAWNING: EXECUTING SPAWN_ERROR
1 EXECUTING: COMPLETED TIMEOUT OOM SYSCALL_BLOCKED
1 COMPLETED: COLLECTING_METRICS
1 COLLECTING_METRICS: RETURNING
1 RETURNING: IDLE
1 TIMEOUT: CLEANUP
1 OOM: CLEANUP
1 SYSCALL_BLOCKED: CLEANUP
1 CLEANUP: IDLE
1 SPAWN_ERROR: FAULTED
1 PROTOCOL_ERROR: FAULTED
1 FAULTED: IDLE
2 INITIALIZING: READY INIT_ERROR
2 READY: ACTIVE +TEARDOWN
2 ACTIVE: TEARDOWN +FAULTED
2 TEARDOWN: DESTROYED
2 DESTROYED:
2 INIT_ERROR: FAULTED
2 FAULTED: TEARDOWN
`

// TestMachines_003_2_everyTransition: from every state of both machines exactly
// the document's moves are made, and every other is refused and changes nothing.
func TestMachines_003_2_everyTransition(t *testing.T) {
	for _, m := range []Machine{Executor, Boundary} {
		moves, want := m.Moves(), map[State][]string{}
		for line := range strings.Lines(strings.TrimSpace(documentMoves)) {
			if no, rest, _ := strings.Cut(strings.TrimSpace(line), " "); no == fmt.Sprint(int(m)) {
				from, to, _ := strings.Cut(rest, ":")
				want[State(from)] = strings.Fields(strings.ReplaceAll(to, "+", ""))
			}
		}
		if len(moves) != len(want) {
			t.Errorf("machine %d has %d states, the document has %d", m, len(moves), len(want))
		}
		for from := range want {
			for to := range want {
				trail := &Trail{m, []Step{{from, time.Now()}}}
				err := trail.To(to, time.Now())
				if allowed := slices.Contains(want[from], string(to)); (err == nil) != allowed {
					t.Errorf("machine %d, %s to %s: %v", m, from, to, err)
				}
				if n := len(trail.Steps()); err != nil && n != 1 || err == nil && n != 2 {
					t.Errorf("machine %d, %s to %s: %d steps", m, from, to, n)
				}
			}
		}
	}
	if new(Trail).To(Receiving, time.Now()) == nil || Machine(0).Moves() != nil {
		t.Error("no machine moves")
	}
}

// TestTrails_003_2_everyEnd: each way that a run can end is a way through both
// machines, from IDLE home to IDLE and to DESTROYED.
func TestTrails_003_2_everyEnd(t *testing.T) {
	at := func(upTo int) (in Instants) {
		now := time.Unix(1_800_000_000, 0)
		for i, p := range []*time.Time{&in.Received, &in.Parsed, &in.Raised, &in.Ready, &in.Began, &in.Ended, &in.Torn, &in.Freed} {
			if i < upTo || i > 4 {
				*p = now.Add(time.Duration(i) * time.Second)
			}
		}
		return in
	}
	broken := at(5)
	broken.Faulted = broken.Ended
	behind := at(5) // freed behind its result
	behind.Freed = time.Time{}
	const begin, around = "IDLE RECEIVING REQUEST_PARSED SPAWNING ", "INITIALIZING READY ACTIVE TEARDOWN DESTROYED"
	for name, c := range map[string]struct {
		last     State
		at       Instants
		executor string
		boundary string
	}{
		"well":             {Completed, at(5), begin + "EXECUTING COMPLETED COLLECTING_METRICS RETURNING IDLE", around},
		"freed behind it":  {Completed, behind, begin + "EXECUTING COMPLETED COLLECTING_METRICS RETURNING IDLE", around},
		"by time":          {Timeout, at(5), begin + "EXECUTING TIMEOUT CLEANUP IDLE", around},
		"by memory":        {OOM, at(5), begin + "EXECUTING OOM CLEANUP IDLE", around},
		"by a call":        {SyscallBlocked, at(5), begin + "EXECUTING SYSCALL_BLOCKED CLEANUP IDLE", around},
		"a wall":           {SpawnError, at(3), begin + "SPAWN_ERROR FAULTED IDLE", "INITIALIZING INIT_ERROR FAULTED TEARDOWN DESTROYED"},
		"before any wall":  {SpawnError, at(2), begin + "SPAWN_ERROR FAULTED IDLE", "INITIALIZING INIT_ERROR FAULTED TEARDOWN DESTROYED"},
		"the interpreter":  {SpawnError, at(4), begin + "SPAWN_ERROR FAULTED IDLE", "INITIALIZING READY TEARDOWN DESTROYED"},
		"a wall that fell": {Completed, broken, begin + "EXECUTING COMPLETED COLLECTING_METRICS RETURNING IDLE", "INITIALIZING READY ACTIVE FAULTED TEARDOWN DESTROYED"},
		"given up":         {Completed, at(4), begin + "EXECUTING COMPLETED COLLECTING_METRICS RETURNING IDLE", "INITIALIZING READY TEARDOWN DESTROYED"},
		"a bad request":    {ProtocolError, at(1), "IDLE RECEIVING PROTOCOL_ERROR FAULTED IDLE", ""},
	} {
		executor, boundary, err := Trails(c.last, c.at)
		if err != nil || words(executor) != c.executor || words(boundary) != c.boundary {
			t.Errorf("%s: %v\n%s\n%s", name, err, words(executor), words(boundary))
		}
		for _, steps := range [][]Step{executor, boundary} {
			for i, s := range steps {
				if s.At.IsZero() || i > 0 && s.At.Before(steps[i-1].At) {
					t.Errorf("%s: %s out of time in %v", name, s.State, steps)
				}
			}
		}
	}
	if _, _, err := Trails("NOWHERE", at(5)); err == nil {
		t.Error("a run ended where no machine ends")
	}
}

func words(steps []Step) string {
	var list []string
	for _, s := range steps {
		list = append(list, string(s.State))
	}
	return strings.Join(list, " ")
}

// TestSignals_003_2_everyRow: the rows of "Error Behavior" in 2.1 and 2.2.
func TestSignals_003_2_everyRow(t *testing.T) {
	kind := func(k holdfast.Kind, cause error) error {
		return fmt.Errorf("run: %w", &holdfast.Error{Kind: k, Why: "w", Err: cause})
	}
	tmpfs := &Tmpfs{errors.New("no")}
	for name, c := range map[string]struct {
		rows []Signal
		want string
	}{
		"Wall-clock timeout":        {(&Result{State: Timeout, ExitCode: 137}).Signals(), "WARN trace.sandbox_timeout"},
		"Memory limit exceeded":     {(&Result{State: OOM, ExitCode: 137}).Signals(), "WARN trace.sandbox_oom"},
		"Disallowed syscall":        {(&Result{State: SyscallBlocked, Reason: ReasonSyscall, ExitCode: 159}).Signals(), "WARN trace.sandbox_seccomp"},
		"Container creation":        {Refused(kind(holdfast.KindSpawn, nil)), "ERROR trace.sandbox_spawn_error"},
		"The interpreter":           {(&Result{State: SpawnError, ExitCode: 1}).Signals(), "ERROR trace.sandbox_spawn_error"},
		"gRPC protocol error":       {Refused(kind(holdfast.KindProtocol, nil)), "WARN trace.sandbox_protocol_error"},
		"a language":                {Refused(kind(holdfast.KindLanguage, nil)), "WARN trace.sandbox_protocol_error"},
		"a size":                    {Refused(kind(holdfast.KindCodeSize, nil)), "WARN trace.sandbox_protocol_error"},
		"a limit":                   {Refused(kind(holdfast.KindLimit, nil)), "WARN trace.sandbox_protocol_error"},
		"Code exits with error":     {(&Result{State: Completed, ExitCode: 3}).Signals(), "INFO trace.sandbox_code_error"},
		"Code dies of a signal":     {(&Result{State: Completed, ExitCode: 139, Signal: 11, Reason: ReasonSignal}).Signals(), "INFO trace.sandbox_code_error"},
		"Code exits well":           {(&Result{State: Completed}).Signals(), ""},
		"a person stopped it":       {(&Result{State: Completed, ExitCode: 137, Reason: ReasonHalt}).Signals(), ""},
		"Namespace creation":        {Refused(kind(holdfast.KindNamespace, nil)), "ERROR trace.sandbox_ns_error, ERROR trace.sandbox_spawn_error"},
		"Seccomp profile load":      {Refused(kind(holdfast.KindSeccomp, nil)), "ERROR trace.sandbox_seccomp_error, ERROR trace.sandbox_spawn_error"},
		"Cgroup limit setup":        {Refused(kind(holdfast.KindCgroup, nil)), "ERROR trace.sandbox_cgroup_error, ERROR trace.sandbox_spawn_error"},
		"Rootfs mount":              {Refused(kind(holdfast.KindMount, nil)), "ERROR trace.sandbox_mount_error, ERROR trace.sandbox_spawn_error"},
		"Tmpfs mount":               {Refused(kind(holdfast.KindMount, tmpfs)), "ERROR trace.sandbox_tmpfs_error, ERROR trace.sandbox_spawn_error"},
		"Namespace escape":          {(&Result{State: SyscallBlocked, Reason: ReasonEscape, ExitCode: 159}).Signals(), "ERROR+4 trace.sandbox_escape_attempt, WARN trace.sandbox_seccomp"},
		"what is not the sandbox's": {Refused(kind(holdfast.KindHalted, nil)), ""},
	} {
		var got []string
		for _, s := range c.rows {
			got = append(got, s.Level.String()+" "+s.Event)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNews: the rows go with the result's own error, and hide none of it.
func TestNews(t *testing.T) {
	if err := (&Result{State: Completed}).News(); err != nil {
		t.Error(err)
	}
	var n *News
	if err := (&Result{ID: "r", State: Timeout, ExitCode: 137}).News(); !errors.As(err, &n) || n.Run != "r" || n.Exit != 137 || n.Err != nil || n.State != Timeout || n.Error() == "" {
		t.Errorf("%+v", n)
	}
	var e *Escape
	if err := (&Result{ID: "r", State: SyscallBlocked, Reason: ReasonEscape}).News(); !errors.As(err, &n) || !errors.As(err, &e) || len(n.Signals) != 2 {
		t.Errorf("%+v", n)
	}
}
