package main

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
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/operator"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// haltWorld is a daemon that is a process of its own, a service that agents reach
// through it, a person who resumes it, and one of everything that can be in flight.
type haltWorld struct {
	ctx                      context.Context
	self, dir, state, config string
	pass                     string // the file with the passphrase
	// tree is the work tree of programs, and records the folder of servers' records.
	tree, records string
	service       *haltService
	up            *exec.Cmd
	api           *api.Client
	agent         string            // who acts
	doors         map[string]string // of the egress proxy, by agent
	authority     []byte
	tiers         map[sandbox.Tier]error // in which code was tried, and why it does not run
	// cut is by what everything in flight ends, as those who asked for it are told it.
	cut string
	// stop halts in another way than the command's; nil is the command. Nobody
	// acknowledges it.
	stop func() error
	// harm is what programs do before they go on for ever, in the shell's words.
	harm string
}

// The agents behind the proxy's listeners: of one everything is halted, and the other
// has nothing to do with it.
const (
	haltAgent = "bench"
	haltOther = "other"
)

// haltConfig is what a world's configuration has that the usual one has not.
type haltConfig struct {
	watch      string // responses beside the usual, such as "loop: record"
	boundaries string // rows
	vm         daemon.VMConfig
	more       string // whole keys
}

// watchesNothing lets an agent do the same again and again.
const watchesNothing = "loop: record"

func openHaltWorld(ctx context.Context, self, dir string, c haltConfig) (_ *haltWorld, err error) {
	w := &haltWorld{ctx: ctx, self: self, dir: dir, state: filepath.Join(dir, "s"), config: filepath.Join(dir, "halt.yaml"), pass: filepath.Join(dir, "pass"),
		tree: filepath.Join(dir, "tree"), records: dir, agent: haltAgent, tiers: map[sandbox.Tier]error{}, cut: "halted"}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.service, err = openHaltService(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.tree, 0o755); err != nil {
		return nil, err
	}
	text := w.text(c)
	for name, b := range map[string][]byte{w.config: []byte(text), filepath.Join(dir, "roots.pem"): w.service.cert,
		w.pass: []byte("correct horse battery\n"), filepath.Join(dir, "spin.py"): []byte(spin), filepath.Join(dir, "ends.py"): []byte("print(6 * 7)\n")} {
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
func (w *haltWorld) text(c haltConfig) string {
	trusted := fmt.Sprintf("addresses: [127.0.0.1], roots: %q", filepath.Join(w.dir, "roots.pem"))
	opaque := fmt.Sprintf("addresses: [127.0.0.1], ports: [%d]", w.service.port)
	row := fmt.Sprintf("%s, ports: [%d]", trusted, w.service.port)
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
%[6]s`, haltAgent, egressHost, row, llmModel, opaque, c.more, w.service.port, trusted, prefix(", ", c.watch),
		c.vm.Kernel, c.vm.QEMU, cmp.Or(c.vm.Memory, 1024), haltOther, c.boundaries)
}

// as is the world as another agent is in it.
func (w *haltWorld) as(agent string) *haltWorld {
	o := *w
	o.agent = agent
	return &o
}

// told says whether who asked for something was told that it was cut, and by what; the
// error is what it was told instead.
func (w *haltWorld) told(answer []byte) error {
	if !strings.Contains(string(answer), w.cut) {
		return fmt.Errorf("it ended otherwise than by being %s: %s", w.cut, clean(string(answer)))
	}
	return nil
}

// newPerson makes an operator key, as init does.
func (w *haltWorld) newPerson() error {
	p, err := daemon.OpenState(w.state)
	if err != nil {
		return err
	}
	sealed, pub, err := operator.New(holdfast.NewSecret("correct horse battery"), operator.Options{WorkFactor: 15})
	return errors.Join(err, writeNew(p.OperatorKey, sealed), writeNew(p.OperatorPub, []byte(pub.String()+"\n")))
}

// start starts the daemon and learns where its proxy's doors are.
func (w *haltWorld) start() error {
	w.up = w.command("up", "--no-operator")
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
		c, s, err := api.Dial(w.ctx, filepath.Join(w.state, "sock"))
		if err == nil && s.Egress != nil && len(s.Egress.Listeners) == 2 {
			w.api, w.doors = c, map[string]string{}
			for _, l := range s.Egress.Listeners {
				w.doors[l.Agent] = l.Address
			}
			text, err := c.EgressAuthority(w.ctx)
			w.authority = []byte(text)
			return err
		}
		if time.Since(start) > time.Minute {
			b, _ := os.ReadFile(said.Name())
			return fmt.Errorf("the daemon does not start: %w: %s", err, clean(string(b)))
		}
	}
}

// command is holdfast on this world's state.
func (w *haltWorld) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, w.self, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+w.state, "HOLDFAST_CONFIG="+w.config, "USER=ann", "LANG=C.UTF-8")
	return cmd
}

// says runs holdfast to its end.
func (w *haltWorld) says(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("holdfast %s: %w: %s", strings.Join(args, " "), err, clean(out.String()))
	}
	return out.String(), err
}

// halt halts everything, as a person does, and returns when it was asked for and
// when it was acknowledged, and what was cut.
func (w *haltWorld) halt() (from, to time.Time, cut api.Cutting, err error) {
	from = time.Now()
	if w.stop != nil {
		return from, from, cut, w.stop()
	}
	out, err := w.says("halt", "--json", "to be measured")
	to = time.Now()
	w.service.after.Store(true)
	err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, "after"), nil, 0o600), os.WriteFile(filepath.Join(w.tree, "after"), nil, 0o644))
	var answer struct{ Daemon *api.Cutting }
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	if err == nil && answer.Daemon == nil {
		err = errors.New("the daemon did not acknowledge the halt: " + clean(out))
	}
	if err == nil {
		cut = *answer.Daemon
	}
	return from, to, cut, err
}

// resume lets everything go on, as a person does.
func (w *haltWorld) resume() error {
	_, err := w.says("resume", "--credential-file", w.pass)
	return errors.Join(err, w.tidy())
}

// tidy forgets what effects there were.
func (w *haltWorld) tidy() error {
	var errs []error
	for _, pattern := range []string{filepath.Join(w.dir, "after"), filepath.Join(w.tree, "after"), filepath.Join(w.tree, "ticks-*"), filepath.Join(w.records, "*.record")} {
		names, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, os.Remove(name))
		}
	}
	w.service.begin()
	return errors.Join(errs...)
}

func (w *haltWorld) close() error {
	var errs []error
	if w.up != nil && w.up.Process != nil {
		errs = append(errs, end(w.up))
	}
	if w.service != nil {
		errs = append(errs, w.service.close())
	}
	return errors.Join(errs...)
}
