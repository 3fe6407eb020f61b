package coding

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// IsDocument reports whether a kind must be read as one document to be read right.
func IsDocument(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json") ||
		kind == "application/x-www-form-urlencoded" || strings.HasPrefix(kind, "multipart/")
}

// IsTextual reports whether a kind is written in characters.
func IsTextual(kind string) bool {
	if strings.HasPrefix(kind, "text/") || IsDocument(kind) || strings.HasSuffix(kind, "+xml") {
		return true
	}
	switch kind {
	case "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/graphql", "application/yaml",
		"application/x-yaml", "application/toml", "application/sql", "application/x-sh", "application/rtf":
		return true
	}
	return false
}

// IsReadableSet reports whether ASCII stands as ASCII in a character set, so that a
// stream sees it.
func IsReadableSet(name string) bool {
	name = strings.ToLower(name)
	for _, head := range [...]string{"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "windows-125"} {
		if strings.HasPrefix(name, head) {
			return true
		}
	}
	return name == ""
}

// LooksBinary reports whether the beginning of a body is binary: it has a NUL, or
// more control bytes or broken UTF-8 than text has.
func LooksBinary(b []byte) bool {
	bad := 0
	for i := 0; i < len(b); {
		r, w := utf8.DecodeRune(b[i:])
		switch {
		case r == 0:
			return true
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0x1b && r != 0x1e:
			bad++
		case r == utf8.RuneError && w == 1 && i+utf8.UTFMax <= len(b):
			bad++
		}
		i += w
	}
	return bad*8 > len(b)
}

// IsBinary reports whether b is not UTF-8 text: what a row that allows binary
// bodies lets pass. Text that cannot be read is refused there too.
func IsBinary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) }

// IsPackets reports whether a body is of Git's protocol over HTTP: lines, each behind
// its own length in four hexadecimal digits (gitprotocol-http and -common). What
// is masked in one is longer or shorter than it says, and no one can read the
// rest, so that it is treated as binary, though a list of branches looks like one.
func IsPackets(contentType string, b []byte) bool {
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "application/x-git-") || len(b) < 4 {
		return false
	}
	return strings.Trim(string(b[:4]), "0123456789abcdefABCDEF") == ""
}
