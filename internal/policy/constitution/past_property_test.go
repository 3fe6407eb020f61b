package constitution

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
)

// FuzzAmounts holds textMillionths against fractions of any length.
func FuzzAmounts(f *testing.F) {
	for _, s := range []string{"0", "-0", "0.1", "100.10", "1e2", "1.5E-6", "1e-7", "9223372036854.775807", "9223372036854.775808", "-9223372036854.775807",
		"1e99999999", "0e99999999", "0.0000010", "1e-6", "12345678901234567890", "0.1234567", "1.2.3", "", "-", "e", "1e", "+1", "0x1", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := textMillionths(s)
		if !json.Valid([]byte(s)) || strings.TrimLeft(s, "-0123456789.eE+") != "" || len(s) > 40 {
			return // no number of a payload, or one that only the bound concerns
		}
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
			return // the reference would write it out
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%q is no fraction", s)
		}
		want.Mul(want, big.NewRat(1_000_000, 1))
		fits := want.IsInt() && want.Num().IsInt64() && want.Num().Int64() != math.MinInt64
		if fits != (err == nil) || fits && got != want.Num().Int64() {
			t.Fatalf("%q: %d, %v, not %v", s, got, err, want)
		}
	})
}

// TestAmountsAreExact: what is no amount is an error, and none is rounded.
func TestAmountsAreExact(t *testing.T) {
	s := loadWhen(t, `past("mcp/bank/pay", "1h").sum(args.amount) > 1 || past("mcp/bank/pay", "1h").sum(args.amount + 0) > 1 || past("mcp/bank/pay", "1h").sum(args.amount * 1.0) > 1`)
	for _, c := range []struct {
		amount       string
		path, whole  any // nil is an error
		times        any
		missingField bool
	}{
		{amount: "1", path: int64(1_000_000), whole: int64(1_000_000)},
		{amount: "0.1", path: int64(100_000), times: int64(100_000)},
		{amount: "1e2", path: int64(100_000_000), times: int64(100_000_000)},
		{amount: "0.123456", path: int64(123_456), times: int64(123_456)},
		{amount: "0.1234567"},
		{amount: "1234567890.12345600001"},                           // a double would lose the end
		{amount: "1234567890.123456", path: int64(1234567890123456)}, // and could not tell here that it did not
		{amount: "9223372036854.775807", path: int64(math.MaxInt64)},
		{amount: "9223372036854.775808"},
		{amount: "1e400"},
		{amount: `"1"`}, {amount: "true"}, {amount: "null"}, {amount: "[1]"}, {amount: "{}"},
	} {
		f := pay(t, `{"amount":`+c.amount+`}`, 0)
		for i, want := range []any{c.path, c.whole, c.times} {
			if i == 1 && c.whole == nil || i == 2 && c.times == nil && c.path != nil {
				continue
			}
			seen, err := s.Pasts()[i].See(t.Context(), f)
			if want == nil && err == nil || want != nil && (err != nil || seen.Amount != want) {
				t.Errorf("%s in %s: %+v, %v", c.amount, s.Pasts()[i].Text, seen, err)
			}
			if err != nil && !errors.Is(err, failure.ErrEval) {
				t.Errorf("an error of no kind: %v", err)
			}
		}
	}
	if _, err := s.Pasts()[0].See(t.Context(), pay(t, `{}`, 0)); err == nil || !strings.Contains(err.Error(), "there is no key amount") {
		t.Errorf("%v", err)
	}
	if seen, err := s.Pasts()[0].See(t.Context(), Facts{Boundary: "mcp/bank/other"}); err != nil || seen.Matches {
		t.Errorf("another boundary: %+v, %v", seen, err)
	}
}

