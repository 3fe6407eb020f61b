package posture

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Document is a Result as JSON, in the document's field names and with its
// zeros (003 2.1), and behind them what Holdfast adds. Durations are in
// seconds with an "s", as protocol buffers write them; bytes are base64.
type Document struct {
	RequestID    string            `json:"request_id"`
	Stdout       string            `json:"stdout"`
	Stderr       string            `json:"stderr"`
	OutputFiles  map[string][]byte `json:"output_files"`
	ExitCode     int               `json:"exit_code"`
	WallTime     Seconds           `json:"wall_time"`
	UserTime     Seconds           `json:"user_time"`
	SystemTime   Seconds           `json:"system_time"`
	MemoryPeakMB int64             `json:"memory_peak_mb"`
	PageFaults   int64             `json:"page_faults"`
	ErrorMessage string            `json:"error_message"`
	StartTime    time.Time         `json:"start_time"`
	EndTime      time.Time         `json:"end_time"`

	State   State             `json:"state"`
	Reason  Reason            `json:"reason,omitempty"`
	Signal  int               `json:"signal,omitempty"`
	Syscall *Call             `json:"syscall,omitempty"`
	Refused []Refusal         `json:"refused,omitempty"`
	Skipped map[string]string `json:"skipped_files,omitempty"`
	Posture Posture           `json:"posture"`
	Chosen  string            `json:"tier_why,omitempty"`
	Path    Path              `json:"path,omitempty"`
	Stages  []Stage           `json:"stages,omitempty"`
	States  []Step            `json:"states,omitempty"`
	Around  []Step            `json:"boundary_states,omitempty"`

	// Cut names the streams of which only the first megabyte is kept: stdout,
	// stderr. StdoutBytes and StderrBytes are there where a stream is not UTF-8,
	// every byte as it was.
	Cut         []string `json:"cut,omitempty"`
	StdoutBytes []byte   `json:"stdout_bytes,omitempty"`
	StderrBytes []byte   `json:"stderr_bytes,omitempty"`
}

// Document returns r as it is shown and recorded. Output that is not UTF-8 has
// U+FFFD in place of what is not, and stands beside that as it was.
func (r *Result) Document() Document {
	d := Document{
		RequestID: r.ID, Stdout: string(r.Stdout), Stderr: string(r.Stderr), OutputFiles: r.OutputFiles,
		ExitCode: r.ExitCode, WallTime: Seconds(r.WallTime), UserTime: Seconds(r.UserTime), SystemTime: Seconds(r.SystemTime),
		MemoryPeakMB: (r.MemoryPeak + 1<<20 - 1) >> 20, PageFaults: r.PageFaults, ErrorMessage: r.Err,
		StartTime: r.Start.UTC(), EndTime: r.End.UTC(),
		State: r.State, Reason: r.Reason, Signal: r.Signal, Syscall: r.Call, Refused: r.Refused, Skipped: r.Skipped,
		Posture: r.Posture, Chosen: r.Chosen, Path: r.Path, Stages: r.Stages, States: r.States, Around: r.Around,
	}
	d.Cut = r.Cut
	if !utf8.Valid(r.Stdout) {
		d.StdoutBytes = r.Stdout
	}
	if !utf8.Valid(r.Stderr) {
		d.StderrBytes = r.Stderr
	}
	if d.OutputFiles == nil {
		d.OutputFiles = map[string][]byte{}
	}
	return d
}

// Seconds is a duration as protocol buffers write it in JSON: "1.500s".
type Seconds time.Duration

// MarshalJSON writes nanoseconds, microseconds or milliseconds, as few as are
// exact.
func (s Seconds) MarshalJSON() ([]byte, error) {
	n := int64(s)
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	whole, part := n/1e9, n%1e9
	switch {
	case part == 0:
		return json.Marshal(fmt.Sprintf("%s%ds", sign, whole))
	case part%1e6 == 0:
		return json.Marshal(fmt.Sprintf("%s%d.%03ds", sign, whole, part/1e6))
	case part%1e3 == 0:
		return json.Marshal(fmt.Sprintf("%s%d.%06ds", sign, whole, part/1e3))
	}
	return json.Marshal(fmt.Sprintf("%s%d.%09ds", sign, whole, part))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	*s = Seconds(d)
	return err
}
