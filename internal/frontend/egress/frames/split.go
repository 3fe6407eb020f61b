package frames

import "bytes"

// Split takes the data out of the block of an event: its data lines, joined by line feeds. has reports whether
// there are any. What field returns of each other line, which it gets with its name, is the head, and the blank
// line at the end the tail; without data that belongs to the head.
func Split(block []byte, field func(name, line []byte) []byte) (head, data, tail []byte, has bool) {
	blank := false
	for len(block) > 0 {
		n := bytes.IndexAny(block, "\r\n")
		line := block
		if n < 0 {
			block = nil
		} else {
			line = block[:n]
			cr := block[n] == '\r'
			if block = block[n+1:]; cr && len(block) > 0 && block[0] == '\n' {
				block = block[1:]
			}
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			blank = true
		case string(name) == "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
		default:
			head = append(append(head, field(name, line)...), '\n')
		}
	}
	if blank {
		tail = []byte("\n")
	}
	if !has {
		head, tail = append(head, tail...), nil
	}
	return head, data, tail, has
}

// IsComment reports whether a block has only comments.
func IsComment(block []byte) bool {
	for line := range bytes.Lines(block) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && line[0] != ':' {
			return false
		}
	}
	return true
}
