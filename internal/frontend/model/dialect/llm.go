// Package dialect knows what models are asked and answer on the wire: the public
// formats of Anthropic (messages, token counting, models) and OpenAI (responses,
// chat completions, completions, embeddings, token counting, models), as of
// November 2026. It reads requests for what they can cost at most, and answers for
// what they did cost, and writes refusals as the provider would, so that the
// provider's own client libraries understand them.
//
// It is pure: bytes in, facts out. Everything that it reads is bounded in size and
// depth, and what it cannot read is never cheaper than what it can (D24).
package dialect

import (
	"net/url"
	stdpath "path"
	"strings"
)

// Provider says whose formats are spoken. The zero value is nobody's.
type Provider uint8

// The providers.
const (
	NoProvider Provider = iota
	Anthropic
	OpenAI
)

// String is the provider's name in configuration and in the gateway's paths:
// "anthropic", "openai", or "" for none.
func (p Provider) String() string {
	switch p {
	case Anthropic:
		return "anthropic"
	case OpenAI:
		return "openai"
	}
	return ""
}

// ProviderNamed returns the provider that String names so, or NoProvider.
func ProviderNamed(name string) Provider {
	for _, p := range []Provider{Anthropic, OpenAI} {
		if p.String() == name {
			return p
		}
	}
	return NoProvider
}

// ProviderAt returns the provider whose own API stands at a host's canonical name,
// or NoProvider.
func ProviderAt(host string) Provider {
	switch host {
	case "api.anthropic.com":
		return Anthropic
	case "api.openai.com", "us.api.openai.com", "eu.api.openai.com":
		return OpenAI
	}
	return NoProvider
}

// Dialect is one format of request and answer. The zero value is none that is
// known: what such a request costs nobody can say beforehand.
type Dialect uint8

// The dialects.
const (
	Unknown     Dialect = iota
	Messages            // POST /v1/messages
	CountTokens         // POST /v1/messages/count_tokens: costs nothing
	Responses           // POST /v1/responses
	InputTokens         // POST /v1/responses/input_tokens: costs nothing
	Chat                // POST /v1/chat/completions
	Completions         // POST /v1/completions
	Embeddings          // POST /v1/embeddings
	Models              // GET /v1/models and one of them: costs nothing, has no body
)

var names = [...]string{"unknown", "messages", "count_tokens", "responses", "input_tokens", "chat", "completions", "embeddings", "models"}

// String is the dialect's name in records.
func (d Dialect) String() string {
	if int(d) < len(names) {
		return names[d]
	}
	return names[Unknown]
}

// Of returns the dialect of a request to the provider, by its method and its path
// as it goes out, without the query; Unknown for every other one.
func Of(p Provider, method, path string) Dialect {
	if method == "GET" && p != NoProvider && (path == "/v1/models" || oneModel(path)) {
		return Models
	}
	if method != "POST" {
		return Unknown
	}
	switch p {
	case Anthropic:
		switch path {
		case "/v1/messages":
			return Messages
		case "/v1/messages/count_tokens":
			return CountTokens
		}
	case OpenAI:
		switch path {
		case "/v1/responses":
			return Responses
		case "/v1/responses/input_tokens":
			return InputTokens
		case "/v1/chat/completions":
			return Chat
		case "/v1/completions":
			return Completions
		case "/v1/embeddings":
			return Embeddings
		}
	}
	return Unknown
}

// Resembles is the path of a dialect that is asked by POST which some servers would
// find at path too: in other letters, escaped, with slashes or parameters that they
// drop. It is "" where there is none, or path is that path itself.
func Resembles(path string) string {
	plain := path
	for range 3 { // one of them may be escaped more than once
		was, err := url.PathUnescape(plain)
		if err != nil {
			break
		}
		plain = was
	}
	parts := strings.Split(strings.ToLower(strings.ReplaceAll(plain, "\\", "/")), "/")
	for i := range parts {
		parts[i], _, _ = strings.Cut(parts[i], ";")
		if parts[i] = strings.TrimRight(parts[i], " \t\r\n\x00"); parts[i] != ".." {
			parts[i] = strings.TrimRight(parts[i], ".")
		}
	}
	plain = stdpath.Clean("/" + strings.Join(parts, "/"))
	for _, p := range [...]Provider{Anthropic, OpenAI} {
		if plain != path && Of(p, "POST", plain) != Unknown {
			return plain
		}
	}
	return ""
}

// oneModel says whether the path is /v1/models/ and a plain name.
func oneModel(path string) bool {
	name, ok := strings.CutPrefix(path, "/v1/models/")
	return ok && plainModel(name) && !strings.Contains(name, "/") && !strings.Contains(name, "..")
}

// Provider returns whose dialect it is. Models is said to be nobody's: both have
// it.
func (d Dialect) Provider() Provider {
	switch d {
	case Messages, CountTokens:
		return Anthropic
	case Responses, InputTokens, Chat, Completions, Embeddings:
		return OpenAI
	}
	return NoProvider
}

// converses says whether a request is one conversation, which the model reads at
// once.
func (d Dialect) converses() bool { return d == Messages || d == Responses || d == Chat }

// Free says whether the provider charges nothing for requests of the dialect.
func (d Dialect) Free() bool { return d == CountTokens || d == InputTokens || d == Models }

const maxModel = 128

// plainModel says whether a model's name is one that prices and records can name.
func plainModel(s string) bool {
	if s == "" || len(s) > maxModel {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._:/@", rune(c)) {
			return false
		}
	}
	return true
}
