package inflighttest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/store/statedir"
)

// Programs are what a world starts.
type Programs struct {
	Holdfast string // the file of the command
	// Server is the command line of ServeMCP; the file of its record follows.
	Server []string
}

// World is a daemon that is a process of its own, a service that agents reach
// through it, a person who resumes it, and one of everything that can be in flight.
type World struct {
	Ctx                context.Context
	programs           Programs
	dir, State, config string
	Pass               string // the file with the passphrase
	// Tree is the work tree of programs, and records the folder of servers' records.
	Tree, Records string
	service       *service
	up            *exec.Cmd
	API           *api.Client
	Agent         string            // who acts
	doors         map[string]string // of the egress proxy, by agent
	authority     []byte
	tiers         map[posture.Tier]error // in which code was tried, and why it does not run
	// Cut is by what everything in flight ends, as those who asked for it are told it.
	Cut string
	// Stop halts in another way than the command's; nil is the command. Nobody
	// acknowledges it.
	Stop func() error
	// Harm is what programs do before they go on for ever, in the shell's words.
	Harm string
}

// The agents behind the proxy's listeners: of one everything is halted, and the other
// has nothing to do with it.
const (
	Agent      = "bench"
	OtherAgent = "other"
)

// Config is what a world's configuration has that the usual one has not.
type Config struct {
	Watch      string // responses beside the usual, such as "loop: record"
	Boundaries string // rows
	VM         config.VMConfig
	More       string // whole keys
}

// WatchesNothing lets an agent do the same again and again.
const WatchesNothing = "loop: record"

// OpenWorld starts the daemon of a world whose files stand in dir.
func OpenWorld(ctx context.Context, by Programs, dir string, c Config) (_ *World, err error) {
	w := &World{Ctx: ctx, programs: by, dir: dir, State: filepath.Join(dir, "s"), config: filepath.Join(dir, "halt.yaml"), Pass: filepath.Join(dir, "pass"),
		Tree: filepath.Join(dir, "tree"), Records: dir, Agent: Agent, tiers: map[posture.Tier]error{}, Cut: "halted"}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.service, err = openService(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.Tree, 0o755); err != nil {
		return nil, err
	}
	text := w.text(c)
	for name, b := range map[string][]byte{w.config: []byte(text), filepath.Join(dir, "roots.pem"): w.service.cert,
		w.Pass: []byte("correct horse battery\n"), filepath.Join(dir, "spin.py"): []byte(spin), filepath.Join(dir, "ends.py"): []byte("print(6 * 7)\n")} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return nil, err
		}
	}
	if err := w.newPerson(); err != nil {
		return nil, err
	}
	return w, w.start()
}

// text is the configuration.
func (w *World) text(c Config) string {
	trusted := fmt.Sprintf("addresses: [127.0.0.1], roots: %q", filepath.Join(w.dir, "roots.pem"))
	opaque := fmt.Sprintf("addresses: [127.0.0.1], ports: [%d]", w.service.port)
	row := fmt.Sprintf("%s, ports: [%d]", trusted, w.service.port)
	moreResponses := ""
	if c.Watch != "" {
		moreResponses = ", " + c.Watch
	}
	return fmt.Sprintf(`version: 1
listen: {pages: none}
unsafe: {watch_looser: true}
watch: {responses: {error_rate: record, cost_per_hour: record%[9]s}}
boundaries:
  - {boundary: mcp/*, risk: LOW}
  - {boundary: mcp/asks/*, risk: HIGH}
  - {boundary: exec/*, risk: LOW, permissions: ["exec:run"], walls: [pid, net, mount, seccomp]}
  - {boundary: run/*, risk: LOW, permissions: ["exec:run"], walls: [pid, net, mount, seccomp]}
%[14]ssandbox:
  executor: {listen: "127.0.0.1:0"}
  vm: {kernel: %[10]q, qemu: %[11]q, memory: %[12]d}
egress:
  listen: [{address: "127.0.0.1:0", agent: %[1]s}, {address: "127.0.0.1:0", agent: %[13]s}]
  domains:
    %[2]s: {%[3]s, websocket: true}
    opaque.%[2]s: {%[5]s, inspect: opaque}
    'model.%[2]s:%[7]d': {%[8]s, type: llm, models: {provider: anthropic}}
prices:
  version: bench
  models: {%[4]s: {input: $0.03, output: $0.15, cache_read: $0.003, cache_write: $0.0375, cache_write_long: $0.06}}
%[6]s`, Agent, Host, row, model, opaque, c.More, w.service.port, trusted, moreResponses,
		c.VM.Kernel, c.VM.QEMU, cmp.Or(c.VM.Memory, 1024), OtherAgent, c.Boundaries)
}

