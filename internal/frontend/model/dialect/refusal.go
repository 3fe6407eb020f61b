package dialect

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// Refusal is one of Holdfast's own refusals, in the words of a provider.
type Refusal struct {
	// Status is the answer's, as D25 has it: 402 for a budget, 403 for a rule, 413 for
	// a size, 428 for what is held, 429 for a rate, 503 for a halt, and so on.
	Status int
	// Code is a word for programs, such as an error kind; Why is for people. Neither
	// holds anything secret.
	Code, Why string
	// After is how long until the same may go well; 0 where nobody knows.
	After time.Duration
}

// longest is how long a client library may be told to wait by itself.
const longest = time.Minute

// Body is the refusal as the provider writes errors, and the header fields beside
// it: the Content-Type, and whether and when the provider's client libraries are to
// try again by themselves. They repeat what is answered with 408, 409, 429 or 5xx;
// what will not go well by itself tells them not to.
func (f Refusal) Body(p Provider) (body []byte, header map[string]string) {
	header = map[string]string{"Content-Type": "application/json", "X-Should-Retry": "false"}
	if f.Status == 429 && f.After <= longest {
		delete(header, "X-Should-Retry")
	}
	if f.After > 0 {
		header["Retry-After"] = strconv.FormatInt(int64((f.After+time.Second-1)/time.Second), 10)
	}
	return f.document(p), header
}

func (f Refusal) document(p Provider) []byte {
	if p == Anthropic {
		return encoded(map[string]any{"type": "error", "error": f.words(p)})
	}
	return encoded(map[string]any{"error": f.words(p)})
}

// words are the members of the provider's error.
func (f Refusal) words(p Provider) map[string]any {
	types := errorcode.LookupProvider(f.Status)
	if p == Anthropic {
		return map[string]any{"type": types.Anthropic, "message": f.Why}
	}
	return map[string]any{"message": f.Why, "type": types.OpenAI, "param": nil, "code": f.Code}
}

// Event is the refusal as an event that ends a stream of the dialect which has
// begun: the client libraries raise it as the provider's own.
func (f Refusal) Event(d Dialect) []byte {
	switch d.Provider() {
	case Anthropic:
		return append(append([]byte("event: error\ndata: "), f.document(Anthropic)...), "\n\n"...)
	case OpenAI:
		if d != Responses {
			return append(append([]byte("data: "), f.document(OpenAI)...), "\n\n"...)
		}
	}
	words := f.words(OpenAI)
	body := encoded(map[string]any{"type": "error", "code": f.Code, "message": f.Why, "param": nil, "sequence_number": 0, "error": words})
	return append(append([]byte("event: error\ndata: "), body...), "\n\n"...)
}

// encoded is JSON of maps of texts: it cannot fail.
func encoded(v map[string]any) []byte {
	b, _ := json.Marshal(v)
	return b
}
