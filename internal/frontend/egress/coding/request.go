package coding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
)

// ReadRequest reads and decodes the whole body of r. The size is bounded as it comes and as it is decoded. The
// body takes its memory from share, its decoders from decoders. Errors are a ValidationError (it cannot be
// decoded, or broke off), a PayloadTooLargeError, or refusal.RuleBusy.
func ReadRequest(
	ctx context.Context, r *http.Request, most int64, share, decoders *memory.Share,
) ([]byte, *holdfast.Error) {
	if r.ContentLength > most {
		return nil, NewSizeError("request", most)
	}
	list, err := Parse(r.Header["Content-Encoding"])
	if err != nil {
		// An unknown coding would have to stay, but Content-Encoding is ours to
		// write: the upstream could not learn of it.
		return nil, NewDecodingError(err)
	}
	in, err := Decode(UpTo(r.Body, most), list, decoders)
	if err != nil {
		return nil, asRequestError(most, err)
	}
	defer in.Close()
	raw, err := ReadWhole(in, most, max(r.ContentLength, 0), share.Grow)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, asRequestError(most, err)
	}
	return raw, nil
}

// NewSizeError returns the PayloadTooLargeError of a body with more than most bytes.
func NewSizeError(what string, most int64) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindPayloadTooLarge, Gate: holdfast.K1, Rule: "egress/size",
		Why:  fmt.Sprintf("the %s's body has more than %d bytes", what, most),
		Hint: "the domain's `max_request` and `max_response` set the limits",
	}
}

// NewDecodingError returns the ValidationError of a body that cannot be decoded.
func NewDecodingError(err error) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindValidation, Gate: holdfast.K1, Rule: "egress/encoding", Err: err,
		Why:  "the body could not be read: " + explainDecoding(err),
		Hint: "send it whole, and as it is or in gzip, deflate, br or zstd",
	}
}

func explainDecoding(err error) string {
	switch {
	case errors.Is(err, ErrUnknownCoding), errors.Is(err, ErrManyCodings), errors.Is(err, ErrBomb):
		return err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it broke off"
	}
	return "it is not what its header says"
}

func asRequestError(most int64, err error) *holdfast.Error {
	var tooBig *http.MaxBytesError
	switch {
	case errors.Is(err, ErrTooLarge), errors.As(err, &tooBig):
		return NewSizeError("request", most)
	case errors.Is(err, ErrNoMemory):
		return memory.Busy()
	}
	return NewDecodingError(err)
}
