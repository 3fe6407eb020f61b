package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// maxLine bounds a line of an export: a record, a part in base64, the rest.
const maxLine = MaxRecord + (MaxPart+2)/3*4 + 1024

// ExportVerifier checks exports with nothing but the runtime's public key.
type ExportVerifier struct {
	// Key is the runtime's; the export must name the same.
	Key *Verifier
	// Known are checkpoints that the caller holds from elsewhere, opened:
	// the export must contain each of their trees. This is what finds a
	// history that was cut off or written anew with the runtime's own key.
	Known []SignedCheckpoint
	// Deep parses every record whole.
	Deep bool
	// Leaf is called with each leaf after it was checked and before the end
	// is known, with tenant, seq, hash, record and part. It must not keep
	// the last two. Nil calls nobody.
	Leaf func(Stored)
}

// Verify reads one export to its end. It needs memory for the longest line
// and for what a Checker and a CheckpointLog remember, whatever the length. The
// reports are in the export's order. The error names tenant and leaf, or the line where there is none.
func (v *ExportVerifier) Verify(r io.Reader) ([]Report, error) {
	if v.Key == nil {
		return nil, refuse("verification without a key")
	}
	s := &exportScan{v: v, in: bufio.NewReaderSize(r, 64<<10), due: dueByTenant(v.Known)}
	for !s.ended {
		line, err := s.next()
		if err == nil {
			err = s.line(line)
		}
		if err != nil {
			return nil, s.place(err)
		}
	}
	if _, err := s.in.ReadByte(); err != io.EOF {
		s.n++
		return nil, s.place(refuse("data after the end"))
	}
	return s.reports, nil
}

// exportScan is one run over an export.
type exportScan struct {
	v     *ExportVerifier
	in    *bufio.Reader
	n     int64 // lines read
	long  []byte
	part  []byte
	check *Checker // of the tenant being read, nil before the first
	head  Head
	count counts
	// due are the caller's checkpoints that were not reached yet, by tenant
	// and ascending by size.
	due     map[string][]dueHead
	log     CheckpointLog
	reports []Report
	ended   bool
}

// place puts the line's number before what is not a Fault.
func (s *exportScan) place(err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return err
	}
	if s.check != nil {
		return &Fault{s.head.Tenant, s.check.Size(), fmt.Sprintf("export, line %d: %s", s.n, why(err))}
	}
	return fmt.Errorf("export, line %d: %w", s.n, err)
}

// next returns the next line without its newline, valid until the next call.
func (s *exportScan) next() ([]byte, error) {
	s.n++
	line, err := s.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		s.long = s.long[:0]
		for err == bufio.ErrBufferFull && len(s.long) <= maxLine {
			s.long = append(s.long, line...)
			line, err = s.in.ReadSlice('\n')
		}
		s.long = append(s.long, line...)
		line = s.long
	}
	switch {
	case err == io.EOF:
		return nil, refuse("the export ends before its last line: it is truncated")
	case err == nil && len(line) <= maxLine:
		return line[:len(line)-1], nil
	case err == nil || err == bufio.ErrBufferFull:
		return nil, refuse("a line of more than %d bytes", maxLine)
	}
	return nil, err
}

func (s *exportScan) line(line []byte) error {
	f := front{b: line}
	switch {
	case s.n == 1:
		return s.header(line)
	case f.take(exportSeq):
		return s.leaf(&f)
	case f.take(exportNote):
		return s.checkpoint(&f)
	case f.take(exportTenant):
		return s.tenant(&f)
	case f.take(exportEnd):
		return s.end(line, &f)
	}
	return refuse("a line of no known kind")
}

func (s *exportScan) header(line []byte) error {
	if string(line) == string(append(appendText([]byte(exportHeader), s.v.Key.String()), '}')) {
		return nil
	}
	if !bytes.HasPrefix(line, []byte(exportHeader)) {
		return refuse("not an export of a ledger")
	}
	return refuse("the export names another ledger key")
}

func (s *exportScan) tenant(f *front) error {
	if err := s.finish(); err != nil {
		return err
	}
	tenant, n, err := parseText(f.b[f.i:])
	f.i += n
	if err != nil || !f.take(exportSize) {
		return refuse("a head that is not as it is written")
	}
	size, n, ok := parseInt(f.b[f.i:])
	f.i += n
	if !ok || size < 0 || !f.take(exportRoot) {
		return refuse("a head that is not as it is written")
	}
	root, _, err := parseText(f.b[f.i:])
	if err != nil {
		return refuse("a head that is not as it is written")
	}
	hash, err := tlog.ParseHash(root)
	h := Head{tenant, size, hash}
	if err != nil || string(appendHead(nil, h)) != string(f.b) || tenant == "" {
		return refuse("a head that is not as it is written")
	}
	if k := len(s.reports); k > 0 && CompareTenants(tenant, s.reports[k-1].Tenant) <= 0 {
		return refuse("tenant %q does not come after tenant %q", tenant, s.reports[k-1].Tenant)
	}
	s.head = h
	s.check = NewChecker(tenant)
	s.check.Deep = s.v.Deep
	if err := s.check.followLog(&s.log); err != nil {
		return err
	}
	return s.compareKnown()
}

