// Package providertest is a provider of models for tests: what Anthropic's and OpenAI's
// public interfaces answer, in the shapes that both document as of November 2026,
// and a server that gives them.
package providertest

import (
	"bufio"
	"bytes"
	"embed"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed shapes/*.http
var shapes embed.FS

// Shape is one answer.
type Shape struct {
	// Name is what it is kept under, such as "messages_text_stream".
	Name   string
	Status int
	Header http.Header
	Body   []byte
}

// Stream says that the answer comes as events.
func (s Shape) Stream() bool {
	return strings.HasPrefix(s.Header.Get("Content-Type"), "text/event-stream")
}

// Events are the answer's events, each with the blank line after it; the whole body
// of an answer that is no stream.
func (s Shape) Events() [][]byte {
	if !s.Stream() {
		return [][]byte{s.Body}
	}
	var out [][]byte
	for _, e := range bytes.SplitAfter(s.Body, []byte("\n\n")) {
		if len(e) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// Read returns the answer of that name; it panics where there is none.
func Read(name string) Shape {
	raw, err := shapes.ReadFile("shapes/" + name + ".http")
	if err != nil {
		panic(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return Shape{name, resp.StatusCode, resp.Header, body}
}

// Names are the names of all answers.
func Names() []string {
	var out []string
	entries, err := fs.ReadDir(shapes, "shapes")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".http"))
	}
	return out
}
