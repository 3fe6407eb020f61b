package holdfast

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is text that must never be printed: every way of formatting it, JSON
// and slog included, yields REDACTED. Reveal is the only way to the text.
type Secret struct {
	// text is behind a pointer because fmt does not ask a value's own
	// methods when it sits in somebody's unexported field.
	text *string
}

// NewSecret wraps text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text. The caller owns it and must not log it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty says whether there is no text at all.
func (s Secret) Empty() bool { return s.text == nil }

// String returns "REDACTED", or "" for an empty secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return "REDACTED"
}

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString returns String, so that %#v does not print the text.
func (s Secret) GoString() string { return s.String() }

// MarshalText writes String; a secret cannot be written back to a file.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text itself, for configuration files.
func (s *Secret) UnmarshalText(b []byte) error { *s = NewSecret(string(b)); return nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
