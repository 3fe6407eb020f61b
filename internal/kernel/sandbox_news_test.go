package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestD14c_theSandboxesRowsAreTold: the rows of 003 2.1 and 2.2 that a run is are
// events of its crossing's span, lines of the log at their level, and from WARNING
// on an event of the ledger; and a run that ended is no failure of its crossing.
func TestD14c_theSandboxesRowsAreTold(t *testing.T) {
	walls := func(kind holdfast.Kind, cause error) error {
		err := fmt.Errorf("%w: %w", &holdfast.Error{Kind: kind, Why: "the sandbox could not", Hint: "h", Err: cause}, holdfast.ErrNotStarted)
		return &posture.News{Run: "r1", State: posture.SpawnError, Exit: 1, Signals: posture.Refused(err), Err: err}
	}
	call := &posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64"}
	for name, c := range map[string]struct {
		err    error
		spans  []string
		levels []string // of the log's lines with a trace, in their order
		event  string
		kind   holdfast.Kind
	}{
		"TIMEOUT":     {(&posture.Result{ID: "r1", State: posture.Timeout, ExitCode: 137}).News(), []string{"trace.sandbox_timeout"}, []string{"WARN"}, "sandbox_ended", ""},
		"OOM":         {(&posture.Result{ID: "r1", State: posture.OOM, ExitCode: 137}).News(), []string{"trace.sandbox_oom"}, []string{"WARN"}, "sandbox_ended", ""},
		"a violation": {(&posture.Result{ID: "r1", State: posture.SyscallBlocked, Reason: posture.ReasonSyscall, Call: call}).News(), []string{"trace.sandbox_seccomp"}, []string{"WARN"}, "sandbox_violation", ""},
		"an escape": {(&posture.Result{ID: "r1", State: posture.SyscallBlocked, Reason: posture.ReasonEscape, Call: call}).News(),
			[]string{"trace.sandbox_escape_attempt", "trace.sandbox_seccomp"}, []string{"ERROR+4", "WARN"}, "sandbox_escape_attempted", holdfast.KindEscape},
		"its own error": {(&posture.Result{ID: "r1", State: posture.Completed, ExitCode: 3}).News(), []string{"trace.sandbox_code_error"}, []string{"INFO"}, "", ""},
		"well":          {(&posture.Result{ID: "r1", State: posture.Completed}).News(), nil, nil, "", ""},
		"a wall":        {walls(holdfast.KindNamespace, nil), []string{"trace.sandbox_ns_error", "trace.sandbox_spawn_error"}, []string{"ERROR", "ERROR"}, "sandbox_ended", holdfast.KindNamespace},
		"a scratch": {walls(holdfast.KindMount, &posture.Tmpfs{Err: errors.New("no")}), []string{"trace.sandbox_tmpfs_error", "trace.sandbox_spawn_error"},
			[]string{"ERROR", "ERROR"}, "sandbox_ended", holdfast.KindMount},
	} {
		t.Run(name, func(t *testing.T) {
			log, mem := &buffer{}, tracetest.NewInMemoryExporter()
			w := newWorld(t, "", logged(log), func(k *kernel.Config, _ *world) {
				k.Tracer = trace.NewTracerProvider(trace.WithSyncer(mem)).Tracer("t")
			})
			out, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
				return holdfast.Output{Body: []byte(`{}`)}, c.err
			})
			if holdfast.KindOf(err) != c.kind || (out.Output != nil) != (c.kind == "") {
				t.Fatalf("%v, %v", out.Output, err)
			}
			var spans, levels []string
			for _, s := range mem.GetSpans() {
				for _, e := range s.Events {
					spans = append(spans, e.Name)
				}
			}
			for _, l := range log.lines(t) {
				if l.Trace != "" && l.Crossing == out.Crossing {
					levels = append(levels, l.Level)
				}
			}
			if !slices.Equal(spans, c.spans) || !slices.Equal(levels, c.levels) {
				t.Errorf("the span has %v, want %v; the log has %v, want %v", spans, c.spans, levels, c.levels)
			}
			var events []*ledger.Event
			for _, n := range []string{"sandbox_ended", "sandbox_violation", "sandbox_escape_attempted"} {
				events = append(events, w.events(holdfast.Local, n)...)
			}
			if c.event == "" && len(events) != 0 || c.event != "" && (len(events) != 1 || events[0].Name != c.event || events[0].Crossing != out.Crossing) {
				t.Errorf("the ledger has %d events, want %q", len(events), c.event)
			}
		})
	}
}
