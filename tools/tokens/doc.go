// Package tokens measures what texts come to in tokens, by the tokenizers that OpenAI
// has published, cl100k_base and o200k_base. It is a module of its own: Holdfast itself
// counts no tokens, and reserves no text at fewer than its bytes. Its test writes the
// table of doc/models.md, and holds that to what is measured.
package tokens
