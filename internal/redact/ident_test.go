package redact

import "testing"

// identities are numbers and words that name a person, an account, a thing
// that belongs to one.
var identities = []masked{
	{"amex 378282246310005", "37828224", "card"},
	{"paid 4111.1111.1111.1111", "1111.1111", "card"},
	{"DE89 3704 0044 0532 0130 00", "3704 0044", "pii.iban"},
	{"NL91ABNA0417164300", "ABNA0417", "pii.iban"},
	{"NO93 8601 1117 947", "8601", "pii.iban"},
	{"routing number 021000021", "021000021", "pii.bank"},
	{"ABA: 1110-0002-5", "1110-0002", "pii.bank"},
	{"NHS number 943 476 5919", "943 476", "pii.health"},
	{"nhs 9434765919", "9434765919", "pii.health"},
	{"Medicare id 1EG4TE5MK73", "1EG4TE5", "pii.health"},
	{"aadhaar 2341 2341 2346", "2341 2341", "pii.national_id"},
	{"dni 12345678Z.", "12345678Z", "pii.tax_id"},
	{"X1234567L", "1234567", "pii.tax_id"},
	{"RSSMRA85T10A562S", "MRA85T10", "pii.tax_id"},
	{"Steuer-ID 86095742719", "86095742719", "pii.tax_id"},
	{"Steuer-ID 86 095 742 719", "095 742", "pii.tax_id"},
	{"CPF 529.982.247-25", "982.247", "pii.tax_id"},
	{"tax file number 123 456 782", "456 782", "pii.tax_id"},
	{"PAN ABCPE1234F", "PE1234", "pii.tax_id"},
	{"national insurance AB 12 34 56 C", "34 56", "pii.national_id"},
	{"national insurance AB123456C", "123456", "pii.national_id"},
	{"social insurance number 046 454 286", "454 286", "pii.national_id"},
	{"BSN 111222333", "111222333", "pii.national_id"},
	{"PESEL 44051401359", "44051401359", "pii.national_id"},
	{"numéro de sécurité sociale 255081416802538", "255081416802538", "pii.national_id"},
	{"VIN 1HGCM82633A004352", "82633A", "pii.vehicle"},
	{"pay 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "5QGefi2DM", "pii.wallet"},
	{"pay 3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", "CNmQviec", "pii.wallet"},
	{"pay bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "508d6qej", "pii.wallet"},
	{"pay BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "508D6QEJ", "pii.wallet"},
	{"pay 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "6053F3E9", "pii.wallet"},
	{"wallet 0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "6053f3e9", "pii.wallet"},
	{"wif 5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ", "rMjxEXx", "secret.private_key"},
	{"born on 1985-03-12", "1985-03", "pii.birth"},
	{"date of birth 12/03/1985", "12/03", "pii.birth"},
	{"DOB 12.3.85", "12.3", "pii.birth"},
	{"born 12 March 1985 in Leeds", "March", "pii.birth"},
	{"D.O.B. September 4, 1961", "September", "pii.birth"},
	{"passport K12345678", "12345678", "pii.national_id"},
	{"078-05-1120", "05-1120", "pii.ssn"},
}

// notIdentity only look like identities: a check fails, a word is not there.
var notIdentity = []string{
	"routing 021000022", "ticket 021000021", "NHS number 943 476 5918", "order 943 476 5919", "aadhaar 2341 2341 2345", "order 2341 2341 2346",
	"dni 12345678A", "12345678z", "X1234567A", "RSSMRA85T10A562T", "Steuer-ID 86095742718", "order 86095742719", "CPF 52998224726", "order 52998224725", "order 123 456 782", "ABCPE1234F",
	"AB123456C", "order 046 454 286", "BSN 111222334", "order 111222333", "PESEL 44051401358", "order 44051401359", "VIN 1HGCM82633A004353", "1HGCM82633A004352", "1EG4TE5MK73",
	"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "0x1f", "0xdeadbeef", "wallet 0xdeadbeef",
	"released on 1985-03-12", "the bug was born in version 2 of 1985-03-12", "12 March 1985", "March 12, 1985", "born in a barn", "1985-03-12T10:11:12Z", "born to run 3 times",
	"900-12-3456", "980-69-1234", "666-12-3456", "DE89 3704 0044 0532 0130 01", "K12345678", "passport control", "80.561374, 126.597517", "text 44.751042",
}

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
