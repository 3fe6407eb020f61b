package codingtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ListAnswer returns the events of an answer as a host reads them: each text and each call's arguments in one piece,
// the other events as they are. What the model thought is left out.
func ListAnswer(stream string) (list []string, err error) {
	var piece string
	var at any
	flush := func() {
		if piece != "" {
			list = append(list, fmt.Sprintf("in pieces %v: %s", at, piece))
		}
		piece = ""
	}
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var event document
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, fmt.Errorf("cannot read event %s: %w", data, err)
		}
		index, more := event["output_index"], ""
		if event["type"] == "content_block_delta" {
			index = event["index"]
			delta, _ := event["delta"].(document)
			if delta["type"] == "thinking_delta" {
				continue
			}
			text, _ := delta["text"].(string)
			arguments, _ := delta["partial_json"].(string)
			more = text + arguments
		} else {
			more, _ = event["delta"].(string)
		}
		if at != index {
			flush()
			at = index
		}
		if piece += more; more == "" {
			flush()
			list = append(list, encodeArguments(dropThoughts(event)))
		}
	}
	flush()
	return list, nil
}

// dropThoughts returns a value without summaries of what the model thought.
func dropThoughts(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = dropThoughts(v[i])
		}
	case document:
		delete(v, "summary")
		for name := range v {
			v[name] = dropThoughts(v[name])
		}
	}
	return v
}
