package budget

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// What a limit says of one within an agent comes beside all that the agent's own say,
// covers nothing, and shares no counter with an agent that bears that name.
func TestWithin(t *testing.T) {
	now := time.Unix(1_795_219_200, 0)
	limits := []Limit{{Scope: Agent, Resource: holdfast.LLMTokens, Amount: 100, Source: "all"},
		{Scope: Agent, Match: "alice/plan", Resource: holdfast.LLMTokens, Amount: 20, Source: "plan", Exceed: PauseAgent},
		{Scope: Agent, Match: "alice/plan", Resource: holdfast.Messages, Amount: 20, Source: "covers nothing"}}
	rates := []RateLimit{{Scope: Agent, PerMinute: 9, Source: "all"}, {Scope: Agent, Match: "alice/plan", PerMinute: 2, Source: "plan"}}
	plan := func(agent string, within []string, r holdfast.Resource) ([]Draw, []Rate, *Refusal) {
		return Plan(limits, rates, Ask{Who: holdfast.Identity{Tenant: "t", Agent: agent}, Within: within, Boundary: "b", Consumes: map[holdfast.Resource]int64{r: 5}, Now: now})
	}
	draws, taken, no := plan("alice", []string{"deep", "plan"}, holdfast.LLMTokens)
	if no != nil || len(draws) != 2 || draws[0].Of != "" || draws[1].Of != "alice/plan" || draws[1].Limit != 20 || len(taken) != 2 || taken[1].Limit != 2 {
		t.Fatalf("%+v, %+v, %v", draws, taken, no)
	}
	if n, ok := Amount(limits, draws[1]); !ok || n != 20 {
		t.Errorf("%d, %t", n, ok)
	}
	if _, _, no := plan("alice", []string{"plan"}, holdfast.Messages); no == nil || no.Kind != holdfast.KindBudgetNotFound {
		t.Errorf("%+v", no)
	}
	twin, its, no := plan("alice/plan", nil, holdfast.LLMTokens)
	if no != nil || len(twin) != 1 || twin[0].Limit != 20 || len(its) != 2 {
		t.Fatalf("%+v, %+v, %v", twin, its, no)
	}
	for _, d := range draws {
		if d.Key == twin[0].Key || slices.ContainsFunc(its, func(r Rate) bool { return r.Key == taken[0].Key || r.Key == taken[1].Key }) {
			t.Errorf("the counters %q and %q are one", d.Key, twin[0].Key)
		}
	}
	limits[1].Amount = -1
	if _, _, no := plan("alice", []string{"plan"}, holdfast.LLMTokens); no == nil || no.Kind != holdfast.KindInvalidBudget {
		t.Errorf("%+v", no)
	}
}
