package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// The largest record, and the longest line: a record, a part in base64, the
// rest.
const (
	maxRecord = 1 << 20
	maxLine   = maxRecord + (16<<20+2)/3*4 + 1024
	saltSize  = 16
)

// logTenant is the tenant whose tree records every checkpoint.
const logTenant = "_checkpoints"

// verifier reads one export.
type verifier struct {
	key    *key
	kept   map[string][]head // checkpoints that the caller has
	logged map[string][]head // the heads that the log records, by tenant, ascending
	t      *tree
	done   []*tree
	line   int64
	leaves int64
	parts  int64
	notes  int64
}

// tree is one tenant's.
type tree struct {
	name                    string
	size                    int64 // what its head says
	root                    tlog.Hash
	stored                  []tlog.Hash // tlog's stored hashes
	n                       int64       // leaves read
	begins, entries, events int64
	open                    map[string]int64
	ended                   map[string]bool
	missing                 []int64    // leaves whose part is not there
	erasures                [][2]int64 // leaves whose parts may be missing, [from, to)
	said                    int64      // parts that were erased with a record
	last                    head       // the newest checkpoint
	due                     []head     // what the log records and was not reached yet
	recorded                int64      // the newest size that the log records and that was reached, -1 for none
}

// ReadHashes implements tlog.HashReader.
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.stored)) {
			return nil, errors.New("a hash beyond the tree")
		}
		out[i] = t.stored[at]
	}
	return out, nil
}

func (t *tree) fault(seq int64, format string, args ...any) error {
	return fmt.Errorf("tenant %q, leaf %d: %s", t.name, seq, fmt.Sprintf(format, args...))
}

// wholeLines splits at each newline, which is part of no line; what has none is
// an error.
func wholeLines(data []byte, end bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end && len(data) > 0 {
		return 0, nil, errors.New("the last line has no end: it is truncated")
	}
	return 0, nil, nil
}

// read reads the export to its end.
func (v *verifier) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	lines.Split(wholeLines)
	ended := false
	var err error
	for err == nil && lines.Scan() {
		if v.line++; ended {
			err = errors.New("data after the end")
		} else {
			ended, err = v.one(lines.Bytes())
		}
	}
	if err == nil {
		err = lines.Err()
	}
	if err == nil && !ended {
		err = errors.New("it ends before its last line: it is truncated")
	}
	if err != nil && v.t != nil && !strings.HasPrefix(err.Error(), "tenant ") {
		err = fmt.Errorf("tenant %q, leaf %d: %w", v.t.name, v.t.n, err)
	}
	if err != nil {
		err = fmt.Errorf("line %d: %w", v.line, err)
	}
	return err
}

// one takes one line, and says whether it is the last.
func (v *verifier) one(line []byte) (last bool, err error) {
	s := string(line[:min(len(line), 24)])
	switch {
	case v.line == 1:
		return false, v.header(line)
	case strings.HasPrefix(s, `{"seq":`):
		return false, v.leaf(line)
	case strings.HasPrefix(s, `{"checkpoint":`):
		return false, v.checkpoint(line)
	case strings.HasPrefix(s, `{"tenant":`):
		return false, v.tenant(line)
	case strings.HasPrefix(s, `{"end":true,`):
		return true, v.end(line)
	}
	return false, errors.New("a line of no known kind")
}

func (v *verifier) header(line []byte) error {
	var h struct {
		Version int    `json:"holdfast_export"`
		Key     string `json:"key"`
	}
	if json.Unmarshal(line, &h) != nil || string(line) != fmt.Sprintf(`{"holdfast_export":1,"key":%s}`, quote(h.Key)) {
		return errors.New("not an export of a ledger")
	}
	k, err := parseKey(h.Key)
	switch {
	case err != nil:
		return err
	case v.key == nil:
		v.key = k
	case v.key.String() != h.Key:
		return errors.New("the export names another key than yours")
	}
	return nil
}

