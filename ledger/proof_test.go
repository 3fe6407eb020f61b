package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// seeded is a repeatable source of key bytes.
type seeded struct{ r *rand.ChaCha8 }

func (s seeded) Read(b []byte) (int, error) { return s.r.Read(b) }

func testSigner(t testing.TB, n byte) *Signer {
	t.Helper()
	s, err := GenerateKey(seeded{rand.NewChaCha8([32]byte{n})}, "box 1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSign(t testing.TB, s *Signer, h Head) SignedCheckpoint {
	t.Helper()
	c, err := s.Sign(h, testTime)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckpointIsANoteThatOthersCanOpen(t *testing.T) {
	s := testSigner(t, 1)
	v := s.Verifier()
	for _, tenant := range []string{"acme", CheckpointsTenant, "a/b c+d\ne%", "ünïcode", "\x00\xff"} {
		c := mustSign(t, s, Head{tenant, 3, leafOf(1)})
		nv, err := note.NewVerifier(v.NoteKey(tenant))
		if err != nil {
			t.Fatal(err)
		}
		n, err := note.Open(c.Note, note.VerifierList(nv))
		if err != nil {
			t.Fatalf("tenant %q: %v", tenant, err)
		}
		if lines := strings.Split(n.Text, "\n"); len(lines) != 5 || lines[0] != v.Origin(tenant) || lines[1] != "3" {
			t.Errorf("tenant %q: %q", tenant, n.Text)
		}
		back, err := v.Open(c.Note)
		if err != nil || back.Head != c.Head || !back.At.Equal(testTime) || !bytes.Equal(back.Note, c.Note) {
			t.Errorf("tenant %q: read back %+v, %v", tenant, back, err)
		}
	}
}

func TestCheckpointKeysReadBack(t *testing.T) {
	for i := range byte(20) {
		s := testSigner(t, i)
		skey, vkey := s.Secret(), s.Verifier().String()
		if ns, err := note.NewSigner(skey.Reveal()); err != nil || ns.Name() != "holdfast/box%201" {
			t.Fatalf("x/mod refuses the key: %v", err)
		}
		if _, err := note.NewVerifier(vkey); err != nil {
			t.Fatalf("x/mod refuses the key: %v", err)
		}
		s2, err := ParseSigner(skey)
		if err != nil || s2.Verifier().String() != vkey {
			t.Fatal(err)
		}
		v, err := ParseVerifier(vkey)
		if err != nil || v.String() != vkey || v.Runtime() != "box 1" {
			t.Fatal(err)
		}
		for k := range vkey {
			if _, err := ParseVerifier(vkey[:k]); err == nil {
				t.Fatalf("%q was accepted as a key", vkey[:k])
			}
		}
		_, err = ParseSigner(holdfast.NewSecret(skey.Reveal() + "A"))
		if err == nil || strings.Contains(err.Error(), skey.Reveal()[30:]) {
			t.Errorf("key with a tail: %v", err)
		}
	}
	if _, err := GenerateKey(bytes.NewReader([]byte("short")), "x"); err == nil {
		t.Error("a key was made from 5 bytes")
	}
	if _, err := GenerateKey(seeded{rand.NewChaCha8([32]byte{})}, ""); err == nil {
		t.Error("a key was made for no runtime")
	}
}

func TestCheckpointOpenRefuses(t *testing.T) {
	s := testSigner(t, 1)
	v := s.Verifier()
	good := mustSign(t, s, Head{"acme", 12, leafOf(1)}).Note
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if _, err := v.Open(bad); err == nil {
				t.Fatalf("bit %d of byte %d does not matter", bit, i)
			}
		}
		if _, err := v.Open(good[:i]); err == nil {
			t.Fatalf("the first %d bytes were accepted", i)
		}
	}
	sign := func(text string) []byte {
		return appendSig([]byte(text+"\n"), s, v.Origin("acme"), text)
	}
	root := leafOf(1).String()
	origin := v.Origin("acme") + "\n"
	for name, text := range map[string]string{
		"leading zero":    origin + "012\n" + root + "\nat 2026-11-21T03:42:45.123456Z\n",
		"negative":        origin + "-1\n" + root + "\nat 2026-11-21T03:42:45.123456Z\n",
		"short root":      origin + "12\n" + root[4:] + "\nat 2026-11-21T03:42:45.123456Z\n",
		"other base64":    origin + "12\n" + root[:42] + string(root[42]+1) + "=\nat 2026-11-21T03:42:45.123456Z\n",
		"no time":         origin + "12\n" + root + "\n",
		"another line":    origin + "12\n" + root + "\nat 2026-11-21T03:42:45.123456Z\nmore\n",
		"no such day":     origin + "12\n" + root + "\nat 2026-02-30T03:42:45.123456Z\n",
		"other escape":    strings.Replace(origin, "acme", "%61cme", 1) + "12\n" + root + "\nat 2026-11-21T03:42:45.123456Z\n",
		"another runtime": "holdfast/x/tenant/acme\n12\n" + root + "\nat 2026-11-21T03:42:45.123456Z\n",
	} {
		if _, err := v.Open(sign(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := v.Open(sign(origin + "12\n" + root + "\nat 2026-11-21T03:42:45.123456Z\n")); err != nil {
		t.Errorf("the good one: %v", err)
	}
	if _, err := testSigner(t, 2).Verifier().Open(good); err == nil {
		t.Error("another key opens it")
	}
	if _, err := s.Sign(Head{"", 1, leafOf(1)}, testTime); err == nil {
		t.Error("signed for no tenant")
	}
	if _, err := s.Sign(Head{"a", 1, leafOf(1)}, time.Time{}); err == nil {
		t.Error("signed at no time")
	}
	// One tenant's checkpoint is not another's, whatever the origin says.
	moved := bytes.ReplaceAll(good, []byte("tenant/acme"), []byte("tenant/evil"))
	if _, err := v.Open(moved); err == nil {
		t.Error("a checkpoint was moved to another tenant")
	}
}

func appendSig(b []byte, s *Signer, origin, text string) []byte {
	// The key id belongs to the name, so the key is written under this one.
	seed := strings.SplitN(s.Secret().Reveal(), "+", 5)[4]
	id := strings.Split(vkeyString(origin, s.Verifier().key), "+")[1]
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin + "+" + id + "+" + seed)
	if err != nil {
		panic(err)
	}
	msg, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		panic(err)
	}
	return append(b, msg[len(text)+1:]...)
}

func TestCheckpointKeepsCosignatures(t *testing.T) {
	s := testSigner(t, 1)
	v := s.Verifier()
	c := mustSign(t, s, Head{"acme", 12, leafOf(1)})
	skey, _, err := note.GenerateKey(seeded{rand.NewChaCha8([32]byte{9})}, "witness.example")
	if err != nil {
		t.Fatal(err)
	}
	w, err := note.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(c.Note), "\n\n")
	only, err := note.Sign(&note.Note{Text: text + "\n"}, w)
	if err != nil {
		t.Fatal(err)
	}
	line := only[len(text)+2:]
	both := append(bytes.Clone(c.Note), line...)
	if back, err := v.Open(both); err != nil || !bytes.Equal(back.Note, both) {
		t.Errorf("cosigned: %v", err)
	}
	if _, err := v.Open(append(bytes.Clone(both), line...)); err == nil {
		t.Error("a cosignature that stands twice was accepted")
	}
	if _, err := v.Open(only); err == nil {
		t.Error("a note without the runtime's signature was accepted")
	}
}

