package egress

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/frames"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// delta is an event as a model's API sends it.
func delta(text string) string {
	b, _ := json.Marshal(map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]string{"type": "text_delta", "text": text}})
	return "event: content_block_delta\ndata: " + string(b) + "\n\n"
}

// said is what the deltas of a stream of events say.
func said(t *testing.T, events string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(events) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Delta struct{ Text string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		b.WriteString(e.Delta.Text)
	}
	return b.String()
}

// eventSource is an upstream that sends what the test says, when it says.
func (x *outside) eventSource(kind string) (*http.Response, chan<- string) {
	x.t.Helper()
	next := make(chan string)
	d, o := x.upstream(domain.Domain{}, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text, ok := <-next:
				if !ok {
					return
				}
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	resp, err := http.Get(x.front(d, o).URL)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { resp.Body.Close() })
	return resp, next
}

func TestEgress_EventsGoOnOneByOne(t *testing.T) {
	x := newOutside(t, redact.Options{})
	resp, next := x.eventSource("text/event-stream")
	r := bufio.NewReader(resp.Body)
	// Each event is sent only when the one before has come: a stream that held
	// one back would never end.
	for i, text := range []string{"Hello", " world.", " Here is", " the list:", "\n- one", ", and 42 more", " OK"} {
		next <- delta(text)
		var got strings.Builder
		for !strings.HasSuffix(got.String(), "\n\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(line)
		}
		if said(t, got.String()) != text {
			t.Errorf("event %d: %q", i, got.String())
		}
	}
	next <- ": still here\n\n"
	if line, err := r.ReadString('\n'); err != nil || line != ": still here\n" {
		t.Errorf("comment %q, %v", line, err)
	}
	close(next)
	if rest, err := io.ReadAll(r); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("rest %q, %v", rest, err)
	}
}

func TestEgress_ASecretOverTwoEventsDoesNotGetThrough(t *testing.T) {
	x := newOutside(t, redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("correcthorsebattery")}})
	x.p.out.patience = time.Hour
	for _, secret := range []string{someKey, someMail, "4111 1111 1111 1111", "correcthorsebattery"} {
		for cut := 1; cut < len(secret); cut += 3 {
			for _, between := range []string{"", ": ping\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n"} {
				all := delta("It is ") + delta(secret[:cut]) + between + delta(secret[cut:]) + delta(" - that is it.") + "data: [DONE]\n\n"
				_, got, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, all)
				})
				if err != nil {
					t.Fatal(err)
				}
				want := string(x.engine.Text([]byte("It is " + secret + " - that is it.")).Out)
				if s := said(t, got); s != want || !strings.Contains(got, "[DONE]") {
					t.Fatalf("cut at %d: %q, want %q", cut, s, want)
				}
				if n := strings.Count(got, "data: "); n != strings.Count(all, "data: ") {
					t.Errorf("%d events of %d", n, strings.Count(all, "data: "))
				}
			}
		}
	}
}

func TestEgress_Invariant2_EventsAreTheRedactionOfTheWhole(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.patience = time.Hour
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 40 {
		var text strings.Builder
		for range 25 {
			text.WriteString([]string{"some words ", someKey, " ", someMail, "\n", "4111 1111 1111 1111", ` password="hunter2seven" `, "+1 212 555 0147", "é日本 ", `"quoted" \ `}[rng.IntN(10)])
		}
		whole := []rune(text.String())
		want := string(x.engine.Text([]byte(string(whole))).Out)
		_, got, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			var b strings.Builder
			for rest := whole; len(rest) > 0; {
				n := 1 + rng.IntN(min(len(rest), 30))
				b.WriteString(delta(string(rest[:n])))
				rest = rest[n:]
			}
			for rest := b.String(); rest != ""; {
				n := 1 + rng.IntN(min(len(rest), 500))
				_, _ = io.WriteString(w, rest[:n])
				_ = http.NewResponseController(w).Flush()
				rest = rest[n:]
			}
		})
		if err != nil || said(t, got) != want {
			t.Fatalf("round %d: %v\n got %q\nwant %q", round, err, said(t, got), want)
		}
	}
}

