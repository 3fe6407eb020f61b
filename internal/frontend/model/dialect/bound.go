package dialect

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Limits are what a host's row lets requests ask for. The zero value lets a request
// ask only for what its body bounds by itself.
type Limits struct {
	// MaxOutput is the most output tokens of one answer, and what is asked where the
	// request does not say; 0 for no limit, and then a request must say.
	MaxOutput int64
	// Window is the most tokens that the model can read at once: no conversation's
	// input is bounded by more. 0 where nobody said, and then requests whose input
	// stands elsewhere are refused.
	Window int64
	// Documents are the documents of the body whose text is known.
	Documents Documents
	// Image is what one image costs at most, in tokens; 0 for the most that the
	// provider's documents name.
	Image int64
	// ServerCalls is how many calls of tools that the provider runs itself one request
	// may make; 0 refuses requests that offer such tools.
	ServerCalls int64
	// Dearer lets requests ask for what has another price, such as a service tier:
	// whoever sets it has priced that.
	Dearer bool
}

// Documents are documents that were read: a model reads the text and a picture of each page.
type Documents struct {
	Count int
	Pages int64
	Text  int64 // bytes
}

// Bound is the most that a request can cost, in tokens.
type Bound struct {
	Input, Output int64

	writes writes
	uses   []holdfast.ToolUse
}

// writes says what a provider may put into its cache of a request, and for how long.
type writes uint8

const (
	none writes = iota
	brief
	long
)

// Tokens are the bound by what it may cost: all input may be written into a cache,
// where the request lets it.
func (b Bound) Tokens() holdfast.Tokens {
	t := holdfast.Tokens{Output: b.Output}
	switch b.writes {
	case brief:
		t.CacheWrite = b.Input
	case long:
		t.CacheWriteLong = b.Input
	default:
		t.Input = b.Input
	}
	return t
}

// What a request costs beside its text, in tokens, by the providers' documents of
// 2026, rounded up: what stands around messages, the words that tell a model how to
// use tools, and those that define a provider's own tool.
const (
	perRequest = 64
	perTools   = 1000 // or the form of an answer
	perTyped   = 1500
)

// Bound returns the most that the request can cost. Errors are *holdfast.Error:
// KindBounds where it asks for more than the limits allow, or nothing bounds it.
func (r *Request) Bound(l Limits) (Bound, error) {
	if r.Dialect == Unknown || l.MaxOutput < 0 || l.Window < 0 || l.Window > maxTokens || l.Image < 0 || l.ServerCalls < 0 || l.MaxOutput > maxTokens {
		return Bound{}, over("nothing bounds what the request costs", "")
	}
	if r.Dialect.Free() {
		return Bound{}, nil
	}
	out, err := r.output(l)
	if err != nil {
		return Bound{}, err
	}
	image := l.Image
	if image == 0 {
		image = imageTokens(r)
	}
	pictures := int64(r.Images) + l.Documents.Pages
	in := r.Text + r.grows + pictures*min(image, maxTokens/1024) + 2*l.Documents.Text + perRequest
	if len(r.Tools) > 0 || r.formed {
		in += perTools + r.typed*perTyped
	}
	if l.Window > 0 && r.Dialect.converses() {
		in = min(in, l.Window) // the provider refuses what is more
	}
	return r.widen(Bound{in, out, r.writes, r.uses(l)}, l)
}

// widen takes what the body does not show into the bound.
func (r *Request) widen(b Bound, l Limits) (Bound, error) {
	var rounds, own int64 // beside those of tools whose calls nobody counts one by one
	for _, u := range r.Unseen {
		switch u.Kind {
		case Wide:
			if (u.Name == unseenDocument || u.Name == unseenFile) && r.files <= l.Documents.Count {
				continue // bounded by what was read
			}
			if l.Window == 0 {
				return Bound{}, over(fmt.Sprintf("the request's input is not all in its body (%s), and nobody said how much the model can read", u.Name), "send all of it, or set `models: {window: N}` in the host's row")
			}
			b.Input = max(b.Input, l.Window)
		case Loop:
			n, err := r.loops(u, l)
			if err != nil {
				return Bound{}, err
			}
			if b.Input = max(b.Input, l.Window); u.Calls > 0 {
				rounds += n
			} else {
				own = n
			}
		case Dearer:
			if !l.Dearer {
				return Bound{}, over(fmt.Sprintf("the request asks for what has a price of its own: %s", u.Name), "leave it out, or set `models: {other_prices: allow}` in the host's row, and its price under `times:` of the model")
			}
		default:
			return Bound{}, over(fmt.Sprintf("nothing bounds what the request costs: %s", u.Name), "leave it out")
		}
	}
	rounds += own
	if rounds > maxCalls {
		return Bound{}, over("the provider's own tools may be run too often", fmt.Sprintf("allow at most %d calls", maxCalls))
	}
	b.Input, b.Output = b.Input*(1+rounds), b.Output*(1+rounds)
	return b, nil
}

// loops is how often the model may read its context again for a tool.
func (r *Request) loops(u Unseen, l Limits) (int64, error) {
	if l.ServerCalls == 0 || l.Window == 0 {
		return 0, over(fmt.Sprintf("the provider itself would run %s, and nothing bounds how often", u.Name), "leave it out, or set `models: {server_calls: N, window: N}` in the host's row, and its price under `uses:` of the model; Anthropic is also told `max_uses`")
	}
	most := min(l.ServerCalls, maxCalls)
	n := u.Calls
	if n == 0 && r.Dialect == Responses {
		if n = r.edits.said; n == 0 {
			n = most // Amend says so to the provider
		}
	}
	if n > most {
		return 0, over(fmt.Sprintf("%s may be run %d times", u.Name, n), fmt.Sprintf("ask for at most %d", most))
	}
	if n == 0 {
		n = max(most, ownLoop)
	}
	return n, nil
}

