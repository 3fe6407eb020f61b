package redact

import (
	"testing"
)

// A second set with other carriers and other texts to leave, in which the same
// formats stand. doc/redaction.md has what it gave before any detector was
// corrected against it.

// secondPlain are carriers that say nothing of what they carry.
func (m *maker) secondPlain() string {
	return one(m,
		"Heads up: § showed up in the build output again.\n",
		"<p class=\"x\">Result: <code>§</code></p>\n",
		"fmt.Println(\"§\")\n",
		"print(f'got § back')\n",
		"System.out.println(\"§\");\n",
		"    assertEquals(\"§\", actual);\n",
		"{\"level\":\"info\",\"ts\":1764000000.123,\"msg\":\"handled §\",\"n\":12}",
		"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"line 3: §\"}]}}",
		"nov 22 03:42:44 host app[812]: received § (12 ms)\n",
		"§,12,true\n13,14,false\n",
		"@@ -1,3 +1,3 @@\n-old\n+§\n context\n",
		"commit message: replace § by the new one\n",
		"[§](https://example.com/x)\n",
		"* §\n* b\n",
		"// TODO: remove § before the release\n",
		"/* § */\n",
		"let v: &str = \"§\";\n",
		"$x = '§';\n",
		"var = <<~EOS\n  §\nEOS\n",
		"SELECT * FROM t WHERE c = '§' LIMIT 5;\n",
		"The answer that came back was §, which surprised us.",
		"\"§\" is what the user typed",
		"Subject: about §\n\nHello,\n",
		"[section]\nvalue=§\nother=1\n",
		"<a href=\"/x\">§</a>",
		"{\\\"value\\\":\\\"§\\\"}",
	)
}

// secondMentions speak of secrets and persons, and hold none.
var secondMentions = []string{
	"var password string", "let mut password = String::new();", "private readonly password: string;", "password := flag.String(\"password\", \"\", \"what to log in with\")", "public string Password { get; set; }",
	"password VARCHAR(255)", "passwordInput.addEventListener('input', onInput)", "password_confirmation does not match", "if user.check_password(given):", "self.password = password", "this.token = token;", "token = request.headers.get('authorization')",
	"apiKey: process.env.API_KEY,", "api_key=os.getenv('API_KEY')", "secret = vault.read('kv/app')", "credentials = load_credentials(path)", "const { token } = await login(user);", "return jwt.verify(token, publicKey);", "SECRET_KEY = get_random_secret_key()",
	"env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef:\n        name: db\n        key: password\n", "password: !vault |", "password = var.db_password", "password = data.aws_secretsmanager_secret.db.id", "TOKEN=$(cat /run/secrets/token)", "echo \"$PASSWORD\" | docker login",
	"export TOKEN", "--password-file=/run/secrets/pw", "--token-ttl 30m", "passwordPolicy:\n  minLength: 12\n", "token_endpoint: https://id.example.com/token", "tokens: 1832 in, 211 out", "\"total_tokens\": 2043", "\"max_output_tokens\": 8192", "secretName: tls-cert", "password_changed_at: 2026-11-21T03:42:44Z",
	"# Password rules\n\nA password has at least twelve characters.", "The secret to a good test is a short name.", "Authorization: see RFC 9110.", "authorization_code grant", "Cookie banners annoy people.", "He passed the token to the next player.", "key=value pairs", "sort_key: name", "public key cryptography", "keyCode: 13",
	"Enter your date of birth on the next page.", "ssn is masked", "The phone number field is optional.", "phone_verified: true", "email_verified: true", "emails_sent: 12", "address: 0x7ffe12ab", "address=10.0.0.1:8080", "first_name.strip()", "user.last_name or ''", "passport-local strategy", "card_type: visa", "card_count=12",
	"birthday paradox with 23 people", "routing_key: orders.created", "vin = v[0]", "wallet balance is 12.50", "iban.validate(value)", "tax = 0.19 * net", "nhs.uk is a website", "call_id: 17641234", "contact_id=4412345", "text_length: 20481234", "ring buffer of 1048576 bytes", "cell B12: 1500300", "tel aviv 2026",
}

// secondSet comes from the first set's makers with another seed: what needs no
// word to be told stands in the second carriers, and so do the ordinary things.
func secondSet() map[string][]example {
	set := map[string][]example{}
	second := newMaker("second carriers")
	for kind, do := range listGroups() {
		m := newMaker("second " + kind)
		do(m)
		for _, e := range m.list {
			e.kind = kind
			if e.want == nil {
				continue
			}
			if v := e.text[e.want[0].start:e.want[0].end]; e.text == v {
				e = carried(kind, e.sub, m.secondPlain(), []string{v})
			}
			set[kind] = append(set[kind], e)
		}
	}
	const leave = "to be left"
	for _, s := range secondMentions {
		set[leave] = append(set[leave], example{kind: leave, sub: "mention", text: s})
	}
	for range 10_000 {
		sub, v := second.ordinary()
		e := carried(leave, sub, second.secondPlain(), []string{v})
		e.want = nil
		set[leave] = append(set[leave], e)
	}
	return set
}

// TestQualityOfSecondSet wants of the second set, as a whole, what TestQuality
// wants of the first.
func TestQualityOfSecondSet(t *testing.T) {
	all := scores(newEngine(t), secondSet())
	for _, s := range all {
		t.Logf("%s %v", s.row(), s.rules)
	}
	wants(t, total("second set", all), 0.98, 0.98)
	list(t, "HOLDFAST_SECOND", all)
}
