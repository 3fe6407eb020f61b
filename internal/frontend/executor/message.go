package executor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// specOf turns a request into a spec, which the sandbox checks: here only what
// a spec cannot say is refused.
func specOf(r *executorpb.ExecutionRequest) (sandbox.Spec, error) {
	no := func(kind holdfast.Kind, why, hint string) (sandbox.Spec, error) {
		return sandbox.Spec{}, &holdfast.Error{Kind: kind, Why: why, Hint: hint}
	}
	spec := sandbox.Spec{ID: r.RequestId, Language: r.Language, Code: []byte(r.Code), Environment: r.Environment, Files: r.Files, MemoryMB: r.MemoryLimitMb, Narrow: r.Narrow}
	switch {
	case len(r.Program) > 0 && r.Code != "":
		return no(holdfast.KindProtocol, "there is code and a program", "send one of the two")
	case len(r.Program) > 0 && r.Language != sandbox.Static:
		return no(holdfast.KindProtocol, "a program is run as language static", "set language to static")
	case len(r.Program) > 0:
		spec.Code = r.Program
	}
	if r.Tier != "" {
		var ok bool
		if spec.Tier, ok = posture.ParseTier(r.Tier); !ok {
			return no(holdfast.KindProtocol, fmt.Sprintf("there is no tier %.40q", r.Tier), "the tiers are process, container and vm")
		}
	}
	if r.Timeout != nil {
		if r.Timeout.CheckValid() != nil || r.Timeout.AsDuration() <= 0 {
			return no(holdfast.KindLimit, "the timeout is none", "ask for 1ms or more, or leave it out for the tier's own")
		}
		spec.Timeout = r.Timeout.AsDuration()
	}
	if r.MemoryLimitMb < 0 {
		return no(holdfast.KindLimit, "the memory limit is below zero", "ask for 16 to 512 MB, or nothing for 256")
	}
	const most = int64(time.Hour / time.Millisecond)
	if r.CpuPeriodMs < 0 || r.CpuQuotaMs < 0 || r.CpuPeriodMs > most || r.CpuQuotaMs > most {
		return no(holdfast.KindLimit, "the processor's share is none", "a period is 1 to 1000 ms, a quota at most two periods")
	}
	spec.CPUPeriod, spec.CPUQuota = time.Duration(r.CpuPeriodMs)*time.Millisecond, time.Duration(r.CpuQuotaMs)*time.Millisecond
	return spec, nil
}

// evidenceOf reads what is said of the work; the sandbox judges the numbers.
func evidenceOf(m *executorpb.Evidence) (posture.Evidence, error) {
	if m == nil {
		return posture.Evidence{}, nil
	}
	ev := posture.Evidence{Entropy: m.PredictedEntropy, Novelty: m.Novelty}
	if m.Trust != "" {
		ev.Trust = new(holdfast.Level)
		if err := ev.Trust.UnmarshalText([]byte(m.Trust)); err != nil {
			return posture.Evidence{}, &holdfast.Error{Kind: holdfast.KindProtocol, Why: fmt.Sprintf("there is no trust level %.40q", m.Trust), Hint: "the levels are baseline, medium, high and highest"}
		}
	}
	return ev, ev.Check()
}

// resultOf is d as a message. What is no UTF-8 has U+FFFD in its place.
func resultOf(d *posture.Document, out *holdfast.Outcome) *executorpb.ExecutionResult {
	r := &executorpb.ExecutionResult{
		RequestId: d.RequestID, Stdout: text(d.Stdout), Stderr: text(d.Stderr), OutputFiles: map[string][]byte{}, ExitCode: int32(d.ExitCode),
		WallTime: durationpb.New(time.Duration(d.WallTime)), UserTime: durationpb.New(time.Duration(d.UserTime)), SystemTime: durationpb.New(time.Duration(d.SystemTime)),
		MemoryPeakMb: d.MemoryPeakMB, PageFaults: d.PageFaults, ErrorMessage: text(d.ErrorMessage),
		StartTime: timestamppb.New(d.StartTime), EndTime: timestamppb.New(d.EndTime),
		State: string(d.State), Reason: string(d.Reason), Signal: int32(d.Signal), Skipped: map[string]string{}, Posture: postureOf(d.Posture), Path: string(d.Path), TierWhy: text(d.Chosen),
	}
	for name, b := range d.OutputFiles {
		r.OutputFiles[text(name)] = b
	}
	for name, why := range d.Skipped {
		r.Skipped[text(name)] = text(why)
	}
	if c := d.Syscall; c != nil {
		r.Syscall = &executorpb.Call{Nr: int32(c.Nr), Name: text(c.Name), Arch: text(c.Arch), Args: c.Args[:]}
	}
	for _, c := range d.Refused {
		r.Refused = append(r.Refused, &executorpb.Refusal{Name: text(c.Name), Errno: text(c.Errno), Count: int64(c.Count)})
	}
	for _, s := range d.Stages {
		r.Stages = append(r.Stages, &executorpb.Stage{Name: text(s.Name), Took: durationpb.New(s.Took)})
	}
	addOutcome(r, out, false)
	return r
}

// spawnResult is a run that did not come up, as the document has it: exit code
// 1 and an error message (D15; 003 2.2, acceptance criterion 9).
func spawnResult(id string, ans Answer) *executorpb.ExecutionResult {
	why, hint := letter(ans.Err)
	r := &executorpb.ExecutionResult{RequestId: text(id), ExitCode: posture.ExitSpawn, State: string(posture.SpawnError),
		ErrorMessage: text(why), Stderr: text("Spawn failed: " + why + "\nhint: " + hint + "\n")}
	var e *holdfast.Error
	addOutcome(r, ans.Outcome, errors.As(ans.Err, &e) && e.PutBack)
	return r
}

// addOutcome adds the crossing to a message, and to the error message Outcome.PutBack, unless
// it has that already.
func addOutcome(r *executorpb.ExecutionResult, out *holdfast.Outcome, hasPutBack bool) {
	if out == nil {
		return
	}
	r.Crossing, r.Replayed = out.Crossing, out.Replayed
	switch back := text(out.PutBack); {
	case back == "" || hasPutBack:
	case r.ErrorMessage == "":
		r.ErrorMessage = back
	default:
		r.ErrorMessage += "; " + back
	}
}

func postureOf(p posture.Posture) *executorpb.Posture {
	m := &executorpb.Posture{Tier: p.Tier.String(), Mode: p.Mode, Groups: p.Groups, NamesViolations: p.Names, Down: map[string]string{}, Instead: map[string]string{}, Unbounded: map[string]string{}}
	for _, w := range p.Up {
		m.Up = append(m.Up, string(w))
	}
	for w, why := range p.Down {
		m.Down[string(w)] = text(why)
	}
	for w, how := range p.Instead {
		m.Instead[string(w)] = text(how)
	}
	for limit, why := range p.Unbound {
		m.Unbounded[text(limit)] = text(why)
	}
	m.Runtime, m.Image = text(p.Runtime), text(p.Image)
	for _, n := range p.Notes {
		m.Notes = append(m.Notes, text(n))
	}
	return m
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
