package egress

import (
	"mime"
	"strings"
)

// mediaKind is a content type's own name and parameters, lower-case; what cannot
// be parsed is in a character set that nobody knows.
func mediaKind(contentType string) (string, map[string]string) {
	if contentType == "" {
		return "", nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		head, _, _ := strings.Cut(contentType, ";")
		return strings.ToLower(strings.TrimSpace(head)), map[string]string{"charset": "?"}
	}
	return kind, params
}

// isLines says whether an answer comes as one JSON document a line.
func isLines(kind string) bool {
	switch kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/json-seq",
		"application/stream+json", "application/x-json-stream":
		return true
	}
	return false
}
