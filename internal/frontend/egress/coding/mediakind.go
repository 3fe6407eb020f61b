package coding

import (
	"mime"
	"strings"
)

// MediaKind is a content type's own name and parameters, lower-case; what cannot
// be parsed is in a character set that nobody knows.
func MediaKind(contentType string) (string, map[string]string) {
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

// IsLines says whether an answer comes as one JSON document a line.
func IsLines(kind string) bool {
	switch kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/json-seq",
		"application/stream+json", "application/x-json-stream":
		return true
	}
	return false
}
