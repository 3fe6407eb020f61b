package kernel_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// The rows of the error tables of spec 003 sections 1.2 to 1.9 and 3.1, as the
// document has them: exception, log level, and the trace event where it names
// one.
func documentRows() []holdfast.Signal {
	const e, w, i = slog.LevelError, slog.LevelWarn, slog.LevelInfo
	return []holdfast.Signal{
		{Gate: holdfast.K1, Kind: "SchemaNotFoundError", Level: e, Event: "trace.k1_schema_missing"},
		{Gate: holdfast.K1, Kind: "SchemaParseError", Level: e},
		{Gate: holdfast.K1, Kind: "ValidationError", Level: w, Event: "trace.k1_invalid_payload"},
		{Gate: holdfast.K1, Kind: "TimeoutError", Level: e},
		{Gate: holdfast.K1, Kind: "PayloadTooLargeError", Level: w},
		{Gate: holdfast.K2, Kind: "JWTError", Level: w, Event: "trace.k2_jwt_invalid"},
		{Gate: holdfast.K2, Kind: "ExpiredTokenError", Level: i, Event: "trace.k2_token_expired"},
		{Gate: holdfast.K2, Kind: "RevokedTokenError", Level: w, Event: "trace.k2_token_revoked"},
		{Gate: holdfast.K2, Kind: "PermissionError", Level: w, Event: "trace.k2_unauthorized"},
		{Gate: holdfast.K2, Kind: "RoleNotFoundError", Level: e},
		{Gate: holdfast.K2, Kind: "JWTDecodeError", Level: e},
		{Gate: holdfast.K3, Kind: "BudgetNotFoundError", Level: e},
		{Gate: holdfast.K3, Kind: "BoundsExceeded", Level: w, Event: "trace.k3_bounds_exceeded"},
		{Gate: holdfast.K3, Kind: "UsageTrackingError", Level: e},
		{Gate: holdfast.K3, Kind: "InvalidBudgetError", Level: e},
		{Gate: holdfast.K4, Kind: "TenantContextError", Level: e},
		{Gate: holdfast.K4, Kind: "ValueError", Level: w},
		{Gate: holdfast.K5, Kind: "ValueError", Level: w},
		{Gate: holdfast.K5, Kind: "CanonicalizeError", Level: e},
		{Gate: holdfast.K6, Kind: "WALWriteError", Level: e, Event: "trace.k6_wal_write_failed"},
		{Gate: holdfast.K6, Kind: "RedactionError", Level: e},
		{Gate: holdfast.K6, Kind: "WALFormatError", Level: e},
		{Gate: holdfast.K7, Kind: "ConfidenceError", Level: e},
		{Gate: holdfast.K7, Kind: "ApprovalTimeout", Level: w, Event: "trace.k7_approval_timeout"},
		{Gate: holdfast.K7, Kind: "OperationRejected", Level: i, Event: "trace.k7_human_rejected"},
		{Gate: holdfast.K7, Kind: "ApprovalChannelError", Level: e},
		{Gate: holdfast.K8, Kind: "PredicateNotFoundError", Level: e},
		{Gate: holdfast.K8, Kind: "EvalError", Level: e, Event: "trace.k8_eval_error"},
		{Gate: holdfast.K8, Kind: "EvalGateFailure", Level: i, Event: "trace.k8_eval_gate_failure"},
		{Gate: holdfast.K8, Kind: "TimeoutError", Level: w},
		{Gate: holdfast.K2, Kind: "DomainBlockedError", Level: w, Event: "trace.egress_domain_blocked"},
		{Gate: holdfast.K3, Kind: "RateLimitError", Level: i, Event: "trace.egress_rate_limited"},
		{Gate: holdfast.K3, Kind: "BudgetExceededError", Level: w, Event: "trace.egress_budget_exceeded"},
		{Gate: holdfast.K6, Kind: "LoggingError", Level: e},
		{Kind: "ForwardError", Level: w, Event: "trace.egress_forward_error"},
		{Kind: "TimeoutError", Level: w},
	}
}

