package format

import (
	"bytes"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// maxMessageHead bounds the head of what is taken for a message of mail without
// being said to be one.
const maxMessageHead = 16 << 10

// isMessage says whether b is a message of mail (RFC 5322): one that is said to be,
// or a text that begins as one whose content is in parts, in base64 or
// quoted-printable (RFC 2045), which only its head tells.
func isMessage(kind string, b []byte) bool {
	return kind == "message/rfc822" || kind == "message/global" || looksMessage(b)
}

func looksMessage(b []byte) bool {
	b = b[:min(len(b), maxMessageHead)]
	tells := false
	for i := 0; i < len(b); {
		end, next := lineEnd(b, i)
		line := b[i:end]
		switch i = next; {
		case len(line) == 0:
			return tells
		case char.Class[line[0]]&char.Blank != 0: // of the field before
			tells = tells || wrapsContent(line)
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !isFieldName(name) {
			return false
		}
		switch strings.ToLower(string(name)) {
		case "content-type", "content-transfer-encoding":
			tells = tells || len(bytes.TrimSpace(value)) == 0 || wrapsContent(value)
		}
	}
	return false
}

// wrapsContent says whether a field's value says that the content is not as it
// stands.
func wrapsContent(value []byte) bool {
	low := bytes.ToLower(value[:min(len(value), 256)])
	for _, word := range [...]string{"quoted-printable", "base64", "multipart/", "message/"} {
		if bytes.Contains(low, []byte(word)) {
			return true
		}
	}
	return false
}

// isFieldName says whether a field may be called that (RFC 5322 section 3.6.8).
func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 76
}

// message redacts a message of mail: the fields of its head, and its content by
// what they say of it.
func (n *nest) message(b []byte, level int, opaque bool) (finding.Result, error) {
	if level >= maxLevels {
		return finding.Result{}, unscannable("mail in mail more than 4 times", nil)
	}
	d := draft{in: b}
	head, body := splitHead(b, 0, len(b))
	p, err := n.partHead(&d, 0, head, level)
	if err != nil {
		return finding.Result{}, err
	}
	r, err := n.content(p, b[body:], level, opaque)
	if err != nil {
		return finding.Result{}, within(err, "the content of a message")
	}
	d.take(body, len(b), r)
	return d.result(), nil
}
