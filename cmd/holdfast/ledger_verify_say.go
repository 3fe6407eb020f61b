package main

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/ledger"
)

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