// ownLoop is after how many rounds of its own tools Anthropic ends a turn by itself.
const ownLoop = 10

// output is the most that comes out, in tokens.
func (r *Request) output(l Limits) (int64, error) {
	if r.Dialect == Embeddings {
		return 0, nil
	}
	n := r.MaxOutput
	if !r.Capped {
		if n = r.asked(l); n == 0 {
			return 0, over("the request does not say how much the model may answer", "name it in the member "+r.Dialect.capMember())
		}
	}
	if l.MaxOutput > 0 && n > l.MaxOutput {
		return 0, over(fmt.Sprintf("the request asks for %d tokens of output", n), fmt.Sprintf("ask for at most %d", l.MaxOutput))
	}
	texts := max(1, r.edits.prompts)
	if texts > maxChoices || r.Choices*texts > maxChoices {
		return 0, over(fmt.Sprintf("the request asks for more than %d answers", maxChoices), "ask for fewer at once")
	}
	if r.predicted > 0 {
		n += r.predicted + r.grows
	}
	return n * r.Choices * texts, nil
}

// asked is what is asked in the request's stead. Completions have a default that is
// small, and stays.
func (r *Request) asked(l Limits) int64 {
	if r.Dialect == Completions {
		if l.MaxOutput > 0 {
			return min(defaultCompletion, l.MaxOutput)
		}
		return defaultCompletion
	}
	return l.MaxOutput
}

// defaultCompletion is max_tokens of /v1/completions where a request has none.
const defaultCompletion = 16

// imageTokens is what one image costs at most, by the providers' documents of 2026.
// A small model of OpenAI's counts each tile of an image thirty-three times.
func imageTokens(r *Request) int64 {
	switch {
	case r.Dialect.Provider() == Anthropic:
		return 5000
	case strings.Contains(r.Model, "gpt-4o-mini"):
		return 50_000
	}
	return 12_500
}

func over(why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindBounds, Why: why, Hint: hint}
}

// span is where a value stands in a body; the zero span is nowhere.
type span struct{ start, end int64 }

func (s span) there() bool { return s.end > 0 }

// spots are the places in a body at which Amend may have something to say.
type spots struct {
	end     int64 // of the last member
	cap     span  // a null where the most output should be
	options span  // a null where stream_options should be
	usage   span  // include_usage, where it is not true
	within  int64 // where stream_options ends
	empty   bool  // it has no member
	calls   span  // a null where max_tool_calls should be
	said    int64 // max_tool_calls
	prompts int64
}

// Amended is what Amend put into a body.
type Amended struct {
	// Cap is the most output that was put in, 0 for none; Calls is the most calls of
	// the provider's tools.
	Cap, Calls int64
	// Usage says that a stream's usage is asked for, which the client did not: the
	// event that brings it is not the client's (Event.Unasked).
	Usage bool
}

// capMember is the member that names the most output.
func (d Dialect) capMember() string {
	switch d {
	case Messages, Completions:
		return "max_tokens"
	case Chat:
		return "max_completion_tokens"
	case Responses:
		return "max_output_tokens"
	}
	return ""
}

// edit is text that takes the place of [start, end).
type edit struct {
	start, end int64
	text       string
}

// Amend returns the body that goes out, where Bound found no fault: members that
// bound what it costs or tell what it did cost are appended, or said where the body
// says nothing; no other byte changes, so that what the provider has cached of the
// beginning stays cached. body is what Parse read; it is returned itself where
// nothing is to be said.
func (r *Request) Amend(body []byte, l Limits) ([]byte, Amended) {
	var did Amended
	var edits []edit
	var tail strings.Builder
	member := func(name, value string, at span) {
		if at.there() {
			edits = append(edits, edit{at.start, at.end, value})
			return
		}
		tail.WriteString(`,"` + name + `":` + value)
	}
	if name := r.Dialect.capMember(); name != "" && !r.Capped {
		if did.Cap = r.asked(l); did.Cap > 0 {
			member(name, strconv.FormatInt(did.Cap, 10), r.edits.cap)
		}
	}
	if r.Dialect == Responses && r.edits.said == 0 && r.loopsAtAll() && l.ServerCalls > 0 {
		did.Calls = min(l.ServerCalls, maxCalls)
		member("max_tool_calls", strconv.FormatInt(did.Calls, 10), r.edits.calls)
	}
	if (r.Dialect == Chat || r.Dialect == Completions) && r.Stream && !r.Usage {
		did.Usage = true
		switch e := r.edits; {
		case e.usage.there():
			edits = append(edits, edit{e.usage.start, e.usage.end, "true"})
		case e.within > 0 && e.empty:
			edits = append(edits, edit{e.within, e.within, `"include_usage":true`})
		case e.within > 0:
			edits = append(edits, edit{e.within, e.within, `,"include_usage":true`})
		default:
			member("stream_options", `{"include_usage":true}`, e.options)
		}
	}
	if tail.Len() > 0 {
		edits = append(edits, edit{r.edits.end, r.edits.end, tail.String()})
	}
	return applied(body, edits), did
}

func (r *Request) loopsAtAll() bool {
	for _, u := range r.Unseen {
		if u.Kind == Loop {
			return true
		}
	}
	return false
}

// applied returns the body with the edits, which do not touch each other.
func applied(body []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return body
	}
	var out bytes.Buffer
	at := int64(0)
	for len(edits) > 0 {
		first := 0
		for i := range edits {
			if edits[i].start < edits[first].start {
				first = i
			}
		}
		e := edits[first]
		edits = append(edits[:first], edits[first+1:]...)
		out.Write(body[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(body[at:])
	return out.Bytes()
}
