package ledger

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func engine(t testing.TB) *redact.Engine {
	t.Helper()
	e, err := redact.New(redact.Options{Literals: []holdfast.Secret{holdfast.NewSecret("hunter2hunter2")}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What redaction seals is still a record, and what verification, recovery and
// the rebuilding of counters need comes through it untouched, whatever the
// numbers and names look like.
func TestSealedRecordsKeepTheirForm(t *testing.T) {
	e := engine(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	for n := range 2000 {
		num := func() int64 { return rnd.Int64() >> rnd.IntN(63) }
		draws := []Draw{
			{Key: "agent/bob@example.com/" + fmt.Sprint(num()), Resource: "money_micro", Amount: num(), Limit: num(), Window: num(), Name: "conf.yaml:12"},
			{Key: "session/019aa1b2-0000-7000-8000-000000000001/llm_tokens", Resource: "password", Amount: 4111111111111111, Limit: 4155552671},
		}
		at := testTime.Add(time.Duration(n) * 7919 * time.Second)
		b := fullBegin()
		b.Draws, b.Timestamp, b.Caller, b.ID = draws, at, "alice@example.com", crossingID(n)
		sealed, err := e.Seal(mustJSON(t, b), Exempt()...)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseBegin(sealed.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, sealed.Bytes())
		}
		if fmt.Sprint(back.Draws) != fmt.Sprint(draws) || !bytes.Equal(mustJSON(t, b), sealed.Bytes()) {
			t.Fatalf("changed:\n%s\n%s", mustJSON(t, b), sealed.Bytes())
		}
		x := fullEntry()
		x.Uses = []Use{{draws[0], num(), ptr(num())}, {draws[1], num(), nil}}
		x.BudgetLimit, x.Requested, x.DurationUS, x.Confidence = ptr(num()), ptr(num()), num(), ptr(rnd.Float64())
		x.ExitCode = num()
		if sealed, err = e.Seal(mustJSON(t, x), Exempt()...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(mustJSON(t, x), sealed.Bytes()) {
			t.Fatalf("changed:\n%s\n%s", mustJSON(t, x), sealed.Bytes())
		}
		c := CheckpointEvent(crossingID(n), mustSign(t, testSigner(t, 1), Head{"acme", num(), leafOf(int64(n))}))
		if sealed, err = e.Seal(mustJSON(t, c), Exempt()...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(mustJSON(t, c), sealed.Bytes()) {
			t.Fatalf("changed:\n%s\n%s", mustJSON(t, c), sealed.Bytes())
		}
	}
}

// K6_AC3, K6_INV3: free text is masked, and the masked record is a record.
func TestK6_AC3_redacted_before_it_is_a_leaf(t *testing.T) {
	x := fullEntry()
	x.ResultHash, x.Result = nil, ptr("mail bob@example.com\n\"AKIAIOSFODNN7EXAMPLE\" 4111 1111 1111 1111 hunter2hunter2 \u2028\x01")
	x.Why = "refused for bob@example.com"
	x.Opinions[1].Why = "bob@example.com"
	sealed, err := engine(t).Seal(mustJSON(t, x), Exempt()...)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseEntry(sealed.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, sealed.Bytes())
	}
	for _, secret := range []string{"bob@", "AKIA", "4111 1111", "hunter2"} {
		if strings.Contains(string(sealed.Bytes()), secret) {
			t.Errorf("%s is in the record: %s", secret, sealed.Bytes())
		}
	}
	l := Leaf{Tenant: "acme", Kind: KindEntry, Crossing: x.ID, At: testTime, Record: sealed}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	l.Tenant = "other"
	if err := l.Check(); holdfast.KindOf(err) != holdfast.KindValue {
		t.Errorf("K6_FP3: %v", err)
	}
	l.Tenant, l.Part = "acme", []byte("x")
	if err := l.Check(); err == nil {
		t.Error("a part that the record does not name")
	}
	if *back.Result == *x.Result || back.Caller != "alice" {
		t.Errorf("%q of %q", *back.Result, back.Caller)
	}
}
