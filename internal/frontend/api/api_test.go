package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/feature/exceed"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// refusing is a kernel that says no to everything, and counts what reached it.
type refusing struct{ asked int }

func (r *refusing) no() error {
	r.asked++
	return &holdfast.Error{Kind: holdfast.KindPermission, Gate: holdfast.K2, Why: "no", Err: errors.New("inner secret")}
}

func (r *refusing) Cross(context.Context, holdfast.Request, kernel.Act) (*holdfast.Outcome, error) {
	return &holdfast.Outcome{}, r.no()
}
func (r *refusing) Check(context.Context, holdfast.Request) (*holdfast.Outcome, error) {
	return &holdfast.Outcome{}, r.no()
}
func (r *refusing) Explain(context.Context, holdfast.Request) (*holdfast.Outcome, error) {
	return &holdfast.Outcome{}, r.no()
}
func (r *refusing) Contract(string) (holdfast.Contract, bool) { return holdfast.Contract{}, false }
func (r *refusing) Reviews(context.Context, string, review.State) ([]review.Review, error) {
	return nil, r.no()
}
func (r *refusing) Review(context.Context, string) (review.Review, error) {
	return review.Review{}, r.no()
}
func (r *refusing) Goals(context.Context, string) (goal.Pause, error) {
	return goal.Pause{}, r.no()
}
func (r *refusing) ViolationsSince(context.Context, string, time.Time, int) ([]goal.Recorded, error) {
	return nil, r.no()
}
func (r *refusing) AckGoal(string, operator.Signed) (goal.Pause, error) {
	return goal.Pause{}, r.no()
}
func (r *refusing) UnblockTenant(string, operator.Signed) (exceed.Block, error) {
	return exceed.Block{}, r.no()
}
func (r *refusing) ResumeGoals(string, operator.Signed) error           { return r.no() }
func (r *refusing) Decide(operator.Signed) (review.Review, error)       { return review.Review{}, r.no() }
func (r *refusing) Life(context.Context, string) ([]review.Step, error) { return nil, r.no() }
func (r *refusing) Remembered(context.Context, string) ([]review.Remembered, error) {
	return nil, r.no()
}
func (r *refusing) Remember(operator.Signed) (review.Remembered, error) {
	return review.Remembered{}, r.no()
}
func (r *refusing) Forget(operator.Signed) (review.Remembered, error) {
	return review.Remembered{}, r.no()
}
func (r *refusing) Changed(context.Context, string) (review.Change, error) {
	return review.Change{}, r.no()
}
func (r *refusing) Admit(operator.Signed) (operator.Public, error) {
	return operator.Public{}, r.no()
}
func (r *refusing) Accept(operator.Signed) (review.Change, error)            { return review.Change{}, r.no() }
func (r *refusing) Halt(string, string) (int, error)                         { return 0, r.no() }
func (r *refusing) Halted() (int, error)                                     { return 0, r.no() }
func (r *refusing) Resume(operator.Signed) error                             { return r.no() }
func (r *refusing) Agents(context.Context, string) ([]holdfast.Agent, error) { return nil, r.no() }
func (r *refusing) Asker(context.Context, holdfast.Secret) (holdfast.Identity, holdfast.Level, error) {
	return holdfast.Identity{}, holdfast.Baseline, r.no()
}
func (r *refusing) Pause(string, string, string, string) (int, error) { return 0, r.no() }
func (r *refusing) Unpause(string, operator.Signed) (kernel.Unpaused, error) {
	return kernel.Unpaused{}, r.no()
}
func (r *refusing) Erase(string, operator.Signed) (erasure.Erased, error) {
	return erasure.Erased{}, r.no()
}
func (r *refusing) Trust(string, operator.Signed) error         { return r.no() }
func (r *refusing) Revoke(string, string, string, string) error { return r.no() }

