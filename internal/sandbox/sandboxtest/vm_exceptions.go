package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// vmExceptions is every attempt that in a guest comes to something else than in
// the process tier, by the reason.
func vmExceptions() reasons {
	return reasons{
		{"QEMU 7.2 reads the stack of a far return with the kernel's rights, whosever it is: the guest's kernel, which lets itself read no program's memory unawares, ends the program", []exception{
			row("foreign/a far jump into 32 bits", "", byKernel),
		}},
		{"a guest has one processor, which is all of the share", []exception{
			{try: try{name: "limit/the default share of processors"}}, {try: try{name: "limit/the greatest share of processors"}},
		}},
		{"a guest's clock goes on while its processor waits for one of the host's: the share is one of the time that it took", []exception{
			row("limit/processor time", `
import time
a=time.monotonic(); c=time.process_time()
while time.monotonic()-a<3: pass
say('used',int(1000*(time.process_time()-c)/(time.monotonic()-a)))`, between("used %d", 0, 600)),
		}},
		{"its limits are others, which internal/sandbox tries", []exception{{try: try{name: "property/bad requests are named"}}}},
		{"a run can be stopped while its guest is restored", []exception{{try: try{name: "property/a halted run ends"}, holds: haltedGuest}}},
	}
}

// byKernel: ended as an attempt to get out, or by the guest's own kernel.
func byKernel(t *testing.T, s *suite, res *posture.Result) {
	t.Helper()
	if res.Call != nil {
		foreign("386")(t, s, res)
		return
	}
	never(t, res)
	ends(posture.Completed, posture.ReasonSignal, 137)(t, s, res)
}

// haltedGuest: the caller goes away, before the code has begun or under it.
func haltedGuest(t *testing.T, s *suite) {
	for after := 10 * time.Millisecond; after < 2*time.Minute; after *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		res, err := s.Run(ctx, sandbox.Spec{ID: "halt", Language: "python3", Code: []byte("while True: pass"), Timeout: 5 * time.Minute, Need: least})
		cancel()
		if err == nil {
			if res.Reason != posture.ReasonHalt || res.ExitCode != posture.ExitLimit {
				t.Errorf("%+v after %v", res, after)
			}
			return
		}
		e := (*holdfast.Error)(nil)
		if !errors.As(err, &e) || !strings.Contains(e.Why, "it was stopped before it began") {
			t.Errorf("%v after %v", err, after)
		}
	}
	t.Error("nothing had begun after two minutes")
}
