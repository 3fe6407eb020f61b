package frames

import "bytes"

// Filter is an io.Reader of a stream of events, byte for byte as it comes, without the events that Drops reports.
type Filter struct {
	In    Blocks
	Drops func(event []byte) bool

	event []byte // the rest of the event that is given
	err   error
}

// Read implements io.Reader, one event at a time.
func (f *Filter) Read(p []byte) (int, error) {
	for len(f.event) == 0 && f.err == nil {
		if f.event, f.err = f.In.Next(); f.Drops(f.event) {
			f.event = nil
		}
	}
	n := copy(p, f.event)
	if f.event = f.event[n:]; n > 0 {
		return n, nil
	}
	return 0, f.err
}

// ReadData returns the data of an event, and whether it has any. other is called with the names of its other fields.
func ReadData(event []byte, other func(name string)) (data []byte, has bool) {
	for line := range bytes.FieldsFuncSeq(event, func(r rune) bool { return r == '\r' || r == '\n' }) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			other(string(name))
			continue
		}
		if has {
			data = append(data, '\n')
		}
		data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	return data, has
}