// tenant begins a tree.
func (v *verifier) tenant(line []byte) error {
	if err := v.finish(); err != nil {
		return err
	}
	var h struct {
		Tenant string `json:"tenant"`
		Size   int64  `json:"size"`
		Root   string `json:"root"`
	}
	if json.Unmarshal(line, &h) != nil || string(line) != fmt.Sprintf(`{"tenant":%s,"size":%d,"root":%s}`, quote(h.Tenant), h.Size, quote(h.Root)) || h.Size < 0 || h.Tenant == "" {
		return errors.New("a tenant's line that is not as it is written")
	}
	root, err := tlog.ParseHash(h.Root)
	if err != nil || root.String() != h.Root {
		return errors.New("a root that is no hash")
	}
	if n := len(v.done); n > 0 && (h.Tenant == logTenant || v.done[n-1].name != logTenant && h.Tenant <= v.done[n-1].name) {
		return fmt.Errorf("tenant %q comes after tenant %q", h.Tenant, v.done[n-1].name)
	}
	v.t = &tree{name: h.Tenant, size: h.Size, root: root, open: map[string]int64{}, ended: map[string]bool{}, due: v.logged[h.Tenant], recorded: -1}
	return v.compare()
}

// leaf takes {"seq":N,"leaf":RECORD} or {"seq":N,"part":"BASE64","leaf":RECORD}.
func (v *verifier) leaf(line []byte) error {
	t := v.t
	if t == nil {
		return errors.New("a leaf before its tenant")
	}
	rest, ok := bytes.CutPrefix(line, fmt.Appendf(nil, `{"seq":%d,`, t.n))
	if !ok || t.n >= t.size {
		return fmt.Errorf("leaf %d of %d comes next", t.n, t.size)
	}
	var part []byte
	if b64, isPart := bytes.CutPrefix(rest, []byte(`"part":"`)); isPart {
		text, after, found := bytes.Cut(b64, []byte(`",`))
		decoded, err := base64.StdEncoding.Strict().DecodeString(string(text))
		if !found || err != nil || base64.StdEncoding.EncodeToString(decoded) != string(text) {
			return errors.New("a part that is not base64")
		}
		part, rest = append([]byte{}, decoded...), after
		v.parts++
	}
	record, ok := bytes.CutPrefix(rest, []byte(`"leaf":`))
	if !ok || len(record) == 0 || record[len(record)-1] != '}' || len(record)-1 > maxRecord {
		return errors.New("a leaf that is not as it is written")
	}
	record = record[:len(record)-1]
	f, err := parse(record)
	if err != nil {
		return err
	}
	if err := t.record(f, part); err != nil {
		return err
	}
	if t.name == logTenant {
		if err := v.logs(f); err != nil {
			return err
		}
	}
	hashes, err := tlog.StoredHashes(t.n, record, t)
	if err != nil {
		return err
	}
	t.stored = append(t.stored, hashes...)
	t.n++
	v.leaves++
	return v.compare()
}

func (t *tree) record(f *front, part []byte) error {
	if f.Tenant != t.name {
		return fmt.Errorf("a record of tenant %q", f.Tenant)
	}
	if err := t.pair(f); err != nil {
		return err
	}
	hash := f.Part
	sum := sha256.Sum256(part)
	switch {
	case hash == "" && part != nil:
		return errors.New("a part that the record does not name")
	case hash != "" && part == nil:
		t.missing = append(t.missing, t.n)
	case part != nil && (len(part) < saltSize || hex.EncodeToString(sum[:]) != hash):
		return errors.New("the part is not the one that the record names")
	}
	return t.erasure(f)
}

// pair follows which crossings are open.
func (t *tree) pair(f *front) error {
	begun, open := t.open[f.ID]
	switch f.Kind {
	case "event":
		t.events++
		return nil
	case "begin":
		if open || t.ended[f.ID] {
			return fmt.Errorf("crossing %q began already", f.ID)
		}
		t.begins++
		t.open[f.ID] = t.n
		return nil
	case "entry":
	default:
		return fmt.Errorf("a record of kind %q", f.Kind)
	}
	switch {
	case t.ended[f.ID]:
		return fmt.Errorf("crossing %q has its entry already", f.ID)
	case open != (f.BeginSeq >= 0), open && f.BeginSeq != begun:
		return fmt.Errorf("the entry of crossing %q does not name its begin", f.ID)
	}
	t.entries++
	delete(t.open, f.ID)
	t.ended[f.ID] = true
	return nil
}