// As is the world as another agent is in it.
func (w *World) As(agent string) *World {
	o := *w
	o.Agent = agent
	return &o
}

// Told says whether who asked for something was told that it was cut, and by what; the
// error is what it was told instead.
func (w *World) Told(answer []byte) error {
	if !strings.Contains(string(answer), w.Cut) {
		return fmt.Errorf("it ended otherwise than by being %s: %s", w.Cut, excerpt.Printable(string(answer)))
	}
	return nil
}

// newPerson makes an operator key, as init does.
func (w *World) newPerson() error {
	p, err := statedir.OpenState(w.State)
	if err != nil {
		return err
	}
	sealed, pub, err := operator.New(holdfast.NewSecret("correct horse battery"), operator.Options{WorkFactor: 15})
	return errors.Join(err, os.WriteFile(p.OperatorKey, sealed, 0o600), os.WriteFile(p.OperatorPub, []byte(pub.String()+"\n"), 0o600))
}

// start starts the daemon and learns where its proxy's doors are.
func (w *World) start() error {
	w.up = w.Command("up", "--no-operator")
	said, err := os.Create(filepath.Join(w.dir, "up.out"))
	if err != nil {
		return err
	}
	defer said.Close()
	w.up.Stdout, w.up.Stderr = said, said
	if err := w.up.Start(); err != nil {
		return err
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, s, err := api.Dial(w.Ctx, filepath.Join(w.State, "sock"))
		if err == nil && s.Egress != nil && len(s.Egress.Listeners) == 2 {
			w.API, w.doors = c, map[string]string{}
			for _, l := range s.Egress.Listeners {
				w.doors[l.Agent] = l.Address
			}
			text, err := c.EgressAuthority(w.Ctx)
			w.authority = []byte(text)
			return err
		}
		if time.Since(start) > time.Minute {
			b, _ := os.ReadFile(said.Name())
			return fmt.Errorf("the daemon does not start: %w: %s", err, excerpt.Printable(string(b)))
		}
	}
}

// Command is holdfast on this world's state.
func (w *World) Command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Ctx, w.programs.Holdfast, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+w.State, "HOLDFAST_CONFIG="+w.config, "USER=ann", "LANG=C.UTF-8")
	return cmd
}

// Output runs holdfast to its end.
func (w *World) Output(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := w.Command(args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("holdfast %s: %w: %s", strings.Join(args, " "), err, excerpt.Printable(out.String()))
	}
	return out.String(), err
}

// Halt halts everything, as a person does, and returns when it was asked for and
// when it was acknowledged, and what was cut.
func (w *World) Halt() (from, to time.Time, cut api.Cutting, err error) {
	from = time.Now()
	if w.Stop != nil {
		return from, from, cut, w.Stop()
	}
	out, err := w.Output("halt", "--json", "to be measured")
	to = time.Now()
	w.service.after.Store(true)
	err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, "after"), nil, 0o600), os.WriteFile(filepath.Join(w.Tree, "after"), nil, 0o644))
	var answer struct{ Daemon *api.Cutting }
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	if err == nil && answer.Daemon == nil {
		err = errors.New("the daemon did not acknowledge the halt: " + excerpt.Printable(out))
	}
	if err == nil {
		cut = *answer.Daemon
	}
	return from, to, cut, err
}

// Resume lets everything go on, as a person does.
func (w *World) Resume() error {
	_, err := w.Output("resume", "--credential-file", w.Pass)
	return errors.Join(err, w.tidy())
}

// tidy forgets what effects there were.
func (w *World) tidy() error {
	var errs []error
	for _, pattern := range []string{filepath.Join(w.dir, "after"), filepath.Join(w.Tree, "after"), filepath.Join(w.Tree, "ticks-*"), filepath.Join(w.Records, "*.record")} {
		names, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, os.Remove(name))
		}
	}
	w.service.begin()
	return errors.Join(errs...)
}

// Close ends the daemon and the service.
func (w *World) Close() error {
	var errs []error
	if w.up != nil && w.up.Process != nil {
		errs = append(errs, Stop(w.up))
	}
	if w.service != nil {
		errs = append(errs, w.service.close())
	}
	return errors.Join(errs...)
}
