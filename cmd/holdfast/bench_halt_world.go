package main

import (
	"bytes"
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
)

// haltWorld is a daemon that is a process of its own, a service that agents reach
// through it, a person who resumes it, and one of everything that can be in flight.
type haltWorld struct {
	ctx                      context.Context
	self, dir, state, config string
	pass                     string // the file with the passphrase
	service                  *haltService
	up                       *exec.Cmd
	door                     string // of the egress proxy
	authority                []byte
	// stop halts in another way than the command's; nil is the command. Nobody
	// acknowledges it.
	stop func() error
}

// haltAgent is the agent behind the proxy's listener.
const haltAgent = "bench"

func openHaltWorld(ctx context.Context, self, dir, more string) (_ *haltWorld, err error) {
	w := &haltWorld{ctx: ctx, self: self, dir: dir, state: filepath.Join(dir, "s"), config: filepath.Join(dir, "halt.yaml"), pass: filepath.Join(dir, "pass")}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.service, err = openHaltService(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tree"), 0o755); err != nil {
		return nil, err
	}
	trusted := fmt.Sprintf("addresses: [127.0.0.1], roots: %q", filepath.Join(dir, "roots.pem"))
	opaque := fmt.Sprintf("addresses: [127.0.0.1], ports: [%d]", w.service.port)
	row := fmt.Sprintf("%s, ports: [%d]", trusted, w.service.port)
	text := fmt.Sprintf(`version: 1
listen: {pages: none}
unsafe: {watch_looser: true}
watch: {responses: {loop: record, error_rate: record, cost_per_hour: record}}
boundaries:
  - {boundary: mcp/*, risk: LOW}
  - {boundary: mcp/asks/*, risk: HIGH}
  - {boundary: exec/*, risk: LOW, permissions: ["exec:run"], walls: [pid, net, mount, seccomp]}
  - {boundary: run/*, risk: LOW, permissions: ["exec:run"], walls: [pid, net, mount, seccomp]}
egress:
  listen: [{address: "127.0.0.1:0", agent: %[1]s}]
  domains:
    %[2]s: {%[3]s, websocket: true}
    opaque.%[2]s: {%[5]s, inspect: opaque}
    'model.%[2]s:%[7]d': {%[8]s, type: llm, models: {provider: anthropic}}
prices:
  version: bench
  models: {%[4]s: {input: $0.03, output: $0.15, cache_read: $0.003, cache_write: $0.0375, cache_write_long: $0.06}}
%[6]s`, haltAgent, egressHost, row, llmModel, opaque, more, w.service.port, trusted)
	for name, b := range map[string][]byte{w.config: []byte(text), filepath.Join(dir, "roots.pem"): w.service.cert,
		w.pass: []byte("correct horse battery\n"), filepath.Join(dir, "spin.py"): []byte("while True: pass\n")} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return nil, err
		}
	}
	if err := w.newPerson(); err != nil {
		return nil, err
	}
	return w, w.start()
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

// start starts the daemon and learns where its proxy is.
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
		if err == nil && s.Egress != nil && len(s.Egress.Listeners) == 1 {
			w.door = s.Egress.Listeners[0].Address
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
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+w.state, "HOLDFAST_CONFIG="+w.config, "USER=bench", "LANG=C.UTF-8")
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
	err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, "after"), nil, 0o600), os.WriteFile(filepath.Join(w.dir, "tree", "after"), nil, 0o644))
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
	for _, name := range []string{"after", "tree/after", "tree/ticks", "stdio.record", "http.record", "asks.record"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	w.service.begin()
	return nil
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
