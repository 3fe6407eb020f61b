package redact

import "testing"

func TestCheckDigitsOfOneWrongDigitFail(t *testing.T) {
	for name, c := range map[string]struct {
		check func([]byte) bool
		right string
	}{
		"luhn": {luhn, "79927398713"}, "routing": {isRouting, "021000021"}, "nhs": {isHealth, "9434765919"}, "aadhaar": {isAadhaar, "234123412346"},
		"tax id": {isTaxID, "86095742719"}, "cpf": {isCPF, "52998224725"}, "pesel": {isPesel, "44051401359"}, "bsn": {isBSN, "111222333"}, "nir": {isNIR, "255081416802538"},
		"dni": {spanish, "12345678Z"}, "vin": {isVehicle, "1HGCM82633A004352"}, "codice fiscale": {isFiscalCode, "RSSMRA85T10A562S"},
	} {
		if !c.check([]byte(c.right)) {
			t.Errorf("%s: %s is refused", name, c.right)
		}
		for i := range c.right {
			wrong := []byte(c.right)
			if class[wrong[i]]&isDigit == 0 {
				continue
			}
			wrong[i] = '0' + (wrong[i]-'0'+1)%10
			if c.check(wrong) {
				t.Errorf("%s: %s passes", name, wrong)
			}
		}
	}
}
