package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// yieldEach writes pieces and yields behind each.
func yieldEach(t *testing.T, e *Engine, pieces ...string) (steps []string) {
	t.Helper()
	var b bytes.Buffer
	s := e.Stream(&b)
	step := func() { steps = append(steps, b.String()); b.Reset() }
	for _, p := range pieces {
		if _, err := s.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Yield(); err != nil {
			t.Fatal(err)
		}
		step()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	step()
	return steps
}

func TestYieldLetsOrdinaryWordsGo(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"Hello", "Hello world.", "Done!", "Here is the list:", "Grüße aus Köln", "You have 42 messages.", "Plan B", "I", "OK", "(see above)",
		"It's done; nothing else", "日本語です。", "one, two", "\n- one", "a well-known word", "and/or", "- one, and 42 more",
	} {
		if got := yieldEach(t, e, text); got[0] != text {
			t.Errorf("%q: %q went on at once", text, got)
		}
	}
}

func TestYieldKeepsWhatMayBeTheHeadOfSomething(t *testing.T) {
	e, err := New(Options{Literals: []holdfast.Secret{holdfast.NewSecret("correcthorsebattery")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ first, second, leak string }{
		{"the key is sk-ant-api03-Zk3vQ9xL2mT8", "rW5yB7nC4dF6gH1jK0pSaA3bB5cC7dD9eE1f", "rW5yB7nC"},
		{"the key is sk-ant-api03-Zk3vQ9xL2mT8", "rW5yB7nC4dF6gH1jK0pSaA3bB5cC7dD9eE1f", "Zk3vQ9"},
		{"card 4111 1111", " 1111 1111 paid", "4111 1111"},
		{"AKIAIOSFODNN7", "EXAMPLQ is it", "AKIAIOSF"},
		{"password: hunt", "er2isgood x", "hunt"},
		{"password=", "er2isgood x", "er2isgood"},
		{"Authorization: Bearer abcd", "efghijklmnop1234567890 x", "abcd"},
		{"it is correcthorse", "battery, really", "correcthorse"},
		{"it is correcthorse", "battery, really", "battery"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0", "BAQEFAASCBKcwggSjAgEAAoIBAQC7", "BAQEF"},
		{"postgres://app:s3cr", "etword@db.internal/x y", "s3cr"},
		{"jane@customer", "-corp.com wrote", "customer"},
		{"keys xoxb-1234", "567890-1234567890-AbCdEfGhIjKl x", "1234"},
		{"it is sk-", "ant-api03-Zk3vQ9xL2mT8rW5yB7nC4dF6gH1jK0pS-aA3bB5cC7dD9eE1f x", "api03"},
		{"token ghp_16C7e42F29", "2c6912E7710c838347Ae178B4a x", "16C7e42F"},
	} {
		all := strings.Join(yieldEach(t, e, c.first, c.second), "")
		if strings.Contains(all, c.leak) {
			t.Errorf("%q, %q: %q went on", c.first, c.second, all)
		}
	}
}

func TestYieldRemembersWhatItLetGo(t *testing.T) {
	e, err := New(Options{Masks: mask.Egress})
	if err != nil {
		t.Fatal(err)
	}
	got := yieldEach(t, e, "write to jane", ".doe@customer-corp.com today")
	if all := strings.Join(got, ""); all != "write to jane[email] today" {
		t.Errorf("got %q", got)
	}
	// Digits that dribble in are not let go one after the other.
	if all := strings.Join(yieldEach(t, e, "card 4", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", " paid"), ""); strings.Contains(all, "41111") {
		t.Errorf("got %q", all)
	}
}

func TestHeldSaysHowMuchCanComeOut(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	s := e.Stream(&b)
	if s.Held() != 0 {
		t.Error("an empty stream holds something")
	}
	_, _ = s.Write([]byte("sk-ant-"))
	if s.Held() != len("sk-ant-") {
		t.Error("the head of a key is not held")
	}
	_ = s.Close()
	if s.Held() != 0 || b.String() != "sk-ant-" {
		t.Errorf("after its end it holds something; %q", b.String())
	}
}

// The words of an ordinary text go when the next one begins, and nothing in it holds
// what comes behind for long: numbers, prices, tables and code wait for the few words
// that tell what they are.
func TestStreamLetsOrdinaryTextGoSoon(t *testing.T) {
	e := newEngine(t)
	for _, c := range []struct {
		text string
		most int // bytes that may be held where a word has ended
	}{
		{"It was written step by step by the same people, with care, and goes with what stands beside it.\nBy all who came with it a set with\nwhat follows.\n", 0},
		{"  rate_limit: 100            # a minute, for all of the agents together\n  cooldown: 5s               # and the next one waits for it, as long as it takes\n  budget: none\n", 64},
		{"  models: {sonnet: {input: $3, output: $15, cache_read: $0.3, cache_write: $3.75, cache_write_long: $6}}\nand what is said of it after that is prose again, which nothing holds.\n", 100},
		{"| added, p50, p95, p99 | 20.7, 60.5, 80.2 ms | 0.15, 0.60, 1.44 ms | |\n| of one processor there | 63 %, 65 us an event | 27 %, 27 us | |\nand then on\n", 100},
		{"\tif n := len(s); n > 0 && s[0] == '{' {\n\t\treturn 0, nil // of 256 at most\n\t}\n\tfor i := 0; i < 10; i++ {\n\t\tsum += list[i]\n\t}\n", 40},
	} {
		text := []byte(strings.Repeat(c.text, 5))
		var out bytes.Buffer
		s := e.Stream(&out)
		ended := 0 // behind the last white space
		for i := range text {
			if _, err := s.Write(text[i : i+1]); err != nil {
				t.Fatal(err)
			}
			if char.Class[text[i]]&char.Space != 0 {
				ended = i + 1
			}
			if late := ended - out.Len(); late > c.most {
				t.Errorf("%d bytes are held: %q", late, text[out.Len():ended])
				break
			}
		}
	}
}
