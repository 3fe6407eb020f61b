package modeltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast"
)

// maxDepth is the deepest nesting of a document, as for dialect.Parse.
const maxDepth = 128

// documentReader reads a JSON document once, from start to end. It rejects a name twice
// in an object, invalid UTF-8 and a depth beyond maxDepth.
type documentReader struct {
	d *jsontext.Decoder
}

// newDocumentReader returns a reader of doc, which it does not copy.
func newDocumentReader(doc []byte) documentReader {
	return documentReader{jsontext.NewDecoder(bytes.NewBuffer(doc))}
}

// openContainer reads the start of an object or a list.
func (r documentReader) openContainer(kind jsontext.Kind) error {
	if r.d.StackDepth() >= maxDepth {
		return newTooDeep()
	}
	if k := r.d.PeekKind(); k != kind && k != jsontext.KindInvalid {
		return newMalformed("expected a JSON object", nil)
	}
	return r.readToken()
}

func (r documentReader) readToken() error {
	if _, err := r.d.ReadToken(); err != nil {
		return newMalformed("invalid JSON", err)
	}
	return nil
}

// readScalar reads a string or another value without parts, and where it starts.
func (r documentReader) readScalar() (v []byte, err error) {
	if v, err = r.d.ReadValue(); err != nil {
		return nil, newMalformed("invalid JSON", err)
	}
	return v, nil
}

func (r documentReader) skipValue() error {
	for depth := r.d.StackDepth(); ; {
		if err := r.readToken(); err != nil {
			return err
		}
		if r.d.StackDepth() > maxDepth {
			return newTooDeep()
		}
		if r.d.StackDepth() <= depth {
			return nil
		}
	}
}

// readEnd returns an error if data follows the document.
func (r documentReader) readEnd() error {
	if _, err := r.d.ReadToken(); err != io.EOF {
		return newMalformed("data follows the JSON document", nil)
	}
	return nil
}

func newMalformed(why string, err error) error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Why: "cannot read the request's texts: " + why,
		Hint: "send one JSON object in valid UTF-8 without repeated names", Err: err}
}

func newTooDeep() error {
	return &holdfast.Error{Kind: holdfast.KindPayloadTooLarge,
		Why: fmt.Sprintf("the request is nested more than %d levels deep", maxDepth), Hint: "send a flatter request"}
}

func newTooMany(what string, most int) error {
	return &holdfast.Error{Kind: holdfast.KindPayloadTooLarge,
		Why: fmt.Sprintf("the request has more than %d %s", most, what), Hint: "send a smaller request"}
}

func newUnknownFormat() error {
	return &holdfast.Error{Kind: holdfast.KindValidation, Why: "unknown model API format",
		Hint: "use a path such as /v1/messages, /v1/responses or /v1/chat/completions"}
}

// newAnswerError returns err with a reason that speaks of an answer instead of a request.
func newAnswerError(err error) error {
	kind := holdfast.KindValidation
	if e := (*holdfast.Error)(nil); errors.As(err, &e) {
		kind = e.Kind
	}
	return &holdfast.Error{Kind: kind, Why: "cannot read the texts of the model's answer",
		Hint: "see the log for the cause", Err: err}
}
