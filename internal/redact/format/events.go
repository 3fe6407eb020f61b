package format

import (
	"bytes"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

// events redacts a stream of server-sent events that is there as a whole: the
// data of each event is one document, over however many lines. What a model
// says in pieces is read in one piece too. A lone CR ends no line here; text
// that is hidden after one is read with its line.
func (n *nest) events(b []byte, level int) (finding.Result, error) {
	d := draft{in: b}
	number := 0
	for i := 0; i < len(b); {
		end := eventEnd(b, i)
		number++
		if err := n.event(&d, i, end, level); err != nil {
			return finding.Result{}, within(err, "event "+strconv.Itoa(number))
		}
		i = end
	}
	if len(d.findings) > 0 {
		return d.result(), nil // the next reading sees what stands together
	}
	var data []piece
	for i := 0; i < len(b); {
		end, next := lineEnd(b, i)
		if bytes.HasPrefix(b[i:end], []byte("data:")) {
			data = append(data, piece{i + len("data:"), end})
		}
		i = next
	}
	err := n.joined(&d, data, level)
	return d.result(), err
}

// eventEnd returns the end of the event that begins at i, its blank line
// included.
func eventEnd(b []byte, i int) int {
	for i < len(b) {
		end, next := lineEnd(b, i)
		blank := end == i
		if i = next; blank {
			break
		}
	}
	return i
}

// event redacts one event: what is no data as text, then the data.
func (n *nest) event(d *draft, from, to, level int) error {
	var data []piece
	text := from
	for i := from; i < to; {
		end, next := lineEnd(d.in, i)
		if !bytes.HasPrefix(d.in[i:end], []byte("data:")) {
			i = next
			continue
		}
		if len(data) == 0 {
			if err := n.plain(d, text, i, level); err != nil {
				return err
			}
		}
		at := i + len("data:")
		if at < end && d.in[at] == ' ' {
			at++
		}
		data = append(data, piece{at, end})
		i = next
		text = next
	}
	if len(data) == 0 {
		return n.plain(d, from, to, level)
	}
	if err := n.data(d, data, level); err != nil {
		return err
	}
	return n.plain(d, text, to, level)
}

// piece is a stretch of a body.
type piece struct{ start, end int }

// plain redacts [from, to) as text.
func (n *nest) plain(d *draft, from, to, level int) error {
	r, err := n.text(d.in[from:to], level)
	d.take(from, to, r)
	return err
}

// data redacts the data of one event. Over several lines it is put together,
// and what stands between the lines, another field, is read with it.
func (n *nest) data(d *draft, lines []piece, level int) error {
	first, last := lines[0], lines[len(lines)-1]
	if len(lines) == 1 {
		r, err := n.payload(d.in[first.start:first.end], level)
		d.take(first.start, first.end, r)
		return err
	}
	var whole, between []byte
	for k, l := range lines {
		if k > 0 {
			whole = append(whole, '\n')
		}
		whole = append(whole, d.in[l.start:l.end]...)
	}
	for k := range lines[1:] {
		gap := d.in[lines[k].end:lines[k+1].start]
		if !isDataGap(gap) {
			between = append(between, gap...)
		}
	}
	if between != nil {
		r, err := n.text(between, level)
		if err != nil {
			return err
		}
		if r.Found() {
			return unscannable("a field between the lines of its data in which there is something to mask", nil)
		}
	}
	r, err := n.payload(whole, level)
	if err != nil || !r.Found() {
		return err
	}
	d.whole(first.start, last.end, r.Findings)
	d.replace(first.start, last.end, bytes.ReplaceAll(r.Out, []byte("\n"), []byte("\ndata: ")))
	return nil
}

// isDataGap says whether what stands between two data lines is only the next
// one's head.
func isDataGap(gap []byte) bool {
	return string(bytes.TrimLeft(gap, "\r\n")) == "data: " || string(bytes.TrimLeft(gap, "\r\n")) == "data:"
}

// payload redacts the data of an event, or a line: JSON or text.
func (n *nest) payload(b []byte, level int) (finding.Result, error) {
	if r, is, err := n.strict(b, level); is {
		return r, err
	}
	return n.text(b, level)
}

// lines redacts JSON lines (also with the record separators of RFC 7464).
// What stands between them is text.
func (n *nest) lines(b []byte, level int) (finding.Result, error) {
	d := draft{in: b}
	text := 0
	var stream []piece
	for i := 0; i < len(b); {
		end, next := lineEnd(b, i)
		start := i
		i = next
		if start < end && b[start] == 0x1e {
			start++
		}
		line := b[start:end]
		r, is, err := n.strict(line, level)
		if !is {
			continue
		}
		if err := n.plain(&d, text, start, level); err != nil {
			return finding.Result{}, err
		}
		if err != nil {
			return finding.Result{}, within(err, "the line at byte "+strconv.Itoa(start))
		}
		d.take(start, end, r)
		text = end
		if bytes.Contains(line, []byte(`"done":`)) {
			stream = append(stream, piece{start, end}) // an answer that comes in lines
		}
	}
	err := n.plain(&d, text, len(b), level)
	if err == nil && len(d.findings) == 0 {
		err = n.joined(&d, stream, level)
	}
	return d.result(), err
}
