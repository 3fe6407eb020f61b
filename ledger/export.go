package ledger

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
)

// The fixed bytes of an export's lines.
const (
	exportHeader = `{"holdfast_export":1,"key":`
	exportTenant = `{"tenant":`
	exportSize   = `,"size":`
	exportRoot   = `,"root":`
	exportSeq    = `{"seq":`
	exportPart   = `,"part":"`
	exportLeaf   = `,"leaf":`
	exportNote   = `{"checkpoint":`
	exportEnd    = `{"end":true,`
)

// Exporter writes an export. After an error it writes nothing more.
//
// An export is lines of JSON, each ended by one newline, without white space
// between tokens. A record stands in it byte for byte, so that its hash can
// be taken of the line itself:
//
//	{"holdfast_export":1,"key":"<ledger key>"}
//	{"tenant":"<tenant>","size":<leaves>,"root":"<base64>"}
//	{"seq":0,"leaf":<record>}
//	{"seq":1,"part":"<base64>","leaf":<record>}
//	{"checkpoint":"<signed note>"}
//	{"end":true,"tenants":<n>,"leaves":<n>,"parts":<n>,"checkpoints":<n>}
//
// After the header come the tenants, each once: the log of checkpoints first,
// where there is one, because it says what the others must contain, then the
// others in ascending order of their bytes. Of each comes the head, then every leaf from 0 to size-1, with each checkpoint right
// after the leaf that makes up its size (a checkpoint of size 0 right after
// the head), one for a size. A part that was erased is left out. Strings are written as RFC
// 8785 writes them, base64 with padding.
//
// To verify one: take each record between `"leaf":` and the line's last brace,
// hash it, grow the tree, and at each checkpoint compare size and root and check
// the signature under the key of NoteKey. Of each tenant that the log of
// checkpoints names, compare size and root at the newest size it records; each
// tenant with a checkpoint must be recorded there.
type Exporter struct {
	w       *bufio.Writer
	line    []byte
	last    string
	tenants int64
	count   counts
	err     error
}

// counts is what the last line says besides the tenants.
type counts struct{ leaves, parts, checkpoints int64 }

// NewExporter writes the header. key is the key that signs the checkpoints.
func NewExporter(w io.Writer, key *Verifier) *Exporter {
	e := &Exporter{w: bufio.NewWriterSize(w, 64<<10)}
	e.put(append(appendText(append(e.line[:0], exportHeader...), key.String()), '}'))
	return e
}

// put writes one line.
func (e *Exporter) put(line []byte) {
	e.line = line
	if e.err == nil {
		_, e.err = e.w.Write(append(line, '\n'))
	}
}

// Tenant writes one tenant's tree: h must be its head, checkpoints ascending
// by size and none beyond h, and leaves calls its argument for every leaf from
// 0 to h.Size-1 in order. Tenants come in the order of CompareTenants.
func (e *Exporter) Tenant(h Head, checkpoints []SignedCheckpoint, leaves func(func(Stored) error) error) error {
	if e.err != nil {
		return e.err
	}
	if e.tenants > 0 && CompareTenants(h.Tenant, e.last) <= 0 {
		e.err = refuse("tenant %q does not come after tenant %q", h.Tenant, e.last)
		return e.err
	}
	e.last = h.Tenant
	e.tenants++
	e.put(appendHead(e.line[:0], h))
	next := int64(0)
	checkpoints = e.notes(checkpoints, next)
	err := leaves(func(s Stored) error {
		if s.Seq != next || s.Tenant != h.Tenant || bytes.IndexByte(s.Record, '\n') >= 0 {
			return refuse("tenant %q: leaf %d of tenant %q where leaf %d comes next", h.Tenant, s.Seq, s.Tenant, next)
		}
		next++
		e.count.leaves++
		if s.Part != nil {
			e.count.parts++
		}
		e.put(appendLeaf(e.line[:0], s))
		checkpoints = e.notes(checkpoints, next)
		return e.err
	})
	if err == nil && (next != h.Size || len(checkpoints) > 0) {
		err = refuse("tenant %q: %d leaves where the head says %d, %d checkpoints left over", h.Tenant, next, h.Size, len(checkpoints))
	}
	if e.err == nil {
		e.err = err
	}
	return e.err
}

func appendHead(b []byte, h Head) []byte {
	b = appendText(append(b, exportTenant...), h.Tenant)
	b = strconv.AppendInt(append(b, exportSize...), h.Size, 10)
	return append(appendText(append(b, exportRoot...), h.Root.String()), '}')
}

func appendLeaf(b []byte, s Stored) []byte {
	b = strconv.AppendInt(append(b, exportSeq...), s.Seq, 10)
	if s.Part != nil {
		b = append(base64.StdEncoding.AppendEncode(append(b, exportPart...), s.Part), '"')
	}
	return append(append(append(b, exportLeaf...), s.Record...), '}')
}

// notes writes the checkpoints of that size and returns the others.
func (e *Exporter) notes(cps []SignedCheckpoint, size int64) []SignedCheckpoint {
	for len(cps) > 0 && cps[0].Size == size {
		e.put(append(appendText(append(e.line[:0], exportNote...), string(cps[0].Note)), '}'))
		cps = cps[1:]
		e.count.checkpoints++
	}
	return cps
}

// Close writes the last line; an export without it is refused as truncated.
// It does not close the writer.
func (e *Exporter) Close() error {
	e.put(appendEnd(e.line[:0], e.tenants, e.count))
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

func appendEnd(b []byte, tenants int64, c counts) []byte {
	return fmt.Appendf(b, `{"end":true,"tenants":%d,"leaves":%d,"parts":%d,"checkpoints":%d}`,
		tenants, c.leaves, c.parts, c.checkpoints)
}
