package daemon

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/executor"
	"github.com/holdfast-dev/holdfast/internal/frontend/listener"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// maxExecutorConns bounds the connections of the code executor.
const maxExecutorConns = 256

// executorDoor is the code executor while it listens; its zero value does not.
type executorDoor struct {
	server *executor.Server
	listen net.Listener
	ended  <-chan struct{}
}

// openExecutor listens where the configuration says. A daemon that another
// command started goes on without it where the address is taken, and says so.
func (d *Daemon) openExecutor(ctx context.Context, commands *api.Server, linger bool) (*executorDoor, error) {
	e := d.config().Sandbox.Executor
	door := &executorDoor{ended: ctx.Done()}
	if e.Listen == "" {
		return door, nil
	}
	creds, err := e.LoadCredentials(guard.Guard{})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", e.Listen)
	if err != nil && linger {
		d.log.Warn("the code executor is not served", "address", e.Listen, "err", err)
		return door, nil
	}
	if err != nil {
		return nil, listener.NewError(e.Listen, err)
	}
	in := listener.New(l, min(maxExecutorConns, listener.MaxConns()))
	door.listen = in
	door.server = executor.New(executor.Config{Kernel: executorKernel{d: d, commands: commands},
		Credentials: creds, Serving: in.ServeFrom,
		Panicked: func(p any) { d.panicked(fmt.Sprint(p), string(debug.Stack())) }})
	d.mu.Lock()
	d.code = l.Addr().String()
	d.mu.Unlock()
	d.log.Info("the code executor listens", "address", l.Addr().String(), "tls", creds != nil)
	return door, nil
}

// serve answers until the door is closed.
func (x *executorDoor) serve() error {
	if x.server == nil {
		<-x.ended
		return nil
	}
	return x.server.Serve(x.listen)
}

// close lets calls under way end for two seconds. A second time is nothing.
func (x *executorDoor) close() {
	if x.server != nil {
		x.server.Stop(2 * time.Second)
	}
}

// executorAt is where the code executor listens, "" if it does not.
func (d *Daemon) executorAt() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.code
}

// executorKernel makes the executor's calls crossings.
type executorKernel struct {
	d        *Daemon
	commands *api.Server
}

func (k executorKernel) Admit(ctx context.Context, authorization []string) (holdfast.Secret, error) {
	tok, _, err := k.d.bearer.Verify(ctx, "exec", authorization)
	return tok, err
}

func (k executorKernel) Enter(ctx context.Context, size int64) (func(), error) {
	return k.commands.Enter(ctx, size)
}

func (k executorKernel) Execute(ctx context.Context, token holdfast.Secret, key string, s sandbox.Spec, ev posture.Evidence) (executor.Answer, error) {
	x, err := k.commands.Execute(ctx, api.Execution{Token: token.Reveal(), IdempotencyKey: key, RequestID: s.ID, Language: s.Language, Code: s.Code,
		Environment: s.Environment, Files: s.Files, Timeout: s.Timeout, MemoryMB: s.MemoryMB, CPUPeriod: s.CPUPeriod, CPUQuota: s.CPUQuota, Narrow: s.Narrow, Tier: s.Tier, Evidence: ev})
	if err != nil {
		return executor.Answer{}, err
	}
	return executor.Answer{Outcome: x.Outcome, Result: x.Result, Err: x.Failure.Err()}, nil
}
