package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast/bench/internal/barerows"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// executorConfig lets code run with what stands without a right to control
// groups, and serves the code executor.
const executorConfig = `boundaries:
  - {boundary: exec/*, risk: MEDIUM, permissions: ["exec:run"], walls: [pid, net, mount, seccomp]}
sandbox:
  executor: {listen: '127.0.0.1:0'}
`

// executorConns is by how many connections many clients come: a server takes 128
// calls at once of each.
const executorConns = 4

// grpcBench is a daemon that serves the code executor, and clients of it who have
// the token of an agent.
type grpcBench struct {
	*measure.Run
	behind *programs.Daemon
	ctx    context.Context
	conns  []*grpc.ClientConn
}

// measureGRPC measures the same program as a crossing: from a client over loopback,
// with its token, through every gate and with both commits of the ledger; first
// with somebody waiting for each, then more at once than there is room for.
func measureGRPC(b *measure.Run) (_ []measure.Figure, err error) {
	g := &grpcBench{Run: b}
	if g.behind, err = programs.StartDaemonWith(b, "grpc", executorConfig); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.behind.Stop()) }()
	if err := g.connect(); err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range g.conns {
			err = errors.Join(err, c.Close())
		}
	}()
	for i := range 5 {
		if a := g.call(i, hello, "python3"); a.err != nil {
			return nil, a.err
		}
	}
	all, err := g.hits()
	if err != nil {
		return nil, err
	}
	more, err := g.crowd()
	return append(all, more...), err
}

// connect asks the daemon where its executor is, and for a token.
func (g *grpcBench) connect() error {
	var s api.Status
	said, err := g.ask("status", "--json")
	if err == nil {
		err = json.Unmarshal(said, &s)
	}
	if err == nil && s.Executor == "" {
		err = errors.New("the daemon serves no code executor")
	}
	if err != nil {
		return fmt.Errorf("ask where the executor is: %w", err)
	}
	token, err := g.ask("agent", "token", "bench", "--ttl", "1h")
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	g.ctx = metadata.AppendToOutgoingContext(g.Run.Ctx, "authorization", "Bearer "+strings.TrimSpace(string(token)))
	for range executorConns {
		c, err := grpc.NewClient(s.Executor, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		g.conns = append(g.conns, c)
	}
	return nil
}

// ask runs a command beside the daemon and returns what it prints.
func (g *grpcBench) ask(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.Run.Ctx, g.behind.Program, append(args, "--state", g.behind.State, "--config", g.behind.Config)...)
	return cmd.Output()
}

// called is what came of a call.
type called struct {
	path    posture.Path // "" if it was refused for want of room
	took    time.Duration
	run     time.Duration // the run itself, as its result has it
	refused bool
	err     error
}

// call makes the i-th crossing.
func (g *grpcBench) call(i int, code, language string) called {
	c := executorpb.NewCodeExecutorClient(g.conns[i%len(g.conns)])
	from := time.Now()
	res, err := c.Execute(g.ctx, &executorpb.ExecutionRequest{RequestId: fmt.Sprintf("bench-%d", i), Language: language, Code: code})
	a := called{took: time.Since(from)}
	switch {
	case grpcstatus.Code(err) == codes.ResourceExhausted:
		a.refused = true
	case err != nil:
		a.err = err
	case res.ExitCode != 0 || res.Stdout != "42\n":
		a.err = fmt.Errorf("a run ended as %s, exit code %d: %s", res.State, res.ExitCode, excerpt.Printable(res.Stderr))
	default:
		a.path, a.run = posture.Path(res.Path), res.WallTime.AsDuration()
	}
	return a
}

// refill is how long a client pauses between two calls, at first: long enough for
// those who wait to be there again where they are forks. Each call that finds
// nobody doubles it, to ten times as much at most.
const refill = 5 * time.Millisecond

// hits are calls one after the other, each when somebody waits again, in turns
// with bare commits of what the ledger wrote of one, and with calls that are
// refused before they are a crossing.
func (g *grpcBench) hits() (_ []measure.Figure, err error) {
	bare, err := barerows.Open(filepath.Join(g.Dir, "grpc-bare.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	records, err := barerows.ReadNewest(g.Run, filepath.Join(g.behind.State, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	var parked []called
	paths := map[string]int{}
	var commits, doors []time.Duration
	rounds, pause := g.Rounds(400), refill
	for i := range rounds {
		time.Sleep(pause)
		for _, record := range records {
			from := time.Now()
			if err := bare.Put(1, 1, uuid.Must(uuid.NewV7()).String(), record); err != nil {
				return nil, err
			}
			commits = append(commits, time.Since(from))
		}
		door, err := g.door(i)
		if err != nil {
			return nil, err
		}
		doors = append(doors, door)
		a := g.call(0, hello, "python3")
		if a.err != nil || a.refused {
			return nil, errors.Join(a.err, errors.New("a crossing was not made"))
		}
		paths[string(a.path)]++
		if a.path == posture.PathParked {
			parked = append(parked, a)
			continue
		}
		pause = min(2*pause, 10*refill)
	}
	f := g.hitFigure(parked, commits, doors)
	f.Note += fmt.Sprintf("; %d of %d calls found one that waited, the pause between them %v at last", len(parked), rounds, pause)
	f.Paths = paths
	return []measure.Figure{f}, nil
}

// door is how long a call takes that is refused when its token and its request
// were read: no sandbox has its language.
func (g *grpcBench) door(int) (time.Duration, error) {
	from := time.Now()
	_, err := executorpb.NewCodeExecutorClient(g.conns[0]).Execute(g.ctx, &executorpb.ExecutionRequest{RequestId: "bench-door", Language: "none", Code: hello})
	if grpcstatus.Code(err) != codes.InvalidArgument {
		return 0, fmt.Errorf("a language that is none was not refused: %w", err)
	}
	return time.Since(from), nil
}

func (g *grpcBench) hitFigure(parked []called, commits, doors []time.Duration) measure.Figure {
	var took, runs []time.Duration
	for _, a := range parked {
		took, runs = append(took, a.took), append(runs, a.run)
	}
	p50, two, run, door := measure.Millis(measure.Percentile(took, 50)), 2*measure.Millis(measure.Percentile(commits, 50)), measure.Millis(measure.Percentile(runs, 50)), measure.Millis(measure.Percentile(doors, 50))
	f := measure.Figure{Name: "parked python as a crossing over gRPC, p50", Measured: p50, Unit: "ms", Target: "<= 2 ms + 2 bare commits"}.RatioTo(two, "two bare commits")
	f.Met = len(parked) > 0 && p50 <= 2+two
	f.Limits = measure.PartsOf("ms", map[string]float64{"the run": run, "two bare commits": two, "gRPC and the token": door,
		"the gates, and what the ledger adds to bare commits": p50 - run - two - door})
	f.Note = fmt.Sprintf("%s; a bare commit p50 %s ms, p99 %s ms; the target is %s ms here",
		tails(took), measure.Number(two/2), measure.Number(measure.Millis(measure.Percentile(commits, 99))), measure.Number(2+two))
	return f
}
