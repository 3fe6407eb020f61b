package checksum

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
)

func TestCheckDigitsOfOneWrongDigitFail(t *testing.T) {
	for name, c := range map[string]struct {
		check func([]byte) bool
		right string
	}{
		"luhn": {IsLuhn, "79927398713"}, "routing": {IsRouting, "021000021"}, "nhs": {IsHealth, "9434765919"}, "aadhaar": {IsAadhaar, "234123412346"},
		"tax id": {IsTaxID, "86095742719"}, "cpf": {IsCPF, "52998224725"}, "pesel": {IsPesel, "44051401359"}, "bsn": {IsBSN, "111222333"}, "nir": {IsNIR, "255081416802538"},
		"dni": {IsSpanish, "12345678Z"}, "vin": {IsVehicle, "1HGCM82633A004352"}, "codice fiscale": {IsFiscalCode, "RSSMRA85T10A562S"},
	} {
		if !c.check([]byte(c.right)) {
			t.Errorf("%s: %s is refused", name, c.right)
		}
		for i := range c.right {
			wrong := []byte(c.right)
			if char.Class[wrong[i]]&char.Digit == 0 {
				continue
			}
			wrong[i] = '0' + (wrong[i]-'0'+1)%10
			if c.check(wrong) {
				t.Errorf("%s: %s passes", name, wrong)
			}
		}
	}
}
