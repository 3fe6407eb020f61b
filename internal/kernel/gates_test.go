package kernel

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
)

// A gate has five seconds, whichever it is and whatever it would have said: its
// context ends then, and an answer that comes later is a timeout.
func TestD6a_a_slow_gate_is_a_timeout(t *testing.T) {
	for _, g := range gates() {
		for name, judge := range map[string]func(context.Context, *judgement) holdfast.Opinion{
			"heeds its context": func(ctx context.Context, _ *judgement) holdfast.Opinion {
				<-ctx.Done()
				return allow(g.name, "", noneDeclared, "")
			},
			"is deaf": func(context.Context, *judgement) holdfast.Opinion {
				time.Sleep(time.Minute)
				return allow(g.name, "", noneDeclared, "")
			},
			"would hold": func(ctx context.Context, _ *judgement) holdfast.Opinion {
				time.Sleep(gateTime + time.Nanosecond)
				return holdfast.Opinion{Verdict: holdfast.Hold}
			},
		} {
			t.Run(g.name.String()+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := &judgement{k: &Kernel{clock: time.Now, log: slog.New(slog.DiscardHandler)}}
					start := time.Now()
					op := ask(t.Context(), gate{g.name, judge}, j)
					if op.Verdict != holdfast.Deny || op.Kind != holdfast.KindTimeout || op.Gate != g.name {
						// Ending its context in time is as good: the gate then says so itself.
						if took := time.Since(start); name != "heeds its context" || took != gateTime {
							t.Fatalf("%+v after %v", op, took)
						}
					}
				})
			})
		}
	}
}

// K1 finds a schema in memory, where the policy put it; what may take long is
// asking it, and a K1 whose five seconds are over says timeout, whatever the
// payload is.
func TestK1_AC5_FP7_five_seconds(t *testing.T) {
	none, err := constitution.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := contract.Compile(holdfast.Contract{Boundary: "b", Risk: holdfast.Low,
		Schema: json.RawMessage(`{"type":"array","items":{"type":"string"}}`)}, none)
	for _, text := range []string{`["a"]`, `[1]`} {
		doc, err := payload.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			j := &judgement{k: &Kernel{clock: time.Now, log: slog.New(slog.DiscardHandler)},
				schemaFacts: schemaFacts{contract: c, doc: doc}}
			slow := func(ctx context.Context, j *judgement) holdfast.Opinion {
				time.Sleep(gateTime + time.Millisecond)
				return k1Schema(ctx, j)
			}
			op := ask(t.Context(), gate{holdfast.K1, slow}, j)
			if op.Verdict != holdfast.Deny || op.Kind != holdfast.KindTimeout {
				t.Fatalf("%s: %+v", text, op)
			}
			if op := ask(t.Context(), gate{holdfast.K1, k1Schema}, j); op.Kind == holdfast.KindTimeout {
				t.Fatalf("%s in time: %+v", text, op)
			}
		})
	}
}
