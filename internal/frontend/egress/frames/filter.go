package frames

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