func TestEgress_EventsKeepTheirForm(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.patience = time.Hour
	for _, c := range []struct{ kind, sent, want string }{
		{"text/event-stream", "id: 7\nevent: x\ndata: {\"a\": 1.50, \"b\":\"\\u00e9\"}\n\n", "id: 7\nevent: x\ndata: {\"a\": 1.50, \"b\":\"\\u00e9\"}\n\n"},
		{"text/event-stream", "data: two\ndata: lines\n\n", "data: two\ndata: lines\n\n"},
		{"text/event-stream", "data:tight\r\n\r\n", "data: tight\n\n"},
		{"text/event-stream", "data: 42\n\ndata: 43\n\n", "data: 42\n\ndata: 43\n\n"},
		{"text/event-stream", "data: {\"message\":\"Hello\"}\n\ndata: {\"message\":\"World\"}\n\n", "data: {\"message\":\"Hello\"}\n\ndata: {\"message\":\"World\"}\n\n"},
		{"text/event-stream", "data: {\"value\":\"" + someKey + "\"}\n\ndata: {\"value\":\" and then\"}\n\ndata: {\"value\":\" more of it\"}\n\n",
			"data: {\"value\":\"[secret]\"}\n\ndata: {\"value\":\" and then\"}\n\ndata: {\"value\":\" more of it\"}\n\n"},
		{"text/event-stream", "retry: 100\n\n", "retry: 100\n\n"},
		{"text/event-stream", "data: mail " + someMail + "\n\n", "data: mail [email]\n\n"},
		{"text/event-stream", "id: " + someMail + "\ndata: x\n\n", "id: [email]\ndata: x\n\n"},
		{"text/event-stream", "data: {\"user\":{\"email\":\"" + someMail + "\"}}\n\n", "data: {\"user\":{\"email\":\"[email]\"}}\n\n"},
		{"application/x-ndjson", "{\"response\":\"mail " + someMail[:9] + "\",\"done\":false}\n{\"response\":\"" + someMail[9:] + " now\",\"done\":true}\n", "{\"response\":\"mail [email] \",\"done\":false}\n{\"response\":\"now\",\"done\":true}\n"},
		{"application/x-ndjson", "{\"a\":1}\n\n{\"b\":\"" + someKey + "\"}", "{\"a\":1}\n\n{\"b\":\"[secret]\"}"},
	} {
		_, got, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.sent)
		})
		if err != nil || got != c.want {
			t.Errorf("%q: %v\n got %q\nwant %q", c.sent, err, got, c.want)
		}
	}
}

func TestEgress_ASecretOverTwoEventsOfAnyNameIsMasked(t *testing.T) {
	x := newOutside(t, redact.Options{})
	_, got, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{"evt_001", "evt_002", "evt_003", someKey[:30], someKey[30:60], someKey[60:], "evt_004"} {
			_, _ = fmt.Fprintf(w, "data: {\"odd\":%q}\n\n", part)
		}
	})
	if err != nil || strings.Contains(got, someKey[30:60]) || strings.Contains(got, someKey[60:]) {
		t.Errorf("%v %q", err, got)
	}
	for _, kept := range []string{"evt_001", "evt_002", "evt_003"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is lost in %q", kept, got)
		}
	}
}

func TestEgress_EventsAreBounded(t *testing.T) {
	x := newOutside(t, redact.Options{})
	for name, all := range map[string]string{
		"one event":    "data: " + strings.Repeat("words ", (1<<20)/5) + "\n\n",
		"queue":        delta("sk-ant-api03-Zk3vQ9xL2mT8") + strings.Repeat("data: {\"type\":\"tick\"}\n\n", maxQueue+50),
		"twice a name": "data: {\"a\":1,\"a\":2}\n\n",
	} {
		_, _, err := x.answered(domain.Domain{}, "GET", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, all)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		if err == nil {
			t.Errorf("%s: it came as a whole answer", name)
		}
	}
}

func TestEgress_AnIdleStreamIsSmall(t *testing.T) {
	x := newOutside(t, redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("correcthorsebattery")}})
	const n = 50
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ends := make([]*io.PipeWriter, n)
	heard := make(chan struct{}, n)
	done := make(chan struct{}, n)
	for i := range n {
		r, w := io.Pipe()
		ends[i] = w
		go func() {
			a := &answer{ctx: t.Context(), p: x.p, d: &domain.Domain{}, w: &quiet{heard: heard, h: http.Header{}}, c: cleaner.New(x.engine), most: 1 << 30, header: http.Header{}, resp: &http.Response{StatusCode: 200}}
			a.hash = noHash{}
			_ = a.events(t.Context(), r, frames.Events)
			done <- struct{}{}
		}()
	}
	for i := range n {
		for k := range 100 {
			_, _ = fmt.Fprint(ends[i], delta(fmt.Sprintf("word %d of a sentence that goes on.", k)))
		}
	}
	for range n {
		<-heard
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc) + int64(after.StackInuse) - int64(before.StackInuse)) / n
	t.Logf("%d bytes for each of %d idle streams", each, n)
	if each > 64<<10 {
		t.Errorf("%d bytes for each idle stream", each)
	}
	for i := range n {
		ends[i].Close()
	}
	for range n {
		<-done
	}
}

