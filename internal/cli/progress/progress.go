// Package progress shows on a terminal how many leaves of the ledger were read.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

const (
	checkEvery  = 16384 // leaves between two looks at the clock
	minInterval = 200 * time.Millisecond
)

// Counter counts leaves. It is not safe for concurrent use.
type Counter struct {
	out     io.Writer
	visible bool
	total   int64 // 0 if unknown
	n       int64
	last    time.Time
	shown   bool
}

// NewCounter returns a counter up to total, or without a known end if total is 0. It writes to out only if visible is
// true: callers pass whether out is a terminal.
func NewCounter(out io.Writer, visible bool, total int64) *Counter {
	return &Counter{out: out, visible: visible, total: total, last: time.Now()}
}

// CountLeaf counts one leaf.
func (c *Counter) CountLeaf() {
	c.n++
	if c.n%checkEvery == 0 {
		c.writeCount()
	}
}

// SetCount replaces the count and the total.
func (c *Counter) SetCount(n, total int64) {
	c.n, c.total = n, total
	c.writeCount()
}

// writeCount writes the count unless it did so within minInterval.
func (c *Counter) writeCount() {
	if !c.visible || time.Since(c.last) < minInterval {
		return
	}
	c.last, c.shown = time.Now(), true
	of := ""
	if c.total > 0 {
		of = fmt.Sprintf(" of %d", c.total)
	}
	fmt.Fprintf(c.out, "\r%d%s leaves ", c.n, of)
}

// Clear removes the count from the terminal.
func (c *Counter) Clear() {
	if c.shown {
		fmt.Fprint(c.out, "\r\x1b[K")
	}
}

// CountLines returns a reader of r that counts each line as a leaf.
func (c *Counter) CountLines(r io.Reader) io.Reader { return &lineReader{r, c} }

type lineReader struct {
	io.Reader
	counter *Counter
}

// Read implements io.Reader.
func (l *lineReader) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	for range bytes.Count(b[:n], []byte("\n")) {
		l.counter.CountLeaf()
	}
	return n, err
}
