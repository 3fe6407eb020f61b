package cleaner

import (
	"errors"

	"github.com/holdfast-dev/holdfast"
)

// NewEngineError returns the RedactionError of a row without an engine.
func NewEngineError() *holdfast.Error {
	return AsRedactionError(errors.New("there is no redaction engine"))
}

// NewTargetError returns the DomainBlockedError of a URL in which a finding cannot be masked.
func NewTargetError() *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "redact/url",
		Why: "the request's URL holds what must not leave", Hint: "send secrets and personal data in no URL"}
}

// AsRedactionError returns err as a RedactionError: an engine's own error already is one.
func AsRedactionError(err error) *holdfast.Error {
	var e *holdfast.Error
	if errors.As(err, &e) && e.Kind == holdfast.KindRedaction {
		return e
	}
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact", Err: err,
		Why: "what was to be sent or shown could not be redacted", Hint: "nothing was sent or shown",
	}
}

// AsRequestError returns the error of a request's body. One that cannot be searched completely is refused as a
// DomainBlockedError; a RedactionError stays for an engine that failed.
func AsRequestError(err error) *holdfast.Error {
	failed := *AsRedactionError(err)
	if failed.Rule == "redact/unscannable" || failed.Rule == "redact/duplicate" {
		failed.Kind, failed.Gate = holdfast.KindDomainBlocked, holdfast.K2
	}
	return &failed
}

// IsUnscannable reports whether err is of a body that cannot be read completely.
func IsUnscannable(err error) bool {
	var e *holdfast.Error
	return errors.As(err, &e) && e.Rule == "redact/unscannable"
}
