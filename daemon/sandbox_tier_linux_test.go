package daemon

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/ledger"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tiersUp is a daemon that has containers and no VM, and a kind of agents that is
// trusted from the start. Without boundaries code runs behind the walls that need
// no control groups.
func tiersUp(t *testing.T, runtime, boundaries string) (*Daemon, *api.Client) {
	t.Helper()
	if boundaries == "" {
		boundaries = walls
	}
	d, c, down := up(t, "version: 1\nlisten:\n  pages: 127.0.0.1:0\n"+boundaries+"agents: {kinds: {trusted: {iterations: 100, trust: medium}}}\n"+
		"mcp: {servers: {code: {sandbox: true}}}\nsandbox: {executor: {listen: '127.0.0.1:0'}, container: {runtime: "+runtime+"}, vm: {qemu: /nowhere/qemu}}\n", shareRuntimes)
	t.Cleanup(down)
	return d, c
}

func number(f float64) *float64 { return &f }

func trusted(l holdfast.Level) *holdfast.Level { return &l }

func execs(t *testing.T, c *api.Client, e api.Execution) *api.Executed {
	t.Helper()
	e.RequestID, e.Language = "run", "python3"
	if e.Agent == "" {
		e.Agent = "ada" + e.Kind
	}
	if e.Code == nil {
		e.Code = []byte("print('ran')")
	}
	got, err := c.Exec(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestTierIsChosen_000 sends the rows of document 000's table through the door:
// what is chosen runs there, or nothing runs; the result, the begin and the entry
// say which tier it was and why. What an agent says of its trust never makes its
// sandbox weaker.
func TestTierIsChosen_000(t *testing.T) {
	d, c := tiersUp(t, "runc", "")
	type evidence = posture.Evidence
	type row struct {
		e    api.Execution
		tier posture.Tier
		why  string
	}
	rows := map[string]row{
		"nothing said":          {api.Execution{}, posture.TierProcess, "process: nothing asks for more"},
		"all well":              {api.Execution{Kind: "trusted", Evidence: evidence{Entropy: number(10), Novelty: number(0.8)}}, posture.TierProcess, "process: predicted entropy 10, novelty 0.8 and the trust level medium ask for no more"},
		"entropy":               {api.Execution{Kind: "trusted", Evidence: evidence{Entropy: number(12), Novelty: number(0.8)}}, posture.TierContainer, "container: predicted entropy 12 is over 10"},
		"new agent":             {api.Execution{Evidence: evidence{Entropy: number(0), Novelty: number(0)}}, posture.TierContainer, "container: the agent's trust level is baseline"},
		"new agent that boasts": {api.Execution{Evidence: evidence{Entropy: number(0), Novelty: number(0), Trust: trusted(holdfast.Highest)}}, posture.TierContainer, "container: the agent's trust level is baseline"},
		"high entropy":          {api.Execution{Kind: "trusted", Evidence: evidence{Entropy: number(31), Novelty: number(0)}}, posture.TierVM, "vm: predicted entropy 31 is over 30"},
		"new work":              {api.Execution{Kind: "trusted", Evidence: evidence{Entropy: number(3), Novelty: number(0.9)}}, posture.TierVM, "vm: novelty 0.9 is over 0.8"},
	}
	if testrepeat.Enduring { // internal/sandbox has a table of all of them
		maps.Copy(rows, map[string]row{
			"trusted agent that fears": {api.Execution{Kind: "trusted", Evidence: evidence{Entropy: number(0), Novelty: number(0), Trust: trusted(holdfast.Baseline)}}, posture.TierContainer, "container: the agent's trust level is baseline"},
			"asked for":                {api.Execution{Tier: posture.TierContainer}, posture.TierContainer, "container: the request asks for it"},
			"asked for less":           {api.Execution{Tier: posture.TierProcess, Evidence: evidence{Entropy: number(12), Novelty: number(0)}}, posture.TierContainer, "container: predicted entropy 12 is over 10"},
			"intent":                   {api.Execution{Intent: "i-1"}, posture.TierContainer, "container: the agent's trust level is baseline"},
			"intent of a trusted one":  {api.Execution{Kind: "trusted", Intent: "i-1"}, posture.TierProcess, "process: the trust level medium asks for no more"},
			"trust alone":              {api.Execution{Evidence: evidence{Trust: trusted(holdfast.Highest)}}, posture.TierVM, "vm: no entropy is predicted, which counts as its worst"},
		})
	}
	for name, tc := range rows {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			got := execs(t, c, tc.e)
			r := got.Result
			if r == nil {
				t.Fatalf("%+v", got.Failure)
			}
			if tc.tier == posture.TierVM {
				if r.State != posture.SpawnError || r.ExitCode != 1 || r.Stdout != "" || len(r.Posture.Up) != 0 || got.Failure == nil ||
					!strings.HasPrefix(got.Failure.Why, tc.why+"; and the vm tier is missing here: ") || got.Failure.Hint == "" {
					t.Errorf("%+v %+v", r, got.Failure)
				}
			} else if r.Posture.Tier != tc.tier || r.Stdout != "ran\n" || r.Chosen != tc.why || got.Failure != nil {
				t.Errorf("%v, %q, %q: %+v", r.Posture.Tier, r.Chosen, r.Stdout, got.Failure)
			}
			e, asked := d.lastRun(t)
			recorded := tc.why
			if tc.tier == posture.TierContainer {
				recorded += "; by " + r.Posture.Runtime
			}
			if asked.Tier != tc.tier || asked.Why != tc.why || tc.tier != posture.TierVM && e.Sandbox != recorded {
				t.Errorf("the begin says %+v, the entry %q", asked, e.Sandbox)
			}
		})
	}
	t.Run("limits", func(t *testing.T) { checkTierLimits(t, d, c) })
	t.Run("each_frontend", func(t *testing.T) { checkTierAtEachFrontend(t, d, c) })
}

