package token

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

func TestK2_AC1_valid_token_passes(t *testing.T) {
	v := verifier(t, threeKeys())
	for alg, header := range map[string]string{
		EdDSA: edHeader,
		ES256: `{"alg":"ES256","kid":"ec"}`,
		RS256: `{"typ":"at+jwt","alg":"RS256","kid":"rsa"}`,
	} {
		t.Run(alg, func(t *testing.T) {
			id, err := verify(v, sign(t, alg, header, toJSON(t, claims(nil))), now)
			if err != nil {
				t.Fatal(err)
			}
			want := holdfast.Identity{Tenant: "acme", Principal: "user-7", Roles: []string{"reader", "writer"}, Agent: "user-7",
				Session: "t-1", TokenID: "t-1", Issuer: testIssuer, Expires: now.Add(time.Hour)}
			if !reflect.DeepEqual(id, want) {
				t.Errorf("got  %+v\nwant %+v", id, want)
			}
		})
	}
}

func TestClaimsMapToIdentity(t *testing.T) {
	v := verifier(t, threeKeys())
	id, err := verify(v, edToken(t, map[string]any{"agent": "builder", "agent_kind": "coder", "agent_parent": "planner", "session": "s-9",
		"intent": "I-1", "chain": "c-1", "tier": "deep", "roles": []string{}, "aud": []string{"other", testAudience}}), now)
	if err != nil {
		t.Fatal(err)
	}
	want := holdfast.Identity{Tenant: "acme", Principal: "user-7", Roles: []string{}, Agent: "builder", Kind: "coder", Parent: "planner", Session: "s-9",
		Intent: "I-1", Chain: "c-1", Tier: "deep", TokenID: "t-1", Issuer: testIssuer, Expires: now.Add(time.Hour)}
	if !reflect.DeepEqual(id, want) {
		t.Errorf("got  %#v\nwant %#v", id, want)
	}
}

func TestK2_AC2_missing_token_fails(t *testing.T) {
	refused(t, verifier(t, threeKeys()), "", now, holdfast.KindJWT)
}

func TestZeroValuesRefuse(t *testing.T) {
	good := edToken(t, nil)
	refused(t, nil, good, now, holdfast.KindJWT)
	refused(t, new(Verifier), good, now, holdfast.KindJWT)
	refused(t, verifier(t, threeKeys()), good, time.Time{}, holdfast.KindJWT)
}

func TestK2_AC3_FP3_INV5_expiry(t *testing.T) {
	v := verifier(t, threeKeys())
	exp := now.Add(time.Minute)
	text := edToken(t, map[string]any{"exp": exp.Unix()})
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"K2_FP3 exp in the past", exp.Add(time.Second), false},
		{"K2_FP3 exp equals now", exp, false},
		{"last instant", exp.Add(-time.Nanosecond), true},
		{"K2_INV5 cached claims expire too", exp, false},
		{"long after", exp.Add(time.Hour), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ok {
				if _, err := verify(v, text, c.at); err != nil {
					t.Fatal(err)
				}
				return
			}
			refused(t, v, text, c.at, holdfast.KindExpiredToken)
		})
	}
	t.Run("a fraction never prolongs", func(t *testing.T) {
		text := edToken(t, map[string]any{"exp": float64(exp.Unix()) + 0.999})
		refused(t, v, text, exp, holdfast.KindExpiredToken)
	})
	t.Run("a forged token is not called expired", func(t *testing.T) {
		refused(t, v, text[:len(text)-4]+"AAAA", exp.Add(time.Hour), holdfast.KindJWT)
	})
}

func TestTimes(t *testing.T) {
	v := verifier(t, threeKeys())
	for _, c := range []struct {
		claim  string
		offset time.Duration
		ok     bool
	}{
		{"nbf", 0, true}, {"nbf", -time.Hour, true}, {"nbf", Skew, true}, {"nbf", Skew + time.Second, false}, {"nbf", time.Hour, false},
		{"iat", Skew, true}, {"iat", Skew + time.Second, false}, {"iat", -24 * time.Hour, true},
	} {
		t.Run(fmt.Sprint(c.claim, c.offset), func(t *testing.T) {
			text := edToken(t, map[string]any{c.claim: now.Add(c.offset).Unix()})
			if !c.ok {
				refused(t, v, text, now, holdfast.KindJWT)
				return
			}
			if _, err := verify(v, text, now); err != nil {
				t.Fatal(err)
			}
			// A clock that goes back is noticed although the claims are cached.
			refused(t, v, text, now.Add(c.offset-24*time.Hour-2*Skew), holdfast.KindJWT)
		})
	}
}

