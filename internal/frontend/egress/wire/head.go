package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// Head is what wire found in a request's line and header.
type Head struct {
	// Mistake is why the request cannot be handed on; nil for none.
	Mistake error
	method  string
	Target  string
	// Host is the Host header as it stood, "" for none: net/http forgets it
	// where the target has a host of its own.
	Host    string
	Hosts   int
	old     bool // HTTP/1.0
	connect bool
	Upgrade bool
	chunked bool
	sized   bool
	length  int64
	// rest is the fields as they stood, without Host.
	rest []byte
}

// handed is the head that net/http gets: with the same method and fields, and
// in the place of target and Host what it cannot find fault with. Those two are
// read by this package alone, once, from the text as it stood.
func (h *Head) handed() []byte {
	target, version := "/", "1"
	if h.connect {
		target = "checked.invalid:1"
	}
	if h.old {
		version = "0"
	}
	return fmt.Appendf(nil, "%s %s HTTP/1.%s\r\nHost: checked.invalid\r\n%s\r\n", h.method, target, version, h.rest)
}

const maxFields = 256

// headEnd is the length of the head that b begins with, 0 where more is needed.
// The first from bytes were looked at before.
func headEnd(b []byte, from int) (int, error) {
	if b[0] == '\r' || b[0] == '\n' {
		return 0, Malformed("a blank line stands before it")
	}
	rest := b[from:]
	i := bytes.Index(rest, []byte("\n\r\n"))
	if j := bytes.Index(rest, []byte("\n\n")); j >= 0 && (i < 0 || j < i) {
		return 0, Malformed("a line ends with a bare LF")
	}
	switch {
	case i >= 0 && from+i+3 <= MaxHead:
		return from + i + 3, nil
	case i >= 0 || len(b) > MaxHead:
		return 0, &holdfast.Error{Kind: holdfast.KindPayloadTooLarge, Gate: holdfast.K1,
			Why: fmt.Sprintf("the request's header is larger than %d bytes", MaxHead), Hint: "send less in cookies and in the URL"}
	}
	return 0, nil
}

// read reads a whole head. Its error is a ValidationError.
func (h *Head) read(b []byte) error {
	for n := 0; len(b) > 0; n++ {
		i := bytes.IndexByte(b, '\n')
		line := b[:i]
		b = b[i+1:]
		if i == 0 || line[i-1] != '\r' {
			return Malformed("a line ends with a bare LF")
		}
		line = line[:i-1]
		if bytes.ContainsAny(line, "\r\x00") {
			return Malformed("a line holds a CR or a NUL")
		}
		var err error
		switch {
		case n == 0:
			err = h.line(string(line))
		case len(line) == 0:
			return h.whole()
		case n > maxFields:
			err = Malformed(fmt.Sprintf("there are more than %d header fields", maxFields))
		default:
			err = h.field(line)
			if name, _, _ := bytes.Cut(line, []byte(":")); !bytes.EqualFold(name, []byte("host")) {
				h.rest = append(append(h.rest, line...), '\r', '\n')
			}
		}
		if err != nil {
			return err
		}
	}
	return Malformed("the header has no end")
}

// line reads the request's first line.
func (h *Head) line(s string) error {
	parts := strings.Split(s, " ")
	if len(parts) != 3 || parts[1] == "" {
		return Malformed("its first line is not a method, a target and a version with one space between them")
	}
	h.method, h.Target = parts[0], parts[1]
	if !isToken(h.method) {
		return Malformed("its method is not a word")
	}
	for i := range len(h.Target) {
		if c := h.Target[i]; c <= ' ' || c >= 0x7f {
			return Malformed("its target holds a byte that is not visible ASCII")
		}
	}
	switch parts[2] {
	case "HTTP/1.1":
	case "HTTP/1.0":
		h.old = true
	default:
		return Malformed("its version is not HTTP/1.1 or HTTP/1.0; HTTP/2 is spoken over TLS, by ALPN")
	}
	h.connect = h.method == "CONNECT"
	return nil
}

// field reads one header field.
func (h *Head) field(line []byte) error {
	if line[0] == ' ' || line[0] == '\t' {
		return Malformed("a header field is folded over two lines")
	}
	name, value, ok := strings.Cut(string(line), ":")
	if !ok || !isToken(name) {
		return Malformed("a header field's name is not a word before a colon")
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return Malformed(fmt.Sprintf("the header field %.40s holds a control character", name))
		}
	}
	return h.meaning(strings.ToLower(name), value)
}

// meaning takes the fields that say where a request goes and where it ends.
func (h *Head) meaning(name, value string) error {
	switch name {
	case "host":
		h.Hosts++
		h.Host = value
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 63)
		if h.sized || err != nil || value[0] == '+' {
			return Malformed("Content-Length does not stand there once, as one number")
		}
		h.sized, h.length = true, int64(n)
	case "transfer-encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return Malformed("Transfer-Encoding is not chunked alone")
		}
		h.chunked = true
	case "trailer":
		return Malformed("it announces a trailer, which is not passed on")
	case "expect":
		if !strings.EqualFold(value, "100-continue") {
			return Malformed("it expects something else than 100-continue")
		}
	case "upgrade":
		if h.Upgrade || !strings.EqualFold(value, "websocket") {
			return Malformed("it asks to upgrade to something else than WebSocket")
		}
		h.Upgrade = true
	case "http2-settings":
		return Malformed("it asks to upgrade to HTTP/2 without TLS")
	}
	return nil
}

// whole looks at what only all fields together tell.
func (h *Head) whole() error {
	switch {
	case h.Hosts > 1:
		return Malformed("Host stands there more than once")
	case h.Hosts == 0 && !h.old:
		return Malformed("it has no Host")
	case h.chunked && h.sized:
		return Malformed("it has both a Content-Length and a Transfer-Encoding")
	case h.chunked && h.old:
		return Malformed("HTTP/1.0 has no Transfer-Encoding")
	case (h.connect || h.Upgrade) && (h.chunked || h.length > 0):
		return Malformed("a CONNECT or an upgrade has no body")
	}
	return nil
}

// isToken says whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}