// asked is what a begin says of its tier.
type asked struct {
	Tier posture.Tier `json:"tier"`
	Why  string       `json:"tier_why"`
}

// lastRun is the newest entry of a run, and what its begin says.
func (d *Daemon) lastRun(t *testing.T) (*ledger.Entry, asked) {
	t.Helper()
	list, err := d.entriesOf("exec/")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	e := list[len(list)-1]
	var said struct{ asked }
	err = d.store.View(t.Context(), func(tx kernel.Tx) error {
		l, err := tx.Leaf(e.TenantID, *e.BeginSeq)
		if err != nil {
			return err
		}
		body, err := ledger.PartContent(l.Part)
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &said)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, said.asked
}

// checkTierLimits: the tier is chosen before limits are judged, so that a container
// may have more (D21a), and what is no evidence is refused before anything is asked.
func checkTierLimits(t *testing.T, d *Daemon, c *api.Client) {
	long := api.Execution{Timeout: 40 * time.Second, MemoryMB: 600}
	if got, err := c.Exec(t.Context(), api.Execution{Agent: "ada", RequestID: "r", Language: "python3", Code: []byte("1"), Timeout: long.Timeout}); err == nil && (got.Result != nil || got.Failure.Kind != holdfast.KindLimit) {
		t.Errorf("%+v", got)
	}
	long.Tier = posture.TierContainer
	if got := execs(t, c, long); got.Result == nil || got.Result.Stdout != "ran\n" {
		t.Errorf("%+v", got.Failure)
	}
	before := d.boundaryEntries(t, "exec/")
	for _, e := range []posture.Evidence{{Entropy: number(-1)}, {Entropy: number(101)}, {Novelty: number(1.1)}} {
		if got, err := c.Exec(t.Context(), api.Execution{Agent: "ada", RequestID: "r", Language: "python3", Code: []byte("1"), Evidence: e}); err == nil && (got.Result != nil || got.Failure.Kind != holdfast.KindProtocol) {
			t.Errorf("%+v: %+v", e, got)
		}
	}
	if n := d.boundaryEntries(t, "exec/"); n != before {
		t.Errorf("%d entries more", n-before)
	}
}

// TestTierOfTheContract: the strongest of contract, request and evidence is taken,
// and where it is missing nothing runs in a lesser one.
func TestTierOfTheContract(t *testing.T) {
	contract := "boundaries:\n  - {boundary: 'exec/*', risk: MEDIUM, permissions: ['exec:run'], tier: container, walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]}\n"
	_, c := tiersUp(t, "/nowhere/runc", contract)
	got := execs(t, c, api.Execution{Tier: posture.TierProcess})
	if f := got.Failure; got.Result.State != posture.SpawnError || got.Result.Stdout != "" || f == nil || f.Hint == "" ||
		!strings.HasPrefix(f.Why, "container: the contract of exec/python3.") || !strings.Contains(f.Why, " demands it; and the container tier is missing here: ") || !strings.Contains(f.Why, "/nowhere/runc") {
		t.Errorf("%+v %+v", got.Result, f)
	}
	_, alone := tiersUp(t, "runc", strings.Replace(contract, "tier: container", "tier: vm", 1))
	if got := execs(t, alone, api.Execution{Tier: posture.TierContainer}); got.Result.State != posture.SpawnError || got.Result.Stdout != "" || got.Failure == nil || got.Failure.Hint == "" ||
		!strings.HasPrefix(got.Failure.Why, "vm: the contract of exec/python3.") || !strings.Contains(got.Failure.Why, "the vm tier is missing here: the VM tier needs QEMU") {
		t.Errorf("%+v %+v", got.Result, got.Failure)
	}
	if got := execs(t, c, api.Execution{Tier: posture.TierVM}); got.Failure == nil || !strings.HasPrefix(got.Failure.Why, "vm: the request asks for it; and the vm tier is missing here: ") {
		t.Errorf("%+v", got.Failure)
	}
}

// checkTierAtEachFrontend: the code executor and the tool for models take evidence
// and a tier too, and say what was chosen.
func checkTierAtEachFrontend(t *testing.T, d *Daemon, c *api.Client) {
	ctx, remote := d.as(t, "ada"), executorClient(t, d, nil)
	r := python("print('ran')")
	r.Evidence = &executorpb.Evidence{PredictedEntropy: number(12), Novelty: number(0), Trust: "highest"}
	if got, err := remote.Execute(ctx, r); err != nil || got.Posture.Tier != "container" || got.TierWhy != "container: predicted entropy 12 is over 10" || got.Stdout != "ran\n" {
		t.Errorf("%v, %v", got, err)
	}
	for _, change := range []func(*executorpb.ExecutionRequest){
		func(r *executorpb.ExecutionRequest) { r.Tier = "castle" },
		func(r *executorpb.ExecutionRequest) { r.Evidence = &executorpb.Evidence{Trust: "total"} },
		func(r *executorpb.ExecutionRequest) { r.Evidence = &executorpb.Evidence{Novelty: number(7)} },
	} {
		r := python("print('ran')")
		change(r)
		if _, err := remote.Execute(ctx, r); status.Code(err) != codes.InvalidArgument || infoOf(err).GetReason() != string(holdfast.KindProtocol) {
			t.Error(err)
		}
	}
	at, _ := d.pagesAt()
	s := reachMCP(t, at+"/mcp/code", "2026-07-28", &asking{giveToken(t, c, "nightly").Token})
	got, text := callCode(t, s, map[string]any{"language": "python3", "code": "print('ran')", "tier": "container"})
	b, _ := json.Marshal(got.StructuredContent)
	if got.IsError || !strings.HasPrefix(text, "ran\n") || !strings.Contains(string(b), `"tier":"container","tier_why":"container: the request asks for it"`) {
		t.Errorf("%q %s", text, b)
	}
	if got, text = callCode(t, s, map[string]any{"language": "python3", "code": "print('ran')", "evidence": map[string]any{"novelty": 0.9}}); !got.IsError || !strings.Contains(text, "vm: no entropy is predicted") {
		t.Errorf("%q", text)
	}
}

// TestRuntimeThatCannotNameIsAnnounced: who asks by name for a runtime that cannot
// say which call ended a program finds that wherever weakenings are told.
func TestRuntimeThatCannotNameIsAnnounced(t *testing.T) {
	for runtime, want := range map[string]bool{"runsc": true, "docker, image: x": true, "runc": false, "auto": false} {
		d, _, down := up(t, quiet+"sandbox: {container: {runtime: "+runtime+"}}\n")
		s, err := d.Status(t.Context())
		down()
		if err != nil || strings.Contains(strings.Join(s.Weakened, "\n"), "sandbox.container.runtime: ") != want {
			t.Errorf("%s: %q, %v", runtime, s.Weakened, err)
		}
	}
}
