package inflighttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// spin is code that goes on until somebody ends it.
const spin = "while True: pass\n"

// spinTime is how long code may go on by itself: as long as the process tier lets it.
const spinTime = 30 * time.Second

// codeHands are the ways in which code can run. Its end is what is seen of it.
func codeHands() []Hand {
	return []Hand{
		{"code in a VM", "exec/python3", func(w *World) (*InFlight, error) { return w.Code(posture.TierVM) }},
		{"code in a container", "exec/python3", func(w *World) (*InFlight, error) { return w.Code(posture.TierContainer) }},
		{"code in a sandbox process", "exec/python3", func(w *World) (*InFlight, error) { return w.Code(posture.TierProcess) }},
		{"code over gRPC", "exec/python3", (*World).codeOverGRPC},
	}
}

// RunsIn says why no code runs in a tier here, nil where it does. It is tried once,
// with a program that ends; the first in a VM makes its template. That a run is in
// flight says nothing of it: it may be about to find that it cannot begin. Where
// processes do not run they are tried again: the machine may be busy.
func (w *World) RunsIn(tier posture.Tier) error {
	err, known := w.tiers[tier]
	if !known {
		err = w.tries(tier)
	}
	if err == nil || tier != posture.TierProcess {
		w.tiers[tier] = err
	}
	return err
}

func (w *World) tries(tier posture.Tier) error {
	said, err := w.coding(tier, "ends.py").Output()
	var x api.Executed
	if bad := json.Unmarshal(said, &x); bad != nil {
		return errors.Join(err, bad)
	}
	if x.Result == nil || x.Result.Stdout != "42\n" {
		return errors.Join(x.Failure.Err(), fmt.Errorf("a program did not run in the tier %s: %w", tier, err))
	}
	return nil
}

// coding is the command that runs one of this world's programs.
func (w *World) coding(tier posture.Tier, program string) *exec.Cmd {
	return w.Command("exec", "--json", "--agent", w.Agent, "--lang", "python3", "--timeout", spinTime.String(), "--tier", tier.String(), filepath.Join(w.dir, program))
}

// Code is a program that computes in a tier.
func (w *World) Code(tier posture.Tier) (*InFlight, error) {
	if err := w.RunsIn(tier); err != nil {
		return nil, err
	}
	cmd := w.coding(tier, "spin.py")
	var said bytes.Buffer
	cmd.Stdout = &said
	return w.computes(func() (func() error, func(), error) {
		wait, stop, err := w.begin(cmd)
		return func() error { _ = wait(); return w.Told(said.Bytes()) }, stop, err
	})
}

// codeOverGRPC is the same, asked of the code executor.
func (w *World) codeOverGRPC() (*InFlight, error) {
	if err := w.RunsIn(posture.TierProcess); err != nil {
		return nil, err
	}
	s, err := w.API.Status(w.Ctx)
	if err == nil && s.Executor == "" {
		err = errors.New("the daemon serves no code executor")
	}
	if err != nil {
		return nil, err
	}
	token, err := w.Command("agent", "token", w.Agent, "--ttl", "1h").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for a token: %w", err)
	}
	conn, err := grpc.NewClient(s.Executor, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(metadata.AppendToOutgoingContext(w.Ctx, "authorization", "Bearer "+strings.TrimSpace(string(token))))
	return w.computes(func() (func() error, func(), error) {
		return func() error {
			defer conn.Close()
			_, err := executorpb.NewCodeExecutorClient(conn).Execute(ctx, &executorpb.ExecutionRequest{RequestId: uuid.NewString(), Language: "python3", Code: spin, Timeout: durationpb.New(spinTime)})
			if grpcstatus.Code(err) != codes.FailedPrecondition {
				return fmt.Errorf("it ended otherwise than by being %s: %w", w.Cut, err)
			}
			return w.Told([]byte(err.Error()))
		}, stop, nil
	})
}

// computes follows a run of code that start begins: it is in flight when its crossing
// has begun, and over when what start returned returns.
func (w *World) computes(start func() (end func() error, stop func(), err error)) (*InFlight, error) {
	before, err := w.Flights("exec/")
	if err != nil {
		return nil, err
	}
	end, stop, err := start()
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	if err := w.begun("exec/", before, ended); err != nil {
		stop()
		return nil, err
	}
	effects := &Effects{}
	effects.at(time.Now(), 3)
	return fly(effects, stop, func(*InFlight) error {
		err := <-ended
		effects.got(nil)
		return err
	}), nil
}

// Flights are the agent's crossings in flight whose boundary begins so.
func (w *World) Flights(boundary string) (map[string]bool, error) {
	s, err := w.API.Status(w.Ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, f := range s.Flights {
		if f.Agent == w.Agent && strings.HasPrefix(f.Boundary, boundary) {
			out[f.Crossing] = true
		}
	}
	return out, nil
}

// begun waits until a crossing that was not in flight before is, and its begin is in
// the ledger: one that is still on its way there a halt refuses, and it is then
// recorded as refused.
func (w *World) begun(boundary string, before map[string]bool, ended <-chan error) error {
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		now, err := w.Flights(boundary)
		for id := range now {
			if before[id] {
				continue
			}
			if _, err := w.Output("ledger", "show", id); err == nil {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended before it was to: %w", err)
		default:
		}
		if time.Since(start) > time.Minute {
			return errors.Join(err, errors.New("it does not begin"))
		}
	}
}

// LeaveOut keeps a tier out of what Possible returns, for the given reason.
func (w *World) LeaveOut(tier posture.Tier, why error) { w.tiers[tier] = why }
