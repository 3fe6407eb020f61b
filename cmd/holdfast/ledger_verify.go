package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

func verifyCommand() command {
	return command{name: "verify", about: "verify the whole ledger, or an export without it", run: ledgerVerify, help: `
Verify every record of every tenant: that each is where it was, that none is
missing, doubled or changed, that the trees are those that were signed, and that
none was cut back behind what the log of checkpoints records, nor the store put
back behind the newest signed head beside it. A state that was put back as a
whole to an earlier one only --checkpoint finds. The exit code is 1
when something is wrong; tenant and record are named.

    holdfast ledger verify [--checkpoint FILE] [--semantics]
    holdfast ledger verify --export FILE --key KEY [--checkpoint FILE] [--semantics]
    holdfast ledger verify --proof FILE --key KEY

    --export FILE       an export, with nothing else but the public key; - reads
                        it from the standard input
    --proof FILE        what ` + "`ledger prove`" + ` wrote
    --key KEY           what ` + "`ledger key`" + ` prints, or a file that holds it
    --checkpoint FILE   a signed head that was kept elsewhere: the ledger must
                        contain it; may be repeated
    --semantics         judge every crossing again from what the ledger records,
                        by code that shares nothing with the gates: permissions,
                        budgets, keys, approvals, results. Each record that was
                        not right is named; what the record cannot tell is counted
    --operator KEY      the public key that people's answers are signed with, the
                        line in operator.pub or a file that holds it; the state's
                        own if absent; may be repeated

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
	again := fs.Bool("semantics", false, "")
	var operators words
	fs.Var(&operators, "operator", "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	offline := *export != "" || *proof != ""
	switch {
	case *export != "" && *proof != "":
		return usage("", "--export and --proof are two things")
	case *proof != "" && *again, len(operators) > 0 && !*again:
		return usage("", "--semantics judges a whole ledger, and --operator is for it")
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
	if *proof != "" {
		return a.verifyProof(key, *proof)
	}
	o := verifying{a: a, key: key, known: known}
	if *again {
		if o.again, o.operators, err = a.judge(key.Runtime(), operators, offline); err != nil {
			return err
		}
	}
	if *export != "" {
		return o.export(*export)
	}
	return o.store()
}

// verifying is one verification of a whole ledger; again is nil where only the
// trees are verified.
type verifying struct {
	a         *app
	key       *ledger.Verifier
	known     []ledger.SignedCheckpoint
	again     *semantics
	operators int
}

// What the files that verification is given may hold, in bytes.
const (
	maxKeyText = 4 << 10
	maxNotes   = 1 << 20
	maxProof   = 4 << 20
)

// openPlain opens a regular file, and waits for nobody.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail("name a file", "%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readPlain reads a regular file of at most limit bytes.
func readPlain(path string, limit int64) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
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
	// Semantics is what judging again came to, absent where nobody asked.
	Semantics *judged `json:"semantics,omitempty"`
}

func against(what string, known []ledger.SignedCheckpoint) string {
	if len(known) == 0 {
		return what
	}
	return what + " and " + story.Count(len(known), "head that was kept elsewhere", "heads that were kept elsewhere")
}

// tampered turns a fault into a letter.
func tampered(err error) error {
	var f *ledger.Fault
	if !errors.As(err, &f) {
		return err
	}
	return fail("keep the file as it is; `holdfast halt` stops everything while you look", "the ledger does not verify: %s", f.Error())
}

func (o *verifying) export(file string) error {
	a := o.a
	r := a.in
	if file != "-" {
		f, err := openPlain(file)
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	r = &untilDone{ctx: a.ctx, r: r}
	start := time.Now()
	p := a.progress(nil)
	v := ledger.ExportVerifier{Key: o.key, Known: o.known, Deep: true}
	if o.again != nil {
		v.Leaf = o.again.leaf
	}
	reports, err := v.Verify(&lineCounter{r, p})
	p.end()
	if err != nil && a.ctx.Err() != nil {
		return fail("", "interrupted: the export was not verified to its end")
	}
	if err != nil {
		return tampered(err)
	}
	took := time.Since(start)
	if o.again != nil {
		o.again.took = took
	}
	return o.say(reports, took, against("the signed heads in the export", o.known))
}

// say tells what was verified, and judged again.
func (o *verifying) say(reports []ledger.Report, took time.Duration, with string) error {
	if o.again == nil {
		return o.a.sayVerified(reports, took, with, nil)
	}
	j, wrong := o.again.result(o.operators)
	if err := o.a.sayVerified(reports, took, with, j); err != nil {
		return err
	}
	return wrong
}

func (a *app) sayVerified(reports []ledger.Report, took time.Duration, with string, j *judged) error {
	if len(reports) == 0 {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "nothing was verified: the ledger has no tree", Hint: "a state in which nothing happened yet has none; if something did, the ledger was taken away"}
	}
	v := verified{OK: j == nil || j.OK, Semantics: j, Seconds: took.Seconds(), Against: with, Trees: append([]ledger.Report{}, reports...)}
	for _, r := range reports {
		v.Leaves += r.Size
	}
	if a.json {
		return a.printJSON(v)
	}
	rows := [][]string{{"TENANT", "LEAVES", "CROSSINGS", "EVENTS", "OPEN", "ERASED", "SIGNED TO", "ROOT"}}
	for _, r := range reports {
		rows = append(rows, []string{clean(treeName(r.Tenant)), fmt.Sprint(r.Size), fmt.Sprint(r.Entries), fmt.Sprint(r.Events), fmt.Sprint(r.Open), fmt.Sprint(r.Erased), fmt.Sprint(r.Signed), r.Root.String()})
	}
	table(a.out, rows)
	rate := float64(v.Leaves) / max(took.Seconds(), 1e-9)
	fmt.Fprintf(a.out, "\nverified %s of %s in %s, %.0f a second\n", story.Count(v.Leaves, "leaf", "leaves"), story.Count(len(reports), "tenant", "tenants"), took.Round(time.Millisecond), rate)
	fmt.Fprintf(a.out, "compared with %s\n", with)
	for _, r := range reports {
		if r.Unfollowed > 0 {
			a.say("%s: %s while 65536 others were open, so it was not followed which entry is whose", clean(treeName(r.Tenant)), story.Count(int(r.Unfollowed), "crossing began", "crossings began"))
		}
		if n := r.Beyond(); n > 0 {
			a.say("%s: the last %s not signed yet, so only the store vouches for them", clean(treeName(r.Tenant)), story.Count(n, "leaf is", "leaves are"))
			a.hint("`%s` signs them", a.forState("holdfast ledger checkpoint"))
		}
	}
	if j != nil {
		j.say(a)
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
	if p.n%16384 == 0 {
		p.show()
	}
}

// upTo says that n leaves of so many were read.
func (p *progress) upTo(n, of int64) {
	p.n, p.total = n, of
	p.show()
}

func (p *progress) show() {
	if !isTerminal(p.a.err) || time.Since(p.last) < 200*time.Millisecond {
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

// treeName names a tenant's tree for people.
func treeName(tenant string) string {
	if tenant == ledger.CheckpointsTenant {
		return tenant + " (the log of signed heads)"
	}
	if tenant == holdfast.Unverified {
		return tenant + " (requests without a good token, whose tenant nobody knows)"
	}
	return tenant
}
