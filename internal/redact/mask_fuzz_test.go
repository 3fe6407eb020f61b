package redact

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// FuzzMasks asks of every text that what one style has masked is not masked
// again by any, whether it is read as text or as JSON, in a string or not.
func FuzzMasks(f *testing.F) {
	for _, c := range mustMask {
		f.Add([]byte(c.text), uint8(0))
		f.Add(append(fmtJSON(c.text), `"}`...), uint8(5))
	}
	for _, s := range []string{"<email:7f3a91c2>", "[secret]: x", "<secret:00000000>", `{"[secret]":"x"}`, "<password><pii:0123abcd></password>", "password=[db_string]",
		"<card:12345678>:x@y.example", "[phone]: 5551234567", "<secret:<secret:7f3a91c2>>", "[[secret]]", "token: <token:7f3a91c2>"} {
		f.Add([]byte(s), uint8(1))
		f.Add(append(fmtJSON(s), `"}`...), uint8(2))
	}
	all := [...]*Engine{newStyled(f, mask.Ledger, ""), newStyled(f, mask.Egress, ""),
		newStyled(f, mask.Pseudonyms, tenantKey)}
	f.Fuzz(func(t *testing.T, s []byte, which uint8) {
		a, b := all[int(which)%3], all[int(which)/3%3]
		one := a.Text(s).Out
		if two := b.Text(one); two.Found() {
			t.Errorf("%q, then %q, then %q (%v)", s, one, two.Out, two.Findings)
		}
		doc, err := a.JSON(s)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := b.JSON(doc.Out); err != nil || two.Found() {
			t.Errorf("JSON %q, then %q, then %q (%v), %v", s, doc.Out, two.Out, two.Findings, err)
		}
	})
}