func TestCheckpointEventIsARecord(t *testing.T) {
	for _, tenant := range []string{"acme", "a b\n+%", "\xff"} {
		h := Head{tenant, 12, leafOf(1)}
		e := CheckpointEvent("e1", mustSign(t, testSigner(t, 1), h))
		back, err := ParseEvent(mustJSON(t, e))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CheckpointHead(back); err != nil || got != h || back.TenantID != CheckpointsTenant {
			t.Errorf("%+v, %v", got, err)
		}
		for _, bad := range []string{"", "acme", "acme 012 " + testHash, "acme 12 " + strings.ToUpper(testHash), "acme 12 " + testHash + " x", " 12 " + testHash} {
			e.Subject = bad
			if _, err := CheckpointHead(e); err == nil {
				t.Errorf("read a head from %q", bad)
			}
		}
	}
}

func TestProofs(t *testing.T) {
	s := testSigner(t, 1)
	v := s.Verifier()
	var tree Tree
	m := newRooted()
	cps := []SignedCheckpoint{mustSign(t, s, tree.Head("acme"))}
	for i := range int64(700) {
		m.add(&tree, leafOf(i))
		if i%53 == 0 || i == 255 {
			cps = append(cps, mustSign(t, s, tree.Head("acme")))
		}
	}
	for i, c := range cps {
		for seq := int64(0); seq < c.Size; seq += 1 + c.Size/7 {
			p, err := ProveInclusion(m, c, seq)
			if err != nil {
				t.Fatal(err)
			}
			q, err := ParseInclusion(mustJSON(t, p))
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Verify(v, fmt.Appendf(nil, "leaf %d", seq)); err != nil {
				t.Error(err)
			}
			spoilInclusion(t, v, p, seq)
		}
		for _, d := range cps[i:] {
			p, err := ProveConsistency(m, c, d)
			if err != nil {
				t.Fatal(err)
			}
			q, err := ParseConsistency(mustJSON(t, p))
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Verify(v); err != nil {
				t.Error(err)
			}
			if len(q.Path) > 0 {
				q.Path[0][3] ^= 1
				if q.Verify(v) == nil {
					t.Error("a spoiled path verifies")
				}
			}
		}
	}
	forgery := cps[5]
	forgery.Root[0] ^= 1
	if _, err := ProveInclusion(m, forgery, 0); err == nil {
		t.Error("a proof was made for a root that is not the tree's")
	}
	if _, err := ProveInclusion(m, cps[3], cps[3].Size); err == nil {
		t.Error("a proof was made beyond the checkpoint")
	}
	if _, err := ProveConsistency(m, cps[4], cps[3]); err == nil {
		t.Error("a proof was made backwards")
	}
}

