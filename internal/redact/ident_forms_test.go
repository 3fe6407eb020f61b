package redact

import (
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
		core, _, _ := strings.Cut(a, "@")
		for _, c := range []string{"§", "mail § now", "<§>", "mailto:§?subject=x", "(§)", "\"§\"", "to:§,", "-§",
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
		"tarjeta: 4111111111111111", "cc:4111.1111.1111.1111", "4111 1111 1111 1111 12/29",
		`{"cardNo": "4111111111111111"}`, `"card": 4111111111111111`,
	} {
		r := e.Text([]byte(text))
		if len(r.Findings) != 1 || r.Findings[0].Rule != "card" {
			t.Errorf("Text(%q) = %q by %v", text, r.Out, r.Rules())
		}
		agrees(t, e, r, bytewise([]byte(text))...)
	}
	for _, text := range []string{
		"{\"seed\": 4180299172130199493}\nReceiving block blk_4713968111267226537 src: /10.0.0.4\n",
		"id 4111111111111111", "seed=4111111111111111", "6304000000000000000", "4222222222222",
		"card_4111111111111111x", "card 4111111111111111_v2", "visa-7f4111111111111111",
		"trace 41fc-4111111111111111-card", "0.4111111111111111 of the card", "card4111111111111111aa",
		"a4111-1111-1111-1111",
		"4111 1111 1111 1111 1111", "1234 4111 1111 1111 1111", "4111.1111.1111.1111", "41111111 11111111",
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
