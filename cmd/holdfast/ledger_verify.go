package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

func verifyCommand() command {
	return command{name: "verify", about: "verify the whole ledger, or an export without it", run: ledgerVerify, help: `
Verify every record of every tenant: that each is where it was, that none is
missing, doubled or changed, that the trees are those that were signed, and that
none was cut back behind what the log of checkpoints records. A state that was
put back as a whole to an earlier one only --checkpoint finds. The exit code is 1
when something is wrong; tenant and record are named.

    holdfast ledger verify [--checkpoint FILE]
    holdfast ledger verify --export FILE --key KEY [--checkpoint FILE]
    holdfast ledger verify --proof FILE --key KEY

    --export FILE       an export, with nothing else but the public key
    --proof FILE        what ` + "`ledger prove`" + ` wrote
    --key KEY           what ` + "`ledger key`" + ` prints, or a file that holds it
    --checkpoint FILE   a signed head that was kept elsewhere: the ledger must
                        contain it; may be repeated

    $ holdfast ledger export ledger.jsonl
    $ holdfast ledger verify --export ledger.jsonl --key "$(holdfast ledger key)"
`}
}

func ledgerVerify(a *app, args []string) error {
	fs := a.flags("ledger verify")
	export := fs.String("export", "", "")
	proof := fs.String("proof", "", "")
	keyText := fs.String("key", "", "")
	var kept words
	fs.Var(&kept, "checkpoint", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	offline := *export != "" || *proof != ""
	switch {
	case *export != "" && *proof != "":
		return usage("", "--export and --proof are two things")
	case offline && *keyText == "":
		return usage(`give it with --key "$(holdfast ledger key)"`, "what is verified offline needs the public key")
	}
	key, err := a.verifier(*keyText)
	if err != nil {
		return err
	}
	known, err := checkpoints(key, kept)
	if err != nil {
		return err
	}
	switch {
	case *proof != "":
		return a.verifyProof(key, *proof)
	case *export != "":
		return a.verifyExport(key, *export, known)
	}
	return a.verifyStore(key, known)
}

// What the files that verification is given may hold, in bytes.
const (
	maxKeyText = 4 << 10
	maxNotes   = 1 << 20
	maxProof   = 4 << 20
)

// readPlain reads a regular file of at most limit bytes, and waits for nobody.
func readPlain(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fail("name a file", "%s is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fail("", "%s has more than %s", path, bytesOf(limit))
	}
	return b, err
}

// verifier is the public key: given as text or in a file, else the state's.
func (a *app) verifier(text string) (*ledger.Verifier, error) {
	if text == "" {
		p, err := a.paths()
		if err != nil {
			return nil, err
		}
		return daemon.LedgerKey(p)
	}
	v, err := ledger.ParseVerifier(strings.TrimSpace(text))
	if err == nil {
		return v, nil
	}
	b, ferr := readPlain(text, maxKeyText)
	if ferr != nil && !errors.Is(ferr, os.ErrNotExist) {
		return nil, ferr
	}
	if ferr != nil {
		return nil, usage("give what `holdfast ledger key` prints, or a file that holds it", "--key is no public key: %v", err)
	}
	return ledger.ParseVerifier(strings.TrimSpace(string(b)))
}

// checkpoints opens the notes that files hold, several to a file with an
// empty line between them, as `ledger checkpoint` prints them.
func checkpoints(key *ledger.Verifier, files []string) ([]ledger.SignedCheckpoint, error) {
	var out []ledger.SignedCheckpoint
	for _, file := range files {
		b, err := readPlain(file, maxNotes)
		if err != nil {
			return nil, err
		}
		for _, note := range notes(b) {
			c, err := key.Open(note)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// notes splits a text into signed notes: a body, an empty line, and lines of
// signatures, each of which begins with a dash.
func notes(b []byte) [][]byte {
	var out [][]byte
	var cur []byte
	signed := false
	for line := range bytes.Lines(b) {
		if signed && !bytes.HasPrefix(line, []byte("— ")) {
			out, cur, signed = append(out, cur), nil, false
		}
		if len(cur) == 0 && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cur = append(cur, line...)
		signed = signed || bytes.HasPrefix(line, []byte("— "))
	}
	if len(cur) > 0 {
		out = append(out, cur)
	}
	return out
}

// verified is what verification found, for people and as JSON.
type verified struct {
	OK      bool            `json:"ok"`
	Leaves  int64           `json:"leaves"`
	Seconds float64         `json:"seconds"`
	Against string          `json:"compared_with"`
	Trees   []ledger.Report `json:"tenants"`
}

func (a *app) verifyStore(key *ledger.Verifier, known []ledger.SignedCheckpoint) error {
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		faults, err := a.faults(s)
		if err != nil {
			return err
		}
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		start := time.Now()
		v := storeCheck{a: a, s: s, key: key, kept: known, p: a.progress(trees)}
		defer v.p.end()
		for _, t := range trees {
			if err := v.tree(t); err != nil {
				v.p.end()
				a.sayFaults(faults)
				return tampered(err)
			}
		}
		v.p.end()
		if len(faults) > 0 {
			a.sayFaults(faults[1:])
			return tampered(&faults[0])
		}
		if err := unmet(known, v.reports); err != nil {
			return err
		}
		if err := unmet(v.recorded(), v.reports); err != nil {
			return err
		}
		return a.sayVerified(v.reports, time.Since(start), against("the newest signed head of each tree and the log of checkpoints", known))
	})
}

// faults looks at the file around the trees: what belongs to none would not be
// looked at otherwise.
func (a *app) faults(s kernel.Store) ([]ledger.Fault, error) {
	file, ok := s.(interface {
		Structure(context.Context) ([]ledger.Fault, error)
	})
	if !ok {
		return nil, nil
	}
	return file.Structure(a.ctx)
}

// structure is the first of them as an error.
func (a *app) structure(s kernel.Store) error {
	faults, err := a.faults(s)
	if err != nil || len(faults) == 0 {
		return err
	}
	return tampered(&faults[0])
}

// maxSaid bounds the lines about a damaged file.
const maxSaid = 20

func (a *app) sayFaults(faults []ledger.Fault) {
	for _, f := range faults[:min(len(faults), maxSaid)] {
		a.say("%s", f.Error())
	}
}

// storeCheck verifies the trees of a store, the log of checkpoints before the
// others.
type storeCheck struct {
	a       *app
	s       kernel.Store
	key     *ledger.Verifier
	kept    []ledger.SignedCheckpoint
	log     ledger.CheckpointLog
	p       *progress
	reports []ledger.Report
}

// tree verifies one. It reads in short transactions, between which the daemon
// may erase parts and record that beyond the end that is known here: what fails
// is asked again in one transaction, which shows one moment.
func (v *storeCheck) tree(t tree) error {
	r, log, err := v.leaves(t, func(fn func(ledger.Stored) error) error {
		return v.a.leaves(v.s, t.head.Tenant, 0, t.head.Size, fn)
	})
	var f *ledger.Fault
	if errors.As(err, &f) {
		err = v.s.View(v.a.ctx, func(tx kernel.Tx) error {
			now, err := treeOf(tx, t.head.Tenant)
			if err != nil {
				return err
			}
			// The checkpoint stays the one that is as old as the log that
			// was read.
			t.head = now.head
			r, log, err = v.leaves(t, func(fn func(ledger.Stored) error) error {
				return tx.Leaves(t.head.Tenant, 0, t.head.Size, fn)
			})
			return err
		})
	}
	if err != nil {
		return err
	}
	if t.head.Tenant == ledger.CheckpointsTenant {
		v.log = log
	}
	signed := ledger.Head{Tenant: t.head.Tenant}
	if t.signed != nil {
		c, err := v.key.Open(t.signed.Note)
		if err != nil {
			return err
		}
		signed = c.Head
	}
	if err := v.log.Covers(signed); err != nil {
		return err
	}
	v.reports = append(v.reports, r)
	return nil
}

func (v *storeCheck) leaves(t tree, each func(func(ledger.Stored) error) error) (ledger.Report, ledger.CheckpointLog, error) {
	var log ledger.CheckpointLog
	cps, err := opened(v.key, t, append(v.recorded(), v.kept...))
	if err != nil {
		return ledger.Report{}, log, err
	}
	r, err := ledger.VerifyStore(t.head, cps, func(fn func(ledger.Stored) error) error {
		return each(func(l ledger.Stored) error {
			v.p.one()
			if err := fn(l); err != nil || t.head.Tenant != ledger.CheckpointsTenant {
				return err
			}
			return log.Add(l.Seq, l.Record)
		})
	})
	return r, log, err
}

// recorded are the heads that the log of checkpoints records.
func (v *storeCheck) recorded() []ledger.SignedCheckpoint {
	var out []ledger.SignedCheckpoint
	for _, h := range v.log.Newest() {
		out = append(out, ledger.SignedCheckpoint{Head: h})
	}
	return out
}

// opened are the checkpoints to compare a tree with, ascending by size: its
// newest, what the log of checkpoints records, and those that were kept
// elsewhere.
func opened(key *ledger.Verifier, t tree, known []ledger.SignedCheckpoint) ([]ledger.SignedCheckpoint, error) {
	var out []ledger.SignedCheckpoint
	if t.signed != nil {
		c, err := key.Open(t.signed.Note)
		if err != nil {
			return nil, &ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint: " + err.Error()}
		}
		if c.Tenant != t.head.Tenant {
			return nil, &ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint is another tenant's"}
		}
		out = append(out, c)
	}
	for _, c := range known {
		// One that says what another says already adds nothing; one that
		// contradicts it stays, and fails.
		same := func(o ledger.SignedCheckpoint) bool { return o.Head == c.Head }
		if c.Tenant == t.head.Tenant && !slices.ContainsFunc(out, same) {
			out = append(out, c)
		}
	}
	sortBySize(out)
	return out, nil
}

func sortBySize(cs []ledger.SignedCheckpoint) {
	for i := 1; i < len(cs); i++ {
		for k := i; k > 0 && cs[k].Size < cs[k-1].Size; k-- {
			cs[k], cs[k-1] = cs[k-1], cs[k]
		}
	}
}

// unmet is the error for a checkpoint of a tenant that is not there at all.
func unmet(known []ledger.SignedCheckpoint, reports []ledger.Report) error {
	for _, c := range known {
		found := false
		for _, r := range reports {
			found = found || r.Tenant == c.Tenant
		}
		if !found {
			return tampered(&ledger.Fault{Tenant: c.Tenant, Seq: -1, Why: "a signed head of this tenant exists, and the ledger has no such tenant"})
		}
	}
	return nil
}

func against(what string, known []ledger.SignedCheckpoint) string {
	if len(known) == 0 {
		return what
	}
	return what + " and " + count(len(known), "head that was kept elsewhere", "heads that were kept elsewhere")
}

// tampered turns a fault into a letter.
func tampered(err error) error {
	var f *ledger.Fault
	if !errors.As(err, &f) {
		return err
	}
	return fail("keep the file as it is; `holdfast halt` stops everything while you look", "the ledger does not verify: %s", f.Error())
}

func (a *app) verifyExport(key *ledger.Verifier, file string, known []ledger.SignedCheckpoint) error {
	r := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	start := time.Now()
	p := a.progress(nil)
	v := ledger.ExportVerifier{Key: key, Known: known}
	reports, err := v.Verify(&lineCounter{r, p})
	p.end()
	if err != nil {
		return tampered(err)
	}
	return a.sayVerified(reports, time.Since(start), against("the signed heads in the export", known))
}

func (a *app) sayVerified(reports []ledger.Report, took time.Duration, with string) error {
	if len(reports) == 0 {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "nothing was verified: the ledger has no tree", Hint: "a state in which nothing happened yet has none; if something did, the ledger was taken away"}
	}
	v := verified{OK: true, Seconds: took.Seconds(), Against: with, Trees: append([]ledger.Report{}, reports...)}
	for _, r := range reports {
		v.Leaves += r.Size
	}
	if a.json {
		return a.printJSON(v)
	}
	rows := [][]string{{"TENANT", "LEAVES", "CROSSINGS", "EVENTS", "OPEN", "ERASED", "SIGNED TO", "ROOT"}}
	for _, r := range reports {
		rows = append(rows, []string{clean(r.Tenant), fmt.Sprint(r.Size), fmt.Sprint(r.Entries), fmt.Sprint(r.Events), fmt.Sprint(r.Open), fmt.Sprint(r.Erased), fmt.Sprint(r.Signed), r.Root.String()})
	}
	table(a.out, rows)
	rate := float64(v.Leaves) / max(took.Seconds(), 1e-9)
	fmt.Fprintf(a.out, "\nverified %s of %s in %s, %.0f a second\n", count(v.Leaves, "leaf", "leaves"), count(len(reports), "tenant", "tenants"), took.Round(time.Millisecond), rate)
	fmt.Fprintf(a.out, "compared with %s\n", with)
	for _, r := range reports {
		if n := r.Beyond(); n > 0 {
			a.say("%s: the last %s not signed yet, so only the store vouches for them", clean(r.Tenant), count(n, "leaf is", "leaves are"))
			a.hint("`%s` signs them", a.forState("holdfast ledger checkpoint"))
		}
	}
	return nil
}

// progress counts leaves on a terminal.
type progress struct {
	a     *app
	total int64
	n     int64
	last  time.Time
	shown bool
}

func (a *app) progress(trees []tree) *progress {
	p := &progress{a: a, last: time.Now(), shown: false}
	for _, t := range trees {
		p.total += t.head.Size
	}
	return p
}

func (p *progress) one() {
	p.n++
	if p.n%16384 != 0 || !isTerminal(p.a.err) || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last, p.shown = time.Now(), true
	of := ""
	if p.total > 0 {
		of = fmt.Sprintf(" of %d", p.total)
	}
	fmt.Fprintf(p.a.err, "\r%d%s leaves ", p.n, of)
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.a.err, "\r\x1b[K")
	}
}

// lineCounter counts the lines that are read through it.
type lineCounter struct {
	r io.Reader
	p *progress
}

func (l *lineCounter) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	for range bytes.Count(b[:n], []byte("\n")) {
		l.p.one()
	}
	return n, err
}