func TestSignals_D14c_every_row_of_the_document(t *testing.T) {
	type pair struct {
		g holdfast.Gate
		k holdfast.Kind
	}
	table, events := map[pair]holdfast.Signal{}, map[string]pair{}
	for _, s := range holdfast.Signals() {
		p := pair{s.Gate, s.Kind}
		if _, twice := table[p]; twice {
			t.Errorf("%v %v stands twice", s.Gate, s.Kind)
		}
		if other, twice := events[s.Event]; twice {
			t.Errorf("%s is the event of %v and %v", s.Event, other, p)
		}
		// The document names what egress raises after egress, whatever the gate.
		own := s.Gate != holdfast.GateHalt && strings.HasPrefix(s.Event, "trace."+strings.ToLower(s.Gate.String())+"_")
		if !own && !strings.HasPrefix(s.Event, "trace.egress_") && s.Event != "trace.act_timeout" {
			t.Errorf("%v %v has the event %q", s.Gate, s.Kind, s.Event)
		}
		table[p], events[s.Event] = s, p
	}
	for _, want := range documentRows() {
		got, found := table[pair{want.Gate, want.Kind}]
		if !found || got.Level != want.Level || (want.Event != "" && got.Event != want.Event) {
			t.Errorf("%v %s: got %v %q, want %v %q", want.Gate, want.Kind, got.Level, got.Event, want.Level, want.Event)
		}
	}
	if s := holdfast.SignalOf(holdfast.K2, "NoSuchKind"); s.Level != slog.LevelError || s.Event == "" {
		t.Errorf("what is not in the table is silent: %+v", s)
	}
}

type logLine struct {
	Level, Msg, Trace, Crossing, Gate, By, Kind, Why string
}