// finish ends the tenant that was being read.
func (s *exportScan) finish() error {
	if s.check == nil {
		return nil
	}
	r, err := s.check.Report(s.head)
	if err != nil {
		return err
	}
	if l := s.due[r.Tenant]; len(l) > 0 {
		return l[0].missed()
	}
	if err := s.log.Covers(Head{r.Tenant, r.Signed, r.Root}); err != nil {
		return err
	}
	s.reports = append(s.reports, r)
	s.check = nil
	if r.Tenant == CheckpointsTenant {
		if err := SignedWhole(r.Size, r.Signed); err != nil {
			return err
		}
		for _, h := range s.log.Newest() {
			s.due[h.Tenant] = insertDue(s.due[h.Tenant], dueHead{h, true})
		}
	}
	return nil
}

func (s *exportScan) leaf(f *front) error {
	seq, n, ok := parseInt(f.b[f.i:])
	f.i += n
	if !ok || s.check == nil {
		return refuse("a leaf that is not as it is written, or before its tenant")
	}
	var part []byte
	if f.take(exportPart) {
		end := bytes.IndexByte(f.b[f.i:], '"')
		if end < 0 {
			return refuse("a part without an end")
		}
		var err error
		if part, err = s.decode(f.b[f.i : f.i+end]); err != nil {
			return s.check.fault(seq, "%s", why(err))
		}
		f.i += end + 1
	}
	if !f.take(exportLeaf) || f.b[len(f.b)-1] != '}' || len(f.b)-1-f.i > MaxRecord {
		return refuse("a leaf that is not as it is written")
	}
	record := f.b[f.i : len(f.b)-1]
	// The byte before the record, a colon, gives its place to the zero that
	// a leaf hash starts with; so the record need not be copied.
	f.b[f.i-1] = 0
	hash := tlog.Hash(sha256.Sum256(f.b[f.i-1 : len(f.b)-1]))
	f.b[f.i-1] = ':'
	if err := s.check.Leaf(seq, hash, record, part); err != nil {
		return err
	}
	if s.head.Tenant == CheckpointsTenant {
		if err := s.log.Add(seq, record); err != nil {
			return err
		}
	}
	if s.v.Leaf != nil {
		s.v.Leaf(Stored{Place: Place{Tenant: s.head.Tenant, Seq: seq, Hash: hash}, Record: record, Part: part})
	}
	s.count.leaves++
	if part != nil {
		s.count.parts++
	}
	if len(s.due) == 0 {
		return nil
	}
	return s.compareKnown()
}

// decode reads base64 in its one spelling into a buffer of the scan's.
func (s *exportScan) decode(b64 []byte) ([]byte, error) {
	var err error
	s.part, err = base64.StdEncoding.Strict().AppendDecode(s.part[:0], b64)
	if err != nil || base64.StdEncoding.EncodedLen(len(s.part)) != len(b64) {
		return nil, refuse("a part that is not base64")
	}
	if s.part == nil {
		s.part = []byte{}
	}
	return s.part, nil
}

func (s *exportScan) checkpoint(f *front) error {
	text, n, err := parseText(f.b[f.i:])
	f.i += n
	if err != nil || string(f.b[f.i:]) != "}" || s.check == nil {
		return refuse("a checkpoint that is not as it is written, or before its tenant")
	}
	cp, err := s.v.Key.Open([]byte(text))
	if err != nil {
		return err
	}
	s.count.checkpoints++
	return s.check.Checkpoint(cp)
}

// dueHead is a head that the export must contain.
type dueHead struct {
	Head
	logged bool // the log of checkpoints says so, and not the caller
}

func dueByTenant(known []SignedCheckpoint) map[string][]dueHead {
	due := make(map[string][]dueHead)
	for _, k := range known {
		due[k.Tenant] = insertDue(due[k.Tenant], dueHead{k.Head, false})
	}
	return due
}

// insertDue keeps them ascending by size.
func insertDue(due []dueHead, d dueHead) []dueHead {
	i, _ := slices.BinarySearchFunc(due, d.Size, func(e dueHead, size int64) int { return cmp.Compare(e.Size, size) })
	return slices.Insert(due, i, d)
}

// compareKnown compares the heads that are due at this size.
func (s *exportScan) compareKnown() error {
	due := s.due[s.head.Tenant]
	for len(due) > 0 && due[0].Size == s.check.Size() {
		if due[0].Root != s.check.tree.Root() {
			return s.check.fault(s.check.Size()-1, "the tree up to here is another than the one %s: history was rewritten", due[0].whose())
		}
		if err := s.check.recordedNow(); err != nil {
			return err
		}
		due = due[1:]
		s.due[s.head.Tenant] = due
	}
	return nil
}

func (d dueHead) whose() string {
	if d.logged {
		return "that the log of checkpoints records"
	}
	return "you hold a checkpoint of"
}

// missed is the fault of a tenant that ended, or never came, before a head
// that it must contain.
func (d dueHead) missed() error {
	if d.logged {
		return &Fault{d.Tenant, -1, fmt.Sprintf("the log of checkpoints records %d signed leaves, and the export has fewer: the ledger was cut back", d.Size)}
	}
	return &Fault{d.Tenant, -1, fmt.Sprintf("you hold a checkpoint of %d leaves, and the export has fewer: leaves are missing", d.Size)}
}

func (s *exportScan) end(line []byte, f *front) error {
	if err := s.finish(); err != nil {
		return err
	}
	if string(line) != string(appendEnd(nil, int64(len(s.reports)), s.count)) {
		return refuse("the last line does not count the %d tenants, %d leaves, %d parts and %d checkpoints that are here",
			len(s.reports), s.count.leaves, s.count.parts, s.count.checkpoints)
	}
	for _, tenant := range slices.Sorted(maps.Keys(s.due)) {
		if l := s.due[tenant]; len(l) > 0 {
			return l[0].missed()
		}
	}
	s.ended = true
	return nil
}
