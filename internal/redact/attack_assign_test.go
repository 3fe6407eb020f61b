package redact

import (
	"strings"
	"testing"
)

// TestAttackPairs holds that a value is known by a name that stands beside it,
// not before its sign.
func TestAttackPairs(t *testing.T) {
	e := newEngine(t)
	const v = "hunter22-elm"
	for _, text := range []string{
		"env:\n  - name: DB_PASSWORD\n    value: §\n", "  - name: \"DB_PASSWORD\"\r\n    value: '§'\r\n", `"name": "DB_PASSWORD", "value": "§",`,
		`{\"key\":\"api_key\",\"value\":\"§\"`, `<add key="ApiKey" value="§" />`, `<entry name="password" value="§"/>`, "key: API_KEY, value: §",
		`<property name="password">§</property>`, `<string name="db.password">§</string>`, "<name>fs.secret.key</name>\n  <value>§</value>",
		"<key>password</key>\n\t<string>§</string>", "<password><![CDATA[§]]></password>", `<Password xsi:type="string">§</Password>`,
		"DB_PASSWORD: !!str §\n", "DB_PASSWORD: &anchor §\n", "password: !abc §\n", "CREATE USER ann IDENTIFIED BY '§';", "ALTER USER ann WITH PASSWORD '§';",
		"alter role ann with encrypted password '§'",
	} {
		in := strings.ReplaceAll(text, "§", v)
		if r := e.Text([]byte(in)); strings.Contains(string(r.Out), v) {
			t.Errorf("%q became %q", in, r.Out)
		} else if again := e.Text(r.Out); again.Found() {
			t.Errorf("%q became %q", r.Out, again.Out)
		}
	}
}

// TestAttackOrdinary holds that what only looks like something to hide stays.
func TestAttackOrdinary(t *testing.T) {
	e := newEngine(t)
	for _, s := range []string{
		"- name: HOME\n  value: /srv/shared\n", `<add key="Timeout" value="300" />`, `<string name="password">Password</string>`,
		`<label name="password">Your password, please</label>`, "<name>fs.buffer</name>\n<value>4096-k</value>", "who said WITH PASSWORD is SQL",
		`t.Errorf("token: %v", token)`, `log.Fatalf("bad private key: %w", err)`, `fmt.Printf("password=%s secret=%q\n", a, b)`, `if c.password != "" {`,
		"fixed the call stack overflow (CVE-2026-9358 / CWE-674)", "call it CVE-2021-44228, phone home", "line 119 56.95% of statements",
		"2026-11-22 01:40:26.123456789 +0000 UTC m=+12.345678901", "Thu Feb 04 21:00:57 +1130 2010",
	} {
		if r := e.Text([]byte(s)); r.Found() {
			t.Errorf("%q became %q", s, r.Out)
		}
	}
}
