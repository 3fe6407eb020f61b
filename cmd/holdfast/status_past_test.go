package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/ledger"
)

// While the ledger is read for a rule that asks the past, status says in words and
// as JSON which rule fails, what it asks, how far the reading is and about when it
// ends; and that it is ready once it is. The reading is held at its end by a request
// that is under way, as any is that has been judged and has not begun: here since
// the store writes nothing.
func TestStatusWhileThePastIsRead(t *testing.T) {
	d, client := pastDaemon(t)
	const crossings = 5_000
	fillCrossings(t, d, crossings)
	for try := 1; ; try++ {
		// Another window is another function, which is read anew.
		text := fmt.Sprintf("past(\"test/pay\", \"%dm\")", 1440-try)
		useRules(t, d, try, fmt.Sprintf("rules:\n  - {id: few, on: request, boundary: test/pay, when: '%s.count() > 9999', message: m}\n", text))
		release := holdStore(t, d)
		under := make(chan error, 1)
		go func() {
			_, err := d.Kernel.Cross(t.Context(), benchLike(t, d, "test/other"), succeed)
			under <- err
		}()
		held := heldReading(d, 2*crossings)
		var inWords, asJSON string
		if held {
			inWords, asJSON = statusOf(t, d), statusOf(t, d, "--json")
			held = !d.Kernel.Past().Status().Ready
		}
		_, err := d.Kernel.Check(t.Context(), benchLike(t, d, "test/pay"))
		release()
		if other := <-under; other != nil || err != nil {
			t.Fatal(other, err)
		}
		if !held && try < 20 {
			continue // it was read before the request was under way
		}
		if !held {
			t.Fatal("no reading was held")
		}
		saysReading(t, inWords, asJSON, text, 2*crossings)
		break
	}
	for start := time.Now(); !d.Kernel.Past().Status().Ready; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("it is never ready")
		}
	}
	if got := statusOf(t, d); !strings.Contains(got, "5001 crossings within its window") || strings.Contains(got, "being read") {
		t.Errorf("%s", got)
	}
	if s, err := client.Status(t.Context()); err != nil || !s.Past.Ready || s.Past.Of != 0 || !s.Past.Until.IsZero() || strings.Contains(strings.Join(s.Problems, " "), "past") {
		t.Errorf("%v %+v %q", err, s.Past, s.Problems)
	}
}

func saysReading(t *testing.T, inWords, asJSON, text string, leaves int64) {
	t.Helper()
	row := regexp.MustCompile(`past +` + regexp.QuoteMeta(text) + `\S* \(rule few\): being read, (\d+) of (\d+) leaves, ready about (\S+)`).FindStringSubmatch(inWords)
	if row == nil || !regexp.MustCompile(`problem +the ledger is being read for rules that ask the past, \d+ of \d+ leaves: they fail until it is read, about `).MatchString(inWords) {
		t.Fatalf("%s", inWords)
	}
	if _, err := time.Parse(time.RFC3339, row[3]); err != nil {
		t.Error(err)
	}
	var s api.Status
	if err := json.Unmarshal([]byte(asJSON), &s); err != nil {
		t.Fatal(err)
	}
	if s.Past == nil || s.Past.Ready || s.Past.Read <= 0 || s.Past.Read >= s.Past.Of || s.Past.Of < leaves || s.Past.Until.IsZero() || s.Past.Failed != "" {
		t.Fatalf("%+v", s.Past)
	}
	if p := s.Past.Past; len(p) != 1 || p[0].Rule != "few" || p[0].Ready || !strings.HasPrefix(p[0].Text, text) || !strings.Contains(p[0].Where, "rules.yaml:2") || p[0].Entries == 0 {
		t.Errorf("%+v", p)
	}
	if len(s.Problems) == 0 {
		t.Error("it is no problem")
	}
}

// pastDaemon serves a state of its own.
func pastDaemon(t *testing.T) (*daemon.Daemon, *api.Client) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "holdfast.yaml")
	text := "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: test/pay, risk: LOW}\n  - {boundary: test/other, risk: LOW}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Open(t.Context(), daemon.Options{State: filepath.Join(dir, "s"), Config: config, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Serve(ctx, daemon.Serving{Ready: func(string) { close(ready) }}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	c, _, err := api.Dial(t.Context(), d.Paths.Sock)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// benchLike is a request by ada.