func TestK2_FP5_missing_required_claim(t *testing.T) {
	v := verifier(t, threeKeys())
	for claim, kind := range map[string]holdfast.Kind{
		"sub": holdfast.KindJWT, "exp": holdfast.KindJWT, "jti": holdfast.KindJWT, "roles": holdfast.KindJWT,
		"iss": holdfast.KindJWT, "aud": holdfast.KindJWT, "tenant_id": holdfast.KindTenantContext,
	} {
		t.Run(claim, func(t *testing.T) {
			refused(t, v, edToken(t, map[string]any{claim: nil}), now, kind)
			body := claims(map[string]any{claim: nil})
			null := strings.TrimSuffix(toJSON(t, body), "}") + `,"` + claim + `":null}`
			refused(t, v, sign(t, EdDSA, edHeader, null), now, kind)
			if claim != "exp" && claim != "roles" {
				refused(t, v, edToken(t, map[string]any{claim: ""}), now, kind)
			}
		})
	}
}

func TestD8_tenant(t *testing.T) {
	v := verifier(t, threeKeys())
	for _, tenant := range []string{"unverified", "Unverified", "UNVERIFIED", "_checkpoints", "_", "_acme", " acme", "acme\n", "a\u202eb", strings.Repeat("x", 257), "local"} {
		refused(t, v, edToken(t, map[string]any{"tenant_id": tenant}), now, holdfast.KindTenantContext)
	}
	if _, err := verify(v, edToken(t, map[string]any{"tenant_id": strings.Repeat("ö", 256)}), now); err != nil {
		t.Error(err)
	}
	narrow, err := NewVerifier(Issuer{Name: testIssuer, Audience: testAudience, Keys: threeKeys(), TenantFrom: "org_id", Tenants: []string{"o-1", "local"}})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := verify(narrow, edToken(t, nil), now); err != nil || id.Tenant != "o-1" {
		t.Errorf("%v %v", id.Tenant, err)
	}
	if _, err := verify(narrow, edToken(t, map[string]any{"org_id": "local"}), now); err != nil {
		t.Error(err)
	}
	refused(t, narrow, edToken(t, map[string]any{"org_id": "acme"}), now, holdfast.KindTenantContext)
	refused(t, narrow, edToken(t, map[string]any{"org_id": nil}), now, holdfast.KindTenantContext)
}

func TestNamesAreBounded(t *testing.T) {
	v := verifier(t, threeKeys())
	for _, claim := range []string{"sub", "jti", "agent", "agent_kind", "agent_parent", "session", "intent", "chain", "tier"} {
		for _, bad := range []string{strings.Repeat("é", 257), "a\x00b", "a\nb", "a\u0085b", "a\u2028b", "a\u200bb", "a ", " "} {
			refused(t, v, edToken(t, map[string]any{claim: bad}), now, holdfast.KindJWT)
		}
		refused(t, v, edToken(t, map[string]any{claim: 7}), now, holdfast.KindJWTDecode)
		refused(t, v, edToken(t, map[string]any{claim: []string{"a"}}), now, holdfast.KindJWTDecode)
		if _, err := verify(v, edToken(t, map[string]any{claim: strings.Repeat("é", 256)}), now); err != nil {
			t.Errorf("%s of 256 code points: %v", claim, err)
		}
	}
	many := make([]string, MaxRoles+1)
	for i := range many {
		many[i] = fmt.Sprint("r", i)
	}
	refused(t, v, edToken(t, map[string]any{"roles": many}), now, holdfast.KindJWT)
	refused(t, v, edToken(t, map[string]any{"roles": []string{"ok", "no\x07"}}), now, holdfast.KindJWT)
	refused(t, v, edToken(t, map[string]any{"roles": []string{""}}), now, holdfast.KindJWT)
}

