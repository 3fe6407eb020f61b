package redaction

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
)

// measureGorilla measures the function-calling sets of BFCL: each question with functions
// is sent as a chat completion and as a message.
func measureGorilla(c *command, b *measure.Run, dir string) ([]measure.Figure, error) {
	s, err := newScanner()
	if err != nil {
		return nil, err
	}
	var n bodyCounts
	data := filepath.Join("berkeley-function-call-leaderboard", "bfcl_eval", "data")
	err = walkFiles(filepath.Join(dir, data), hasExtension(".json"), func(path string, content []byte) error {
		for line := range bytes.Lines(content) {
			if err := b.Ctx.Err(); err != nil {
				return err
			}
			for _, request := range newToolRequests(line) {
				request.path = filepath.ToSlash(filepath.Join(data, path))
				n.checkBody(c, s, "gorilla", request)
			}
		}
		return nil
	})
	return n.listFigures("gorilla"), err
}

// newToolRequests returns the requests of one line; none of a line without functions.
func newToolRequests(line []byte) []body {
	var q struct {
		Question [][]json.RawMessage `json:"question"`
		Function []map[string]any    `json:"function"`
	}
	if json.Unmarshal(line, &q) != nil || len(q.Function) == 0 {
		return nil
	}
	messages := []json.RawMessage{}
	for _, turn := range q.Question {
		messages = append(messages, turn...)
	}
	var chat, named []any
	for _, f := range q.Function {
		schema := repairTypes(f["parameters"])
		f["parameters"] = schema
		chat = append(chat, map[string]any{"type": "function", "function": f})
		named = append(named, map[string]any{"name": f["name"], "description": f["description"],
			"input_schema": schema})
	}
	var list []body
	for d, doc := range map[dialect.Dialect]any{
		dialect.Chat: map[string]any{"model": "gpt-4o", "messages": messages, "tools": chat},
		dialect.Messages: map[string]any{"model": "claude-opus-4", "max_tokens": 1024, "messages": messages,
			"tools": named},
	} {
		if content, err := json.Marshal(doc); err == nil {
			list = append(list, body{dialect: d, media: "application/json", content: content})
		}
	}
	return list
}

// repairTypes replaces the types of Python in a schema by those of JSON Schema.
func repairTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, w := range v {
			if t, ok := schemaTypes[asString(w)]; ok && name == "type" {
				v[name] = t
				continue
			}
			v[name] = repairTypes(w)
		}
	case []any:
		for i := range v {
			v[i] = repairTypes(v[i])
		}
	}
	return v
}

var schemaTypes = map[string]string{"dict": "object", "float": "number", "tuple": "array", "any": "string"}

func asString(v any) string { s, _ := v.(string); return s }
