package substitute_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/substitute"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

const registered = "holdfast-own-secret-417"

func newEngine(t *testing.T) *redact.Engine {
	t.Helper()
	e, err := redact.New(redact.Options{Masks: redact.Egress, Literals: []holdfast.Secret{holdfast.NewSecret(registered)}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newSession() *mapping.Session {
	return mapping.NewSessions([]byte("key"), time.Now).Find(mapping.Owner{Agent: "a"})
}

func asJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // of a string
	}
	return string(b)
}

// TestReplaceHidesRegisteredSecretsOneWay: what is registered leaves in no part of a request, and comes back in
// no answer.
func TestReplaceHidesRegisteredSecretsOneWay(t *testing.T) {
	s := newSession()
	body := `{"model":"m","tools":[{"name":"x","description":"` + registered + `"}],"metadata":{"user_id":"` + registered +
		`"},"messages":[{"role":"user","content":"say ` + registered + `"}]}`
	r, err := substitute.Replace(newEngine(t), nil, s, dialect.Messages, []byte(body), substitute.RefuseBinaries)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(r.Body), "own-secret") || !json.Valid(r.Body) {
		t.Fatalf("sent: %s", r.Body)
	}
	_, after, _ := strings.Cut(string(r.Body), `"say `)
	placeholder, _, _ := strings.Cut(after, `"`)
	answer := []byte(`{"content":[{"type":"text","text":` + asJSON(placeholder) + `}]}`)
	if out, n := substitute.Restore(s.Snapshot(), dialect.Messages, answer); string(out) != string(answer) || n.Restored != 0 {
		t.Fatalf("restored: %s", out)
	}
}

// TestReplaceSearchesPicturesUnlessTheRowLetsThemPass: a picture that holds a token is refused with its place, and
// recorded as not inspected where it passes.
func TestReplaceSearchesPicturesUnlessTheRowLetsThemPass(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + "ghp_0123456789abcdefghijABCDEFGHIJ012345" +
		strings.Repeat("\x00", 64)))
	body := []byte(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64",` +
		`"media_type":"image/png","data":"` + picture + `"}}]}]}`)
	_, err := substitute.Replace(newEngine(t), nil, newSession(), dialect.Messages, body, substitute.RefuseBinaries)
	refused, ok := errors.AsType[*holdfast.Error](err)
	if !ok || refused.Kind != holdfast.KindDomainBlocked || !strings.Contains(refused.Why, "messages[0].content[0]:") {
		t.Fatalf("%v", err)
	}
	r, err := substitute.Replace(newEngine(t), nil, newSession(), dialect.Messages, body, substitute.AllowBinaries)
	if err != nil || string(r.Body) != string(body) || r.Uninspected != 1 ||
		!slices.Equal(r.NotInspected, []string{"messages[0].content[0]: a picture or sound"}) {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestRestoreUndoesReplace: a model that repeats what it was sent gives the agent what the agent sent, whatever
// surrounds the values.
func TestRestoreUndoesReplace(t *testing.T) {
	parts := []string{
		"alice@corp-x.com", "bob.o'brien+x@corp-x.com", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "4111 1111 1111 1111",
		"password: Maple417!xq\n", "DB_PASSWORD=\"Ma\\\"ple 417\"\n", "AKIAIOSFODNN7EXAMPLE", " and ", "\n\t", "{\"a\":\"", "\"}",
		"https://user:Maple417xq@db.corp-x.com/x?y=1", "\\u0041", "%20", "é\U0001f600", "'", "\"", "\\",
		"-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("abcdEFGH01234567\n", 8) + "-----END RSA PRIVATE KEY-----\n",
	}
	e, rnd := newEngine(t), rand.New(rand.NewPCG(27, 2))
	for i := range 400 {
		var text strings.Builder
		for range 1 + rnd.IntN(12) {
			text.WriteString(parts[rnd.IntN(len(parts))])
		}
		s := newSession()
		body := []byte(`{"messages":[{"role":"user","content":` + asJSON(text.String()) + `}]}`)
		r, err := substitute.Replace(e, nil, s, dialect.Messages, body, substitute.RefuseBinaries)
		if err != nil {
			t.Fatalf("%q: %v", text.String(), err)
		}
		var sent struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(r.Body, &sent); err != nil {
			t.Fatalf("%q: %v: %s", text.String(), err, r.Body)
		}
		said := sent.Messages[0].Content
		answers := map[string]string{
			fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, asJSON(said)):                                text.String(),
			fmt.Sprintf(`{"content":[{"type":"tool_use","id":"t","name":"n","input":{"x":%s}}]}`, asJSON(said)): text.String(),
		}
		for answer, want := range answers {
			out, _ := substitute.Restore(s.Snapshot(), dialect.Messages, []byte(answer))
			var got struct {
				Content []struct {
					Text  string
					Input struct{ X string }
				}
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%d %q: %v: %s", i, text.String(), err, out)
			}
			if back := got.Content[0].Text + got.Content[0].Input.X; back != want {
				t.Fatalf("%d sent %q\n got %q\nwant %q", i, said, back, want)
			}
		}
	}
}

