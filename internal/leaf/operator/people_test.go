package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
)

func somebody(t *testing.T) Key {
	t.Helper()
	sealed, _, err := New(holdfast.NewSecret("correct horse battery"), Options{WorkFactor: 15})
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(sealed, holdfast.NewSecret("correct horse battery"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func admits(t *testing.T, by Key, who Public, change ...func(*Statement)) Signed {
	t.Helper()
	s := Statement{Act: Admit, Subject: who.ID(), Value: who.String(), Reviewer: "ann", At: time.Now(), ID: uuid.NewString(), Runtime: "r"}
	for _, f := range change {
		f(&s)
	}
	signed, err := Sign(by, s)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A list of keys is what its first line says, and what those who are in it
// signed for; nothing else is in it.
func TestK7_D11_keysOfSeveralPeople(t *testing.T) {
	ann, bob, eve := somebody(t), somebody(t), somebody(t)
	annPub, bobPub, evePub := ann.Public().Named("ann"), bob.Public().Named("bob"), eve.Public().Named("eve")
	first, second := annPub.String(), Entry(bobPub, admits(t, ann, bobPub))
	third := Entry(evePub, admits(t, bob, evePub))
	got, err := ParseKeys("# people\n" + first + "\n\n" + second + "\n" + third + "\n")
	if err != nil || len(got) != 3 || got[0].Name() != "ann" || got[1].Name() != "bob" || !got[2].Equal(evePub) {
		t.Fatal(got, err)
	}
	// A key of before keys had names.
	if got, err := ParseKeys(ann.Public().String() + "\n"); err != nil || len(got) != 1 || got[0].Name() != "" {
		t.Fatal(got, err)
	}
	if got, err := ParseKeys(""); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	for name, text := range map[string]string{
		"unsigned":             first + "\n" + bobPub.String(),
		"unsigned_unnamed":     first + "\n" + bob.Public().String(),
		"signed_by_itself":     first + "\n" + Entry(evePub, admits(t, eve, evePub)),
		"signed_by_a_later":    first + "\n" + third + "\n" + second,
		"other_name":           first + "\n" + Entry(bob.Public().Named("carol"), admits(t, ann, bobPub)),
		"other_key":            first + "\n" + Entry(eve.Public().Named("bob"), admits(t, ann, bobPub)),
		"another_act":          first + "\n" + Entry(bobPub, admits(t, ann, bobPub, func(s *Statement) { s.Act = Unpause })),
		"another_subject":      first + "\n" + Entry(bobPub, admits(t, ann, bobPub, func(s *Statement) { s.Subject = evePub.ID() })),
		"twice":                first + "\n" + second + "\n" + second,
		"one_name_for_two":     first + "\n" + Entry(eve.Public().Named("Ann"), admits(t, ann, eve.Public().Named("Ann"))),
		"signature_cut":        first + "\n" + second[:len(second)-5],
		"name_with_an_escape":  strings.Replace(first, "ann", "a\x1b[2J", 1),
		"garbage":              "hello",
		"garbage_behind":       first + "\nhello",
		"too_long":             first + "\n" + strings.Repeat("# x\n", MaxKeyList/3),
		"admitted_without_any": second,
	} {
		if got, err := ParseKeys(text); err == nil || got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, bad := range []string{"", " ", "a b", "../x", ".x", "-x", "ännä", strings.Repeat("x", 65), "a/b", "a\n"} {
		if CheckName(bad) == nil || ann.Public().Named(bad).ID() != "" {
			t.Errorf("%q is a name", bad)
		}
	}
}