// TestKeysAreEqualWhereValuesAre: two values have one key if and only if CEL
// holds them equal.
func TestKeysAreEqualWhereValuesAre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	values := []ref.Val{
		types.NullValue, types.True, types.False, types.Int(1), types.Uint(1), types.Double(1), types.Double(1.5), types.Int(-1), types.Int(0),
		types.Double(math.Copysign(0, -1)), types.String("1"), types.String("1.5"), types.String("null"), types.String("true"), types.String(""),
		types.String(`"`), types.String("a\x00b"), types.Bytes("1"), types.Bytes(""), types.Timestamp{Time: at}, types.Timestamp{Time: at.In(time.FixedZone("x", 3_600))},
		types.String(at.Format(time.RFC3339Nano)), types.Duration{Duration: time.Second}, types.Duration{Duration: time.Second + 1}, types.Int(1_000_000_000), types.Double(1e9),
		types.String(`t"2026-11-22T12:00:00Z"`), types.StringType, types.IntType, types.Int(math.MaxInt64), types.Uint(math.MaxUint64),
	}
	for range 60 {
		pick := func() ref.Val { return values[r.IntN(len(values))] }
		switch r.IntN(3) {
		case 0:
			values = append(values, types.NewRefValList(tree{}, []ref.Val{pick(), pick()}))
		case 1:
			values = append(values, types.NewRefValMap(tree{}, map[ref.Val]ref.Val{types.String(fmt.Sprint(r.IntN(3))): pick(), types.Int(r.IntN(3)): pick()}))
		case 2:
			values = append(values, types.NewRefValList(tree{}, []ref.Val{pick()}))
		}
	}
	for range 20 {
		values = append(values, types.NewRefValList(tree{}, []ref.Val{values[r.IntN(8)], values[r.IntN(8)]}))
	}
	for _, text := range []string{`{"a":1,"b":[1,"x"]}`, `{"b":[1.0,"x"],"a":1e0}`, `{"a":1,"b":["1","x"]}`, `[]`, `{}`, `[[]]`, `[1,2]`, `["1,2"]`} {
		values = append(values, tree{}.NativeToValue(decode(t, text)))
	}
	equal := 0
	for i, a := range values {
		for _, b := range values[i+1:] {
			ka, err := keyOf(a)
			kb, err2 := keyOf(b)
			if err != nil || err2 != nil {
				continue // deep, or large: an error is no key
			}
			same := a.Equal(b) == types.True
			if same {
				equal++
			}
			if len(ka) != 32 || (ka == kb) != same {
				t.Errorf("%v (%T) and %v (%T): equal %v, keys equal %v", a, a, b, b, same, ka == kb)
			}
		}
	}
	if equal < 10 {
		t.Errorf("only %d pairs were equal", equal)
	}
	for _, bad := range []ref.Val{types.Double(math.NaN()), types.Double(math.Inf(1)), types.Double(1 << 53), types.String(strings.Repeat("x", MaxPastKey)), types.Bytes(make([]byte, MaxPastKey)), exact{big.NewRat(1, 1)}} {
		if k, err := keyOf(bad); err == nil {
			t.Errorf("%T has a key: %x", bad, k)
		}
	}
	if key, err := keyOf(tree{}.NativeToValue(decode(t, `{"l":[`+strings.Repeat("0,", 1_000_000)+`0]}`))); err == nil {
		t.Errorf("a million elements have a key: %x", key)
	}
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	if key, err := keyOf(tree{}.NativeToValue(decode(t, deep))); err == nil {
		t.Errorf("three hundred lists in each other have a key: %x", key)
	}
}

// FuzzPast: whatever stands in a condition with a past function, and whatever the
// payload, loading and judging end without a panic, what loads lists its past
// functions, and a failure denies.
func FuzzPast(f *testing.F) {
	for _, c := range []string{
		`past("mcp/bank/pay", "24h").where(args.amount > 100).count() >= 3`, `past("mcp/*", "1d").same(args.to).sum(args.amount) + args.amount > 1000`,
		`past("mcp/*", "10m").same(session).happened()`, `past("mcp/*", "1h").distinct(args) > 5`, `now - past("mcp/*", "24h").last() < duration("60s")`,
		`args.l.exists(x, past("mcp/*", "1h").same(args.l.map(y, y)).count() > x)`, `past("a","1h").past("b","1h").count()`, `has(past("a","1h").count)`,
		`past("mcp/*", "1h").where(has(args.a) && args.a.exists(x, x == 1)).sum(-args.n) * 2 == (true ? 1 : past("mcp/*", "1h").sum(1))`, `past.count()`, `past()`,
		`past("mcp/*", "1h").happened().count()`, `{past("mcp/*", "1h").count(): [past]}[3]`, `past("mcp/*","1h").where(past("mcp/*","1h").happened()).happened()`,
	} {
		f.Add(c, `{"amount":150,"to":"bob","l":[1,2.5,"x"],"n":-0.5}`)
	}
	f.Fuzz(func(t *testing.T, when, payload string) {
		text, err := json.Marshal(when)
		if err != nil || !json.Valid([]byte(payload)) {
			return
		}
		s, err := Load([]Source{{"f.yaml", []byte(`rules: [{id: a, on: request, message: m, when: ` + string(text) + `}]`)}})
		if err != nil {
			return
		}
		past := pay(t, payload, time.Minute)
		facts := pay(t, payload, 0)
		facts.History = ledgerOf{t, []Facts{past, past}}
		for _, p := range s.Pasts() {
			if len(p.ID) != 64 || p.Window < MinWindow || p.Window > MaxWindow || !strings.HasPrefix(p.Where, "f.yaml:1:") || !strings.HasPrefix(p.Text, "past(") {
				t.Fatalf("%+v", p)
			}
			one, err := p.See(t.Context(), past)
			again, _ := p.See(t.Context(), past)
			if one != again || err != nil && one != (Seen{}) {
				t.Fatalf("%+v, then %+v, %v", one, again, err)
			}
		}
		one, two := verdict(s, OnRequest, facts), verdict(s, OnRequest, facts)
		if one != two || strings.Contains(one, "panic") || strings.Contains(one, "no such past function") {
			t.Fatalf("%q, then %q", one, two)
		}
	})
}