func spoilInclusion(t *testing.T, v *Verifier, p *Inclusion, seq int64) {
	t.Helper()
	record := fmt.Appendf(nil, "leaf %d", seq)
	for name, spoil := range map[string]func(*Inclusion){
		"tenant": func(p *Inclusion) { p.Tenant = "evil" },
		"seq":    func(p *Inclusion) { p.Seq++ },
		"hash":   func(p *Inclusion) { p.LeafHash[0] ^= 1 },
		"path":   func(p *Inclusion) { p.Path = append(slices.Clone(p.Path), tlog.Hash{}) },
		"note":   func(p *Inclusion) { p.Note = strings.Replace(p.Note, "at 2026", "at 2025", 1) },
		"no key": func(p *Inclusion) { p.Note = "" },
	} {
		q := *p
		spoil(&q)
		if q.Verify(v, record) == nil {
			t.Errorf("leaf %d: a proof with another %s verifies", seq, name)
		}
	}
	if p.Verify(v, append(record, ' ')) == nil {
		t.Errorf("leaf %d: the proof holds for another record", seq)
	}
}

func TestProofErrorsAreLetters(t *testing.T) {
	_, err := ProveInclusion(newRooted(), SignedCheckpoint{Head: Head{Tenant: "acme"}}, 4)
	var he *holdfast.Error
	if !errors.As(err, &he) || !strings.Contains(he.Why, `tenant "acme", leaf 4`) {
		t.Errorf("%v", err)
	}
}

func BenchmarkProveInclusion(b *testing.B) {
	s := testSigner(b, 1)
	var tree Tree
	m := newRooted()
	for i := range int64(70_000) {
		m.add(&tree, leafOf(i))
	}
	c := mustSign(b, s, tree.Head("acme"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ProveInclusion(m, c, 12345); err != nil {
			b.Fatal(err)
		}
	}
}

func TestProofsParseStrictly(t *testing.T) {
	s := testSigner(t, 1)
	var tree Tree
	m := newRooted()
	for i := range int64(5) {
		m.add(&tree, leafOf(i))
	}
	from := mustSign(t, s, tree.Head("acme"))
	m.add(&tree, leafOf(5))
	to := mustSign(t, s, tree.Head("acme"))
	in, err := ProveInclusion(m, to, 2)
	if err != nil {
		t.Fatal(err)
	}
	con, err := ProveConsistency(m, from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{mustJSON(t, in), mustJSON(t, con)} {
		for i := range b {
			for _, bad := range [][]byte{b[:i], slices.Concat(b[:i], []byte{' '}, b[i:]), slices.Concat(b[:i], b[i+1:])} {
				p, err1 := ParseInclusion(bad)
				q, err2 := ParseConsistency(bad)
				// A space or a gap inside the note's text is still a
				// string; then it is the signature that fails.
				if err1 == nil && p.Verify(s.Verifier(), []byte("leaf 2")) == nil || err2 == nil && q.Verify(s.Verifier()) == nil {
					t.Fatalf("accepted %q", bad)
				}
			}
		}
		if _, err := ParseInclusion(append(slices.Clone(b), '\n')); err == nil {
			t.Error("a tail was accepted")
		}
	}
}

// lying answers with one hash too few.
type lying struct{ Nodes }

func (l lying) LeafHashes(from, to int64) ([]tlog.Hash, error) {
	hs, err := l.Nodes.LeafHashes(from, to)
	return hs[:len(hs)-1], err
}

func TestNodesThatAnswerShortAreAnError(t *testing.T) {
	var tree Tree
	m := newRooted()
	for i := range int64(300) {
		m.add(&tree, leafOf(i))
	}
	if _, err := TreeOf(lying{m}, 300); err == nil {
		t.Error("a tree was made of too few hashes")
	}
	if _, err := tlog.TreeHash(300, HashReader(lying{m}, 300)); err == nil {
		t.Error("a root was made of too few hashes")
	}
	r := HashReader(m, 200)
	for _, index := range []int64{-1, tlog.StoredHashIndex(0, 200), tlog.StoredHashIndex(8, 0), 1 << 62} {
		if _, err := r.ReadHashes([]int64{index}); err == nil {
			t.Errorf("hash %d of a tree of 200 leaves was read", index)
		}
	}
	if _, err := TreeOf(m, -1); err == nil {
		t.Error("a tree of negative size")
	}
}