func TestIssuerAndAudience(t *testing.T) {
	v := verifier(t, threeKeys())
	for _, iss := range []string{strings.TrimSuffix(testIssuer, "/"), strings.ToUpper(testIssuer), "https://evil.example", testIssuer + " "} {
		refused(t, v, edToken(t, map[string]any{"iss": iss}), now, holdfast.KindJWT)
	}
	refused(t, v, edToken(t, map[string]any{"iss": []string{testIssuer}}), now, holdfast.KindJWTDecode)
	for _, aud := range []any{"other", "Holdfast", []string{}, []string{"a", "b"}} {
		refused(t, v, edToken(t, map[string]any{"aud": aud}), now, holdfast.KindJWT)
	}
	for _, aud := range []any{7, []any{testAudience, 7}, map[string]any{testAudience: true}} {
		refused(t, v, edToken(t, map[string]any{"aud": aud}), now, holdfast.KindJWTDecode)
	}
}

// Two issuers: neither's key speaks for the other.
func TestIssuersAreApart(t *testing.T) {
	k := keys()
	a := &keySet{keys: map[string]held{"k": {k.ed.Public(), EdDSA}}}
	b := &keySet{keys: map[string]held{"k": {&k.ec.PublicKey, ES256}}}
	v, err := NewVerifier(Issuer{Name: "a", Audience: "x", Keys: a}, Issuer{Name: "b", Audience: "x", Keys: b})
	if err != nil {
		t.Fatal(err)
	}
	body := func(iss string) string { return toJSON(t, claims(map[string]any{"iss": iss, "aud": "x"})) }
	if _, err := verify(v, sign(t, EdDSA, `{"alg":"EdDSA","kid":"k"}`, body("a")), now); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(v, sign(t, ES256, `{"alg":"ES256","kid":"k"}`, body("b")), now); err != nil {
		t.Fatal(err)
	}
	refused(t, v, sign(t, EdDSA, `{"alg":"EdDSA","kid":"k"}`, body("b")), now, holdfast.KindJWT)
	refused(t, v, sign(t, ES256, `{"alg":"ES256","kid":"k"}`, body("a")), now, holdfast.KindJWT)
}

func TestNewVerifierRefuses(t *testing.T) {
	ok := Issuer{Name: "a", Audience: "x", Keys: threeKeys()}
	for name, change := range map[string]func(*Issuer){
		"no name":        func(i *Issuer) { i.Name = "" },
		"no audience":    func(i *Issuer) { i.Audience = "" },
		"no keys":        func(i *Issuer) { i.Keys = nil },
		"HS256":          func(i *Issuer) { i.Algorithms = []string{"HS256"} },
		"none":           func(i *Issuer) { i.Algorithms = []string{"none"} },
		"empty alg":      func(i *Issuer) { i.Algorithms = []string{""} },
		"RS512":          func(i *Issuer) { i.Algorithms = []string{EdDSA, "RS512"} },
		"empty tenant":   func(i *Issuer) { i.Tenants = []string{""} },
		"reserved":       func(i *Issuer) { i.Tenants = []string{"Unverified"} },
		"reserved by _":  func(i *Issuer) { i.Tenants = []string{"_checkpoints"} },
		"control in iss": func(i *Issuer) { i.Name = "a\x00" },
	} {
		is := ok
		change(&is)
		if _, err := NewVerifier(is); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewVerifier(ok, ok); err == nil {
		t.Error("the same issuer twice: accepted")
	}
}

func TestIssuerNarrowsAlgorithms(t *testing.T) {
	v, err := NewVerifier(Issuer{Name: testIssuer, Audience: testAudience, Keys: threeKeys(), Algorithms: []string{ES256}})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, v, edToken(t, nil), now, holdfast.KindJWT)
	if _, err := verify(v, sign(t, ES256, `{"alg":"ES256","kid":"ec"}`, toJSON(t, claims(nil))), now); err != nil {
		t.Error(err)
	}
}

