package history

import (
	"math/bits"
	"slices"
	"sort"
)

// chunkSize is how many entries lie together: few enough that one may be put
// between others, enough that a million entries are a thousand chunks.
const chunkSize = 1_024

// mark is one entry: when, how much (or the number of its value, where those are
// counted), and which crossing.
type mark struct {
	at, amount int64
	id         uint64
}

// chunk holds entries in their order. It was opened, and changed last, at those
// elapsed times.
type chunk struct {
	marks         []mark
	sum           wide
	opened, stamp int64
}

func (c *chunk) last() int64 { return c.marks[len(c.marks)-1].at }

// timeline holds entries in the order of their times.
type timeline struct {
	chunks []chunk
	n      int64
	sum    wide
}

// insert puts an entry into its place: behind those of the same time. A chunk
// takes in what comes within span of its opening, so that it can be put away
// as a whole.
func (t *timeline) insert(m mark, stamp, span int64) {
	t.n++
	t.sum = t.sum.add(m.amount)
	end := len(t.chunks) - 1
	if end < 0 || m.at >= t.chunks[end].last() {
		if end < 0 || len(t.chunks[end].marks) >= chunkSize || stamp-t.chunks[end].opened > span {
			t.chunks = append(t.chunks, chunk{opened: stamp, stamp: stamp})
			end++
		}
		c := &t.chunks[end]
		c.marks = append(c.marks, m)
		c.sum, c.stamp = c.sum.add(m.amount), max(c.stamp, stamp)
		return
	}
	i := sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].last() > m.at })
	c := &t.chunks[i]
	at := sort.Search(len(c.marks), func(j int) bool { return c.marks[j].at > m.at })
	c.marks = slices.Insert(c.marks, at, m)
	c.sum, c.stamp = c.sum.add(m.amount), max(c.stamp, stamp)
	if len(c.marks) > chunkSize {
		t.split(i)
	}
}

func (t *timeline) split(i int) {
	c := &t.chunks[i]
	half := len(c.marks) / 2
	second := chunk{marks: slices.Clone(c.marks[half:]), opened: c.opened, stamp: c.stamp}
	for _, m := range second.marks {
		second.sum = second.sum.add(m.amount)
		c.sum = c.sum.sub(m.amount)
	}
	c.marks = slices.Clone(c.marks[:half])
	t.chunks = slices.Insert(t.chunks, i+1, second)
}

// remove takes an entry out. Its chunk keeps its stamp.
func (t *timeline) remove(at int64, id uint64) (mark, bool) {
	i := sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].last() >= at })
	for ; i < len(t.chunks) && t.chunks[i].marks[0].at <= at; i++ {
		c := &t.chunks[i]
		for j := sort.Search(len(c.marks), func(j int) bool { return c.marks[j].at >= at }); j < len(c.marks) && c.marks[j].at == at; j++ {
			if c.marks[j].id != id {
				continue
			}
			m := c.marks[j]
			c.marks = slices.Delete(c.marks, j, j+1)
			c.sum = c.sum.sub(m.amount)
			t.n--
			t.sum = t.sum.sub(m.amount)
			if len(c.marks) == 0 {
				t.chunks = slices.Delete(t.chunks, i, i+1)
			}
			return m, true
		}
	}
	return mark{}, false
}

// since counts and adds up what is not before an instant. last is 0 where there
// is nothing. It looks at the chunks on that side of the instant where there are
// fewer, and at one that lies across it.
func (t *timeline) since(cut int64) (n int64, sum wide, last int64) {
	at := sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].last() >= cut })
	if at == len(t.chunks) {
		return 0, wide{}, 0
	}
	if at < len(t.chunks)/2 {
		n, sum = t.n, t.sum
		for i := range t.chunks[:at] {
			n, sum = n-int64(len(t.chunks[i].marks)), sum.minus(t.chunks[i].sum)
		}
	} else {
		for i := at; i < len(t.chunks); i++ {
			n, sum = n+int64(len(t.chunks[i].marks)), sum.plus(t.chunks[i].sum)
		}
	}
	for _, m := range t.chunks[at].marks {
		if m.at >= cut {
			break
		}
		n, sum = n-1, sum.sub(m.amount)
	}
	return n, sum, t.chunks[len(t.chunks)-1].last()
}

// discard puts away the chunks that changed last before an elapsed time, at
// either end, and tells of each entry.
func (t *timeline) discard(limit int64, away func(mark)) {
	for len(t.chunks) > 0 && t.chunks[0].stamp < limit {
		t.drop(0, away)
	}
	for end := len(t.chunks) - 1; end >= 0 && t.chunks[end].stamp < limit; end-- {
		t.drop(end, away)
	}
}

func (t *timeline) drop(i int, away func(mark)) {
	c := t.chunks[i]
	t.n -= int64(len(c.marks))
	t.sum = t.sum.minus(c.sum)
	for _, m := range c.marks {
		away(m)
	}
	t.chunks[i] = chunk{} // what is cut off in front holds nothing
	if i == 0 {
		t.chunks = t.chunks[1:]
		return
	}
	t.chunks = t.chunks[:i]
}

// latest finds the last entry of an amount.
func (t *timeline) latest(amount int64) (at int64, found bool) {
	for i := len(t.chunks) - 1; i >= 0; i-- {
		marks := t.chunks[i].marks
		for j := len(marks) - 1; j >= 0; j-- {
			if marks[j].amount == amount {
				return marks[j].at, true
			}
		}
	}
	return 0, false
}

// wide is a whole number of 128 bits, in two's complement: no sum of 64-bit
// amounts overflows it.
type wide struct {
	high int64
	low  uint64
}

func widen(n int64) wide { return wide{n >> 63, uint64(n)} }

func (w wide) plus(o wide) wide {
	low, carry := bits.Add64(w.low, o.low, 0)
	high, _ := bits.Add64(uint64(w.high), uint64(o.high), carry)
	return wide{int64(high), low}
}

func (w wide) minus(o wide) wide {
	low, borrow := bits.Sub64(w.low, o.low, 0)
	high, _ := bits.Sub64(uint64(w.high), uint64(o.high), borrow)
	return wide{int64(high), low}
}

func (w wide) add(n int64) wide { return w.plus(widen(n)) }
func (w wide) sub(n int64) wide { return w.minus(widen(n)) }

// fits is the number in 64 bits, if it fits.
func (w wide) fits() (int64, bool) { return int64(w.low), w.high == int64(w.low)>>63 }