func server(k Kernel) *Server {
	return &Server{Kernel: k, Mask: func(s string) string { return s }, Log: slog.New(slog.DiscardHandler),
		Mint:       func(holdfast.Identity) (holdfast.Secret, error) { return holdfast.NewSecret("t"), nil },
		Status:     func(context.Context) (*Status, error) { return &Status{}, nil },
		Backup:     func(context.Context, string) error { return errors.New("inner secret") },
		Checkpoint: func(context.Context) (int, error) { return 0, nil },
		Drained:    func(context.Context) int { return 0 },
		Token:      func(TokenAsk) (Token, error) { return Token{}, errors.New("inner secret") },
		MCP: func(Hello) (func(context.Context, io.ReadWriteCloser) error, error) {
			return nil, errors.New("inner secret")
		}}
}

// Every endpoint that takes a body is given every kind of bad one: the answer
// is a clear refusal, and nothing reached the kernel.
func TestBadBodies(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20000)
	bodies := map[string]string{
		"empty": "", "truncated": `{"agent":"a`, "not JSON": "hello", "array": "[]", "number": "7",
		"unknown field": `{"nobody":1}`, "wrong type": `{"agent":7,"who":7,"file":7,"signed":7}`, "trailing": `{} {}`,
		"deep": deep, "NUL": "{\"agent\":\"\x00\"}", "payload no base64": `{"payload":"***"}`,
	}
	paths := []string{"cross", "check", "explain", "decide", "remember", "forget", "accept", "admit", "halt", "resume", "pause", "unpause", "trust", "revoke", "backup", "token", "erase"}
	for _, path := range paths {
		for name, body := range bodies {
			k := &refusing{}
			w := httptest.NewRecorder()
			server(k).Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/"+path, strings.NewReader(body)))
			var a Answer
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Failure == nil || a.Failure.Kind != holdfast.KindUsage || w.Code != 400 {
				t.Errorf("%s with %s: %d %s", path, name, w.Code, w.Body)
			}
			if k.asked != 0 {
				t.Errorf("%s with %s reached the kernel", path, name)
			}
		}
	}
}

// TestOnlyStepsAreCrossedHere: this door has no other hand, so that it crosses
// nothing else; what would happen there it still says.
func TestOnlyStepsAreCrossedHere(t *testing.T) {
	for path, want := range map[string]int{"cross": 0, "check": 1, "explain": 1} {
		k := &refusing{}
		w := httptest.NewRecorder()
		server(k).Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/"+path, strings.NewReader(`{"boundary":"mcp/fs/move","agent":"a","payload":"e30="}`)))
		if k.asked != want || path == "cross" && (w.Code != 400 || !strings.Contains(w.Body.String(), "agent/step only")) {
			t.Errorf("%s: %d of the kernel, %d %s", path, k.asked, w.Code, w.Body)
		}
	}
}

func TestBodyIsBounded(t *testing.T) {
	w := httptest.NewRecorder()
	huge := io.MultiReader(strings.NewReader(`{"agent":"`), io.LimitReader(zeros{}, maxBody+10))
	server(&refusing{}).Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/cross", huge))
	if w.Code != 400 {
		t.Fatal(w.Code)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}

// An inner cause stays in the log.
func TestInnerErrorsStayInside(t *testing.T) {
	for _, path := range []string{"/v1/halt", "/v1/backup"} {
		w := httptest.NewRecorder()
		server(&refusing{}).Handler().ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(`{}`)))
		if w.Code == 200 || bytes.Contains(w.Body.Bytes(), []byte("inner")) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestUnknownRoutes(t *testing.T) {
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/v1/halt", nil), httptest.NewRequest("POST", "/v1/nothing", nil),
		httptest.NewRequest("DELETE", "/v1/status", nil), httptest.NewRequest("POST", "/v1/mcp", nil),
	} {
		w := httptest.NewRecorder()
		server(&refusing{}).Handler().ServeHTTP(w, r)
		if w.Code == 200 {
			t.Errorf("%s %s: %d", r.Method, r.URL, w.Code)
		}
	}
}

// A stopped owner accepts and never answers: the caller hears so (D48).
func TestSilentOwner(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err = Dial(t.Context(), sock); holdfast.KindOf(err) != holdfast.KindTimeout {
		t.Fatal(err)
	}
}

// One's own socket is admitted; a connection that is none is not.
func TestCheckPeer(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := CheckPeer(c); err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if CheckPeer(a) == nil {
		t.Fatal("a pipe was admitted")
	}
}