// replaceText replaces what is found in a text that a person says, and returns the text as it is sent.
func replaceText(t *testing.T, e *redact.Engine, s *mapping.Session, text string) string {
	t.Helper()
	body := []byte(`{"messages":[{"role":"user","content":` + asJSON(text) + `}]}`)
	r, err := substitute.Replace(e, nil, s, dialect.Messages, body, substitute.RefuseBinaries)
	if err != nil {
		t.Fatal(err)
	}
	var sent struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(r.Body, &sent); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return sent.Messages[0].Content
}

// restoreAnswer returns a text that a model says as the agent gets it.
func restoreAnswer(t *testing.T, s *mapping.Session, text string) string {
	t.Helper()
	out, _ := substitute.Restore(s.Snapshot(), dialect.Messages, []byte(`{"content":[{"type":"text","text":`+asJSON(text)+`}]}`))
	var got struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return got.Content[0].Text
}

// TestRestoredSecretsStayReplaced: a restored value is in the history without its name, and does not leave.
func TestRestoredSecretsStayReplaced(t *testing.T) {
	e, s := newEngine(t), newSession()
	for _, secret := range []string{"hunter2", "correcthorsebattery"} {
		sent := replaceText(t, e, s, "DB_PASSWORD="+secret+"\n")
		placeholder := strings.TrimSuffix(strings.TrimPrefix(sent, "DB_PASSWORD="), "\n")
		if got := restoreAnswer(t, s, "I use "+placeholder); got != "I use "+secret {
			t.Fatalf("%q", got)
		}
		if next := replaceText(t, e, s, "I use "+secret+" now"); next != "I use "+placeholder+" now" {
			t.Errorf("the next turn has %q", next)
		}
	}
}

// TestManySecretsAreAllLookedFor: no number or length of values makes the search of one of them stop.
func TestManySecretsAreAllLookedFor(t *testing.T) {
	e, s := newEngine(t), newSession()
	var text strings.Builder
	text.WriteString("DB_PASSWORD=Maple417!xq\n")
	for i := range 700 {
		fmt.Fprintf(&text, "API_KEY=%s%03d\n", strings.Repeat("aB3x", 100), i)
	}
	if sent := replaceText(t, e, s, text.String()+"connect with Maple417!xq please"); strings.Contains(sent,
		"Maple417") {
		t.Error("a secret left")
	}
}

// TestReplaceKeepsWhatIsNoSecret: the scheme of a credential, escapes, the ends of a key, and names of members.
func TestReplaceKeepsWhatIsNoSecret(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct{ text, keeps string }{
		{"Authorization: Bearer 3kQ9xYz7AbCdEfGhIjKlMnOpQrStUvWx\n", "Authorization: Bearer "},
		{`PASSWORD="Ma\nple\u0021417xq"` + "\n", `\n`},
		{`key = "-----BEGIN RSA PRIVATE KEY-----\n` + strings.Repeat(`abcdEFGH01234567abcdEFGH01234567\n`, 12) +
			`-----END RSA PRIVATE KEY-----"`, `-----END RSA PRIVATE KEY-----`},
		{`[{"alice@corp-x.com":1},{"alice@corp-x.com":2}]`, `@mail.example":2}`},
	} {
		s := newSession()
		sent := replaceText(t, e, s, c.text)
		if sent == c.text || !strings.Contains(sent, c.keeps) || restoreAnswer(t, s, sent) != c.text {
			t.Errorf("%q was sent as %q", c.text, sent)
		}
	}
	if sent := replaceText(t, e, newSession(),
		"use Bearer 3kQ9_xYz7AbC-dEfGhIjKlMnOpQrStUvWx12345 here"); strings.Contains(sent, "3kQ9") {
		t.Errorf("a part of a token left: %q", sent)
	}
}

// TestRegisteredSecretFoundByItsNameIsNotRestored.
func TestRegisteredSecretFoundByItsNameIsNotRestored(t *testing.T) {
	e, s := newEngine(t), newSession()
	sent := replaceText(t, e, s, `{"password":"`+registered+`"}`)
	if got := restoreAnswer(t, s, sent); strings.Contains(sent, registered) || strings.Contains(got, registered) {
		t.Fatalf("sent %q, restored %q", sent, got)
	}
}

// TestThoughtsAreNoRealText: a placeholder in what a model thought stays the placeholder of its value.
func TestThoughtsAreNoRealText(t *testing.T) {
	e, s := newEngine(t), newSession()
	first := replaceText(t, e, s, "to alice@corp-x.com")
	body := `{"messages":[{"role":"user","content":"to alice@corp-x.com"},{"role":"assistant",` +
		`"content":[{"type":"thinking",` +
		`"thinking":"so ` + first + `","signature":""}]}]}`
	r, err := substitute.Replace(e, nil, s, dialect.Messages, []byte(body), substitute.RefuseBinaries)
	if err != nil || strings.Count(string(r.Body), first) != 2 {
		t.Fatalf("%s, %v", r.Body, err)
	}
}
