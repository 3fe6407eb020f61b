package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxFindings bounds what is named; the rest is counted.
const maxFindings = 100_000

// semantics judges every crossing again, from what the ledger records, by the
// package that shares no code with the kernel.
type semantics struct {
	a     *app
	v     *dissimilar.Verifier
	found []dissimilar.Finding
	took  time.Duration
}

// judged is what came of it, as JSON.
type judged struct {
	OK bool `json:"ok"`
	dissimilar.Result
	Findings []dissimilar.Finding `json:"findings"`
	Seconds  float64              `json:"seconds"`
	// Operators is how many public keys there were to check people's
	// signatures with.
	Operators int `json:"operators"`
}

// judge makes one; operators are public keys or files that hold them.
func (a *app) judge(runtime string, operators []string, offline bool) (*semantics, int, error) {
	keys, err := a.operatorKeys(operators, offline)
	if err != nil {
		return nil, 0, err
	}
	s := &semantics{a: a}
	s.v = dissimilar.New(dissimilar.Options{Operators: keys, Runtime: runtime, Found: func(f dissimilar.Finding) {
		if len(s.found) < maxFindings {
			s.found = append(s.found, f)
		}
	}})
	return s, len(keys), nil
}

// operatorKeys reads public keys; without any named, of a state its own.
func (a *app) operatorKeys(named []string, offline bool) ([]ed25519.PublicKey, error) {
	if len(named) == 0 && !offline {
		p, err := a.paths()
		if err != nil {
			return nil, err
		}
		named = []string{p.OperatorPub}
		if _, err := os.Lstat(p.OperatorPub); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	var out []ed25519.PublicKey
	for _, text := range named {
		if key, err := dissimilar.ParseOperator(text); err == nil {
			out = append(out, key)
			continue
		}
		b, err := readPlain(text, operator.MaxKeyList)
		if err != nil {
			return nil, usage("give the line in operator.pub, or a file that holds it", "--operator is no public key and no file: %v", err)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, err := dissimilar.ParseOperator(line)
			if err != nil {
				return nil, fail("", "%s: %v", text, err)
			}
			out = append(out, key)
		}
	}
	return out, nil
}

// leaf takes one leaf of a store or an export.
func (s *semantics) leaf(l ledger.Stored) {
	s.v.Leaf(dissimilar.Leaf{Tenant: l.Tenant, Seq: l.Seq, Record: l.Record, Part: l.Part})
}

// store reads every tree that was verified, up to where it was.
func (s *semantics) store(st kernel.Store, reports []ledger.Report) error {
	start := time.Now()
	var total int64
	for _, r := range reports {
		total += r.Size
	}
	p := s.a.newCounter(total)
	defer p.Clear()
	for _, r := range reports {
		err := s.a.leaves(st, r.Tenant, 0, r.Size, func(l ledger.Stored) error {
			p.CountLeaf()
			s.leaf(l)
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.took = time.Since(start)
	return nil
}

// result is what was found; the error is there if anything is wrong.
func (s *semantics) result(operators int) (*judged, error) {
	j := &judged{Result: s.v.Result(), Findings: s.found, Seconds: s.took.Seconds(), Operators: operators}
	if j.Findings == nil {
		j.Findings = []dissimilar.Finding{}
	}
	if j.OK = j.Wrong == 0; j.OK {
		return j, nil
	}
	return j, &holdfast.Error{Kind: holdfast.KindInternal,
		Why:  fmt.Sprintf("the ledger says what cannot be: %s wrong, judged again from what it records", story.Count(j.Wrong, "check is", "checks are")),
		Hint: "its trees and signatures hold, so this was written by who can sign, or by a fault: keep the file as it is; `holdfast halt` stops everything while you look"}
}

// say prints it for people: what is wrong first, each on a line, then how often
// each check was made.
func (j *judged) say(a *app) {
	for i := range j.Findings {
		f := &j.Findings[i]
		gate := or(f.Gate, "record")
		fmt.Fprintf(a.out, "%s leaf %d crossing %s: %s: %s: the record says %s; recomputed: %s\n",
			clean(f.Tenant), f.Seq, clean(or(f.Crossing, "-")), gate, f.Check, clean(f.Says), clean(f.Found))
	}
	if more := j.Wrong - int64(len(j.Findings)); more > 0 {
		fmt.Fprintf(a.out, "and %d more\n", more)
	}
	if len(j.Findings) > 0 {
		fmt.Fprintln(a.out)
	}
	rows := [][]string{{"GATE", "CHECK", "RIGHT", "WRONG", "UNDECIDABLE"}}
	why := map[string]int64{}
	for _, c := range j.Checks {
		rows = append(rows, []string{or(c.Gate, "-"), c.Check, fmt.Sprint(c.Right), fmt.Sprint(c.Wrong), fmt.Sprint(c.Undecidable)})
		for reason, n := range c.Why {
			why[strings.TrimSpace(c.Gate+" "+c.Check)+": "+reason] += n
		}
	}
	fmt.Fprintln(a.out)
	table(a.out, rows)
	j.sayWhy(a, why)
	t := j.Totals
	n := t.Begins + t.Entries + t.Events
	fmt.Fprintf(a.out, "\njudged %s again, %s, in %s, %.0f leaves a second\n", story.Count(t.Entries, "crossing", "crossings"), story.Count(t.Open, "is open", "are open"),
		time.Duration(j.Seconds*float64(time.Second)).Round(time.Millisecond), float64(n)/max(j.Seconds, 1e-9))
	if t.Backwards > 0 {
		a.say("%s made before the one before: the clock was set back", story.Count(t.Backwards, "record was", "records were"))
	}
}

func (j *judged) sayWhy(a *app, why map[string]int64) {
	reasons := make([]string, 0, len(why))
	for r := range why {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(x, y string) int {
		if why[x] != why[y] {
			return int(min(max(why[y]-why[x], -1), 1))
		}
		return strings.Compare(x, y)
	})
	if len(reasons) > 0 {
		fmt.Fprintln(a.out, "\nnot recomputed, and so neither right nor wrong:")
	}
	for _, r := range reasons {
		fmt.Fprintf(a.out, "  %s: %d\n", r, why[r])
	}
	if j.Operators == 0 {
		a.hint("name the operators' public keys with --operator: without them no answer of a person can be checked")
	}
}
