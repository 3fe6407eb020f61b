package redact

import (
	"strings"
	"testing"
)

// honestTexts are what tests, packages, configuration and code print.
var honestTexts = []string{
	"--- PASS: TestAddr/ipv4 (0.00s)\n    --- PASS: TestAddr/ipv6+zone (0.01s)\n",
	"PASS: gas/i386/x86-64-pr20141\nPASS: ld-i386/load5b\nFAIL: ld-elf/group10\nPASS: pr27311d.o\n",
	"case \"password\":\n\tl.password = f[i+1]\n\tif l.machine != \"\" && l.login != \"\" && l.password != \"\" {\n",
	"type netrcLine struct {\n\tmachine  string\n\tlogin    string\n\tpassword string\n}\n",
	"f'machine {host} login {self.username} password {self.password}'\n",
	"machine or default: the files have a login and a password for each host, such as these.\n",
	"base.Fatalf(\"go: -use=%s: %v\", arg, err)\n", "ldd -r -u reports: unused\n",
	"password.encode(\"latin1\")\n", "token = jwt.encode(\"utf-8\")\n",
	"styles = {\n    Token:  \"#f8f8f2\",\n    Token.String: '#AB0909',\n}\n",
	"Selecting previously unselected package libsecret-1-0:amd64.\n",
	"passwd:         compat\ngroup:          compat\n", "passwd:         files systemd\n",
	" /etc/pam.d/chpasswd 9900720564cb4ee98b7da29e2d183cb2\n /etc/chromium.d/apikeys 4f20b0c45a8822b697dc9e36e6744037\n",
	"HostKeyAlgorithms sk-ssh-ed25519-cert-v01@openssh.com,sk-ecdsa-sha2-nistp256-cert-v01@openssh.com\n",
	"Ciphers chacha20-poly1305@openssh.com\nMACs hmac-sha2-256-etm@openssh.com,umac-64@openssh.com\n",
	"KexAlgorithms curve25519-sha256@libssh.org\nCompression zlib@openssh.com\n",
	"\t(ghs_pragma_interrupt): Likewise.\n",
	"Enable the call (Closes: #1026336)\n", "if the phone was cleared, Issue #1545463: defer\n",
	"devices/phone-symbolic.svg\n7768454f9039fe14c41a4b503d822\n",
	strings.Repeat("a1B2", 19) + "\n" + "EAA" + strings.Repeat("AQb7", 18) + "A\n" + strings.Repeat("a1B2", 19) + "\n",
}

// What programs write next to words for secrets and phones stays.
// TestWideMarksEndAValue: text after a value that ends at a mark of full width is kept.
func TestWideMarksEndAValue(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"密码：Tr0ub4dor&3x!，令牌 abc\n":      "密码：[secret redacted]，令牌 abc\n",
		"密码：「Tr0ub4dor3x」、邮箱：无\n":        "密码：「[secret redacted]」、邮箱：无\n",
		"パスワード：Tr0ub4dor3x。次へ\n":         "パスワード：[secret redacted]。次へ\n",
		"password: Tr0ub4dor3x，用户 kim\n": "password: [secret redacted]，用户 kim\n",
	} {
		if out := e.Text([]byte(text)).Out; string(out) != want {
			t.Errorf("%q became %q", text, out)
		}
	}
}

func TestHonestTextsStay(t *testing.T) {
	e := newEngine(t)
	for _, text := range honestTexts {
		r := e.Text([]byte(text))
		if string(r.Out) != text {
			t.Errorf("Text(%q) = %q", text, r.Out)
		}
		agrees(t, e, r, bytewise([]byte(text))...)
	}
}

// What is like an honest text, but holds a secret, is masked.
func TestSecretsLikeHonestTextsAreFound(t *testing.T) {
	e := newEngine(t)
	for text, secret := range map[string]string{
		"USER: kim\nPASS: Maple417!xq\n":                        "Maple417!xq",
		"user: kim\n  PASS: Maple-417xq\n":                      "Maple-417xq",
		"machine h\n  login kim\n  password Maple417!xq\n":      "Maple417!xq",
		"curl -u kim:Maple417!xq https://x.example\n":           "kim:Maple417!xq",
		"password: \"#f8f8f2xq\"\n":                             "#f8f8f2xq",
		"api_key - 9900720564cb4ee98b7da29e2d183cb2\n":          "9900720564cb4ee98b7da29e2d183cb2",
		"EAA" + strings.Repeat("AQb7", 18) + "A\n":              strings.Repeat("AQb7", 18),
		"phone (212) 555-0187 or 212-555-0187x12 work\n":        "555-0187",
		"token ghs_" + strings.Repeat("aB3d", 9) + " is here\n": strings.Repeat("aB3d", 9),
	} {
		if out := e.Text([]byte(text)).Out; strings.Contains(string(out), secret) {
			t.Errorf("Text(%q) = %q", text, out)
		}
	}
}
