package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
)

// leaveAfter reads an answer until so many events have come, or to its end, and then
// leaves.
func leaveAfter(resp *http.Response, events int) {
	defer resp.Body.Close()
	s := bufio.NewScanner(resp.Body)
	for n := 0; n < events && s.Scan(); {
		if s.Text() == "" {
			n++
		}
	}
	if events < 0 {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}

// TestModelsNeverPassACap: many callers at once, some of which leave at every point of
// an answer, take no token and no millionth of a dollar beyond a cap, by what the
// provider itself counts; and what they are charged is no less than that. Their texts
// have a token for each byte.
func TestModelsNeverPassACap(t *testing.T) {
	const callers, most, price = 16, 12_000, 3 // a token is three millionths
	texts := []string{strings.Repeat("0 7 1  5 ", 30), strings.Repeat("VrMjDxw2iOY5o3uIYDQZD9zq", 10), strings.Repeat("qfzohgyxhjwqgqzvqjyqzgqy", 10), strings.Repeat("龘👩‍👩𒀀", 12), "spend"}
	m := newModels(t, &providertest.Provider{Pause: time.Millisecond}, fmt.Sprintf(`prices: {models: {spender: {input: $%[1]d, output: $%[1]d, cache_read: $%[1]d, cache_write: $%[1]d, cache_write_long: $%[1]d}}}
budgets:
  - {scope: agent, resource: llm_tokens, amount: %[2]d}
  - {scope: tenant, resource: money_micro, amount: %[3]d}
limits:
  - {scope: agent, per_minute: 100000}
`, price, most, most*price))
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range callers {
		wg.Go(func() {
			for n := 0; ; n++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if i%4 == 3 {
					time.AfterFunc(time.Duration(n*i)*time.Millisecond, cancel) // before anything came, too
				}
				resp, err := m.post(ctx, fmt.Sprintf(`{"model":"spender","max_tokens":%d,"stream":%t,"messages":[{"role":"user","content":%q}]}`, 50+i, i%3 != 0, texts[(n+i)%len(texts)]))
				if err == nil {
					mu.Lock()
					statuses[resp.StatusCode]++
					mu.Unlock()
					if i%2 == 0 {
						leaveAfter(resp, -1)
					} else {
						leaveAfter(resp, n%8)
					}
				}
				cancel()
				if err == nil && resp.StatusCode != http.StatusOK || n > 500 || t.Context().Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if statuses[http.StatusOK] < 10 || statuses[http.StatusPaymentRequired] != callers || len(statuses) != 2 {
		t.Errorf("statuses: %v", statuses)
	}
	input, output := m.Spent()
	if input+output > most {
		t.Errorf("the provider counts %d tokens, and the cap is %d", input+output, most)
	}
	s := m.charged(t, int64(len(m.Asked())))
	if got := s.Input + s.CacheRead + s.CacheWrite + s.Output; got < input+output || got > most || s.Micro != got*price || s.Output < output || s.Unpriced != 0 {
		t.Errorf("charged: %d tokens, %d millionths (%+v); the provider counts %d in and %d out, the cap is %d", got, s.Micro, s, input, output, most)
	}
	// A caller ends at its first refusal, while the others have reserved up to 340 tokens each.
	if input+output < most-callers*340 {
		t.Errorf("only %d of %d tokens could be used", input+output, most)
	}
}

// charged is what the agent was charged, once so many calls have been.
func (m *models) charged(t *testing.T, calls int64) spend.Sum {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := m.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var sum spend.Sum
		if s.Spend != nil {
			for _, x := range s.Spend.Today {
				sum.Calls += x.Calls
				sum.Input += x.Input
				sum.CacheRead += x.CacheRead
				sum.CacheWrite += x.CacheWrite
				sum.Output += x.Output
				sum.Micro += x.Micro
				sum.Unpriced += x.Unpriced
			}
		}
		if sum.Calls >= calls {
			return sum
		}
		if time.Now().After(end) {
			t.Fatalf("%d calls were charged, and %d came: %+v", sum.Calls, calls, sum)
		}
	}
}

// TestModelsAttackedFromOutside: what tries to be cheaper than it is, or to be
// something else, does not come to the provider, and is told so in the provider's
// own words.
func TestModelsAttackedFromOutside(t *testing.T) {
	m := newModels(t, &providertest.Provider{}, "")
	m.d.repeats()
	body := func(more string) string {
		return `{"model":"messages_text","max_tokens":9,"messages":[{"role":"user","content":"x"}]` + more + `}`
	}
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		said                     string
	}{
		{"two models", "POST", "/anthropic/v1/messages", body(`,"model":"claude-dear"`), 400, "invalid_request_error"},
		{"an escaped second cap", "POST", "/anthropic/v1/messages", body(`,"max_tok\u0065ns":100000`), 400, "invalid_request_error"},
		{"an odd name", "POST", "/anthropic/v1/messages", `{"model":"claude\u202ex","max_tokens":9,"messages":[]}`, 400, "invalid_request_error"},
		{"no model", "POST", "/openai/v1/chat/completions", `{"messages":[]}`, 400, "invalid_request_error"},
		{"no JSON", "POST", "/openai/v1/responses", `model=gpt`, 400, "invalid_request_error"},
		{"later", "POST", "/openai/v1/responses", `{"model":"responses_text","max_output_tokens":16,"background":true}`, 402, "insufficient_quota"},
		{"elsewhere", "POST", "/openai/v1/responses", `{"model":"responses_text","max_output_tokens":16,"previous_response_id":"resp_1"}`, 402, "insufficient_quota"},
		{"a server's tool", "POST", "/openai/v1/responses", `{"model":"responses_text","max_output_tokens":16,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, 402, "insufficient_quota"},
		{"dearer", "POST", "/anthropic/v1/messages", body(`,"speed":"fast"`), 402, "billing_error"},
		{"batches", "POST", "/anthropic/v1/messages/batches", `{"requests":[]}`, 403, "permission_error"},
		{"files", "POST", "/anthropic/v1/files", `x`, 403, "permission_error"},
		{"a way out", "POST", "/anthropic/v1/messages/../files", body(""), 403, "permission_error"},
		{"an encoded way out", "POST", "/anthropic/v1/messages/%2e%2e/files", body(""), 403, "permission_error"},
		{"the other's path", "POST", "/anthropic/v1/responses", body(""), 403, "permission_error"},
		{"a stored response", "GET", "/openai/v1/responses/resp_1", "", 403, "permission_error"},
		{"another method", "DELETE", "/anthropic/v1/messages", "", 403, "permission_error"},
		{"a huge prompt", "POST", "/anthropic/v1/messages", `{"model":"messages_text","max_tokens":9,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 8<<20) + `"}]}`, 413, "request_too_large"},
	} {
		r, err := http.NewRequest(c.method, m.at+"/llm"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+m.token)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(b), `"`+c.said+`"`) || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s %v", c.name, resp.StatusCode, b, resp.Header)
		}
	}
	if came := m.Asked(); len(came) != 0 {
		t.Errorf("%d requests came to the provider, such as %s %s", len(came), came[0].Method, came[0].Path)
	}
}
