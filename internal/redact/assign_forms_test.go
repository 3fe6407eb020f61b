package redact

import (
	"strings"
	"testing"
)

// TestSecretsBehindNamesAreMaskedInEachSyntax holds the forms in which a name announces a string, with values that
// have signs of an interpolation, and several words.
func TestSecretsBehindNamesAreMaskedInEachSyntax(t *testing.T) {
	e := newEngine(t)
	for _, v := range []string{`mq{k{cd}e)f${g]h(i[j>-_$#kl`, `two plain mild words`, `rX8}$m@{b&lq${zd#}!`} {
		for _, form := range []string{
			"password = \"§\"\n", "my_password := \"§\"\n", "\"password\": \"§\"\n", "if (my_password == \"§\")\n",
			"if (\"§\" == my_password) {\n", "if (\"§\" !== this.password) {\n", "password[] = @\"§\";\n",
			"std::string secret(\"§\");\n", "secret.assign(\"§\",17);\n", "config[\"secret\"] = \"§\"\n",
			"private_key \"§\";\n",
			"(api_key) => \"§\"\n", "<password>§</password>\n", "secret: §\n", "[s]\napi_key = §\nuser = x\n",
			"db_key = '§'\n", "PASSWORD        = '§'\n", "HOST=a\nDB_PASSWORD=§\nPORT=1\n",
		} {
			in := strings.ReplaceAll(form, "§", v)
			want := strings.ReplaceAll(form, "§", "[secret redacted]")
			if out := string(e.Text([]byte(in)).Out); out != want {
				t.Errorf("%q became %q", in, out)
			}
		}
	}
}

// TestSecretsOfCommandsAndCallsAreMasked holds values that their place announces.
func TestSecretsOfCommandsAndCallsAreMasked(t *testing.T) {
	e := newEngine(t)
	for _, in := range []string{
		"DB_PASSWORD=§&cd34<ef'gh\n", "openssl pkcs12 -in a -password pass:§\n", "run --user ann --password §\n",
		"alter user sys identified by § container=all;\n", "SET PASSWORD FOR 'u'@'h' = '§';\n",
		"echo 'ann:§' | sudo chpasswd\n",
		"htpasswd -bc /etc/x ann §\n", "auth: {user: 'ann', pass: '§'}\n", "auth = ('ann', '§')\n",
		"BasicAuth(\"ann\", \"§\")\n",
		"\"tokens\":[\"0e2a22793500f605\",\"87a5506313df3c12\"]",
		"setCipherKey(Base64.decode(\"0HdUzyLFRy4KKE1Tjyhbav==\"));", "aesKey = \"c/DRQhPgVchw+y/oTVc3zB==\"\n",
		"Consumer Secret: ``§``\n", "oauth_verifier: '§'\n",
		"{\"jsapi_ticket\":\"foFuwoMXEsFKaYYP27o3h0WuSu_TH0Zy-lhhK8UBhxr7\"}",
	} {
		const v = "hqtzwkpa7"
		text := strings.ReplaceAll(in, "§", v)
		out := string(e.Text([]byte(text)).Out)
		for _, left := range []string{v, "cd34", "ef'gh", "0e2a22", "87a550", "0HdUzy", "DRQhPg", "foFuwo"} {
			if strings.Contains(text, left) && strings.Contains(out, left) {
				t.Errorf("%q became %q", text, out)
			}
		}
	}
}

// TestValuesThatAreNoSecretsStay holds what a name for a secret does not make one.
func TestValuesThatAreNoSecretsStay(t *testing.T) {
	e := newEngine(t)
	for _, in := range []string{
		"password = \"${DB_PASSWORD:-}\"\n", "password: \"{{ .Values.password | quote }}\"\n",
		"secret = \"#{config.fetch(\"a\")}\"\n",
		"token: \"letmein123\"\n", "api_key = \"apikeyvaluehere\"\n", "secret = \"/v1/accounts/secrets/list\"\n",
		"\"ChangePassword\": \"iam:ChangePassword\"\n", "\"LABEL_PASSWORD\": \"Ny kode\"\n",
		"password: \"Les mots ne vont pas.\"\n",
		"key: \"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC262QAZ3rvJ7KySFEH\"\n", "\"PW\": \"Palau\"\n",
		"secret_file = \"server-key.pem\"\n",
		"requires_password:flags.0?true\n", "token = \"012345abcdef\"\n",
		"credential_sid: \"CRaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
		"?key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "use the --token flag\n",
		"the primary key = e56714bd7c1146e4b4801244bc2bc67a\n",
		"{\"keys\":[{\"kty\":\"EC\",\"x\":\"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6\"}]}",
	} {
		if r := e.Text([]byte(in)); r.Found() {
			t.Errorf("%q became %q", in, r.Out)
		}
	}
}
