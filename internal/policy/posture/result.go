package posture

import "time"

// State is one of the document's machines (003 2.1 and 2.2); of a result, how the
// run ended.
type State string

// The last states of the executor.
const (
	Completed      State = "COMPLETED"
	Timeout        State = "TIMEOUT"
	OOM            State = "OOM"
	SyscallBlocked State = "SYSCALL_BLOCKED"
	SpawnError     State = "SPAWN_ERROR"
	ProtocolError  State = "PROTOCOL_ERROR"
)

// Reason says which limit or wall ended a run; empty for a program that ended
// by itself. The exit code alone never says (D15).
type Reason string

// The reasons.
const (
	ReasonWall    Reason = "wall"    // the time by the wall
	ReasonOOM     Reason = "oom"     // memory
	ReasonOutput  Reason = "output"  // a flood of output, far beyond what is kept
	ReasonSyscall Reason = "syscall" // a call outside the allowlist
	ReasonEscape  Reason = "escape"  // a call whose only use is to get out (D16, D21)
	ReasonSignal  Reason = "signal"  // the program died of a signal of its own
	ReasonRefused Reason = "refused" // a flood of calls that were refused
	ReasonHalt    Reason = "halt"    // a person stopped it, or the caller went away
)

// Exit codes (D15).
const (
	ExitLimit   = 137
	ExitSyscall = 159
	ExitSpawn   = 1
)

// Result is what came of a run: the document's ExecutionResult and what
// Holdfast adds (D15, D20). Times are by the wall clock of the host.
type Result struct {
	ID          string
	Stdout      []byte   // at most 1 MB, then a mark
	Stderr      []byte   // likewise
	Cut         []string // stdout, stderr: those that were longer
	OutputFiles map[string][]byte
	ExitCode    int
	WallTime    time.Duration
	UserTime    time.Duration
	SystemTime  time.Duration
	MemoryPeak  int64 // bytes: of the control group, or the greatest resident set where there is none
	PageFaults  int64 // major
	Err         string
	Start, End  time.Time
	// Gone is when every process of the run was gone. It is zero where the
	// result was there first: the program's only thread was leaving, and its
	// process and its scratch were taken away behind it.
	Gone time.Time

	State  State
	Reason Reason
	// Call is the system call that ended the run.
	Call *Call
	// Refused are calls that were answered with an error while the program ran
	// on (D16), by name and in the order of their first.
	Refused []Refusal
	// Skipped are output files that were not brought out, and why.
	Skipped map[string]string
	Posture Posture
	// Chosen says why it ran in that tier.
	Chosen string
	Stages []Stage
	Signal int // the signal that ended the program, or 0
	// States are those that the executor went through, and Around those of the
	// boundary around the code (003 2.1 and 2.2, state machines).
	States, Around []Step
	Path           Path
}

// Path says how much of a run was ready before its request came.
type Path string

// The paths, the quickest first. The walls and what the program finds are the
// same on each.
const (
	// PathParked: its process waited behind every wall, and nothing of a request
	// had ever been in it.
	PathParked Path = "parked"
	// PathForked: none waited, and one was forked for it from an interpreter that
	// had started before, holding nothing of any request.
	PathForked Path = "forked"
	// PathCold: the interpreter was started for it.
	PathCold Path = "cold"
)

// Call is a system call as the kernel saw it.
type Call struct {
	Nr   int       `json:"nr"`
	Name string    `json:"name"`
	Arch string    `json:"arch"`
	Args [6]uint64 `json:"args"`
}

// Refusal is a call that was refused, and how often.
type Refusal struct {
	Name  string `json:"name"`
	Errno string `json:"errno"`
	Count int    `json:"count"`
}

// Stage is one step of building the walls, with the time that it took.
type Stage struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took_ns"`
}
