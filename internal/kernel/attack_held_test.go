package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func (w *world) edit(id string, change func(*review.Review)) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx kernel.Tx) error {
		r, err := tx.Review(id)
		if err != nil {
			return err
		}
		was := r.State
		change(&r)
		return tx.PutReview(r, was)
	})
	if err != nil {
		w.t.Log("the store refuses the row:", err)
	}
}

// noAct crosses and fails where the hand is called.
func (w *world) noAct(req holdfast.Request, what string) {
	w.t.Helper()
	_, _ = w.k.Cross(w.t.Context(), req, func(ctx context.Context) (holdfast.Output, error) {
		w.t.Errorf("%s: it acted", what)
		return ok(ctx)
	})
}

// A rejection is turned into an approval.
func TestAttackStore_rejection_turned_around(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	if _, err := w.k.Decide(w.say(operator.Reject, h.Review, "no")); err != nil {
		t.Fatal(err)
	}
	w.edit(h.Review, func(r *review.Review) { r.State = review.Approved })
	w.noAct(w.req("test/high", `{}`), "a rejection")
}

// The word of an approval is put under another review.
func TestAttackStore_word_of_another_review(t *testing.T) {
	w := newWorld(t, "")
	h := w.held(w.req("test/high", `{}`))
	good := w.approve(h.Review)
	other := w.held(w.req("test/high", `{"evil":1}`))
	w.edit(other.Review, func(r *review.Review) {
		r.State, r.Word, r.Reviewer, r.Decided, r.Expires = review.Approved, good.Word, good.Reviewer, good.Decided, good.Expires
		r.Nonce, r.PreviewHash = good.Nonce, good.PreviewHash
	})
	w.noAct(w.req("test/high", `{"evil":1}`), "the word of another review")
}

// tableNamed returns a table of the kernel.
func tableNamed(name string) *table.Def {
	all := append(kernel.Tables(), testTables()...)
	return all[slices.IndexFunc(all, func(d *table.Def) bool { return d.Name == name })]
}

// readRow returns a row of a table of the kernel as JSON.
func (w *world) readRow(of string, key ...any) (doc []byte, err error) {
	err = w.store.View(context.Background(), func(tx kernel.Tx) error {
		r, err := tx.Row(tableNamed(of), key)
		doc = r.Doc
		return err
	})
	return doc, err
}

func (w *world) mustRow(of string, key ...any) []byte {
	w.t.Helper()
	doc, err := w.readRow(of, key...)
	if err != nil {
		w.t.Fatal(err)
	}
	return doc
}

// putRow writes a row as a SQLite shell would.
func (w *world) putRow(doc []byte, of string, key ...any) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx kernel.Tx) error {
		r := table.Row{Key: key, Doc: doc}
		was, err := tx.Row(tableNamed(of), key)
		if errors.Is(err, kernel.ErrNotFound) {
			return tx.InsertRow(tableNamed(of), r)
		}
		r.Version = was.Version
		return errors.Join(err, tx.ReplaceRow(tableNamed(of), r))
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A rule's row is changed: its words, its end, or its signature.
func TestAttackStore_rule_rewritten(t *testing.T) {
	for name, change := range map[string]func(*operator.Signed){
		"wider": func(s *operator.Signed) {
			s.Statement = []byte(strings.Replace(string(s.Statement), "/srv/tree", "/tmp/wor", 1))
		},
		"eve": func(s *operator.Signed) {
			s.Statement = []byte(strings.Replace(string(s.Statement), "alice", "eve", -1))
		},
		"no sig": func(s *operator.Signed) { s.Signature = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			m := w.remember("test/high", inWorkArgs, inWork)
			var row map[string]json.RawMessage
			if err := json.Unmarshal(w.mustRow("remembered_rule", m.ID), &row); err != nil {
				t.Fatal(err)
			}
			var word operator.Signed
			if err := json.Unmarshal(row["word"], &word); err != nil {
				t.Fatal(err)
			}
			change(&word)
			row["word"], _ = json.Marshal(word)
			b, _ := json.Marshal(row)
			w.putRow(b, "remembered_rule", m.ID)
			w.noAct(w.req("test/high", `{"path":"/srv/tree/c","text":"x"}`), "a rule that somebody rewrote")
		})
	}
}

// An approval is asked to cover what looks like what was approved.
func TestAttack_variants_of_what_was_approved(t *testing.T) {
	w := newWorld(t, "")
	const args = `{"a":1,"b":"x","n":9007199254740993}`
	h := w.held(w.req("test/high", args))
	w.approve(h.Review)
	for _, other := range []string{
		`{"a":1.0,"b":"x","n":9007199254740993}`, `{"a":1e0,"b":"x","n":9007199254740993}`, `{"a":"1","b":"x","n":9007199254740993}`,
		`{"a":1,"b":"x","n":9007199254740992}`, `{"a":1,"b":"x","n":9007199254740993,"c":null}`, `{"A":1,"b":"x","n":9007199254740993}`,
		`{"a":1,"b":"x","n":9007199254740993,"B":"y"}`, `{"a":1,"b":"x ","n":9007199254740993}`, `{"a":1,"b":"X","n":9007199254740993}`,
		`{"a":1,"b":"x\u200b","n":9007199254740993}`, `{"a":1,"b":"\uff58","n":9007199254740993}`, `{"a":1,"a":2,"b":"x","n":9007199254740993}`,
		`{"a":1,"\u0061":2,"b":"x","n":9007199254740993}`, `{"a":1,"b":"\ud800","n":9007199254740993}`, `[{"a":1,"b":"x","n":9007199254740993}]`,
		`{"a":1,"b":"x","n":9007199254740993}{}`, `{"a":1,"b":"x"}`,
	} {
		w.noAct(w.req("test/high", other), other)
	}
	same := w.req("test/high", " {\"n\":9007199254740993, \"\\u0062\":\"\\u0078\",\"a\":1}\n")
	w.passes(same) // the same document in other bytes
	w.noAct(same, "the second time")
}
