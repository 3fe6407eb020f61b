package redact

import (
	"bytes"
	base32std "encoding/base32"
	"slices"
	"strings"
	"testing"
)

// What code, packages and machines write with "@" stays; an address next to it does not.
func TestAddressesInCodeStay(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{
		"@@ -1,2 +1,3 @@\n+@pytest.mark.parametrize(\"a\", [1])\n-@app.route(\"/\")\n y = x@self.weight.T\n",
		"y = x@w.T", "scores = q@k.mT / s", "h = torch.relu(x@self.fc.weight)", "a = b@c.to(device)",
		"z = (u@v.info())", "out = A@B.shape",
		"npm i @scope/pkg@1.2.3 left-pad@v2.0.1-rc.io", "lodash@4.17.21",
		"go get golang.org/x/tools@v0.52.0 example.com/m@v1.2.3-pre.co", "react@npm:react.default",
		"systemctl restart openvpn@client.service getty@tty1.service.d wg-quick@wg0.target backup@daily.timer",
		"@org.junit.jupiter.api.Test void f() {}", "+@javax.inject.Inject", "  -@Override", "this@Activity.name",
		"return@loop.at", "icon@2x.png logo@dark.svg",
		"ssh deploy@web-1.example.com uptime", "scp -P 22 build.tar ci@host.example.org:/srv/app",
		"rsync -az site/ www@host.example.net:site/new/", "root@db.example.com:~# ls",
		"git clone git@github.com:acme/tool.git", "https://user@host.example.com/x",
		"ssh://alice@git.example.com:22/x", "sprintf('%s@example.com')", "${user}@example.com",
		"user@$HOST.example.com",
		"image@sha256:abc", "x@y", "a@b.c", "foo@bar.baz.Qux", "data@frame.index", "name@example.toml",
		"* @see com.example.Foo#bar", "FROM node@latest.alpine",
	} {
		if out := string(e.Text([]byte(text)).Out); out != text {
			t.Errorf("Text(%q) = %q", text, out)
		}
		with := text + "\n# by Ann Lee <ann.lee+dev@mail.example.org>, bob@corp.local; +bo@x.dev\n"
		want := text + "\n# by Ann Lee <[email hidden]>, [email hidden]; +[email hidden]\n"
		if out := string(e.Text([]byte(with)).Out); out != want {
			t.Errorf("Text(%q) = %q", with, out)
		}
		agrees(t, e, e.Text([]byte(with)), bytewise([]byte(with))...)
	}
}

// An address is found whatever its top-level domain is, and the signs around it are.
func TestAddressesAreFound(t *testing.T) {
	e := newEngine(t)
	for _, a := range []string{
		"bob@example.com", "b@x.io", "bob_s@mail.example.co.uk", "a.b-c+d@sub.example.museum", "BOB@EXAMPLE.COM",
		"Bob@Example.Org", "bob@xn--exmple-cua.de",
		"jörg@exämple.de", "user@例子.公司", "ann@host.internal", "ann@mail.test", "x1@photography.photography",
		"d@e.zip", "who@a.corp", "n@xn--80akhbyknj4f",
	} {
		if out := string(e.Text([]byte("https://" + strings.ReplaceAll(a, "@", "%40") +
			"@caldav.example.com/x")).Out); strings.Contains(out, "%40") && a != "n@xn--80akhbyknj4f" {
			t.Errorf("%s as a user left %q", a, out)
		}
		core, _, _ := strings.Cut(a, "@")
		for _, c := range []string{"§", "mail § now", "<§>", "mailto:§?subject=x", "https://h/?to=§#x", "(§)",
			"\"§\"", "to:§,", "-§",
			"+§", "§: hello", "§.", "e-mail=§&x=1", "|§|", "* § *", "§\n", "see ssh docs; mail §"} {
			text := strings.ReplaceAll(c, "§", a)
			if a == "n@xn--80akhbyknj4f" { // one label
				if out := string(e.Text([]byte(text)).Out); out != text {
					t.Errorf("Text(%q) = %q", text, out)
				}
				continue
			}
			if out := string(e.Text([]byte(text)).Out); !strings.Contains(out, "[email hidden]") ||
				strings.Contains(out, core+"@") {
				t.Errorf("Text(%q) = %q", text, out)
			}
		}
	}
}

