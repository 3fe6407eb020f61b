package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// The example's server and passphrase, as its script has them.
const (
	server     = "@modelcontextprotocol/server-filesystem@2026.8.31"
	passphrase = "a passphrase for this example only"
)

// scene is the example, with the pages served: a daemon, and an agent that asks
// for what a person must decide.
type scene struct {
	dir      string
	holdfast string
	env      []string
	daemon   *exec.Cmd
	agent    *exec.Cmd
	said     output // of the agent
	// link signs a browser in, once.
	link string
}

// output keeps what a process says, for whoever asks while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// openScene builds what the example needs, and starts the daemon. root is the
// module's root, holdfast a binary or empty to build one. The caller closes it.
func openScene(ctx context.Context, root, holdfast string) (*scene, error) {
	dir, err := os.MkdirTemp("", "hf") // short: a socket's path is bounded
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	s := &scene{dir: dir, holdfast: holdfast}
	if err := s.prepare(ctx, root); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.up(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) prepare(ctx context.Context, root string) error {
	for _, d := range []string{"shared", "outside", "config", "home"} {
		if err := os.Mkdir(s.path(d), 0o700); err != nil {
			return err
		}
	}
	config, err := os.ReadFile(filepath.Join(root, "examples/mcp-guard/holdfast.yaml"))
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(config), "@DIR@", s.path("shared"))
	// The pages are served, and a call waits for longer than this takes.
	open := strings.NewReplacer("pages: none", "pages: 127.0.0.1:0", "wait: 2s", "wait: 55s").Replace(text)
	if len(open) != len(text)+len("127.0.0.1:0")-len("none")+1 {
		return errors.New("the example's configuration does not say where its pages are, and how long a call waits")
	}
	for name, content := range map[string]string{"shared/notes.txt": "buy milk\n", "outside/secret.txt": "not for agents\n",
		"config/holdfast.yaml": open, "passphrase": passphrase + "\n"} {
		if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOLDFAST_") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "HOLDFAST_STATE="+s.path("state"), "HOLDFAST_CONFIG="+s.path("config/holdfast.yaml"), "CGO_ENABLED=0", "USER=ada")
	builds := map[string]string{"client": "./examples/mcp-guard/client"}
	if s.holdfast == "" {
		s.holdfast = s.path("holdfast")
		builds["holdfast"] = "./cmd/holdfast"
	}
	for name, pkg := range builds {
		if _, err := s.run(ctx, root, "go", "build", "-o", s.path(name), pkg); err != nil {
			return err
		}
	}
	if _, err := s.run(ctx, s.path("home"), "npx", "-y", server, s.path("shared")); err != nil {
		return fmt.Errorf("npx cannot fetch %s: %w", server, err)
	}
	_, err = s.run(ctx, s.path("home"), s.holdfast, "init", "--credential-file", s.path("passphrase"))
	return err
}

// run runs one command to its end, with nothing on its input.
func (s *scene) run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, s.env, 5*time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(argv[:min(3, len(argv))], " "), err, stderr.Bytes())
	}
	return out, err
}

var opened = regexp.MustCompile(`^open (http://\S+/in/\S+)$`)

// up starts the daemon, and takes the link that it prints.
func (s *scene) up(ctx context.Context) error {
	s.daemon = exec.CommandContext(ctx, s.holdfast, "up")
	s.daemon.Dir, s.daemon.Env, s.daemon.WaitDelay = s.path("home"), s.env, 5*time.Second
	s.daemon.Cancel = func() error { return s.daemon.Process.Signal(os.Interrupt) }
	log, err := os.Create(s.path("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.daemon.Stderr = log
	out, err := s.daemon.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.daemon.Start(); err != nil {
		s.daemon = nil
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := opened.FindStringSubmatch(lines.Text()); m != nil {
			s.link = m[1]
			return nil
		}
	}
	return errors.New("the daemon printed no link")
}

// ask starts the example's agent. It works, is refused what it should not do,
// and then asks for a move until a person has decided.
func (s *scene) ask(ctx context.Context) error {
	s.agent = exec.CommandContext(ctx, s.path("client"), "-dir", s.path("shared"), "-outside", s.path("outside/secret.txt"), "-record", s.path("record"), "-once", "--",
		s.holdfast, "mcp", "--name", "files", "--agent", "example", "--", "npx", "-y", server, s.path("shared"))
	s.agent.Dir, s.agent.Env, s.agent.WaitDelay = s.path("home"), s.env, 5*time.Second
	s.agent.Stdout, s.agent.Stderr = &s.said, &s.said
	if err := s.agent.Start(); err != nil {
		s.agent = nil
		return err
	}
	return nil
}

// review waits for the first review and returns its id and its crossing's.
func (s *scene) review(ctx context.Context) (id, crossing string, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		out, err := s.run(ctx, s.path("home"), s.holdfast, "review", "ls", "--all", "--json")
		if err != nil {
			return "", "", err
		}
		var rs []struct{ ID, Crossing string }
		if err := json.Unmarshal(out, &rs); err != nil {
			return "", "", err
		}
		if len(rs) > 0 {
			return rs[len(rs)-1].ID, rs[len(rs)-1].Crossing, nil
		}
	}
	return "", "", fmt.Errorf("nothing was held; the agent says:\n%s", s.said.String())
}

// served waits until the agent has got what it asked for, and looks at the
// file.
func (s *scene) served() error {
	err := s.agent.Wait()
	s.agent = nil
	if err != nil {
		return fmt.Errorf("the agent: %w\n%s", err, s.said.String())
	}
	if _, err := os.Stat(s.path("shared/report.txt")); err == nil {
		return errors.New("the file is where it was")
	}
	b, err := os.ReadFile(s.path("shared/archive.txt"))
	if err == nil && string(b) != "milk was bought\n" {
		err = fmt.Errorf("the moved file holds %q", b)
	}
	return err
}

// close ends the processes of this scene and removes its directory.
func (s *scene) close() error {
	if s.agent != nil {
		_ = s.agent.Process.Kill()
		_ = s.agent.Wait()
	}
	if s.daemon != nil {
		_ = s.daemon.Process.Signal(os.Interrupt)
		_ = s.daemon.Wait()
	}
	return os.RemoveAll(s.dir)
}
