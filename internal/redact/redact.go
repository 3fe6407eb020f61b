// Package redact masks what must not be written, sent or shown. It is the one
// door: the ledger accepts only what it made.
package redact

// Record is a document that passed the engine. The zero Record is empty and
// is refused by every store; only an Engine makes another (D14a).
type Record struct{ b []byte }

// Bytes returns the document. The caller must not change it.
func (r Record) Bytes() []byte { return r.b }