// A card needs its form or a word; no part of an identifier is one.
func TestCardsNeedTheirFormOrAWord(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{
		"card 4111111111111111", "Visa: 4111-1111-1111-1111", "4111 1111 1111 1111",
		"paid with 5555-5555-5555-4444", "3782 822463 10005", "amex 378282246310005", "pan=4111111111111111",
		"creditCard: 4111111111111111", "CARD_NUMBER=4111111111111111", "4111111111111111 exp 12/29",
		"4111111111111111, CVV 123", "maestro 6304000000000000000", "card 4222222222222",
		"Kreditkarte 4111 1111 1111 1111",
		"tarjeta: 4111111111111111",
		"the limit of the credit card that I got from the bank in May last year is low: 4111111111111111",
		"4111111111111111 is the number of my card", "card 501800000009", "cc:4111.1111.1111.1111",
		"4111 1111 1111 1111 12/29",
		`{"cardNo": "4111111111111111"}`, `"card": 4111111111111111`,
	} {
		r := e.Text([]byte(text))
		if len(r.Findings) != 1 || r.Findings[0].Rule != "card" {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
		agrees(t, e, r, bytewise([]byte(text))...)
	}
	list := strings.Repeat("4111 1111 1111 1111 5555 5555 5555 4444 ", 9)
	if r := e.Text([]byte(list)); strings.Contains(string(r.Out), "1111 1111") || len(r.Findings) != 18 {
		t.Errorf("a list of cards left %q", r.Out)
	}
	for _, text := range []string{
		"{\"seed\": 4180299172130199493}\nReceiving block blk_4713968111267226537 src: /10.0.0.4\n",
		"id 4111111111111111", "seed=4111111111111111", "6304000000000000000", "4222222222222",
		"card_4111111111111111x", "card 4111111111111111_v2", "visa-7f4111111111111111",
		"trace 41fc-4111111111111111-card", "0.4111111111111111 of the card", "card4111111111111111aa",
		"a4111-1111-1111-1111",
		"4111 1111 1111 1111 1111", "1234 4111 1111 1111 1111", "4111 1111 1111 1111 1111 1111 1111 1111",
		"4111.1111.1111.1111", "41111111 11111111",
		"411111 1111111111", "4111\t1111\t1111\t1111", "tweet 1541815603606036480", "4111-1111-1111-1111-1111",
		"discard 4111111111111111", "cardinal 4111111111111111", "4111/1111/1111/1111", "[4111111111111111]",
		"x=4111111111111111;", "0x4111111111111111", "deadbeef4111111111111111",
	} {
		if r := e.Text([]byte(text)); string(r.Out) != text {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
	}
}

// A number in JSON stays one: it is masked as 0, and only where a name tells its kind.
func TestNumbersInJSONStayNumbers(t *testing.T) {
	e := newEngine(t, "8675309")
	for in, want := range map[string]string{
		`{"seed": 4180299172130199493}`:                         `{"seed": 4180299172130199493}`,
		`{"id":4111111111111111,"ids":[4111111111111111]}`:      `{"id":4111111111111111,"ids":[4111111111111111]}`,
		`{"id":"4111111111111111"}`:                             `{"id":"4111111111111111"}`,
		`{"cardNumber":4111111111111111}`:                       `{"cardNumber":0}`,
		`{"card":{"last4":"1111","number":"4111111111111111"}}`: `{"card":{"last4":"1111","number":"****-****-****-1111"}}`,
		`{"card_count":3,"card_id":42,"pan":"none"}`:            `{"card_count":3,"card_id":42,"pan":"none"}`,
		`{"password":12345,"x":8675309}`:                        `{"password":0,"x":0}`,
		`{"password":0}`:                                        `{"password":0}`,
		`{"a":{"card":{}},"b":4111111111111111}`:                `{"a":{"card":{}},"b":4111111111111111}`,
		`[{"visa":["4111 1111 1111 1111"]},4111111111111111]`:   `[{"visa":["****-****-****-1111"]},4111111111111111]`,
	} {
		for range 2 { // a second time changes nothing
			r, err := e.JSON([]byte(in))
			b, err2 := e.Body("application/json", []byte(in))
			if err != nil || err2 != nil || string(r.Out) != want || string(b.Out) != want {
				t.Errorf("%s became %s and %s, %v, %v, want %s", in, r.Out, b.Out, err, err2, want)
			}
			in = want
		}
	}
}

// natsKey returns a seed or a private key of NATS, as its encoding defines it.
func natsKey(head []byte, b byte) string {
	raw := append(head, bytes.Repeat([]byte{b, 0x5a}, 16)...)
	crc := uint16(0)
	for _, c := range raw {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return base32std.StdEncoding.WithPadding(base32std.NoPadding).EncodeToString(append(raw, byte(crc), byte(crc>>8)))
}

// Formats that have a check or a prefix are found, and with a wrong check or a
// character less they are not.
func TestFormatsWithAPrefixOrACheck(t *testing.T) {
	e := newEngine(t)
	user, account, private := natsKey([]byte{18<<3 | 20<<3>>5, 20 << 3 & 0xf8}, 0x31), natsKey([]byte{18 << 3, 0},
		0x77), natsKey([]byte{15 << 3}, 0x42)
	for _, c := range []masked{
		{"seed " + user + " now", user, "secret.private_key"}, {"NATS_SEED=" + account, account, "secret.private_key"},
		{"key: \"" + private + "\"", private, "secret.private_key"},
		{"-----BEGIN USER NKEY SEED-----\n" + user + "\n------END USER NKEY SEED------\n", user, "secret.private_key"},
		{"t=v4.local." + b62 + b62, b62, "secret.token"}, {"v2.public." + b62 + b62 + b62 + ".Zm9v", b62,
			"secret.token"},
		{"k4.secret." + b62 + b62, b62, "secret.private_key"}, {"k2.local." + b62 + b62[:7], b62, "secret.private_key"},
		{"Medicare: 1EG4-TE5-MK73, born", "1EG4-TE5-MK73", "pii.health"}, {"his MBI is 1EG4TE5MK73",
			"1EG4TE5MK73", "pii.health"},
		{"sid 00D300000000abc!" + b62 + b62 + b62[:20], b62, "secret.token"}, {"license " + hex64[:32] +
			"FFFFNRAL", hex64[:32], "secret.token"},
		{"NRAA-" + hex64[:27], hex64[:27], "secret.token"}, {"apify_api_" + b62, b62, "secret.token"},
		{"AVNS_" + b62[:19], b62[:19], "secret.token"},
		{"https://acme.tines.com/webhook/" + hex64[:32] + "/x", hex64[:32], "secret.webhook"},
		{"pi_3MtwBwLkdIwHu7ix_secret_" + b62[:25], b62[:25], "secret.stripe"},
	} {
		r := e.Text([]byte(c.text))
		if strings.Contains(string(r.Out), c.secret) || !slices.Contains(r.Rules(), c.rule) {
			t.Errorf("Text(%q) = %q by %v", c.text, r.Out, r.Rules())
		}
		agrees(t, e, r, bytewise([]byte(c.text))...)
	}
	for _, text := range []string{
		"run " + user[:57] + "A", "id " + strings.Replace(account, "A", "B", 1), "U" + user[1:57],
		"v4.local.config", "v1.public.key", "k4.public.key", "1EG4-TE5-MK73", "Medicare 1EG4-TE5-MK7",
		"part 1AB2-CD3-EF45",
		"00D300000000abc!", hex64[:40], "live_" + hex64[:34], "api-version-2026-01-01", "sub-component", "key_" +
			hex64[:27], "da2-" + strings.Repeat("a", 25), "pa-" + b62, "cr-" + hex64[:40], "test_" + b62[:35],
		"sess-timeout", "pat_matcher_for_all_of_the_things_in_here", "waka_time", "s-s4t2ud", "AQVN", "4b1d" +
			hex64[:40], "1000.00", "tkn.v1_x",
	} {
		if r := e.Text([]byte(text)); string(r.Out) != text {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
	}
}

// A phone's number of any country is found behind its word; a day, an address of a
// machine and a version behind the same word are not.
func TestPhonesBehindTheirWord(t *testing.T) {
	e := newEngine(t)
	for _, n := range []string{
		"0475 31 90 22", "06 12 34 56 78", "030 1234567", "0171/1234567", "044 668 18 00", "8 800 555-35-35",
		"010-1234-5678", "98765 43210", "(02) 9876 5432", "0412 345 678", "11 91234-5678", "020 123 45 67",
		"0043 1 5339900", "912 345 678", "91 411 22 33", "2101234567", "5551234567", "01 23 45 67 89",
		"99 571 330", "1234 5678",
	} {
		for _, word := range []string{"Phone: ", "tel. ", "Telefon ", "mobile=", "Handynummer: ", "téléphone : ",
			"Tél: ", "Telefono: ", "fax ", "GSM ", "celular: ", "phone_number: ", "WhatsApp "} {
			text := word + n + "\nnext 12 line\n"
			r := e.Text([]byte(text))
			if out := string(r.Out); strings.Contains(out, n[3:]) || !strings.HasSuffix(out, "\nnext 12 line\n") {
				t.Errorf("Text(%q) = %q", text, out)
			}
			agrees(t, e, r, bytewise([]byte(text))...)
		}
		for _, c := range []string{"The phone that I wrote down for the old office in the town is § today",
			"§ is her mobile number", "They are not answering at §"} {
			if out := string(e.Text([]byte(strings.ReplaceAll(c, "§", n))).Out); strings.Contains(out, n[3:]) {
				t.Errorf("Text(%q) = %q", strings.ReplaceAll(c, "§", n), out)
			}
		}
		text := "Order " + n + " of 9\n"
		if r := e.Text([]byte(text)); strings.Contains(string(r.Out), "[") && n[0] != '0' && n[0] != '(' {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
	}
	for _, text := range []string{"phone since 2024-11-12", "tel 12.10.2024 on", "phone 10.20.30.40",
		"mobile 3.14159265", "phone 2024 11 12", "fax 1.2.3", "tel 12/10/2024", "phone 123456",
		"mobile app 1732160564123456789", `{"phone":null,"name":"a long enough name of something","id":12345678}`,
		"phones are sold; the shop that we went to last week had 1234567, 2345678 of them",
		"a callback.\nJul 1 calvisitor-10-105-160-95 kernel"} {
		if r := e.Text([]byte(text)); string(r.Out) != text {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
	}
}