// erasure notes that parts were erased, and where.
func (t *tree) erasure(f *front) error {
	if f.Kind != "event" || f.Event != "parts_erased" {
		return nil
	}
	bad := errors.New("an erasure that does not say what it erased")
	var d map[string]json.RawMessage
	if json.Unmarshal(f.Data, &d) != nil {
		return bad
	}
	from, err := readInt(d["from"])
	to, err2 := readInt(d["to"])
	parts, err3 := readInt(d["parts"])
	if err != nil || err2 != nil || err3 != nil || to <= from || to > t.n || parts > to-from {
		return bad
	}
	t.erasures = append(t.erasures, [2]int64{from, to})
	t.said += parts
	return nil
}

// logs takes a leaf of the log of checkpoints: "TENANT SIZE ROOT-IN-HEX".
func (v *verifier) logs(f *front) error {
	if f.Kind != "event" || f.Event != "checkpoint" {
		return errors.New("the log of checkpoints holds something else")
	}
	bad := errors.New("a checkpoint in the log that cannot be read")
	w := strings.Split(f.Subject, " ")
	if len(w) != 3 || !isHash(w[2]) {
		return bad
	}
	tenant, err := unescape(w[0])
	size, err2 := readInt([]byte(w[1]))
	raw, err3 := hex.DecodeString(w[2])
	if err != nil || err2 != nil || err3 != nil || tenant == logTenant {
		return bad
	}
	h := head{tenant, size, tlog.Hash(raw)}
	heads := v.logged[tenant]
	if n := len(heads); n > 0 {
		was := heads[n-1]
		if size < was.size || size == was.size && h.root != was.root {
			return fmt.Errorf("tenant %q was signed at %d leaves and later at %d: history was rewritten", tenant, was.size, size)
		}
		if size == was.size {
			return nil
		}
	}
	v.logged[tenant] = append(heads, h)
	return nil
}

// compare holds the tree as it is now against the heads that it must contain:
// each in the log of checkpoints, and those that the caller has, which the log
// must have too.
func (v *verifier) compare() error {
	t := v.t
	var here []head
	if len(t.due) > 0 && t.due[0].size == t.n {
		here, t.recorded, t.due = append(here, t.due[0]), t.n, t.due[1:]
	}
	for _, h := range v.kept[t.name] {
		if h.size != t.n {
			continue
		}
		if here = append(here, h); t.recorded != t.n && t.name != logTenant {
			return t.fault(t.n-1, "you have a checkpoint of %d leaves that the log of checkpoints does not record", t.n)
		}
	}
	for _, h := range here {
		root, err := t.rootNow()
		if err != nil {
			return err
		}
		if root != h.root {
			return t.fault(t.n-1, "the tree of %d leaves is another than was signed before: one of them was changed", t.n)
		}
	}
	return nil
}

func (t *tree) rootNow() (tlog.Hash, error) {
	if t.n == 0 {
		return sha256.Sum256(nil), nil
	}
	return tlog.TreeHash(t.n, t)
}

// checkpoint takes a signed head, right after the leaf that makes up its size.
func (v *verifier) checkpoint(line []byte) error {
	var c struct {
		Checkpoint string `json:"checkpoint"`
	}
	if json.Unmarshal(line, &c) != nil || string(line) != fmt.Sprintf(`{"checkpoint":%s}`, quote(c.Checkpoint)) || v.t == nil {
		return errors.New("a checkpoint that is not as it is written, or before its tenant")
	}
	t := v.t
	h, err := v.key.open(c.Checkpoint)
	if err != nil {
		return err
	}
	root, err := t.rootNow()
	switch {
	case err != nil:
		return err
	case h.tenant != t.name || h.size != t.n || h.size <= t.last.size && t.last.tenant != "":
		return fmt.Errorf("a checkpoint of %d leaves of tenant %q after leaf %d", h.size, h.tenant, t.n-1)
	case h.root != root:
		return t.fault(t.n-1, "the tree up to here is not the one that was signed: one of the leaves %d to %d was changed", t.last.size, t.n-1)
	}
	if t.name != logTenant && t.recorded != t.n {
		return t.fault(t.n-1, "a checkpoint of %d leaves is signed, and the log of checkpoints does not record it", t.n)
	}
	if old := t.last; old.size > 0 {
		proof, err := tlog.ProveTree(h.size, old.size, t)
		if err == nil {
			err = tlog.CheckTree(proof, h.size, h.root, old.size, old.root)
		}
		if err != nil {
			return t.fault(h.size-1, "the checkpoint does not continue that of %d leaves: %v", old.size, err)
		}
	}
	t.last = h
	v.notes++
	return nil
}

