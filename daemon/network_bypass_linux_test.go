package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// TestNetwork_Bypass: each of the 31 ways past an egress proxy, tried from inside
// of a workspace with a network, in a world where whatever gets out arrives: none
// of them brings its mark out, each is in the ledger as what it is, and what is
// like it and allowed arrives.
func TestNetwork_Bypass(t *testing.T) {
	if os.Getenv(worldEnv) == "" {
		inWorlds(t, func(rootless bool) []string { return append(listNames(chooseBypasses(rootless)), outsideName) })
		return
	}
	s := newScene(t)
	for group := range slices.Chunk(chooseBypasses(os.Geteuid() != 0), 8) {
		s.try(t, group)
	}
	s.nobodyElse(t)
	t.Run(outsideName, s.outside)
}

// allBypasses returns the ways past a proxy, and what is beside them.
func allBypasses() []bypass { return append(bypasses(), bypass{layer3Name, layer3()}) }

// chooseBypasses returns what is tried in a world. Without root it is what the network
// of a workspace keeps in; what the proxy refuses is the same for both.
func chooseBypasses(rootless bool) []bypass {
	list := allBypasses()
	if !rootless || testrepeat.Enduring {
		return list
	}
	return slices.DeleteFunc(list, func(b bypass) bool {
		return !slices.Contains([]string{"13", "16", "17", "19", "25", layer3Name[:2]}, b.name[:2])
	})
}

// listNames returns the names of a list.
func listNames(list []bypass) (names []string) {
	for _, b := range list {
		names = append(names, b.name)
	}
	return names
}

// layer3Name is of what spec 003 section 3.2 asks, and outsideName of the same
// attempts without a workspace.
const (
	layer3Name  = "L3_out_by_the_proxy_and_back"
	outsideName = "outside_they_get_through"
)

