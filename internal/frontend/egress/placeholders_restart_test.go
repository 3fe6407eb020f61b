package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/ledger"
)

// asksResponses posts a request to the provider that speaks Responses, and returns the answer. The provider keeps
// what came before.
func (w *world) asksResponses(client *http.Client, input string) (*http.Response, string) {
	w.t.Helper()
	body := `{"model":"gpt-x","max_output_tokens":50,"previous_response_id":"r0","input":"` + jsonEscape(input) + `"}`
	return posted(w.t.(*testing.T), client, "https://"+w.at("other.test")+"/v1/responses", body)
}

// windowRows are modelRows whose provider may keep a history.
func windowRows(tls, plain uint16) []domain.Domain {
	rows := modelRows(tls, plain)
	rows[1].Models.Window = 1000
	return rows
}

// clientFor returns a client of another agent or session, whose token source is given.
func (w *world) clientFor(source func() (holdfast.Secret, error)) *http.Client {
	l := w.port()
	go func() { _ = w.p.Explicit(l, Caller{Token: source}) }()
	w.t.Cleanup(func() { _ = l.Close() })
	t := &http.Transport{Proxy: http.ProxyURL(mustURL("http://" + l.Addr().String())),
		TLSClientConfig: &tls.Config{RootCAs: w.roots}}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: longest}
}

// sessionOf returns a token source of another session of the agent that client speaks for.
func (w *world) sessionOf(agent, session string) func() (holdfast.Secret, error) {
	return func() (holdfast.Secret, error) {
		tok, _, err := w.mint.Mint(holdfast.Identity{Tenant: holdfast.Local, Principal: "user:" + agent,
			Roles: []string{"agent"}, Agent: agent, Session: session}, 15*time.Minute, w.now())
		return tok, err
	}
}

// restartMappings gives the proxy the mappings of a daemon that has just begun.
func (w *world) restartMappings() { w.p.mappings = w.newMappings() }

// asksForValues sends the material, and has every later answer say all its placeholders. It returns them.
func (w *world) asksForValues() (p [4]string) {
	w.t.Helper()
	s := speakResponses()
	said := func() string {
		return "To " + p[0] + " with " + p[1] + "; token " + p[2] + " and " + p[3]
	}
	w.answers(func(asked string) string {
		if strings.Contains(asked, "GITHUB_TOKEN") {
			p = sentWords(w.t.(*testing.T), asked)
		}
		return encode(s.document(said(), encode(obj{"text": said()})))
	})
	if resp, body := w.asksResponses(w.client(), ownMaterial); resp.StatusCode != 200 ||
		!strings.Contains(body, ownMail) {
		w.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return p
}

const restoredMaterial = "To " + ownMail + " with " + ownCard + "; token " + ownToken + " and " + ownWord

// D13, D13a: a session of which the provider keeps the history continues after a restart; no other agent or session
// does, and the values are nowhere in the state in clear.
func TestModelsRestoreAfterARestart(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	p := w.asksForValues()
	w.restartMappings()
	for name, source := range map[string]func() (holdfast.Secret, error){
		"another agent": w.sessionOf("bob", "alice-s1"), "another session": w.sessionOf("alice", "alice-s2"),
	} {
		if resp, body := w.asksResponses(w.clientFor(source), "continue"); resp.StatusCode != 200 ||
			!strings.Contains(body, p[2]) || strings.Contains(body, ownToken) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	resp, body := w.asksResponses(w.client(), "continue")
	if resp.StatusCode != 200 || strings.Count(body, restoredMaterial) != 2 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	// What the agent says again has the placeholder that the provider knows.
	w.asksResponses(w.client(), ownMaterial)
	asked := w.up.requests()
	if again := sentWords(t, asked[len(asked)-1].Body); again != p {
		t.Errorf("%q, and %q before the restart", again, p)
	}
	w.checkStateHasNo(ownMail, ownToken, ownWord, p[0])
}

// checkStateHasNo fails if a file of the state has one of the texts.
func (w *world) checkStateHasNo(texts ...string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(w.db), "*"))
	w.must(err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // a directory
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				w.t.Errorf("%s has %q", filepath.Base(file), text)
			}
		}
	}
}

