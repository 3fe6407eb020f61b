package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

func verifyCommand() command {
	return command{name: "verify", about: "verify the whole ledger, or an export without it", run: ledgerVerify, help: `
Verify every record of every tenant: that each is where it was, that none is
missing, doubled or changed, and that the trees are those that were signed. The
exit code is 1 when something is wrong; tenant and record are named.

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
	b, ferr := os.ReadFile(text)
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
		b, err := os.ReadFile(file)
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
		trees, err := a.trees(s)
		if err != nil {
			return err
		}
		start, p := time.Now(), a.progress(trees)
		var reports []ledger.Report
		for _, t := range trees {
			cps, err := opened(key, t, known)
			if err != nil {
				return err
			}
			r, err := ledger.VerifyStore(t.head, cps, func(fn func(ledger.Stored) error) error {
				return a.leaves(s, t.head.Tenant, 0, t.head.Size, func(l ledger.Stored) error {
					p.one()
					return fn(l)
				})
			})
			if err != nil {
				p.end()
				return tampered(err)
			}
			reports = append(reports, r)
		}
		p.end()
		if err := unmet(known, reports); err != nil {
			return err
		}
		return a.sayVerified(reports, time.Since(start), against("the newest signed head of each tree", known))
	})
}

// opened are the checkpoints to compare a tree with, ascending by size: its
// newest and those that were kept elsewhere.
func opened(key *ledger.Verifier, t tree, known []ledger.SignedCheckpoint) ([]ledger.SignedCheckpoint, error) {
	var out []ledger.SignedCheckpoint
	if t.signed != nil {
		c, err := key.Open(t.signed.Note)
		if err != nil {
			return nil, tampered(&ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint: " + err.Error()})
		}
		if c.Tenant != t.head.Tenant {
			return nil, tampered(&ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint is another tenant's"})
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
