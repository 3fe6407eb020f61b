package frames

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// part is a piece of a text that goes on in other events. [start, end) is where
// it stands in the data, quotes included.
type part struct {
	Key        []byte // the place, as a JSON pointer (RFC 6901)
	Start, End int
	Text       []byte
	Quoted     bool
	// Follows says that it is a piece of a text: it has a name by which models
	// give their answers in pieces, or stands in a list or alone.
	Follows bool
}

// Pieces reads the strings of one event's data after the other's. The zero value is
// usable.
type Pieces struct {
	list  []part
	index []byte
	path  []byte  // of the value in hand
	keys  []byte  // of all
	open  []level // the objects and lists that are open
}

// level is an object or a list that is open.
type level struct {
	object  bool
	name    bool // a member's name comes next
	follows bool // the member's name is one of a text in pieces
	indexes bool // the member's name says that its number is an index
	count   int  // of a list
	path    int  // where its own path ends
}

// Of returns the strings of data by their place, and the indices beside them, which
// belong to each place; or, where data is not JSON, all of it. What it returns is
// valid until done; texts may be parts of data.
func (r *Pieces) Of(data []byte) ([]part, []byte) {
	r.list, r.index, r.path, r.keys, r.open = r.list[:0], r.index[:0], r.path[:0], r.keys[:0], r.open[:0]
	if !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return slowPieces(data)
	}
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '{', '[':
			r.step()
			r.open = append(r.open, level{object: c == '{', name: c == '{', path: len(r.path)})
		case '}', ']':
			r.open = r.open[:len(r.open)-1]
		case ',':
			t := &r.open[len(r.open)-1]
			t.name = t.object
		case '"':
			i = r.text(data, i)
			continue
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
			i = r.scalar(data, i)
			continue
		}
		i++
	}
	return r.list, r.index
}

// Done forgets what was read.
func (r *Pieces) Done() {
	clear(r.list)
	if cap(r.list) > 16 || cap(r.keys) > MaxKept {
		*r = Pieces{}
	}
}

// step makes the path that of the value which begins here.
func (r *Pieces) step() {
	if len(r.open) == 0 {
		return
	}
	if t := &r.open[len(r.open)-1]; !t.object {
		r.path = strconv.AppendInt(append(r.path[:t.path], '/'), int64(t.count), 10)
		t.count++
	}
}

// text reads the string whose quote stands at i and returns its end.
func (r *Pieces) text(data []byte, i int) int {
	end := i + 1
	for data[end] != '"' {
		if data[end] == '\\' {
			end++
		}
		end++
	}
	text := data[i+1 : end]
	end++
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		text, _ = jsontext.AppendUnquote(nil, data[i:end])
	}
	follows := true
	if n := len(r.open); n > 0 {
		t := &r.open[n-1]
		if t.name {
			t.name, t.follows, t.indexes = false, comesInPieces(string(text)), bytes.HasSuffix(text, []byte("index"))
			r.path = appendToken(append(r.path[:t.path], '/'), text)
			return end
		}
		follows = !t.object || t.follows
	}
	r.step()
	from := len(r.keys)
	r.keys = append(r.keys, r.path...)
	r.list = append(r.list, part{r.keys[from:len(r.keys):len(r.keys)], i, end, text, true, follows})
	return end
}

// scalar reads the number or the word that begins at i and returns its end.
func (r *Pieces) scalar(data []byte, i int) int {
	end := i + 1
	for end < len(data) && bytes.IndexByte(ofScalars, data[end]) >= 0 {
		end++
	}
	r.step()
	if n := len(r.open); n > 0 && r.open[n-1].object && r.open[n-1].indexes && (data[i] == '-' || data[i]-'0' <= 9) {
		r.index = append(append(append(append(r.index, '|'), r.path...), '='), data[i:end]...)
	}
	return end
}

// ofScalars are the bytes of numbers and words.
var ofScalars = []byte("0123456789+-.Eaeflnrstu")

// appendToken adds a member's name to a pointer.
func appendToken(path, name []byte) []byte {
	for _, c := range name {
		switch c {
		case '~':
			path = append(path, "~0"...)
		case '/':
			path = append(path, "~1"...)
		default:
			path = append(path, c)
		}
	}
	return path
}

// slowPieces is of for what is not one JSON document: it may be several.
func slowPieces(data []byte) (list []part, indices []byte) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var name string
	for {
		kind := d.PeekKind()
		if kind != jsontext.KindString && kind != jsontext.KindNumber {
			if _, err := d.ReadToken(); err == io.EOF {
				break
			} else if err != nil {
				return plainPiece(data), nil
			}
			continue
		}
		parent, length := d.StackIndex(d.StackDepth())
		v, err := d.ReadValue()
		if err != nil {
			return plainPiece(data), nil
		}
		end := int(d.InputOffset())
		switch {
		case parent == jsontext.KindBeginObject && length%2 == 0:
			text, _ := jsontext.AppendUnquote(nil, v)
			name = string(text)
		case kind == jsontext.KindNumber:
			if parent == jsontext.KindBeginObject && strings.HasSuffix(name, "index") {
				indices = append(indices, "|"+string(d.StackPointer())+"="+string(v)...)
			}
		default:
			text, _ := jsontext.AppendUnquote(nil, v)
			follows := parent != jsontext.KindBeginObject || comesInPieces(name)
			list = append(list, part{[]byte(d.StackPointer()), end - len(v), end, text, true, follows})
		}
	}
	return list, indices
}

// plainPiece is data that is no JSON: one piece of text, but for the word by
// which streams say that they end.
func plainPiece(data []byte) []part {
	if string(data) == "[DONE]" {
		return nil
	}
	return []part{{nil, 0, len(data), data, false, true}}
}

// comesInPieces knows the names under which answers come in pieces.
func comesInPieces(name string) bool {
	switch name {
	case "content", "text", "delta", "partial_json", "arguments", "thinking", "reasoning", "reasoning_content", "refusal", "completion",
		"response", "input", "output", "message", "data", "chunk", "token", "body", "value", "generated_text", "output_text", "transcript":
		return true
	}
	return false
}
