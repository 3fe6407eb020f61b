package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// TestRefusalsAreTheProviders: a refusal has the members that the provider's own
// errors have, and says whether trying again by oneself makes sense.
func TestRefusalsAreTheProviders(t *testing.T) {
	for _, c := range []struct {
		f                 dialect.Refusal
		anthropic, openai string
		retry, after      string
	}{
		{dialect.Refusal{Status: 402, Code: "BudgetExceededError", Why: "the budget is spent"}, "billing_error", "insufficient_quota", "false", ""},
		{dialect.Refusal{Status: 403, Code: "ConstitutionError", Why: "no"}, "permission_error", "permission_error", "false", ""},
		{dialect.Refusal{Status: 413, Code: "PayloadTooLargeError", Why: "large"}, "request_too_large", "invalid_request_error", "false", ""},
		{dialect.Refusal{Status: 429, Code: "RateLimitError", Why: "slowly", After: 1500 * time.Millisecond}, "rate_limit_error", "rate_limit_exceeded", "", "2"},
		{dialect.Refusal{Status: 429, Code: "RateLimitError", Why: "tomorrow", After: time.Hour}, "rate_limit_error", "rate_limit_exceeded", "false", "3600"},
		{dialect.Refusal{Status: 503, Code: "HaltedError", Why: "halted"}, "api_error", "server_error", "false", ""},
		{dialect.Refusal{Status: 504, Code: "TimeoutError", Why: "late"}, "timeout_error", "server_error", "false", ""},
		{dialect.Refusal{Status: 400, Code: "ValidationError", Why: "what \"is\"\nthis"}, "invalid_request_error", "invalid_request_error", "false", ""},
	} {
		for _, p := range []dialect.Provider{dialect.Anthropic, dialect.OpenAI} {
			body, header := c.f.Body(p)
			var v struct {
				Type  string
				Error struct {
					Type, Message, Code string
					Param               any
				}
			}
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			want := c.openai
			if p == dialect.Anthropic {
				want = c.anthropic
			}
			if v.Error.Type != want || v.Error.Message != c.f.Why || (v.Type == "error") != (p == dialect.Anthropic) || p == dialect.OpenAI && v.Error.Code != c.f.Code {
				t.Errorf("%v %d: %s", p, c.f.Status, body)
			}
			if header["X-Should-Retry"] != c.retry || header["Retry-After"] != c.after || header["Content-Type"] != "application/json" {
				t.Errorf("%v %d: %v", p, c.f.Status, header)
			}
		}
		for _, d := range []dialect.Dialect{dialect.Messages, dialect.Chat, dialect.Responses} {
			event := string(c.f.Event(d))
			_, data, _ := strings.Cut(event, "data: ")
			if !strings.HasSuffix(event, "\n\n") || strings.Count(event, "\n") > 3 || !json.Valid([]byte(data)) {
				t.Errorf("%v: %q", d, event)
			}
			m := dialect.NewMeter(asked(t, d.String()+"_x"), bound, 200, "text/event-stream")
			_, _ = m.Write([]byte(event))
			if m.Close(); m.Answer().Failure == nil || m.Answer().Unread {
				t.Errorf("%v: no failure is seen in %q", d, event)
			}
		}
	}
}