func TestK2_FP9_unreachable_key_set_denies(t *testing.T) {
	src := threeKeys()
	v := verifier(t, src)
	text := edToken(t, nil)
	if _, err := verify(v, text, now); err != nil {
		t.Fatal(err)
	}
	for _, e := range []error{ErrKeysUnavailable, errors.New("anything else"), context.DeadlineExceeded} {
		src.err = e
		refused(t, v, text, now, holdfast.KindPermissionRegistry) // cached claims too
		refused(t, v, edToken(t, map[string]any{"jti": "t-2"}), now, holdfast.KindPermissionRegistry)
	}
	src.err = nil
	if _, err := verify(v, text, now); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

func TestRotationReachesCachedClaims(t *testing.T) {
	src := threeKeys()
	v := verifier(t, src)
	text := edToken(t, nil)
	if _, err := verify(v, text, now); err != nil {
		t.Fatal(err)
	}
	t.Run("another key under the same kid", func(t *testing.T) {
		src.keys["ed"] = held{&keys().ec.PublicKey, ES256}
		refused(t, v, text, now, holdfast.KindJWT)
	})
	t.Run("kid removed", func(t *testing.T) {
		delete(src.keys, "ed")
		refused(t, v, text, now, holdfast.KindJWT)
	})
	t.Run("kid back", func(t *testing.T) {
		src.keys["ed"] = held{keys().ed.Public(), EdDSA}
		if _, err := verify(v, text, now); err != nil {
			t.Error(err)
		}
	})
}

func TestK2_INV3_claims_are_immutable(t *testing.T) {
	v := verifier(t, threeKeys())
	text := edToken(t, nil)
	first, err := verify(v, text, now)
	if err != nil {
		t.Fatal(err)
	}
	first.Roles[0] = "admin"
	for range 3 {
		again, err := verify(v, text, now.Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if again.Roles[0] != "reader" {
			t.Fatal("a caller changed what the next caller sees")
		}
		again.Roles[1] = "root"
	}
}

func TestClaimsAreCachedAndBounded(t *testing.T) {
	v := verifier(t, threeKeys())
	first := edToken(t, nil)
	for i := range cacheSize + 10 {
		if _, err := verify(v, edToken(t, map[string]any{"jti": fmt.Sprint("j", i)}), now); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 { // what is used stays
			if _, err := verify(v, first, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := v.cache.order.Len(); n != cacheSize || len(v.cache.at) != cacheSize {
		t.Errorf("%d and %d entries, want %d", n, len(v.cache.at), cacheSize)
	}
	for range 50 {
		refused(t, v, first[:len(first)-8]+"AAAAAAAA", now, holdfast.KindJWT)
	}
	if v.cache.get(sumOf(first)) == nil {
		t.Error("the one in use was forgotten")
	}
	// Nothing the cache holds contains a piece of a token.
	for sum, el := range v.cache.at {
		e := el.Value.(*entry)
		if strings.Contains(fmt.Sprintf("%v %v %v %v", sum, e.kid, e.alg, *e.claims), "eyJ") {
			t.Fatal("the cache holds token text")
		}
	}
	t.Run("expired claims leave it", func(t *testing.T) {
		refused(t, v, first, now.Add(2*time.Hour), holdfast.KindExpiredToken)
		if v.cache.get(sumOf(first)) != nil {
			t.Error("an expired token stayed")
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	v := verifier(t, threeKeys())
	var wg sync.WaitGroup
	for g := range 4 {
		text := edToken(t, map[string]any{"jti": fmt.Sprint("g", g%2)})
		wg.Go(func() {
			for i := range 100 {
				if _, err := verify(v, text, now.Add(time.Duration(i)*time.Second)); err != nil {
					t.Error(err)
				}
				if _, err := verify(v, text, now.Add(2*time.Hour)); err == nil {
					t.Error("expired token accepted")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkVerifyCached(b *testing.B) {
	v := verifier(b, threeKeys())
	text := sign(b, RS256, `{"alg":"RS256","kid":"rsa"}`, toJSON(b, claims(nil)))
	for b.Loop() {
		if _, err := verify(v, text, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyFirst(b *testing.B) {
	text := edToken(b, nil)
	src := threeKeys()
	for b.Loop() {
		v := verifier(b, src)
		if _, err := verify(v, text, now); err != nil {
			b.Fatal(err)
		}
	}
}
