package coding

import "io"

// upTo is an error where more than left bytes come.
type upTo struct {
	r    io.Reader
	left int64
}

func (u *upTo) Read(p []byte) (int, error) {
	if int64(len(p)) > u.left+1 {
		p = p[:u.left+1]
	}
	n, err := u.r.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// UpTo returns a reader that fails with ErrTooLarge if more than most bytes come.
func UpTo(r io.Reader, most int64) io.Reader { return &upTo{r, most} }

// ReadWhole reads all of r, at most most bytes, and calls grow with the memory that it takes.
// expected is the announced number of bytes, 0 for unknown. Errors are ErrTooLarge, ErrNoMemory where grow
// returns false, and those of r.
func ReadWhole(r io.Reader, most, expected int64, grow func(int64) bool) ([]byte, error) {
	r = UpTo(r, most)
	var buf []byte
	if expected > 0 && expected < 64<<10 {
		buf = make([]byte, 0, expected+1)
	}
	for {
		if len(buf) == cap(buf) {
			size := max(2*cap(buf), 4<<10)
			if !grow(int64(size)) {
				return nil, ErrNoMemory
			}
			buf = append(make([]byte, 0, size), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			if !grow(int64(cap(buf))) {
				return nil, ErrNoMemory
			}
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
