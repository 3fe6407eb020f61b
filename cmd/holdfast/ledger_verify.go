package main

import (
	"errors"
	"time"

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
	p := a.newCounter(0)
	v := ledger.ExportVerifier{Key: o.key, Known: o.known, Deep: true}
	if o.again != nil {
		v.Leaf = o.again.leaf
	}
	reports, err := v.Verify(p.CountLines(r))
	p.Clear()
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