// keptBatches returns how many batches of values the store has.
func (w *world) keptBatches() (n int) {
	w.t.Helper()
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		return tx.Scan(w.values.Spec().Tables[0], table.Range{Limit: 1000}, func(table.Row) error { n++; return nil })
	}))
	return n
}

// D10, D13: values are erased after a day at the latest.
func TestModelsValuesAreErasedAfterADay(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	w.asksForValues()
	if w.keptBatches() == 0 {
		t.Fatal("nothing was kept")
	}
	w.mu.Lock()
	w.offset += 24*time.Hour - time.Second
	w.mu.Unlock()
	w.restartMappings()
	if _, body := w.asksResponses(w.client(), "continue"); strings.Contains(body, ownToken) {
		t.Errorf("restored after a day: %s", body)
	}
	w.must(w.values.Sweep(t.Context()))
	if n := w.keptBatches(); n != 0 {
		t.Errorf("%d batches are kept", n)
	}
}

// D13: values are erased with the parts of the requests of their session, in memory too.
func TestModelsValuesAreErasedWithTheirRequests(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	w.asksForValues()
	w.entries(1)
	var size int64
	w.must(w.store.View(t.Context(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			if h.Tenant == holdfast.Local {
				size = h.Size
			}
		}
		return err
	}))
	w.must(w.eraser.Commit(t.Context(), func(tx kernel.EraserTx) error {
		return tx.EraseParts(0, size, kernel.Event{Tenant: holdfast.Local, Name: ledger.ErasedEvent, Who: "bob",
			Data: map[string]any{}})
	}))
	if n := w.keptBatches(); n != 0 {
		t.Errorf("%d batches are kept", n)
	}
	if _, body := w.asksResponses(w.client(), "continue"); strings.Contains(body, ownToken) {
		t.Errorf("restored after its erasure: %s", body)
	}
}

// D3: a request whose values cannot be kept does not leave.
func TestModelsRequestWhoseValuesCannotBeKeptDoesNotLeave(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	w.p.mappings.UseKeeper(brokenKeeper{w.values})
	if resp, body := w.asksResponses(w.client(), ownMaterial); resp.StatusCode == 200 || len(w.up.requests()) != 0 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if resp, body := w.asksResponses(w.client(), "hello"); resp.StatusCode == 200 {
		t.Fatalf("the values of the session are still to be kept: %d %s", resp.StatusCode, body)
	}
}

type brokenKeeper struct{ mapping.Keeper }

func (brokenKeeper) SaveBatch(context.Context, mapping.Owner, mapping.Batch, []string) ([]string, error) {
	return nil, errors.New("disk full")
}

// D13a: a signed part with what looks like a secret goes back to its provider after a restart and in a later session
// of the same agent, and is refused of another.
func TestModelsSignedPartsAreKnownAfterARestart(t *testing.T) {
	w := newModels(t, setup{rows: windowRows})
	const thought = `{"type":"thinking","thinking":"such as ghp_zyxwvutsrqponmlkjihgfedcba9876543210 or ` +
		`bob@other-corp.com","signature":"c2lnbmF0dXJl"}`
	w.answers(func(string) string { return anthropicSays(thought + `,{"type":"text","text":"ok"}`) })
	if resp, body := w.asks(w.client(), `{"role":"user","content":"hello"}`); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	w.entries(1)
	w.restartMappings()
	back := `{"role":"user","content":"hello"},{"role":"assistant","content":[` + thought +
		`,{"type":"text","text":"ok"}]},{"role":"user","content":"continue"}`
	for name, c := range map[string]struct {
		client *http.Client
		status int
	}{
		"the session":     {w.client(), 200},
		"a later session": {w.clientFor(w.sessionOf("alice", "alice-s2")), 200},
		"another agent":   {w.clientFor(w.sessionOf("bob", "alice-s1")), 403},
	} {
		resp, body := w.asks(c.client, back)
		if (resp.StatusCode == 200) != (c.status == 200) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		asked := w.up.requests()
		if c.status == 200 && !strings.Contains(asked[len(asked)-1].Body, thought) {
			t.Errorf("%s: changed: %s", name, asked[len(asked)-1].Body)
		}
	}
}