// quiet is a client that says once that it has the hundredth event.
type quiet struct {
	h     http.Header
	heard chan struct{}
	n     int
}

func (q *quiet) Header() http.Header { return q.h }
func (q *quiet) WriteHeader(int)     {}
func (q *quiet) Flush()              {}
func (q *quiet) Write(p []byte) (int, error) {
	if q.n += strings.Count(string(p), "data: "); q.n == 100 {
		q.n++
		q.heard <- struct{}{}
	}
	return len(p), nil
}

type noHash struct{}

func (noHash) Write(p []byte) (int, error) { return len(p), nil }
func (noHash) Sum(b []byte) []byte         { return b }
func (noHash) Reset()                      {}
func (noHash) Size() int                   { return 0 }
func (noHash) BlockSize() int              { return 1 }

// An event goes with the next of its place, or at once where it ends in white space;
// later only while its last word goes on over events: until that has ended it may be the
// head of an address, and what is sent must be the redaction of the whole (D25b).
func TestEgress_AnEventWaitsForTheEndOfItsLastWordAlone(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.patience = time.Hour
	w := &sink{h: http.Header{}}
	a := &answer{ctx: t.Context(), p: x.p, d: &domain.Domain{}, w: w, resp: &http.Response{StatusCode: 200}, c: cleaner.New(x.engine), most: 1 << 30, header: http.Header{}, hash: noHash{}}
	e := &events{a: a, places: map[string]*place{}, tails: map[string][][]byte{}}
	went := func() int { return strings.Count(w.b.String(), "data: ") }
	began := 0 // the first event of the word that has not ended
	for i, piece := range modelTokens {
		if err := e.take([]byte(delta(piece))); err != nil {
			t.Fatal(err)
		}
		if err := e.sent(); err != nil {
			t.Fatal(err)
		}
		switch space := strings.LastIndexAny(piece, " \n\t"); {
		case space == len(piece)-1:
			began = i + 1
		case space >= 0:
			began = i
		}
		if got := went(); got != began {
			t.Errorf("behind event %d, %q: %d have gone, want %d", i, piece, got, began)
		}
	}
	if err := e.end(); err != nil {
		t.Fatal(err)
	}
	if err := e.leave(nil); err != nil || said(t, w.b.String()) != strings.Join(modelTokens, "") {
		t.Errorf("%v, %q", err, w.b.String())
	}
}

// What lets the last word go at a lull does so for events that have waited so long
// alone: in a stream that goes on in time none is let go before it has ended.
func TestEgress_OnlyALullLetsAWordGo(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.patience = time.Hour
	w := &sink{h: http.Header{}}
	a := &answer{ctx: t.Context(), p: x.p, d: &domain.Domain{}, w: w, resp: &http.Response{StatusCode: 200}, c: cleaner.New(x.engine), most: 1 << 30, header: http.Header{}, hash: noHash{}}
	e := &events{a: a, places: map[string]*place{}, tails: map[string][][]byte{}}
	for _, piece := range []string{"write to jane", ".doe", "@customer-corp.com today. ", "Bye"} {
		if err := e.take([]byte(delta(piece))); err != nil {
			t.Fatal(err)
		}
		e.quiet() // the timer of an event before it
	}
	if got := said(t, w.b.String()); strings.Contains(got, "jane") || strings.Contains(got, "Bye") {
		t.Errorf("%q went", got)
	}
	if err := e.take([]byte(strings.Replace(delta("It ends"), `"index":0`, `"index":1`, 1))); err != nil {
		t.Fatal(err)
	}
	e.queue[0].Came = time.Now().Add(-2 * time.Hour)
	e.quiet()
	for _, p := range e.places {
		if n := p.Stream().Held(); n != 0 && n != len("Bye") { // which stands beside a mask
			t.Errorf("%d bytes are held behind a lull", n)
		}
	}
	if err := e.leave(nil); err != nil {
		t.Error(err)
	}
}
