package dialect

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// walk goes through a document once, from its beginning to its end. It takes no
// member twice, no invalid UTF-8 and no depth beyond maxDepth.
type walk struct {
	d    *jsontext.Decoder
	last int64 // where the last member of the document ends, in bytes
}

func newWalk(doc []byte) *walk { return &walk{d: jsontext.NewDecoder(bytes.NewBuffer(doc))} }

// object gives each member's name to each, which must read its value.
func (w *walk) object(each func(name string) error) error {
	if err := w.open(jsontext.KindBeginObject, "an object"); err != nil {
		return err
	}
	for w.d.PeekKind() == jsontext.KindString {
		v, err := w.d.ReadValue()
		if err != nil {
			return unreadable(err)
		}
		name, err := unquoted(v)
		if err != nil {
			return err
		}
		if like := likeness(name); like != "" {
			return bad(excerpt.Of(name, 64)+" is "+like+" to some servers, and none to others", "write "+like+" in small letters")
		}
		if err := each(name); err != nil {
			return err
		}
		if w.d.StackDepth() == 1 {
			w.last = w.d.InputOffset()
		}
	}
	return w.close()
}

// likeness is the member that bounds what a request costs, or says what it asks, of
// which name is another spelling: servers that read names in any case take it for that
// one. It is "" for every other name.
func likeness(name string) string {
	plain := true
	for _, c := range []byte(name) {
		plain = plain && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
	}
	if plain {
		return ""
	}
	for _, member := range [...]string{
		"model", "max_tokens", "max_completion_tokens", "max_output_tokens", "max_tool_calls", "max_uses", "stream", "stream_options", "include_usage",
		"n", "best_of", "messages", "system", "input", "prompt", "tools", "functions", "thinking", "speed", "inference_geo", "service_tier", "fallbacks",
		"mcp_servers", "container", "compaction", "context_management", "edits", "cache_control", "ttl", "prompt_cache_options", "web_search_options",
		"prediction", "modalities", "reasoning", "reasoning_effort", "effort", "mode", "previous_response_id", "conversation", "background", "multi_agent",
		"type", "role", "content", "source", "data", "name", "id", "image_url", "url", "file", "file_data", "output", "execution", "environment",
	} {
		if strings.EqualFold(name, member) {
			return member
		}
	}
	return ""
}

// list calls each for every element, which it must read.
func (w *walk) list(each func() error) error {
	if err := w.open(jsontext.KindBeginArray, "a list"); err != nil {
		return err
	}
	for k := w.d.PeekKind(); k != jsontext.KindEndArray && k != jsontext.KindInvalid; k = w.d.PeekKind() {
		if err := each(); err != nil {
			return err
		}
	}
	return w.close()
}

func (w *walk) open(kind jsontext.Kind, what string) error {
	if w.d.StackDepth() >= maxDepth {
		return tooDeep()
	}
	if k := w.d.PeekKind(); k != kind && k != jsontext.KindInvalid {
		return bad("a member of the request is not "+what, "send what the provider's reference says")
	}
	if _, err := w.d.ReadToken(); err != nil {
		return unreadable(err)
	}
	return nil
}

func (w *walk) close() error {
	if _, err := w.d.ReadToken(); err != nil {
		return unreadable(err)
	}
	return nil
}

// skip goes over one value.
func (w *walk) skip() error {
	for depth := w.d.StackDepth(); ; {
		if _, err := w.d.ReadToken(); err != nil {
			return unreadable(err)
		}
		if w.d.StackDepth() > maxDepth {
			return tooDeep()
		}
		if w.d.StackDepth() <= depth {
			return nil
		}
	}
}

// end holds that nothing follows the document.
func (w *walk) end() error {
	if _, err := w.d.ReadToken(); err != io.EOF {
		return bad("something stands behind the request's JSON", "send one document")
	}
	return nil
}

func (w *walk) is(kinds ...jsontext.Kind) bool {
	have := w.d.PeekKind()
	for _, k := range kinds {
		if k == have {
			return true
		}
	}
	return false
}

// null reads a null, if that is what stands there: such a member is absent.
func (w *walk) null() bool {
	if !w.is(jsontext.KindNull) {
		return false
	}
	_, err := w.d.ReadToken()
	return err == nil
}

// short reads a string of which no more than its first bytes are of interest.
func (w *walk) short() (string, error) {
	if w.null() {
		return "", nil
	}
	v, err := w.value(jsontext.KindString, "a string")
	if err != nil {
		return "", err
	}
	if len(v) > 8*maxName {
		return excerpt.Of(string(v[1:8*maxName]), 8*maxName), nil
	}
	return unquoted(v)
}

// size goes over one value and says how many bytes it takes.
func (w *walk) size() (int64, error) {
	if w.is(jsontext.KindString) {
		v, err := w.value(jsontext.KindString, "a string")
		return int64(len(v)), err
	}
	before := w.d.InputOffset()
	err := w.skip()
	return w.d.InputOffset() - before, err
}

// nonempty goes over one value and says whether it is anything but a null, an empty
// list, object or string.
func (w *walk) nonempty() (bool, error) {
	any := false
	switch {
	case w.null():
		return false, nil
	case w.is(jsontext.KindBeginArray):
		err := w.list(func() error { any = true; return w.skip() })
		return any, err
	case w.is(jsontext.KindBeginObject):
		err := w.object(func(string) error { any = true; return w.skip() })
		return any, err
	case w.is(jsontext.KindString):
		s, err := w.short()
		return s != "", err
	}
	return true, w.skip()
}

// whole reads a whole number of at least 0. ok is false for a null.
func (w *walk) whole(name string) (n int64, at span, ok bool, err error) {
	if w.is(jsontext.KindNull) {
		v, err := w.d.ReadValue()
		if err != nil {
			return 0, span{}, false, unreadable(err)
		}
		return 0, w.spanOf(v), false, nil
	}
	v, err := w.value(jsontext.KindNumber, "a number")
	if err != nil {
		return 0, span{}, false, err
	}
	n, err = strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		return 0, span{}, false, bad(name+" is no whole number of tokens", "such as 4096")
	}
	return n, w.spanOf(v), true, nil
}

// yes reads a boolean; a null is false.
func (w *walk) yes() (bool, span, error) {
	if !w.is(jsontext.KindTrue, jsontext.KindFalse, jsontext.KindNull) {
		return false, span{}, w.wrong("true or false")
	}
	v, err := w.d.ReadValue()
	if err != nil {
		return false, span{}, unreadable(err)
	}
	return v.Kind() == jsontext.KindTrue, w.spanOf(v), nil
}

func (w *walk) value(kind jsontext.Kind, what string) (jsontext.Value, error) {
	if k := w.d.PeekKind(); k != kind && k != jsontext.KindInvalid {
		return nil, w.wrong(what)
	}
	v, err := w.d.ReadValue()
	if err != nil {
		return nil, unreadable(err)
	}
	return v, nil
}

func (w *walk) wrong(what string) error {
	return bad(excerpt.Of(string(w.d.StackPointer()), 64)+" is not "+what, "send what the provider's reference says")
}

func (w *walk) spanOf(v jsontext.Value) span {
	end := w.d.InputOffset()
	return span{end - int64(len(v)), end}
}

func unquoted(v jsontext.Value) (string, error) {
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", unreadable(err)
	}
	return string(b), nil
}

func unreadable(err error) error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Why: "the request is no JSON that can be read", Hint: "send one object without repeated members, in valid UTF-8", Err: err}
}

func tooDeep() error {
	return &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Why: "the request is nested too deeply", Hint: "a request is at most " + strconv.Itoa(maxDepth) + " levels deep"}
}
