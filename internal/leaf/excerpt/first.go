package excerpt

// First keeps the first bytes that are written to it, and takes the rest without a
// word, so that whoever writes goes on. It is not safe for concurrent use.
type First struct {
	kept []byte
	left int
}

// NewFirst keeps at most so many bytes.
func NewFirst(most int) *First { return &First{left: max(most, 0)} }

// Write implements io.Writer. It never fails.
func (f *First) Write(p []byte) (int, error) {
	keep := p[:min(len(p), f.left)]
	f.kept = append(f.kept, keep...)
	f.left -= len(keep)
	return len(p), nil
}

// Bytes are those kept. They are valid until the next Write.
func (f *First) Bytes() []byte { return f.kept }

// String is what was kept. It may end within a character.
func (f *First) String() string { return string(f.kept) }
