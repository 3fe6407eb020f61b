package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of an event stream.
const (
	maxEventID   = 1024 // bytes; a longer id is not kept
	maxEventName = 64   // bytes; a longer name is nobody's
	maxRetry     = 30 * time.Second
)

// errLong is what an event that is longer than a message may be ends with.
var errLong = errors.New("an event is longer than a message may be")

// event is one event of a stream that has data.
type event struct {
	name string
	data []byte
}

// events reads an event stream (HTML Living Standard, section 9.2). It holds
// one event; whatever is no message in it is bounded and dropped.
type events struct {
	r *bufio.Reader
	// room is asked before more than n bytes are held, and may refuse.
	room func(n int) error
	// lastID and retry are the stream's own: the id of the last event that
	// said one, and how long the server wants to be left alone before the
	// stream is opened again, 0 where it did not say.
	lastID string
	retry  time.Duration
	begun  bool
	cr     bool // the last line ended with a carriage return
	line   []byte
}

func newEvents(r io.Reader, room func(int) error) *events {
	return &events{r: bufio.NewReader(r), room: room}
}

// next returns the next event with data; its data is the caller's. An event
// that the stream's end cuts off is dropped, as the standard has it.
func (e *events) next() (event, error) {
	var ev event
	var data []byte
	id, named, some := "", false, false
	for {
		if err := e.readLine(len(data)); err != nil {
			return event{}, err
		}
		if len(e.line) == 0 {
			if named {
				e.lastID = id
			}
			if some {
				ev.data = data
				return ev, nil
			}
			ev, named = event{}, false
			continue
		}
		field, value := split(e.line)
		switch string(field) {
		case "data":
			if len(data)+len(value)+1 > mcp.MaxLine+1 {
				return event{}, errLong
			}
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		case "event":
			ev.name = ""
			if ev.name = string(value[:min(len(value), maxEventName+1)]); !utf8.ValidString(ev.name) {
				ev.name = "?"
			}
		case "id":
			if eventID(value) {
				id, named = string(value), true
			}
		case "retry":
			if d, ok := milliseconds(value); ok {
				e.retry = d
			}
		}
	}
}

// eventID says whether an id is kept: it must do as a header's value.
func eventID(v []byte) bool { return len(v) <= maxEventID && isPlain(string(v)) }

// milliseconds reads the digits of a retry field, bounded.
func milliseconds(v []byte) (time.Duration, bool) {
	if len(v) == 0 || len(v) > 9 || len(bytes.Trim(v, "0123456789")) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(v))
	return min(time.Duration(n)*time.Millisecond, maxRetry), err == nil
}

// split parts a line into its field and value. A comment has an empty field.
func split(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte(":"))
	return field, bytes.TrimPrefix(value, []byte(" "))
}

// readLine reads one line without its end into e.line, beside held bytes of
// the event so far. A line that the stream's end cuts off is an error.
func (e *events) readLine(held int) error {
	e.line = e.line[:0]
	if cap(e.line) > smallMessage {
		e.line = nil
	}
	for {
		if _, err := e.r.Peek(1); err != nil {
			return err
		}
		buf, _ := e.r.Peek(e.r.Buffered())
		if e.cr {
			e.cr = false
			if buf[0] == '\n' {
				_, _ = e.r.Discard(1)
				continue
			}
		}
		if !e.begun {
			if skip, err := e.mark(buf); err != nil || skip {
				if err != nil {
					return err
				}
				continue
			}
		}
		end := bytes.IndexAny(buf, "\r\n")
		part := buf
		if end >= 0 {
			part = buf[:end]
		}
		if len(e.line)+len(part) > mcp.MaxLine+len("data: ") {
			return errLong
		}
		if err := e.room(held + len(e.line) + len(part)); err != nil {
			return err
		}
		e.line = append(e.line, part...)
		if end < 0 {
			_, _ = e.r.Discard(len(buf))
			continue
		}
		e.cr = buf[end] == '\r'
		_, _ = e.r.Discard(end + 1)
		return nil
	}
}

// mark passes over a byte order mark at the stream's start.
func (e *events) mark(buf []byte) (skip bool, err error) {
	e.begun = true
	if buf[0] != 0xEF {
		return false, nil
	}
	if buf, err = e.r.Peek(3); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if bytes.Equal(buf, []byte("\xEF\xBB\xBF")) {
		_, _ = e.r.Discard(3)
		return true, nil
	}
	return false, nil
}
