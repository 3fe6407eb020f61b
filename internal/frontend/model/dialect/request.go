package dialect

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Request is what a body asks of a model. The zero value is of no dialect, and has
// no bound.
type Request struct {
	Dialect Dialect
	// Model is the model's name; it has only letters, digits and "-._:/@".
	Model string
	// Others are the models that may answer instead of it or beside it, without
	// repetition: what the request costs, it may cost at their prices.
	Others []string
	// Stream says that the answer is to come as events.
	Stream bool
	// Capped says that the body names the most output; MaxOutput is how much, in
	// tokens, for each of Choices answers.
	Capped    bool
	MaxOutput int64
	Choices   int64 // at least 1
	// Tools are the names of the tools that the model may call, in the body's order;
	// a tool that the provider defines is named by its name, else by its type.
	Tools []string
	// ToolResults are what tools gave, in the body's order.
	ToolResults []ToolResult
	// Images, Documents and Audio count the media.
	Images, Documents, Audio int
	files                    int // documents that the body does not bound
	// Text is the bytes of the body but for the data of media, in bytes; Size is the
	// whole body.
	Text, Size int64
	// Unseen is what makes the request dearer than its body shows, without
	// repetition.
	Unseen []Unseen
	// Thinks says that output may be made which a stream does not show.
	Thinks bool
	// Usage says that the client itself asked for the usage of a stream
	// (stream_options.include_usage); other dialects always say it.
	Usage bool

	grows     int64 // bytes that Text may have more of where it is read
	predicted int64 // bytes of prediction: rejected ones are charged as output
	formed    bool  // an answer of a form is asked for, which the model is told
	typed     int64 // tools that the provider defines
	serves    []served
	tiered    bool // the service tier is named, and placed where the model runs
	placed    bool
	writes    writes
	edits     spots
}

// ToolResult is what one call of a tool gave, as the next request tells it.
type ToolResult struct {
	// ID is the call's; Name is the tool's, "" where the body does not tell.
	ID, Name string
	// Error says that the client calls it one (Anthropic's is_error).
	Error bool
	// Bytes is the size of the result in the body.
	Bytes int64
	// Seen is true if words of the model follow it, and something follows those:
	// then it was in an earlier request.
	Seen bool
}

// Unseen is one reason for which the body alone does not bound the request's cost.
type Unseen struct {
	Kind UnseenKind
	// Name is what it is called in the body, such as "previous_response_id" or
	// "web_search_20250305".
	Name string
	// Calls is how many calls of such a tool the body allows; 0 where it does not
	// say.
	Calls int64
}

// The names of documents whose text is not in the body.
const (
	unseenDocument = "document"
	unseenFile     = "file"
)

// UnseenKind says what can be done about something that the body does not show.
type UnseenKind uint8

// The kinds.
const (
	// Beyond is what no bound is known of: an answer that comes later or elsewhere,
	// models or tools that the provider chooses. Such a request is always refused.
	Beyond UnseenKind = iota
	// Wide is input that stands elsewhere, such as an earlier conversation or a
	// file: the model's context window is its bound.
	Wide
	// Loop is a tool that the provider runs itself: the model reads its context once
	// more for each call.
	Loop
	// Dearer is what is charged at other than the ordinary price, such as a
	// service tier.
	Dearer
)

// String is the kind as errors and records name it.
func (k UnseenKind) String() string {
	switch k {
	case Wide:
		return "wide"
	case Loop:
		return "loop"
	case Dearer:
		return "dearer"
	}
	return "beyond"
}

// The most that a request may have.
const (
	maxDepth   = 128
	maxTools   = 1024
	maxName    = 256
	maxResults = 4096
	maxUnseen  = 64
	maxOthers  = 16
	maxTokens  = 1 << 40
	maxChoices = 128
)

