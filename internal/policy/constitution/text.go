package constitution

// Text is all that a rule says and nothing of where it stands: what its version
// is the hash of, so that a text which is kept can be held against the version
// that a record names (D44).
type Text struct {
	ID       string `json:"id"`
	On       On     `json:"on"`
	Boundary string `json:"boundary"`
	When     string `json:"when"`
	Severity string `json:"severity"`
	Mode     string `json:"mode"`
	OnError  string `json:"on_error"`
	Label    string `json:"label,omitempty"` // the file's own `version`
	Message  string `json:"message,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// Version is the SHA-256 of the text, 64 hex digits.
func (t Text) Version() string {
	return digest(t.ID, string(t.On), t.Boundary, t.When, t.Severity, t.Mode, t.OnError, t.Label, t.Message, t.Hint)
}

// Texts are those of all rules, in their order; the slice is the caller's.
func (s *Set) Texts() []Text {
	texts := make([]Text, 0, len(s.rules))
	for _, r := range s.rules {
		texts = append(texts, r.text())
	}
	return texts
}

func (r *rule) text() Text {
	i := r.info
	return Text{ID: i.ID, On: i.On, Boundary: i.Boundary, When: i.When, Severity: i.Severity, Mode: i.Mode, OnError: i.OnError,
		Label: i.Label, Message: r.message, Hint: r.hint}
}
