package egress

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// modelTokens are pieces of an answer as models say them: words, ends of words,
// marks and code, with the space before them.
var modelTokens = strings.Split("The| function| reads| the| file| line| by| line|,| and| un|marsh|als| each| one| into| a| `|struct|`|.\n\n|if| err| :=| read|(|path|);| err| !=| nil| {|\n\treturn| err|\n}\n|\nThat| is| all| it| needs|.| ", "|")

// BenchmarkModelEvents is what one event of a model's answer takes between its
// coming and its going: metered, redacted and written. ns/op are those of one event.
func BenchmarkModelEvents(b *testing.B) {
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		b.Fatal(err)
	}
	req, err := dialect.Parse(dialect.Messages, []byte(`{"model":"claude-x","max_tokens":4096,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		b.Fatal(err)
	}
	bound, err := req.Bound(dialect.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	p := &Proxy{}
	p.out.memory.Most = 64 << 20
	const events = 400
	var all bytes.Buffer
	all.WriteString(anthropicStream[:strings.Index(anthropicStream, "event: content_block_delta")])
	for i := range events {
		all.WriteString(delta(modelTokens[i%len(modelTokens)]))
	}
	all.WriteString(anthropicEnd)
	b.ReportAllocs()
	for n := 0; n < b.N; n += events {
		a := &answer{ctx: b.Context(), p: p, d: &domain.Domain{}, w: &discard{h: http.Header{}}, c: cleaner.New(e), most: 1 << 30, header: http.Header{}, hash: noHash{}}
		a.resp = &http.Response{StatusCode: 200, Body: http.NoBody}
		a.model = &model{req: req, bound: bound, meter: dialect.NewMeter(req, bound, 200, "text/event-stream")}
		if err := a.events(b.Context(), bytes.NewReader(all.Bytes()), frames.Events); err != nil {
			b.Fatal(err)
		}
		if got := a.model.meter.Answer(); got.State != dialect.Complete {
			b.Fatal(fmt.Sprint(got))
		}
	}
}

// discard is a client that reads nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
func (d *discard) Write(p []byte) (int, error) { return io.Discard.Write(p) }
