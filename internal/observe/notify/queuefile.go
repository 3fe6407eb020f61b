package notify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// maxQueueFile is the size beyond which the file is rewritten, in bytes;
	// maxLine bounds what one line may hold.
	maxQueueFile = 4 << 20
	maxLine      = 256 << 10
)

// line is one change of a Queue, as the file has it.
type line struct {
	Put  *waiting  `json:"put,omitempty"`
	Done string    `json:"done,omitempty"` // the message's id; of one channel where Of is set
	Of   string    `json:"of,omitempty"`
	Told string    `json:"told,omitempty"` // a condition's key
	At   time.Time `json:"at,omitzero"`
	To   []string  `json:"to,omitempty"`
	Lost string    `json:"lost,omitempty"` // a destination, of whose notices N were dropped
	N    int       `json:"n,omitempty"`
}

// queueFile is a file that is only written to at its end, until it is replaced.
type queueFile struct {
	path  string
	f     *os.File
	size  int64
	lost  int   // lines that could not be read
	torn  bool  // the last line is not whole
	fault error // why the last write failed
}

// openQueueFile gives each line of the file to replay. If it does not exist it is made
// with the first line.
func openQueueFile(path string, replay func(line)) (*queueFile, error) {
	j := &queueFile{path: path}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	j.f = f
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("what waits to be told is no file: "+strconv.Quote(path)), f.Close())
	}
	j.size = info.Size()
	r := bufio.NewReaderSize(io.LimitReader(f, 4*maxQueueFile), maxLine)
	for {
		text, err := r.ReadSlice('\n')
		var l line
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			j.lost++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
		case len(bytes.TrimSpace(text)) == 0:
		case json.Unmarshal(text, &l) != nil:
			j.lost++
		default:
			replay(l)
		}
		if err != nil {
			j.torn = len(text) > 0 // such as of a process that was killed
			return j, nil
		}
	}
}

// write adds a line: once it returned, the end of this process loses it no more.
// The caller has the queue's lock.
func (j *queueFile) write(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if j.f == nil {
		if j.f, err = os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
			j.f, j.fault = nil, err
			return err
		}
	}
	if j.torn {
		b = append([]byte{'\n'}, b...)
	}
	n, err := j.f.Write(b)
	j.size += int64(n)
	j.torn = err != nil && (n > 0 || j.torn)
	j.fault = err
	return err
}

// replace rewrites the file, whole or not at all.
func (j *queueFile) replace(lines []line) error {
	var b bytes.Buffer
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	}
	f, err := os.CreateTemp(filepath.Dir(j.path), ".alerts-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), missing(os.Remove(f.Name())))
	}
	old := j.f
	// It continues at its end: no other process writes there.
	j.f, j.size, j.torn, j.fault = f, int64(b.Len()), false, nil
	if old == nil {
		return nil
	}
	return old.Close()
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (j *queueFile) close() error {
	if j.f == nil {
		return nil
	}
	return j.f.Close()
}

// replay does again what a line says.
func (q *Queue) replay(l line) {
	switch {
	case l.Put != nil:
		l.Put.tries = map[string]*tried{}
		for i, w := range q.all {
			if w.Message.ID == l.Put.Message.ID {
				q.all[i] = l.Put
				return
			}
		}
		q.all = append(q.all, l.Put)
	case l.Done != "":
		for i, w := range q.all {
			if w.Message.ID == l.Done {
				if w.To = without(w.To, l.Of); l.Of == "" || len(w.To) == 0 {
					q.all = append(q.all[:i:i], q.all[i+1:]...)
				}
				return
			}
		}
	case l.Told != "":
		q.told[l.Told] = &told{At: l.At, Channels: l.To}
	case l.Lost != "" && l.N > 0:
		q.lost[l.Lost] = l.N
	case l.Lost != "":
		delete(q.lost, l.Lost)
	}
}

func without(names []string, name string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		if n != name {
			out = append(out, n)
		}
	}
	return out
}

// write notes a change. Where the file cannot take it, such as on a full disk, it
// is told of all the same, and lost only if the process ends first. The caller
// holds the lock.
func (q *Queue) write(l line) {
	was := q.file.fault
	if err := q.file.write(l); err != nil && was == nil {
		q.o.Log.Error("what waits to be told cannot be kept; it is told all the same", "err", err)
	}
	if q.file.size > maxQueueFile || was != nil && q.file.fault == nil {
		if err := q.compact(); err != nil {
			q.o.Log.Error("the file of what waits to be told could not be rewritten", "err", err)
			q.file.size = 0 // not at each line
		}
	}
}

// compact rewrites the file with what is known now.
func (q *Queue) compact() error {
	var lines []line
	for key, t := range q.told {
		if age := time.Since(t.At); age < again || isReviewKey(key) || len(t.Channels) > 0 && age < rememberFor {
			lines = append(lines, line{Told: key, At: t.At, To: t.Channels})
		}
	}
	for destination, n := range q.lost {
		lines = append(lines, line{Lost: destination, N: n})
	}
	for _, w := range q.all {
		lines = append(lines, line{Put: w})
	}
	return q.file.replace(lines)
}
