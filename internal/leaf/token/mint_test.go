package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-dev/holdfast"
)

func minter(t *testing.T) (*Minter, *Verifier) {
	t.Helper()
	m, err := NewMinter(keys().ed, "holdfast:local", testAudience)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(m.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	return m, v
}

func TestMint(t *testing.T) {
	m, v := minter(t)
	at := now.Add(123456789 * time.Nanosecond)
	in := holdfast.Identity{Principal: "uid:1000", Roles: []string{"agent"}, Agent: "builder", Kind: "coder", Parent: "p", Intent: "I-1", Chain: "c", Tier: "t"}
	text, want, err := m.Mint(in, MaxTTL, at)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), text, at)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("verified %+v\nminted   %+v", got, want)
	}
	if id, err := uuid.Parse(got.TokenID); err != nil || id.Version() != 4 {
		t.Errorf("jti %q is no UUIDv4", got.TokenID)
	}
	if got.Tenant != holdfast.Local || got.Session != got.TokenID || got.Agent != "builder" || got.Issuer != "holdfast:local" {
		t.Errorf("%+v", got)
	}
	if _, err := v.Verify(t.Context(), text, got.Expires); holdfast.KindOf(err) != holdfast.KindExpiredToken {
		t.Errorf("at exp: %v", err)
	}
	if got.Expires.After(at.Add(MaxTTL)) {
		t.Error("lives longer than asked for")
	}
	if s := fmt.Sprint(m) + fmt.Sprintf("%+v %#v %d %x %d %v %v", m, m, m, m, *m, struct{ M Minter }{*m}, struct{ m Minter }{*m}); strings.Contains(s, "seed") || strings.Contains(s, fmt.Sprint([]byte(keys().ed[:8]))) {
		t.Errorf("the minter prints its key: %s", s)
	}
}

func TestMintRefuses(t *testing.T) {
	m, _ := minter(t)
	ok := holdfast.Identity{Principal: "u", Roles: []string{"r"}}
	for name, c := range map[string]struct {
		change func(*holdfast.Identity)
		ttl    time.Duration
		at     time.Time
	}{
		"too long":       {nil, MaxTTL + 1, now},
		"zero":           {nil, 0, now},
		"negative":       {nil, -time.Minute, now},
		"no time":        {nil, time.Minute, time.Time{}},
		"no principal":   {func(i *holdfast.Identity) { i.Principal = "" }, time.Minute, now},
		"another tenant": {func(i *holdfast.Identity) { i.Tenant = "acme" }, time.Minute, now},
		"reserved":       {func(i *holdfast.Identity) { i.Tenant = holdfast.Unverified }, time.Minute, now},
		"control":        {func(i *holdfast.Identity) { i.Agent = "a\nb" }, time.Minute, now},
		"long":           {func(i *holdfast.Identity) { i.Intent = strings.Repeat("x", 257) }, time.Minute, now},
		"enormous":       {func(i *holdfast.Identity) { i.Intent = strings.Repeat("x", 1<<20) }, time.Minute, now},
	} {
		id := ok
		if c.change != nil {
			c.change(&id)
		}
		if text, _, err := m.Mint(id, c.ttl, c.at); err == nil || !text.Empty() {
			t.Errorf("%s: minted", name)
		}
	}
	for _, key := range []ed25519.PrivateKey{nil, make([]byte, 3)} {
		if _, err := NewMinter(key, "a", "b"); err == nil {
			t.Error("accepted a key that is none")
		}
	}
	if _, err := NewMinter(keys().ed, "", "b"); err == nil {
		t.Error("accepted an issuer without a name")
	}
}

// One minter's tokens are nothing to another's verifier, same names or not.
func TestMintersAreApart(t *testing.T) {
	_, v := minter(t)
	other, err := NewMinter(ed25519.NewKeyFromSeed(make([]byte, 32)), "holdfast:local", testAudience)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := other.Mint(holdfast.Identity{Principal: "u"}, time.Minute, now)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, v, text.Reveal(), now, holdfast.KindJWT)
}

// The example of RFC 8037 appendix A.3.
func TestThumbprint(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Thumbprint(x)
	if err != nil || got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := Thumbprint(x[:31]); err == nil {
		t.Error("a short key has a thumbprint")
	}
}

func TestK2_FP1_bearer_header(t *testing.T) {
	for _, values := range [][]string{
		nil, {}, {""}, {"Bearer"}, {"Bearer "}, {"Bearer  "}, {"Basic abc"}, {"abc"}, {"bearerabc"}, {"Bearer a b"}, {"Bearer a,b"},
		{"Bearer a\nb"}, {"Bearer\tabc"}, {" Bearer abc"}, {"Bearer a", "Bearer b"}, {"Bearer a", "Bearer a"}, {"Bearer " + strings.Repeat("a", MaxToken+1)},
	} {
		got, err := Bearer(values)
		if holdfast.KindOf(err) != holdfast.KindJWT || !got.Empty() {
			t.Errorf("%.40q: %v", values, err)
		}
	}
	for _, value := range []string{"Bearer abc", "bearer abc", "BEARER  abc", "Bearer abc "} {
		if got, err := Bearer([]string{value}); err != nil || got.Reveal() != "abc" {
			t.Errorf("%q: %v", value, err)
		}
	}
}