// finish ends a tree.
func (v *verifier) finish() error {
	t := v.t
	if t == nil {
		return nil
	}
	root, err := t.rootNow()
	switch {
	case err != nil:
		return err
	case t.n != t.size:
		return t.fault(t.n, "leaves are missing: the head says %d", t.size)
	case root != t.root:
		return t.fault(t.n-1, "the root is not the head's: one of the leaves %d to %d was changed", t.last.size, t.n-1)
	}
	if err := t.unrecorded(); err != nil {
		return err
	}
	for _, h := range v.kept[t.name] {
		if h.size > t.n {
			return t.fault(t.n, "you have a checkpoint of %d leaves: leaves are missing", h.size)
		}
	}
	if logged := newest(v.logged[t.name]); t.name != logTenant && logged != t.last.size {
		return t.fault(t.n, "the log of checkpoints records %d signed leaves, and the newest checkpoint is of %d: one of them was cut back", logged, t.last.size)
	}
	if t.name == logTenant && t.last.size != t.n {
		return t.fault(t.last.size, "the log of checkpoints is not signed to its end: a checkpoint of its own was taken away")
	}
	t.stored, t.ended = nil, nil
	v.done, v.t = append(v.done, t), nil
	return nil
}

// newest is the size of the last head, 0 for none.
func newest(heads []head) int64 {
	if len(heads) == 0 {
		return 0
	}
	return heads[len(heads)-1].size
}

// unrecorded is the first part that is missing without a record of its
// erasure.
func (t *tree) unrecorded() error {
	slices.SortFunc(t.erasures, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	next, to := 0, int64(0) // to is how far those reach that begin at or before a leaf
	for _, seq := range t.missing {
		for ; next < len(t.erasures) && t.erasures[next][0] <= seq; next++ {
			to = max(to, t.erasures[next][1])
		}
		if seq >= to {
			return t.fault(seq, "the part was erased without a record")
		}
	}
	if n := int64(len(t.missing)); n > t.said {
		return t.fault(t.missing[0], "%d parts are missing from here on, and %d were erased with a record", n, t.said)
	}
	return nil
}

func (v *verifier) end(line []byte) error {
	if err := v.finish(); err != nil {
		return err
	}
	want := fmt.Sprintf(`{"end":true,"tenants":%d,"leaves":%d,"parts":%d,"checkpoints":%d}`, len(v.done), v.leaves, v.parts, v.notes)
	if string(line) != want {
		return errors.New("the last line does not count what is here: " + want)
	}
	there := map[string]bool{}
	for _, t := range v.done {
		there[t.name] = true
	}
	for name, heads := range v.logged {
		if !there[name] {
			return fmt.Errorf("the log of checkpoints records %d leaves of tenant %q, which is not here", newest(heads), name)
		}
	}
	for name := range v.kept {
		if !there[name] {
			return fmt.Errorf("you have a checkpoint of tenant %q, which is not here", name)
		}
	}
	if v.leaves == 0 {
		return errors.New("there is not one leaf")
	}
	return nil
}

// quote writes a string as RFC 8785 does, which is how an export writes them.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20:
			b.WriteRune(r)
		case strings.ContainsRune("\b\t\n\f\r", r):
			b.WriteByte('\\')
			b.WriteByte("btn.fr"[r-8])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
