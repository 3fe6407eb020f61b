package cleaner

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// maxPlace bounds the name of a place, in bytes.
const maxPlace = 200

// placeInBody names the place of a finding in a body: a JSON pointer, a parameter, a part or a line.
func (c Cleaner) placeInBody(contentType string, body []byte, f redact.Finding) string {
	if f.Offset == 0 && f.Length >= len(body) || f.Offset > len(body) {
		return "the body"
	}
	before := body[:f.Offset]
	switch kind, _ := coding.MediaKind(contentType); {
	case kind == "application/x-www-form-urlencoded":
		return "the body's parameter " + c.showName(parameterAt(string(body), f.Offset))
	case strings.HasPrefix(kind, "multipart/"):
		if _, name, ok := cutLast(before, []byte(`; name="`)); ok {
			if end := bytes.IndexByte(name, '"'); end >= 0 {
				return "the body's part " + c.showName(string(name[:end]))
			}
		}
	}
	if pointer, ok := pointerAt(body, f.Offset); ok {
		return "the body's field " + c.showName(pointer)
	}
	return fmt.Sprintf("line %d of the body", 1+bytes.Count(before, []byte("\n")))
}

// cutLast slices s around the last sep.
func cutLast(s, sep []byte) (before, after []byte, ok bool) {
	if i := bytes.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return nil, nil, false
}

// pointerAt returns the JSON pointer of the value that is at an offset of a JSON document.
func pointerAt(doc []byte, offset int) (string, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return "", false
		}
		if d.InputOffset() > int64(offset) {
			return string(d.StackPointer()), d.StackDepth() > 0
		}
	}
}

// parameterAt returns the name of the parameter that is at an offset of a query or a form.
func parameterAt(s string, offset int) string {
	from := strings.LastIndexAny(s[:offset], "&?;#") + 1
	name := s[from:]
	if end := strings.IndexAny(name, "=&"); end >= 0 {
		name = name[:end]
	}
	if plain, err := url.QueryUnescape(name); err == nil {
		return plain
	}
	return name
}

// placeInURL names the place of a finding in a URL.
func (c Cleaner) placeInURL(u string, f redact.Finding) string {
	host, rest := 0, len(u)
	if i := strings.Index(u, "://"); i >= 0 {
		host = i + len("://")
	}
	if i := strings.IndexAny(u[host:], "/?#"); i >= 0 {
		rest = host + i
	}
	query := strings.IndexAny(u, "?#")
	switch {
	case f.Offset < rest || f.Offset > len(u):
		return "the URL"
	case query >= 0 && f.Offset > query:
		return "the URL's parameter " + c.showName(parameterAt(u, f.Offset))
	}
	return "the URL's path"
}

// placeInHeader names the first field of a header in which something is found that r refuses.
func (c Cleaner) placeInHeader(r Rules, h http.Header) string {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		clean, found := c.Header(http.Header{name: h[name]})
		if len(r.ListRefused(found)) > 0 {
			for shown := range clean {
				return "the header " + c.showName(shown)
			}
		}
	}
	return "the header"
}

// showName returns a name of the message for people: what is found in it is masked, and a long one is cut.
func (c Cleaner) showName(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = string(c.Text([]byte(part)).Out)
	}
	text := c.Text([]byte(strings.Join(parts, "/"))).Out
	text = bytes.ToValidUTF8(text[:min(len(text), maxPlace)], nil)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(text))
}