// Parse reads a request's body, decoded and as it goes out. Requests of Models have
// none. Errors are *holdfast.Error: KindValidation for what is no request of the
// dialect, KindPayloadTooLarge for what has too many parts, KindValue for a model's
// name that is none. The body is not kept.
func Parse(d Dialect, body []byte) (*Request, error) {
	r := &Request{Dialect: d, Choices: 1, Size: int64(len(body)), Text: int64(len(body)), grows: expansion(body)}
	if d == Models {
		if len(body) > 0 {
			return nil, bad("a request for the models has a body", "send none")
		}
		return r, nil
	}
	if d.Provider() == NoProvider {
		return nil, bad("no format of requests is known for this path", "use the paths that models are asked at, such as /v1/messages or /v1/responses")
	}
	w := newWalk(body)
	p := &parser{r: r, w: w, calls: map[string]string{}}
	if err := w.object(p.member); err != nil {
		return nil, err
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return r, nil
}

// parser is the state of one Parse.
type parser struct {
	r     *Request
	w     *walk
	calls map[string]string // tools' names by the ids of their calls
	media int64             // bytes of media's data
	spoke int               // how many results stood before the model's last words
	seen  int               // how many results stood before words that something follows
	quiet bool              // nothing is to be thought before the answer
	loud  bool              // what was said of that is changed on the way
}

// member reads one member at the top of a body.
func (p *parser) member(name string) error {
	switch p.r.Dialect {
	case Messages, CountTokens:
		return p.messagesMember(name)
	case Responses, InputTokens:
		return p.responsesMember(name)
	case Chat:
		return p.chatMember(name)
	case Completions:
		return p.completionsMember(name)
	case Embeddings:
		return p.embeddingsMember(name)
	}
	return bad("cannot read a request of the dialect "+p.r.Dialect.String(), "add its members to parser.member")
}

func (p *parser) finish() error {
	r := p.r
	if !plainModel(r.Model) {
		if r.Model == "" {
			return bad("the request names no model", "name it in the member model")
		}
		return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("%q is no name for a model", excerpt.Of(r.Model, 64)), Hint: "a name has letters, digits and - . _ : / @, at most 128 of them"}
	}
	r.Text -= p.media
	for i, t := range r.ToolResults {
		if t.Name == "" {
			r.ToolResults[i].Name = p.calls[t.ID]
		}
		r.ToolResults[i].Seen = i < p.seen
	}
	if r.Dialect == Chat || r.Dialect == Responses {
		r.Thinks = !p.quiet || p.loud
		r.writes = max(r.writes, openaiWrites(r.Model))
	}
	r.edits.end = p.w.last
	return nil
}

func bad(why, hint string) error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Why: why, Hint: hint}
}

func tooMany(what string, most int) error {
	return &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: fmt.Sprintf("the request has more than %d %s", most, what), Hint: "ask in smaller pieces"}
}

// unseen notes something that the body does not show, once.
func (p *parser) unseen(k UnseenKind, name string, calls int64) error {
	u := Unseen{k, excerpt.Of(name, 64), calls}
	for _, have := range p.r.Unseen {
		if have == u && k != Loop {
			return nil
		}
	}
	if len(p.r.Unseen) == maxUnseen {
		return tooMany("parts that stand elsewhere", maxUnseen)
	}
	p.r.Unseen = append(p.r.Unseen, u)
	return nil
}

// tool notes a tool that is offered.
func (p *parser) tool(name string) error {
	if len(name) > maxName {
		return bad("a tool's name is too long", fmt.Sprintf("a name has at most %d bytes", maxName))
	}
	if len(p.r.Tools) == maxTools {
		return tooMany("tools", maxTools)
	}
	p.r.Tools = append(p.r.Tools, name)
	return nil
}

// result notes what a tool gave.
func (p *parser) result(t ToolResult) error {
	if len(t.ID) > maxName || len(t.Name) > maxName {
		return bad("the id of a tool's call is too long", fmt.Sprintf("an id has at most %d bytes", maxName))
	}
	if len(p.r.ToolResults) == maxResults {
		return tooMany("results of tools", maxResults)
	}
	p.r.ToolResults = append(p.r.ToolResults, t)
	return nil
}

// turn is the end of one message or item, by the model or by others.
func (p *parser) turn(model bool) {
	if model {
		p.spoke = len(p.r.ToolResults)
		return
	}
	p.seen = p.spoke
}

// called notes the name of a tool that the model called before.
func (p *parser) called(id, name string) {
	if id != "" && len(id) <= maxName && len(name) <= maxName && len(p.calls) < maxResults {
		p.calls[id] = name
	}
}

// other notes a model that may answer too.
func (p *parser) other(model string) error {
	if !plainModel(model) {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: fmt.Sprintf("%q is no name for a model", excerpt.Of(model, 64)), Hint: "a name has letters, digits and - . _ : / @, at most 128 of them"}
	}
	for _, have := range p.r.Others {
		if have == model {
			return nil
		}
	}
	if len(p.r.Others) == maxOthers {
		return tooMany("models", maxOthers)
	}
	p.r.Others = append(p.r.Others, model)
	return nil
}