// scene is a daemon in a world.
type scene struct {
	*around
	d *Daemon
	c *api.Client
	s *sniffer
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{s: sniff(t), around: newAround(t)}
	credential := filepath.Join(t.TempDir(), "own.key")
	if err := os.WriteFile(credential, []byte(tenantsOwn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := quiet + "budgets:\n  - {scope: tenant, resource: bytes_out, boundary: egress/drip.test, amount: 1000}\negress:\n  domains:\n"
	for name, more := range map[string]string{
		"good.test": "", "other.test": "", "'*.wild.test'": "", "'*.special.test'": "", "blind.test": ", inspect: opaque", "socket.test": ", websocket: true",
		"own.test": ", credential: {header: X-Api-Key, file: " + credential + "}", "narrow.test": ", paths: [/v1/*], methods: [GET]",
		"drip.test": ", budget: bytes", "rate.test": ", rate_limit: 3",
	} {
		if name == "blind.test" {
			config += fmt.Sprintf("    %s: {type: api%s}\n", name, more)
			continue
		}
		config += fmt.Sprintf("    %s: {roots: %s, redact: {request: mask}%s}\n", name, s.roots, more)
	}
	config += "    plain.test: {plain_http: true}\n"
	d, c, down := up(t, config)
	t.Cleanup(down)
	d.repeats()
	s.d, s.c = d, c
	return s
}

// try makes the attempts of a group in one run, of an agent of its own, and judges each.
func (s *scene) try(t *testing.T, group []bypass) {
	agent := "agent-" + group[0].name[:2]
	got := s.inside(t, group, agent)
	var want []string
	for _, b := range group {
		if len(got) < len(b.try) {
			t.Fatalf("%d of %d attempts of %s were made: %+v", len(got), len(b.try), b.name, got)
		}
		mine := got[:len(b.try)]
		got = got[len(b.try):]
		t.Run(b.name, func(t *testing.T) {
			for i, a := range b.try {
				mark := markOf(b, i)
				for _, e := range a.entries {
					want = append(want, strings.ReplaceAll(e, "MARK", mark))
				}
				s.judge(t, a, mine[i], mark)
			}
		})
	}
	if len(got) > 0 {
		t.Errorf("and besides: %+v", got)
	}
	s.recorded(t, agent, want)
}

// judge holds what an attempt came to inside against what arrived outside.
func (s *scene) judge(t *testing.T, a attempt, got told, mark string) {
	t.Helper()
	anyOf := a.status == anyRefusal && slices.Contains([]int{0, 400, 421}, got.Status)
	if got.Status != a.status && !anyOf {
		t.Errorf("%s: %+v, want %d", a.name, got, a.status)
	}
	if got.Status >= 400 && got.Text != "" && !(strings.HasPrefix(got.Text, "holdfast: ") && strings.Contains(got.Text, "crossing: ")) {
		t.Errorf("%s: the refusal says %q", a.name, got.Text)
	}
	if a.fails == (got.Err == "") && a.status == 0 && len(a.entries) == 0 || a.fails && got.Text != "" || a.text != "" && got.Text != a.text {
		t.Errorf("%s: %+v", a.name, got)
	}
	if s.has(mark) != a.arrives {
		t.Errorf("%s: it arrived: %v, want %v", a.name, !a.arrives, a.arrives)
	}
	if a.never != "" && s.has(a.never) {
		t.Errorf("%s: %q arrived", a.name, a.never)
	}
	if a.after != "" && !s.has(a.after) {
		t.Errorf("%s: %q did not arrive", a.name, a.after)
	}
	if !a.arrives || a.never != "" {
		for _, q := range s.questions() {
			if !a.arrives && strings.Contains(q, mark) || a.never != "" && strings.Contains(q, a.never) {
				t.Errorf("%s: the name server was asked for %s", a.name, q)
			}
		}
	}
}

// recorded wants exactly those entries of an agent, in any order.
func (s *scene) recorded(t *testing.T, agent string, want []string) {
	t.Helper()
	slices.Sort(want)
	var got, why []string
	for range 200 { // an entry may follow its answer
		list, err := s.d.entriesOf("egress/")
		if err != nil {
			t.Fatal(err)
		}
		got, why = nil, nil
		for _, e := range list {
			if e.Agent == agent {
				why = append(why, string(e.ErrorKind)+": "+e.Why)
				got = append(got, strings.TrimSpace(e.Boundary+" "+string(e.ErrorKind)))
			}
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, w := range want {
		if i := slices.Index(got, w); i >= 0 {
			got = slices.Delete(got, i, i+1)
			continue
		}
		t.Errorf("the ledger lacks %q", w)
	}
	if len(got) > 0 {
		t.Errorf("the ledger has besides %q, for %q", got, why)
	}
}

// inside runs this program in a workspace, as `holdfast run` does.
func (s *scene) inside(t *testing.T, group []bypass, agent string) []told {
	t.Helper()
	tree := t.TempDir()
	if err := os.Chmod(tree, 0o777); err != nil {
		t.Fatal(err)
	}
	tree, err := process.WorkTree(tree, "", true)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan []byte, 1)
	go func() { b, _ := io.ReadAll(from); from.Close(); said <- b }()
	ask := api.RunAsk{Agent: agent, Network: api.NetworkProxy, Space: sandbox.Workspace{ID: "run-of-" + agent, Tree: tree, Timeout: time.Minute,
		Toolbox: []string{filepath.Dir(self)}, Argv: []string{self}}}
	got, err := s.c.Run(t.Context(), ask, func(ctx context.Context, terms api.RunTerms) (*posture.Result, error) {
		w := process.OpenWorkspaces()
		defer w.Close()
		space := ask.Space
		space.Network, space.Environment = terms.Network, sandbox.NetworkVariables()
		space.Environment[attemptEnv] = strings.Join(listNames(group), " ")
		space, err := sandbox.CheckWorkspace(space, func(string) bool { return false })
		if err != nil {
			return nil, err
		}
		space.Need = []posture.Wall{posture.WallNet}
		return w.RunConnected(ctx, space, sandbox.Streams{Out: to, Err: to}, func(ctx context.Context, sockets []*os.File) error { return s.c.HandOver(ctx, terms, sockets) })
	})
	to.Close()
	text := <-said
	if err != nil || got.Failure != nil || got.Result == nil || got.Result.ExitCode != 0 {
		t.Fatalf("%v %+v %+v\n%s", err, got.Failure, got.Result, text)
	}
	return toldIn(t, text)
}

// toldIn are what the program said, in order.
func toldIn(t *testing.T, text []byte) (out []told) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	for {
		var one told
		err := in.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		out = append(out, one)
	}
}

// nobodyElse: of all attempts nothing came to anybody who is not listed.
func (s *scene) nobodyElse(t *testing.T) {
	t.Helper()
	if got := s.reached(); len(got) > 0 {
		t.Errorf("strangers were connected to: %q", got)
	}
	if got := s.s.strange(); len(got) > 0 {
		t.Errorf("packets went to %q", got)
	}
}

// outside: the same program without a workspace gets past where it did not.
func (s *scene) outside(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, b := range allBypasses() {
		for _, a := range b.try {
			if a.direct != "" && (!a.rights || os.Geteuid() == 0) {
				want[a.direct] = b.name + ": " + a.name
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), attemptEnv+"="+strings.Join(listNames(allBypasses()), " "), directEnv+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	seen := append(s.s.strange(), s.reached()...)
	for at, name := range want {
		if !slices.Contains(seen, at) && (hasIPv6() || !strings.Contains(at, "[")) {
			t.Errorf("%s: it did not come to %s without a workspace either", name, at)
		}
	}
	if len(want) < 15 {
		t.Errorf("only %d of them can be seen", len(want))
	}
}

// hasIPv6 says whether the machine has it.
func hasIPv6() bool {
	b, err := os.ReadFile("/proc/net/if_inet6")
	return err == nil && len(b) > 0
}
