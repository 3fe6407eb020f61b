package ledger

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What parses prints back the same bytes, and is JSON that others read.
func fuzzForm(f *testing.F, form form) {
	for _, v := range []appender{form.full, form.bare} {
		b := mustJSON(f, v)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := form.parse(b)
		if err != nil {
			return
		}
		if again := mustJSON(t, v); !bytes.Equal(again, b) {
			t.Errorf("parsed\n%q\nand printed\n%q", b, again)
		}
		if !json.Valid(b) || bytes.IndexByte(b, '\n') >= 0 {
			t.Errorf("accepted what is not one line of JSON: %q", b)
		}
		p, err := PeekRecord(b)
		if err != nil {
			t.Fatalf("a record that parses has no front: %v\n%q", err, b)
		}
		samePeek(t, p, v)
	})
}

// samePeek compares the front that verification reads with the whole.
func samePeek(t *testing.T, p Peek, v appender) {
	var id, tenant, crossing, part string
	begun := int64(-1)
	switch v := v.(type) {
	case *Begin:
		id, tenant, crossing, part = v.ID, v.TenantID, v.ID, v.PartHash
	case *Entry:
		id, tenant, crossing = v.ID, v.TenantID, v.ID
		if v.ResultHash != nil {
			part = *v.ResultHash
		}
		if v.BeginSeq != nil {
			begun = *v.BeginSeq
		}
	case *Event:
		id, tenant, crossing, part = v.ID, v.TenantID, v.Crossing, v.PartHash
	}
	if !written(nil, p.ID, id) || !written(nil, p.Tenant, tenant) || !written(nil, p.Crossing, crossing) ||
		string(p.PartHash) != part || p.BeginSeq != begun {
		t.Errorf("front %+v differs from the record %+v", p, v)
	}
}

func FuzzBegin(f *testing.F) { fuzzForm(f, forms()[0]) }
func FuzzEntry(f *testing.F) { fuzzForm(f, forms()[1]) }
func FuzzEvent(f *testing.F) { fuzzForm(f, forms()[2]) }

// A checkpoint that opens is what its signer writes for what was read. The
// input is signed here, so that the text behind the signature is fuzzed too.
func FuzzCheckpoint(f *testing.F) {
	s := testSigner(f, 1)
	v := s.Verifier()
	good := mustSign(f, s, Head{"acme", 12, leafOf(1)})
	text, _, _ := bytes.Cut(good.Note, []byte("\n\n"))
	f.Add(append(text, '\n'), []byte{})
	f.Add(append(bytes.Clone(text), "\nmore\n"...), []byte("— witness AAAAAAAA\n"))
	f.Add([]byte{}, good.Note)
	f.Fuzz(func(t *testing.T, text, rest []byte) {
		msg := rest
		if bytes.HasSuffix(text, []byte("\n")) {
			msg = append(appendSig(append(bytes.Clone(text), '\n'), s, v.Origin("acme"), string(text)), rest...)
		}
		c, err := v.Open(msg)
		if err != nil {
			return
		}
		again := mustSignAt(t, s, c)
		if !bytes.Equal(c.Note, msg) || !bytes.HasPrefix(msg, again) {
			t.Errorf("opened\n%q\nand signed\n%q", msg, again)
		}
	})
}

func mustSignAt(t *testing.T, s *Signer, c SignedCheckpoint) []byte {
	again, err := s.Sign(c.Head, c.At)
	if err != nil {
		t.Fatal(err)
	}
	return again.Note
}

// An export that verifies is what an Exporter writes for what was read, byte
// for byte.
func FuzzExport(f *testing.F) {
	w := newWorld(f)
	w.cross(f, "acme", 1)
	w.event(f, "acme", 1)
	w.sign(f, "acme")
	w.begin(f, "b", 2)
	good := w.export(f)
	f.Add(good)
	f.Add(newWorld(f).export(f))
	f.Add(good[:len(good)-20])
	v := ExportVerifier{Key: w.signer.Verifier()}
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := v.Verify(bytes.NewReader(bytes.Clone(b)))
		if err != nil {
			return
		}
		if again := rewrite(t, v.Key, b, rs); !bytes.Equal(again, b) {
			t.Errorf("verified\n%q\nand wrote\n%q", b, again)
		}
	})
}

// rewrite reads an export that verified with an ordinary JSON decoder and
// writes it again.
func rewrite(t *testing.T, key *Verifier, b []byte, rs []Report) []byte {
	type line struct {
		Tenant     string          `json:"tenant"`
		Seq        int64           `json:"seq"`
		Part       []byte          `json:"part"`
		Leaf       json.RawMessage `json:"leaf"`
		Checkpoint string          `json:"checkpoint"`
	}
	leaves := make(map[string][]Stored)
	cps := make(map[string][]SignedCheckpoint)
	tenant := ""
	for _, text := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			// A record is read at its front only; what lies behind it is
			// bytes, and Deep is who reads them.
			t.Skip()
		}
		switch {
		case l.Tenant != "":
			tenant = l.Tenant
		case l.Leaf != nil:
			leaves[tenant] = append(leaves[tenant], Stored{Place: Place{Tenant: tenant, Seq: l.Seq}, Record: l.Leaf, Part: l.Part})
		case l.Checkpoint != "":
			c, err := key.Open([]byte(l.Checkpoint))
			if err != nil {
				t.Fatal(err)
			}
			cps[tenant] = append(cps[tenant], c)
		}
	}
	var out bytes.Buffer
	e := NewExporter(&out, key)
	for _, r := range rs {
		h := history{leaves: leaves[r.Tenant]}
		if err := e.Tenant(r.Head, cps[r.Tenant], h.each); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