func benchLike(t *testing.T, d *daemon.Daemon, boundary string) holdfast.Request {
	t.Helper()
	tok, err := d.Mint(holdfast.Identity{Agent: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return holdfast.Request{Boundary: boundary, Payload: []byte(`{"n":1}`), Token: tok}
}

// useRules puts rules in force.
func useRules(t *testing.T, d *daemon.Daemon, version int, rules string) {
	t.Helper()
	set, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(rules)}})
	if err != nil {
		t.Fatal(err)
	}
	p := *d.Kernel.Policy()
	p.Rules, p.Version = set, fmt.Sprintf("%064x", version)
	if err := d.Kernel.SetPolicy(&p, "test"); err != nil {
		t.Fatal(err)
	}
}

// holdStore lets the store write nothing until it is released.
func holdStore(t *testing.T, d *daemon.Daemon) (release func()) {
	t.Helper()
	holds, over, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.Store().Update(context.Background(), func(kernel.Tx) error {
			close(holds)
			<-over
			return nil
		})
	}()
	<-holds
	return func() {
		close(over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// heldReading waits until all but the last leaves are read, and says whether that
// is as far as it comes.
func heldReading(d *daemon.Daemon, leaves int64) bool {
	for {
		h := d.Kernel.Past().Status()
		if h.Ready {
			return false
		}
		if h.Of >= leaves && h.Read+2000 >= h.Of {
			time.Sleep(300 * time.Millisecond)
			return !d.Kernel.Past().Status().Ready
		}
		time.Sleep(time.Millisecond)
	}
}

// statusOf is what status prints.
func statusOf(t *testing.T, d *daemon.Daemon, flags ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{"HOLDFAST_STATE": d.Paths.Dir}
	a := &app{ctx: t.Context(), out: &out, err: &errs, lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if err := showStatus(a, flags); err != nil {
		t.Fatal(err, errs.String())
	}
	return out.String()
}

// fillCrossings writes so many crossings like a true one of test/pay, of the last
// hours, many in one update.
func fillCrossings(t *testing.T, d *daemon.Daemon, n int) {
	t.Helper()
	out, err := d.Kernel.Cross(t.Context(), benchLike(t, d, "test/pay"), succeed)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var like []ledger.Stored
	if err := d.Store().View(t.Context(), func(tx kernel.Tx) error {
		like, err = tx.Crossing(holdfast.Local, out.Crossing)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(-20 * time.Hour).UTC().Truncate(time.Microsecond)
	if err := d.Store().Update(t.Context(), func(tx kernel.Tx) error {
		for i := range n {
			leaves, err := anotherAt(engine, like, from.Add(time.Duration(i)*time.Second))
			if err != nil {
				return err
			}
			for _, l := range leaves {
				if _, err := tx.Append(l); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// succeed is an action that has done it.
func succeed(context.Context) (holdfast.Output, error) {
	return holdfast.Output{Body: []byte(`{"ok":true}`)}, nil
}

// anotherAt is a crossing like one, at another time.
func anotherAt(engine *redact.Engine, like []ledger.Stored, when time.Time) ([]ledger.Leaf, error) {
	begin, err := ledger.ParseBegin(like[0].Record)
	if err != nil {
		return nil, err
	}
	entry, err := ledger.ParseEntry(like[1].Record)
	if err != nil {
		return nil, err
	}
	id, beginSeq := uuid.Must(uuid.NewV7()).String(), int64(0)
	begin.ID, entry.ID, entry.BeginSeq = id, id, &beginSeq
	begin.Timestamp, entry.Timestamp, entry.CreatedAt = when, when, when.Add(time.Millisecond)
	var out []ledger.Leaf
	for i, r := range []interface {
		AppendJSON([]byte) ([]byte, error)
	}{begin, entry} {
		text, err := r.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		rec, err := engine.Seal(text, ledger.Exempt()...)
		if err != nil {
			return nil, err
		}
		out = append(out, ledger.Leaf{Tenant: like[i].Tenant, Kind: like[i].Kind, Crossing: id, At: when, Record: rec, Part: like[i].Part})
	}
	return out, nil
}
