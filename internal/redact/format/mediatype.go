package format

import (
	"bytes"
	"mime"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
)

// mediaType reads a Content-Type loosely: what cannot be parsed still gives
// its type and its boundary.
func mediaType(contentType string) (kind string, params map[string]string) {
	if contentType == "" {
		return "", nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err == nil {
		return kind, params
	}
	head, rest, _ := strings.Cut(contentType, ";")
	params = map[string]string{}
	for p := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(p, "=")
		params[strings.ToLower(strings.TrimSpace(name))] = strings.Trim(strings.TrimSpace(value), `"`)
	}
	return strings.ToLower(strings.TrimSpace(head)), params
}

// readableSets are the beginnings of the names of character sets in which ASCII is
// written as ASCII.
var readableSets = [...]string{
	"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "iso8859-", "latin", "windows-", "cp125", "koi8-", "shift_jis", "shift-jis", "sjis",
	"euc-", "gb", "big5", "binary", "macintosh", "tis-620",
}

// readableCharset refuses text in a character set that hides ASCII. UTF-16 and
// UTF-32 must show by their bytes.
func readableCharset(name string, b []byte) error {
	name = strings.ToLower(name)
	if name == "" {
		return nil
	}
	for _, head := range readableSets {
		if strings.HasPrefix(name, head) {
			return nil
		}
	}
	if strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32") || strings.HasPrefix(name, "ucs-") {
		if encoded.FindWide(b).Size > 0 {
			return nil
		}
	}
	return unscannable("text in a character set that cannot be read", nil)
}

// maxBoundary is the longest boundary of RFC 2046 section 5.1.1.
const maxBoundary = 70

// boundaryOf returns the boundary of a multipart body: the declared one where
// it occurs, else the one that the body begins with; "" where it is none.
func boundaryOf(kind string, params map[string]string, b []byte) string {
	if s := params["boundary"]; s != "" && strings.HasPrefix(kind, "multipart/") {
		if at, _ := delimiter(b, "--"+s, 0); at >= 0 {
			return s
		}
	}
	t := bytes.TrimLeft(b, "\r\n")
	if !bytes.HasPrefix(t, []byte("--")) {
		return ""
	}
	end := bytes.IndexByte(t[:min(len(t), maxBoundary+4)], '\n')
	if end < 0 {
		return ""
	}
	line := bytes.TrimRight(t[2:end], "\r \t")
	next := t[end+1:]
	if len(line) == 0 || len(next) < 8 || !bytes.EqualFold(next[:8], []byte("content-")) {
		return ""
	}
	if at, _ := delimiter(b, "--"+string(line), 0); at < 0 {
		return ""
	}
	return string(line)
}

// looksForm says whether b can be an urlencoded form: names and values of
// unreserved characters, with an "&" or an escape.
func looksForm(b []byte) bool {
	eq := bytes.IndexByte(b, '=')
	if eq < 1 || bytes.IndexByte(b, '&') < 0 && bytes.IndexByte(b, '%') < 0 {
		return false
	}
	for _, c := range b[:eq] {
		if char.Class[c]&char.URL64 == 0 && !strings.ContainsRune(".%+*~[]", rune(c)) {
			return false
		}
	}
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\' || c == '{' || c == '}' || c == '`' {
			return false
		}
	}
	return true
}

// looksMarkup says whether b begins as XML or HTML does.
func looksMarkup(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 2 && b[0] == '<' && (char.Class[b[1]]&char.Letter != 0 || b[1] == '?' || b[1] == '!')
}

// looksEvents says whether every line of b is one of a stream of events (HTML
// section 9.2), and one holds data.
func looksEvents(b []byte) bool {
	data := false
	for i := 0; i < len(b); {
		end, next := lineEnd(b, i)
		line := b[i:end]
		i = next
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "data":
			data = data || len(line) > 4
		case "event", "id", "retry", "":
		default:
			return false
		}
	}
	return data
}

// lineEnd returns where the line that begins at i ends, and the next begins.
func lineEnd(b []byte, i int) (end, next int) {
	k := bytes.IndexByte(b[i:], '\n')
	if k < 0 {
		return len(b), len(b)
	}
	end = i + k
	if end > i && b[end-1] == '\r' {
		end--
	}
	return end, i + k + 1
}

// looksLines says whether the first of at least two lines is a JSON object or
// array.
func looksLines(b []byte) bool {
	b = bytes.TrimLeft(b, "\r\n\x1e")
	end, next := lineEnd(b, 0)
	line := bytes.TrimSpace(b[:end])
	return next < len(b) && len(line) > 0 && (line[0] == '{' || line[0] == '[') && valid(line)
}
