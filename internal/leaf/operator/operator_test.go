package operator

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/holdfast-dev/holdfast"
)

var (
	now  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pass = holdfast.NewSecret("correct horse battery")
	fast = Options{WorkFactor: 15}
	hash = strings.Repeat("0a", 32)
)

func fixedKey() Key {
	return newKey(ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, yes!")))
}

// made is one sealed key for all tests that only read it.
var made = sync.OnceValues(func() ([]byte, Public) {
	sealed, pub, err := New(pass, fast)
	if err != nil {
		panic(err)
	}
	return sealed, pub
})

func approval() Statement {
	return Statement{Act: Approve, Subject: "r-1", Exact: hash, PreviewHash: hash, Policy: hash, Nonce: "n", Reviewer: "ada",
		At: now, ID: "6fa459ea-ee8a-4ca4-894e-db77e160355e", Runtime: "rt-1"}
}

func TestSealAndOpen(t *testing.T) {
	sealed, pub := made()
	k, err := Open(sealed, pass)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Public().Equal(pub) {
		t.Error("another key came out")
	}
	again, err := Reseal(k, holdfast.NewSecret("another passphrase"), fast)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(again, pass); holdfast.KindOf(err) != holdfast.KindPermission {
		t.Errorf("old passphrase: %v", err)
	}
	if k, err := Open(again, holdfast.NewSecret("another passphrase")); err != nil || !k.Public().Equal(pub) {
		t.Errorf("new passphrase: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	sealed, _ := made()
	for name, p := range map[string]string{"wrong": "correct horse batterz", "empty": "", "long": strings.Repeat("x", MaxPassphrase+1), "space": pass.Reveal() + " "} {
		if k, err := Open(sealed, holdfast.NewSecret(p)); holdfast.KindOf(err) != holdfast.KindPermission || k.private != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	changed := func(from, to string) []byte {
		out := bytes.Replace(sealed, []byte(from), []byte(to), 1)
		if bytes.Equal(out, sealed) {
			t.Fatalf("%q is not there", from)
		}
		return out
	}
	lines := strings.SplitAfter(string(sealed), "\n")
	short := strings.Join(append(lines[:len(lines)-3:len(lines)-3], lines[len(lines)-2:]...), "")
	x, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var toKey, notAKey bytes.Buffer
	if err := encrypt(&toKey, x.Recipient(), secretPrefix); err != nil {
		t.Fatal(err)
	}
	r, err := age.NewScryptRecipient(pass.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	r.SetWorkFactor(1)
	if err := encrypt(&notAKey, r, secretPrefix+"AAAA"); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nil": nil, "empty": {}, "text": []byte("hello"), "NUL": []byte("\x00"), "half": sealed[:len(sealed)/2], "short": []byte(short),
		"huge": bytes.Repeat([]byte("A"), 1<<20), "begin": changed("BEGIN AGE", "BEGIN AGF"), "twice": append(bytes.Clone(sealed), sealed...),
		"to a key": toKey.Bytes(), "not a key": notAKey.Bytes(), "work 30": heavy(t, sealed),
	} {
		began := time.Now()
		if k, err := Open(b, pass); holdfast.KindOf(err) != holdfast.KindValue || k.private != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(began); d > time.Minute { // 2^30 rounds take an hour
			t.Errorf("%s: took %v", name, d)
		}
	}
}

// heavy asks for 2^30 rounds, which must be refused before they are done.
func heavy(t *testing.T, sealed []byte) []byte {
	t.Helper()
	b64 := strings.ReplaceAll(strings.Split(strings.Split(string(sealed), "FILE-----\n")[1], "-----END")[0], "\n", "")
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Replace(raw, []byte(" 15\n"), []byte(" 30\n"), 1)
	if bytes.Equal(raw, out) {
		t.Fatal("no work factor found")
	}
	enc := base64.StdEncoding.EncodeToString(out)
	var b strings.Builder
	b.WriteString("-----BEGIN AGE ENCRYPTED FILE-----\n")
	for len(enc) > 64 {
		b.WriteString(enc[:64] + "\n")
		enc = enc[64:]
	}
	b.WriteString(enc + "\n-----END AGE ENCRYPTED FILE-----\n")
	return []byte(b.String())
}

func TestPassphraseBounds(t *testing.T) {
	for _, p := range []string{"", "1234567", "äöüäöüä", "aaaaaaaaaaaa", "\xff\xfe123456789", "line\nline line", "nul\x00 nul nul", strings.Repeat("ab", 513)} {
		_, _, err := New(holdfast.NewSecret(p), fast)
		if holdfast.KindOf(err) != holdfast.KindUsage {
			t.Errorf("%q: %v", p, err)
		}
		if p != "" && strings.Contains(fmt.Sprint(err), p) {
			t.Errorf("the error repeats the passphrase %q", p)
		}
	}
	for _, p := range []string{"12345678", "äöüäöüäö", "  spaces around  "} {
		if err := CheckPassphrase(holdfast.NewSecret(p)); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, w := range []int{-1, 1, 14, 21, 31} {
		if _, _, err := New(pass, Options{WorkFactor: w}); err == nil {
			t.Errorf("work factor %d accepted", w)
		}
	}
}

func TestKeyPrintsNothing(t *testing.T) {
	k := fixedKey()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "in", struct{ K Key }{k})
	printed := fmt.Sprintf("%v %+v %#v %s %x %d %q %o %v %d", k, k, k, k, k, k, k, k, struct{ K Key }{k}, &k) + log.String() +
		fmt.Sprintf("%v %+v %#v %d", struct{ k Key }{k}, struct{ k Key }{k}, struct{ k Key }{k}, struct{ k Key }{k})
	for _, leak := range []string{"seed of", fmt.Sprintf("%x", "a seed"), fmt.Sprint([]byte("a seed"))[1:10], "0x61, 0x20", base64.StdEncoding.EncodeToString([]byte("a seed of"))} {
		if strings.Contains(printed, leak) {
			t.Errorf("printed %s", printed)
		}
	}
	if b, err := json.Marshal(k); err == nil {
		t.Errorf("written as %s", b)
	}
}

func TestPublicText(t *testing.T) {
	p := fixedKey().Public()
	line := p.String()
	for _, text := range []string{line, line + "\n"} {
		if q, err := ParsePublic(text); err != nil || !q.Equal(p) || q.String() != line {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "\n", line + "\n\n", " " + line, line + " ", line[:len(line)-4], strings.ToUpper(line), line[:30] + "\n" + line[30:], publicPrefix, strings.TrimRight(line, "="), line + "=", strings.Repeat(line, 1000)} {
		if q, err := ParsePublic(text); holdfast.KindOf(err) != holdfast.KindValue || q.key != nil {
			t.Errorf("%.50q accepted: %v", text, err)
		}
	}
	if (Public{}).Equal(Public{}) || (Public{}).String() != "" || (Public{}).ID() != "" {
		t.Error("no key is a key")
	}
	if !strings.HasPrefix(p.ID(), "operator:") || len(p.ID()) != 25 {
		t.Error(p.ID())
	}
}

func TestSignAndVerify(t *testing.T) {
	k := fixedKey()
	signed, err := Sign(k, approval())
	if err != nil {
		t.Fatal(err)
	}
	wire, err := json.Marshal(signed)
	if err != nil {
		t.Fatal(err)
	}
	var back Signed
	if err := json.Unmarshal(wire, &back); err != nil {
		t.Fatal(err)
	}
	got, err := Verify(k.Public(), back, now)
	if err != nil || got != approval() {
		t.Errorf("%+v %v", got, err)
	}
	want := `{"act":"approve","at":"2026-11-20T12:00:00Z","exact_hash":"` + hash + `","id":"6fa459ea-ee8a-4ca4-894e-db77e160355e","nonce":"n","policy":"` + hash +
		`","preview_hash":"` + hash + `","reviewer":"ada","runtime":"rt-1","subject":"r-1"}`
	if string(signed.Statement) != want {
		t.Errorf("the canonical form changed:\n%s\n%s", signed.Statement, want)
	}
}

func TestVerifyAge(t *testing.T) {
	k := fixedKey()
	signed, err := Sign(k, approval())
	if err != nil {
		t.Fatal(err)
	}
	for after, ok := range map[time.Duration]bool{
		0: true, MaxAge: true, MaxAge + time.Nanosecond: false, -MaxAhead: true, -MaxAhead - time.Nanosecond: false, 24 * time.Hour: false, -24 * time.Hour: false,
	} {
		if _, err := Verify(k.Public(), signed, now.Add(after)); (err == nil) != ok {
			t.Errorf("after %v: %v", after, err)
		}
	}
	if _, err := Verify(k.Public(), signed, time.Time{}); err == nil {
		t.Error("accepted without knowing the time")
	}
}

// What is not exactly what the key signed is refused, and so is what it signed
// in another spelling, in another domain, or with too much in it.
func TestVerifyRefuses(t *testing.T) {
	k := fixedKey()
	other := newKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	signed, err := Sign(k, approval())
	if err != nil {
		t.Fatal(err)
	}
	text := string(signed.Statement)
	raw := func(text string) Signed {
		return Signed{[]byte(text), ed25519.Sign(k.key(), message([]byte(text)))}
	}
	replace := func(old, new string) Signed {
		out := strings.Replace(text, old, new, 1)
		if out == text {
			t.Fatalf("%q is not there", old)
		}
		return raw(out)
	}
	byOther, err := Sign(other, approval())
	if err != nil {
		t.Fatal(err)
	}
	// S + L is the classic second signature for the same message.
	malleable := bytes.Clone(signed.Signature)
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i := range 32 {
		carry += int(malleable[32+i]) + int(order[i])
		malleable[32+i] = byte(carry)
		carry >>= 8
	}
	const P, V = holdfast.KindPermission, holdfast.KindValue
	for name, c := range map[string]struct {
		signed Signed
		kind   holdfast.Kind
	}{
		"empty":            {Signed{}, P},
		"no signature":     {Signed{signed.Statement, nil}, P},
		"cut signature":    {Signed{signed.Statement, signed.Signature[:63]}, P},
		"long signature":   {Signed{signed.Statement, append(bytes.Clone(signed.Signature), 0)}, P},
		"second signature": {Signed{signed.Statement, malleable}, P},
		"changed":          {Signed{[]byte(strings.Replace(text, "r-1", "r-2", 1)), signed.Signature}, P},
		"other key":        {byOther, P},
		"no domain":        {Signed{signed.Statement, ed25519.Sign(k.key(), signed.Statement)}, P},
		"other domain":     {Signed{signed.Statement, ed25519.Sign(k.key(), append([]byte("holdfast-operator-v2\n"), signed.Statement...))}, P},
		"huge":             {raw(`{"act":"` + strings.Repeat("x", MaxStatement) + `"}`), V},
		"unknown field":    {replace(`"act"`, `"aaa":1,"act"`), V},
		"field twice":      {replace(`"act"`, `"act":"reject","act"`), V},
		"case of a field":  {replace(`"act"`, `"Act"`), V},
		"space":            {replace(`:`, `: `), V},
		"line end":         {raw(text + "\n"), V},
		"escape":           {replace(`"r-1"`, `"r\u002d1"`), V},
		"order":            {replace(`"act":"approve","at":"2026-11-20T12:00:00Z"`, `"at":"2026-11-20T12:00:00Z","act":"approve"`), V},
		"zone":             {replace(`12:00:00Z`, `14:00:00+02:00`), V},
		"zone zero":        {replace(`12:00:00Z`, `12:00:00+00:00`), V},
		"fraction":         {replace(`12:00:00Z`, `12:00:00.000Z`), V},
		"empty tenant":     {replace(`"subject":"r-1"`, `"subject":"r-1","tenant_id":""`), V},
		"empty field":      {replace(`"reviewer"`, `"reason":"","reviewer"`), V},
		"null field":       {replace(`"reviewer"`, `"reason":null,"reviewer"`), V},
		"wrong type":       {replace(`"n"`, `1`), V},
		"null":             {raw("null"), V},
		"array":            {raw("[" + text + "]"), V},
		"nested":           {raw(strings.Repeat("[", 8000)), V},
		"not UTF-8":        {replace("ada", "ad\xff"), V},
		"bidi":             {replace("ada", "a\u202eda"), V},
		"NUL":              {replace("ada", `a\u0000`), V},
		"hash upper case":  {replace(hash, strings.ToUpper(hash)), V},
		"uuid version 1":   {replace("-4ca4-", "-1ca4-"), V},
		"uuid upper case":  {replace("6fa459ea", "6FA459EA"), V},
		"unknown act":      {replace("approve", "approved"), V},
	} {
		if s, err := Verify(k.Public(), c.signed, now); holdfast.KindOf(err) != c.kind || s != (Statement{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Verify(Public{}, signed, now); err == nil {
		t.Error("verified without a key")
	}
	if _, err := Sign(Key{}, approval()); err == nil {
		t.Error("signed without a key")
	}
}

func TestActsNeedTheirFields(t *testing.T) {
	k := fixedKey()
	base := approval()
	for _, c := range []struct {
		name   string
		change func(*Statement)
		ok     bool
	}{
		{"approve", func(*Statement) {}, true},
		{"approve without subject", func(s *Statement) { s.Subject = "" }, false},
		{"approve without exact", func(s *Statement) { s.Exact = "" }, false},
		{"approve without preview", func(s *Statement) { s.PreviewHash = "" }, false},
		{"approve without policy", func(s *Statement) { s.Policy = "" }, false},
		{"approve without nonce", func(s *Statement) { s.Nonce = "" }, false},
		{"approve without reviewer", func(s *Statement) { s.Reviewer = "" }, false},
		{"approve without runtime", func(s *Statement) { s.Runtime = "" }, false},
		{"approve without time", func(s *Statement) { s.At = time.Time{} }, false},
		{"approve without id", func(s *Statement) { s.ID = "" }, false},
		{"reject", func(s *Statement) { s.Act, s.PreviewHash = Reject, "" }, true},
		{"reject without nonce", func(s *Statement) { s.Act, s.Nonce = Reject, "" }, false},
		{"defer", func(s *Statement) { s.Act, s.Until = Defer, now.Add(time.Hour) }, true},
		{"defer without until", func(s *Statement) { s.Act = Defer }, false},
		{"defer into the past", func(s *Statement) { s.Act, s.Until = Defer, now }, false},
		{"changes", func(s *Statement) { s.Act, s.Reason = Changes, "smaller steps" }, true},
		{"changes without reason", func(s *Statement) { s.Act = Changes }, false},
		{"resume", func(s *Statement) { *s = Statement{Act: Resume, Reviewer: "a", Runtime: "r", At: now, ID: base.ID} }, true},
		{"unpause", func(s *Statement) {
			*s = Statement{Act: Unpause, Subject: "x", Reviewer: "a", Runtime: "r", At: now, ID: base.ID}
		}, true},
		{"unpause in a tenant", func(s *Statement) {
			*s = Statement{Act: Unpause, Subject: "x", Tenant: "acme", Reviewer: "a", Runtime: "r", At: now, ID: base.ID}
		}, true},
		{"approve in part", func(s *Statement) { s.Value = InPart }, true},
		{"long tenant", func(s *Statement) { s.Tenant = strings.Repeat("é", MaxName+1) }, false},
		{"tenant that turns", func(s *Statement) { s.Tenant = "a\u202eb" }, false},
		{"unpause nobody", func(s *Statement) { s.Act, s.Subject = Unpause, "" }, false},
		{"trust", func(s *Statement) { s.Act, s.Value = Trust, "highest" }, true},
		{"trust without level", func(s *Statement) { s.Act = Trust }, false},
		{"trust unknown level", func(s *Statement) { s.Act, s.Value = Trust, "Highest" }, false},
		{"policy", func(s *Statement) { s.Act, s.Value = Policy, hash }, true},
		{"policy without value", func(s *Statement) { s.Act = Policy }, false},
		{"remember", func(s *Statement) { s.Act, s.Value, s.Until = Remember, `{"tool":"x"}`, now.AddDate(0, 0, 30) }, true},
		{"remember for ever", func(s *Statement) { s.Act, s.Value = Remember, "x" }, false},
		{"revoke", func(s *Statement) { s.Act = Revoke }, true},
		{"no act", func(s *Statement) { s.Act = "" }, false},
		{"long subject", func(s *Statement) { s.Subject = strings.Repeat("é", MaxName) }, true},
		{"too long subject", func(s *Statement) { s.Subject = strings.Repeat("é", MaxName+1) }, false},
		{"too long reason", func(s *Statement) { s.Reason = strings.Repeat("é", MaxText+1) }, false},
		{"space in front", func(s *Statement) { s.Reviewer = " ada" }, false},
		{"line end in reason", func(s *Statement) { s.Reason = "a\nb" }, false},
		{"escape in reason", func(s *Statement) { s.Reason = "\x1b[2Jfine" }, false},
		{"zone is normalised", func(s *Statement) { s.At = now.In(time.FixedZone("x", 3600)) }, true},
		{"year 10000", func(s *Statement) { s.Act, s.Until = Defer, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, false},
		{"HTML stays", func(s *Statement) { s.Reason = "<b>&\u00e9\U0001F600" }, true},
	} {
		s := base
		c.change(&s)
		signed, err := Sign(k, s)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !c.ok {
			continue
		}
		got, err := Verify(k.Public(), signed, now)
		s.At, s.Until = s.At.UTC(), s.Until.UTC()
		if err != nil || got != s {
			t.Errorf("%s: %v\n%+v\n%+v", c.name, err, got, s)
		}
	}
}

// FuzzStatement: what parses prints back the same bytes, and one changed bit
// of it no longer verifies.
func FuzzStatement(f *testing.F) {
	text, err := approval().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	resume, err := (Statement{Act: Resume, Reviewer: "a", Runtime: "r", Reason: "<\u00e9>", At: now.Add(time.Microsecond), ID: approval().ID}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(resume)
	trust, err := (Statement{Act: Trust, Subject: "x", Tenant: "acme", Value: "high", Reviewer: "a", Runtime: "r", At: now, ID: approval().ID}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(trust)
	f.Add([]byte(`{"act":"resume"}`))
	f.Add([]byte(`null`))
	k := fixedKey()
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		signed := Signed{text, ed25519.Sign(k.key(), message(text))}
		if _, verr := Verify(k.Public(), signed, s.At.Add(time.Second)); (verr == nil) != (err == nil) {
			t.Fatalf("parse %v, verify %v", err, verr)
		}
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
		for i := 0; i < len(text); i += 7 {
			other := bytes.Clone(text)
			other[i] ^= 1
			if _, err := Verify(k.Public(), Signed{other, signed.Signature}, s.At); err == nil {
				t.Fatalf("byte %d may be changed", i)
			}
		}
	})
}

// BenchmarkOpen is what unlocking costs a person, at the default work factor.
func BenchmarkOpen(b *testing.B) {
	sealed, _, err := New(pass, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Open(sealed, pass); err != nil {
			b.Fatal(err)
		}
	}
}