func (b *buffer) lines(t *testing.T) []logLine {
	t.Helper()
	var out []logLine
	for sc := bufio.NewScanner(strings.NewReader(b.String())); sc.Scan(); {
		var l logLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// Each kind that a gate can raise is raised once, at a real crossing, and the
// log has one line of it at the document's level with its event.
func TestSignals_D14c_raised(t *testing.T) {
	rules := "rules:\n  - {id: no, on: request, boundary: test/*, when: has(args.bad), message: bad}\n" +
		"  - {id: throws, on: request, boundary: test/*, when: has(args.crash) && args.crash.x > 1, message: bad}\n"
	bad := holdfast.Contract{Boundary: "seen/bad", Risk: holdfast.Low, Schema: json.RawMessage(`{"type":"wat"}`), Source: "seen"}
	ghost := holdfast.Contract{Boundary: "seen/ghost", Risk: holdfast.Low, Predicates: []string{"ghost"}, Source: "seen"}
	type cause = func(w *world, b *broken) holdfast.Request
	plain := func(boundary, payload string) cause {
		return func(w *world, _ *broken) holdfast.Request { return w.req(boundary, payload) }
	}
	tokenIs := func(tok string) cause {
		return func(w *world, _ *broken) holdfast.Request {
			r := w.req("test/low", `{}`)
			r.Token = holdfast.NewSecret(tok)
			return r
		}
	}
	failing := func(verb, boundary string) cause {
		return func(w *world, b *broken) holdfast.Request { b.fail(verb); return w.req(boundary, `{}`) }
	}
	cases := []struct {
		gate holdfast.Gate
		kind holdfast.Kind
		do   cause
	}{
		{holdfast.K1, holdfast.KindSchemaNotFound, plain("nowhere", `{}`)},
		{holdfast.K1, holdfast.KindSchemaParse, plain("seen/bad", `{}`)},
		{holdfast.K1, holdfast.KindValidation, plain("test/schema", `{}`)},
		{holdfast.K1, holdfast.KindPayloadTooLarge, plain("test/low", strings.Repeat("[", 30)+strings.Repeat("]", 30))},
		{holdfast.K2, holdfast.KindJWT, tokenIs("")},
		{holdfast.K2, holdfast.KindJWTDecode, tokenIs("garbage")},
		{holdfast.K2, holdfast.KindExpiredToken, func(w *world, _ *broken) holdfast.Request {
			r := w.req("test/low", `{}`)
			w.advance(time.Hour)
			return r
		}},
		{holdfast.K2, holdfast.KindRevokedToken, func(w *world, _ *broken) holdfast.Request {
			tok, id := w.minted("alice")
			if err := w.k.Revoke(holdfast.Local, id.TokenID, "user:carol", ""); err != nil {
				w.t.Fatal(err)
			}
			return holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: tok}
		}},
		{holdfast.K2, holdfast.KindPermission, plain("test/perm", `{}`)},
		{holdfast.K2, holdfast.KindRoleNotFound, func(w *world, _ *broken) holdfast.Request {
			r := w.req("test/low", `{}`)
			r.Token = w.who("alice", roles("wizard"))
			return r
		}},
		{holdfast.K2, holdfast.KindRevocationCache, failing("Revoked", "test/low")},
		{holdfast.K3, holdfast.KindBudgetNotFound, plain("test/unfunded", `{}`)},
		{holdfast.K3, holdfast.KindBounds, func(w *world, _ *broken) holdfast.Request {
			r := w.req("test/cost", `{}`)
			r.Consumes = map[holdfast.Resource]int64{holdfast.LLMTokens: 1000}
			return r
		}},
		{holdfast.K3, holdfast.KindUsageTracking, failing("Counter", "test/cost")},
		{holdfast.K4, holdfast.KindValue, func(w *world, _ *broken) holdfast.Request {
			r := w.req("test/low", `{}`)
			r.Correlation = "x"
			return r
		}},
		{holdfast.K5, holdfast.KindValue, func(w *world, _ *broken) holdfast.Request { return w.keyed("test/low", `{}`, "a\nb") }},
		{holdfast.K5, holdfast.KindMismatch, func(w *world, _ *broken) holdfast.Request {
			w.passes(w.keyed("test/low", `{}`, "k"))
			return w.keyed("test/low", `{"a":1}`, "k")
		}},
		{holdfast.K6, holdfast.KindWALWrite, func(w *world, b *broken) holdfast.Request { b.update.Store(true); return w.req("test/low", `{}`) }},
		{holdfast.K7, holdfast.KindConfidence, plain("test/declared", `{}`)},
		{holdfast.K7, holdfast.KindProhibited, plain("test/never", `{}`)},
		{holdfast.K7, holdfast.KindApprovalTimeout, func(w *world, _ *broken) holdfast.Request {
			w.held(w.req("test/high", `{}`))
			w.advance(25 * time.Hour)
			return w.req("test/high", `{}`)
		}},
		{holdfast.K7, holdfast.KindRejected, func(w *world, _ *broken) holdfast.Request {
			h := w.held(w.req("test/high", `{}`))
			if _, err := w.k.Decide(w.say(operator.Reject, h.Review, "because")); err != nil {
				w.t.Fatal(err)
			}
			return w.req("test/high", `{}`)
		}},
		{holdfast.K7, holdfast.KindApprovalChannel, failing("ReviewFor", "test/high")},
		{holdfast.K8, holdfast.KindPredicateNotFound, plain("seen/ghost", `{}`)},
		{holdfast.K8, holdfast.KindRule, plain("test/low", `{"bad":1}`)},
		{holdfast.K8, holdfast.KindEval, plain("test/low", `{"crash":{}}`)},
		{holdfast.K8, holdfast.KindEvalFailure, plain("test/output", `{"out":1}`)},
	}
	for _, c := range cases {
		t.Run(c.gate.String()+"_"+string(c.kind), func(t *testing.T) {
			log, b := &buffer{}, &broken{}
			w := newWorld(t, rules, logged(log), breakable(b))
			if _, err := w.tools.Observe(t.Context(), []holdfast.Contract{bad, ghost}); err != nil {
				t.Fatal(err)
			}
			req := c.do(w, b)
			before := len(log.lines(t))
			out, err := w.k.Cross(t.Context(), req, func(context.Context) (holdfast.Output, error) {
				return holdfast.Output{Body: []byte(`{"ok":"no"}`)}, nil
			})
			wants(t, err, c.kind)
			want := holdfast.SignalOf(c.gate, c.kind)
			found := 0
			for _, l := range log.lines(t)[before:] {
				if l.Trace == want.Event {
					found++
					if l.Level != want.Level.String() || l.Crossing != out.Crossing || l.Kind != string(c.kind) || l.Gate != c.gate.String() || l.Why == "" {
						t.Errorf("%+v, want level %v", l, want.Level)
					}
				}
			}
			if found != 1 {
				t.Fatalf("%d lines with %s in %s", found, want.Event, log.String())
			}
		})
	}
}

// An entry that cannot be written after the act is as loud as a begin that
// cannot.
func TestSignals_D14c_write_failure_while_leaving(t *testing.T) {
	log := &buffer{}
	w := newWorld(t, "", logged(log))
	_, err := w.k.Cross(t.Context(), w.req("test/low", `{}`), func(context.Context) (holdfast.Output, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fault = func(string) error { return errGone }
		return holdfast.Output{}, nil
	})
	wants(t, err, holdfast.KindWALWrite)
	for _, l := range log.lines(t) {
		if l.Trace == "trace.k6_wal_write_failed" && l.Level == "ERROR" {
			return
		}
	}
	t.Fatal(log.String())
}

// A PROHIBITED boundary that is tried is told to people (D37).
func TestSignals_D37_prohibited_alerts(t *testing.T) {
	w := newWorld(t, "")
	w.refused(w.req("test/never", `{}`), holdfast.K7, holdfast.KindProhibited)
	var got []kernel.Notice
	for _, n := range w.notices {
		if n.Event == "prohibited_tried" {
			got = append(got, n)
		}
	}
	if len(got) != 1 || got[0].Level != "error" || got[0].Boundary != "test/never" || got[0].Agent != "alice" {
		t.Fatalf("%+v", got)
	}
}
