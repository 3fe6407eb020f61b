package cleaner

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// NewEngineError returns the RedactionError of a row without an engine.
func NewEngineError() *holdfast.Error {
	return AsRedactionError(errors.New("there is no redaction engine"))
}

// NewTargetError returns the RedactionError of a URL in which a finding cannot be masked.
func NewTargetError() *holdfast.Error {
	return &holdfast.Error{Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/url",
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

// IsUnscannable reports whether err is of a body that cannot be read completely.
func IsUnscannable(err error) bool {
	var e *holdfast.Error
	return errors.As(err, &e) && e.Rule == "redact/unscannable"
}

// RefuseFound returns the DomainBlockedError of a message in which something was found that d refuses.
func RefuseFound(d *domain.Domain, where string, found []redact.Finding) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/found",
		Why:  fmt.Sprintf("%s holds what %s may not have: %v", where, d.Name, redact.Result{Findings: found}.Rules()),
		Hint: "leave it out; the domain says `refuse` where others redact",
	}
}
