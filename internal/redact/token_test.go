package redact

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

const (
	hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	up32  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	uuid1 = "550e8400-e29b-41d4-a716-446655440000"
)

// tokenTexts are credentials that are told by their form alone.
var tokenTexts = func() (l []masked) {
	long := b62 + b62 + b62
	for rule, tokens := range map[string][]string{
		"secret.github":      {"ghp_" + b62, "gho_" + b62, "ghu_" + b62, "ghr_" + b62, "ghs_" + b62, "github_pat_" + long},
		"secret.gitlab":      {"glpat-" + b62, "gldt-" + b62, "glrt-" + b62, "glptt-" + b62, "glcbt-" + b62, "glft-" + b62, "glimt-" + b62, "gloas-" + b62, "glsoat-" + b62, "glffct-" + b62, "glagent-" + b62, "GR1348941" + b62},
		"secret.npm":         {"npm_" + b62},
		"secret.stripe":      {"sk_live_" + b62, "rk_test_" + b62, "whsec_" + b62},
		"secret.slack":       {"xoxb-1-" + b62, "xoxe.xoxp-1-" + b62, "xapp-1-" + b62, "xwfp-" + b62},
		"secret.google":      {"AIza" + b62, "GOCSPX-" + b62, "ya29." + b62, "1//0" + long, "AAAAabcdefg:APA91b" + long},
		"secret.aws_key_id":  {"AKIA" + up32[:16], "ASIA" + up32[:16], "ABIA" + "IOSFODNN7EXAMPLE", "ACCA" + "IOSFODNN7EXAMPLE"},
		"secret.aws_session": {"IQoJb3JpZ2luX2Vj"[:12] + long, "FwoGZXIvYXdz" + long},
		"secret.azure": {
			strings.Repeat("aB3", 26)[:76] + "+ASt" + "abcdef==", strings.Repeat("aB3", 26)[:76] + "ACDb" + "abcdef==",
			strings.Repeat("aB3d", 13) + "JQQJ99" + b62[:26], "abc8Q~" + b62[:33], "1zt9Q~" + b62[:34],
		},
		"secret.model_key": {
			"sk-proj-" + b62, "sk-ant-api03-" + b62, "sk-or-v1-" + hex64, "hf_" + b62, "api_org_" + b62, "gsk_" + long, "sk_" + hex64[:48], "r8_" + b62 + "a",
			"jina_" + long, "pcsk_" + long, "lsv2_pt_" + hex64, "lsv2_sk_" + hex64, "wandb_v1_" + long, "tgp_v1_" + b62, "fw_" + b62[:24], "e2b_" + hex64[:40],
			"csk-" + long, "xai-" + long, "pplx-" + long, "nvapi-" + long, "tvly-" + b62, "fc-" + hex64[:32], "ABSK" + long, "bedrock-api-key-" + long,
			"key_" + hex64, "rpa_" + long[:44], "m0-" + long[:40], hex64[:32] + "." + b62[:16],
		},
		"secret.private_key": {
			"AGE-SECRET-KEY-1" + up32, "AGE-SECRET-KEY-PQ-1" + up32, "xprv" + "9" + long[:106],
			base64.StdEncoding.EncodeToString([]byte(pem)), "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\nComment: x\nP2/56wAAAi4\n---- END SSH2 ENCRYPTED " + "PRIVATE KEY ----",
			"-----BEGIN EC " + "PRIVATE KEY-----\nMHcC\n-----END EC " + "PRIVATE KEY-----", "-----BEGIN OpenVPN Static " + "key V1-----\n6acef03f\n-----END OpenVPN Static key V1-----",
		},
		"secret.password_hash": {
			"$2b$12$" + (b62 + b62)[:53], "$2y$10$" + (b62 + b62)[:53], "$1$saltsalt$" + b62[:22], "$5$rounds=5000$saltsalt$" + (b62 + b62)[:43], "$6$saltsalt$" + long[:86],
			"$y$j9T$saltsalt$" + (b62 + b62)[:43], "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$" + b62, "pbkdf2_sha256$260000$saltsalt$" + b62 + "=",
		},
		"secret.token": {
			"rubygems_" + hex64[:48], "dckr_pat_" + b62, "dckr_oat_" + b62, "CLOJARS_" + hex64[:60], "sgp_" + hex64[:40], "pypi-" + long,
			"access_" + "token$production$" + b62[:16] + "$" + hex64[:32], "shippo_live_" + hex64[:40], "duffel_test_" + b62 + b62[:7], "shpat_" + hex64[:32], "shpss_" + hex64[:32],
			"dop_v1_" + hex64, "doo_v1_" + hex64, "nfp_" + b62, "vcp_" + long[:56], "sbp_" + hex64[:40], "sb_secret_" + b62, "pscale_tkn_" + b62, "pscale_pw_" + b62, "napi_" + long[:64],
			"mdb_sa_sk_" + b62, "cfut_" + long[:40], "fm2_" + long, "rnd_" + b62[:32], "CCIPAT_" + b62, "bkua_" + hex64[:40], "sqp_" + hex64[:40], "pnu_" + b62, "dbtc_" + b62,
			"sntrys_" + long, "sntryu_" + hex64, "glsa_" + b62 + "_1234abcd", "glc_" + long, "hcaik_" + long, "phx_" + long, "lin_api_" + b62, "ntn_" + long[:46], "secret_" + long[:43], "figd_" + long[:40], "rdme_" + long,
			"tskey-auth-" + b62, "pul-" + hex64[:40], "HRKU-" + b62, "NRAK-" + up32[:27], "PMAK-" + hex64[:24] + "-" + hex64[:34], "xkeysib-" + hex64 + "-" + b62[:16], "key-" + hex64[:32], "sq0atp-" + b62[:22],
			"access-production-" + uuid1, "pat-na1-" + uuid1, "CFPAT-" + long[:43], "v1.0-" + hex64 + "-" + hex64, "A3-ABCDEF-ABCDEF-ABCDE-ABCDE-ABCDE-ABCDE", "API-" + up32[:26],
			"SG." + b62[:22] + "." + long[:43], "hvs." + b62, "dp.pt." + long[:43], "dp.st.dev." + long[:43], "snyk_uat." + long, "dt0c01." + up32[:24] + "." + long[:64], "sk.eyJ" + long, "sl." + long,
			"LTAI" + "5t" + b62[:18], "dapi" + hex64[:32], "ATATT3" + long, "ATBB" + b62[:32], "EAA" + long, "oy2" + strings.Repeat("abc2", 11)[:43], "AKCp" + long, "SK" + hex64[:32], "sha256~" + long[:43],
			"MTk4" + b62[:22] + "." + "GabcdE" + "." + b62, b62[:14] + ".atlasv1." + long, "pat" + b62[:14] + "." + hex64, hex64[:32] + "-us12", "1/1234567890123456:" + hex64[:32], "123456789:AA" + b62[:33],
			"cal_live_" + hex64[:32], "key_live_" + b62[:32], "key_test_" + b62[:32], "ion_" + long[:42], "lip_" + b62[:20],
			"live_pub_" + hex64[:31], "test_pub_" + hex64[:31],
			"os_v2_app_" + strings.Repeat("abc2", 25), "ovsxat_" + b62, "pgar_" + strings.Repeat("abc2", 7)[:27], "sc_" + long,
			"FlyV1 fm2_" + long + ",fm2_" + long,
			"sandbox-sq0csb-" + long[:43], "spu-" + hex64[:32], "thog-secret-" + hex64[:32], "xaat-" + uuid1, "xapt-" + uuid1,
			"vk1.a." + long, "deepgram = " + hex64[:40],
		},
	} {
		for _, t := range tokens {
			l = append(l, masked{"got " + t + " now", t, rule}, masked{"x='" + t + "'", t, rule})
		}
	}
	slices.SortFunc(l, func(a, b masked) int { return strings.Compare(a.text, b.text) })
	return l
}()

// otherSecrets are told by what stands around them.
var otherSecrets = []masked{
	{"https://discord.com/api/webhooks/123/abcDEF", "abcDEF", "secret.webhook"},
	{"https://canary.discord.com/api/webhooks/123/abcDEF", "abcDEF", "secret.webhook"},
	{"post to https://acme.webhook.office.com/webhookb2/a@b/IncomingWebhook/x/y.", "IncomingWebhook", "secret.webhook"},
	{"https://hooks.zapier.com/hooks/catch/12/ab/", "12/ab", "secret.webhook"},
	{"https://stuff.blob.core.windows.net/c/f?sv=2024-11-04&sig=abcdefghij1234567890%2Bab%3D", "abcdefghij", "secret.url"},
	{"https://b.s3.amazonaws.com/k?X-Amz-Date=20260101T000000Z&X-Amz-Signature=" + hex64, hex64, "secret.url"},
	{"https://h/cb#code=abcDEF123456ghijkl&state=x", "abcDEF123456", "secret.url"},
	{"git clone https://" + hex64[:40] + "@git.example.com/x", hex64[:40], "secret.url"},
	{"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\nAAAAIHq1x2c3\nPrivate-MAC: 00", "AAAAIHq1", "secret.private_key"},
	{"mongodb+srv://bob:hunter2@cluster0.example.net/x", "hunter2", "secret.connection"},
	{"postgresql+psycopg2://bob:hunter2@h/x", "hunter2", "secret.connection"},
	{"amqps://bob:hunter2@mq/", "hunter2", "secret.connection"},
	{"mysql://bob:hunter2@h/x", "hunter2", "secret.connection"},
	{"jdbc:sqlserver://db:1433;databaseName=x;user=sa;password=hunter2;", "hunter2", "secret.connection"},
	{"jdbc:postgresql://h/db?user=bob&password=hunter2&ssl=true", "hunter2", "secret.connection"},
	{"jdbc:oracle:thin:scott/tiger9@//h:1521/x", "tiger9", "secret.connection"},
	{"Driver={ODBC Driver 18};Server=h;UID=sa;PWD=hunter2;", "hunter2", "secret.connection"},
	{"host=db port=5432 user=app password=hunter2 dbname=x", "hunter2", "secret.connection"},
	{"dsn: app:hunter2@tcp(db:3306)/main", "hunter2", "secret.connection"},
	{`["deploy","--token","hunter2"]`, "hunter2", "secret.assignment"},
	{`'--password' 'hunter2'`, "hunter2", "secret.assignment"},
	{"args:\n  - --api-key\n  - hunter2\n", "hunter2", "secret.assignment"},
	{"mysql -uroot -phunter2 main", "hunter2", "secret.assignment"},
	{"mysqldump -u root -p'hunter2' main", "hunter2", "secret.assignment"},
	{"docker login -u bob -p hunter2 registry.example.com", "hunter2", "secret.assignment"},
	{"sshpass -p hunter2 ssh h", "hunter2", "secret.assignment"},
	{"redis-cli -h x -a hunter2 ping", "hunter2", "secret.assignment"},
	{"curl -u 'bob:hunter2' https://x", "hunter2", "secret.assignment"},
	{"curl --user bob:hunter2 https://x", "hunter2", "secret.assignment"},
	{"export DB_PASSWORD=hunter2", "hunter2", "secret.assignment"},
	{"ENV API_KEY hunter2\n", "hunter2", "secret.assignment"},
	{"setenv DB_PASSWORD hunter2", "hunter2", "secret.assignment"},
	{"set -x API_TOKEN hunter2", "hunter2", "secret.assignment"},
	{"aws configure set aws_secret_access_key hunter2", "hunter2", "secret.assignment"},
	{"machine api.example.com login bob password hunter2", "hunter2", "secret.assignment"},
	{"machine api.example.com\n  login bob\n  password hunter2\n", "hunter2", "secret.assignment"},
	{"password: |\n  hunter2\n  second\nport: 1\n", "second", "secret.assignment"},
	{"  client_secret: >-\n    hunter2\n  port: 1\n", "hunter2", "secret.assignment"},
	{"token:\n  hunter2\nport: 1\n", "hunter2", "secret.assignment"},
	{"my SECRET_KEY is: zz9plural", "zz9plural", "secret.assignment"},
	{"Set-Cookie: sid=31d4d96e; Path=/\r\n", "31d4d96e", "secret.assignment"},
	{"Proxy-Authorization: Digest abc123\r\n", "abc123", "secret.assignment"},
	{"Ocp-Apim-Subscription-Key: zz9plural\r\n", "zz9plural", "secret.assignment"},
	{"seed phrase: legal winner thank year wave sausage", "sausage", "secret.assignment"},
	{"kennwort = zz9plural", "zz9plural", "secret.assignment"},
	{"//registry.npmjs.org/:_authToken=" + uuid1, uuid1, "secret.assignment"},
}

// notSecret only look like credentials.
var notSecret = []string{
	"sk_" + hex64[:40], "fc-" + hex64[:31], "key-" + hex64[:33], "the key-value store of 2026", "re_export_everything_by_name", "pat.example.com/some/long/path", "SG.example",
	"dapi_version = 3", "EAA members", "SKU 12345678", "sha256:" + hex64, "sha512-" + strings.Repeat("aB3d", 21) + "ab==", "v1.0-rc1", "v1.0-beta-2", "cost $5$ and $6$", "sed 's/$1$2/x/'", "$2b or not $2b$", "api-version", "sdk-version-1.2.3",
	"access-control-allow-origin", "access_token_url_for_production", "secret_santa_2026_party_list_of_everyone_here", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
	"#ff8800", "#4111ff", "rgb(255, 136, 0)", "https://example.com/?code=200&key=name", "https://example.com/?session=none", "https://example.com/?sig=none", "?key=" + uuid1, "?key=" + hex64, "mkdir -p src/pkg", "ssh -p 2222 host", "docker run -p 8080:80 x", "cp -a x y", "grep -P x y", "mysql -p main",
	"mysql -u root -p", "tar -xpf a.tar", "./login -v", "password reset for login", "login with a password that you chose", "set API_LEVEL 33", "ENV PATH /usr/bin", "ENV KEY_NAME value", "--token-count 5", `["--tokenizer","bert"]`, `["--verbose","--token"]`,
	"token:\n  type: string\n", "password:\n  - one\n", "secrets:\n  - name: regcred\n", "password: |\nnext: 1\n", "password: ${DB_PASSWORD}", "password: {{ .Values.password }}", "PASSWORD=$DB_PASSWORD", "password: ********", "password = os.environ[\"X\"]", "password := os.Getenv(\"X\")",
	"password: string", "password: Optional[str] = None", "token = await get()", "password_min_length: 12", "secretName: db-creds", "SharedAccessKeyName=root", "token_url=https://x.example/t", "postgres://${DB_USER}:${DB_PASS}@db/x", "postgres://localhost:5432/x", "ssh://git@git.example.com/x",
	"git@github.com:acme/tool.git", "icon@2x.png", "getty@tty1.service", "WWW-Authenticate: Bearer realm=\"x\"", "cookie: chocolate chip, 12 pieces", "basic income", "keyboard: qwerty", "monkey=see", "tokenizer = load", "hashes are $6$ a piece",
	"-----BEGIN SSH2 PUBLIC KEY-----\nAAAA\n", "---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n", base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END")), "Private-Lines", "PuTTY-User-Key-File-3: ssh-ed25519", "hooks.slack.com", "https://discord.com/channels/1/2",
	"xprv is a prefix", "AKIA is a prefix", "ATATT3 begins a token", "machine learning with a login and a password", "lookup_by_key(x)", "a.b.c.d.e.f", "x.example.com.", "foo.abcdef.ghi",
}

// A mask of a database's credentials is a connection string's.
func TestConnectionStringsHaveTheirOwnMask(t *testing.T) {
	e := newStyled(t, mask.Egress, "")
	for text, want := range map[string]string{
		"postgres://u:hunter2@h/d":                  "postgres://[db_string]@h/d",
		"Server=h;User Id=sa;Password=hunter2;X=1":  "Server=h;User Id=sa;Password=[db_string];X=1",
		"app:hunter2@tcp(db:3306)/main":             "[db_string]@tcp(db:3306)/main",
		"host=h user=u password=hunter2 dbname=d":   "host=h user=u password=[db_string] dbname=d",
		"https://u:hunter2@h/d":                     "https://[secret]@h/d",
		"password=hunter2":                          "password=[secret]",
		"born on 1985-03-12":                        "born on [pii]",
		"jdbc:oracle:thin:scott/tiger9@//h:1521/xe": "jdbc:oracle:thin:[db_string]@//h:1521/xe",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// A mask is not a name: a value that follows it is kept.
func TestMaskNamesNoValue(t *testing.T) {
	e := newEngine(t)
	for _, text := range []string{
		"[secret]: hunter2 of 9", "[secret redacted]: hunter2 of 9", "[secret] = 'hunter2'", "[secret]:hunter2",
	} {
		if got := string(e.Text([]byte(text)).Out); got != text {
			t.Errorf("Text(%q) = %q", text, got)
		}
	}
	if got := string(e.Text([]byte("[password]: hunter2")).Out); got == "[password]: hunter2" {
		t.Error("a name in brackets names its value")
	}
}

// What follows a masked value stays.
func TestMasksEndWhereTheValueEnds(t *testing.T) {
	e := newEngine(t)
	for text, want := range map[string]string{
		"password: |\n  a1\n  b2\nport: 1\n":                "password: |\n  [secret redacted]\nport: 1\n",
		"token:\n  hunter2\nport: 1\n":                      "token:\n  [secret redacted]\nport: 1\n",
		`["--token","hunter2","--port","1"]`:                `["--token","[secret redacted]","--port","1"]`,
		"mysql -phunter2 main":                              "mysql -p[secret redacted] main",
		"curl -u 'bob:hunter2' https://x":                   "curl -u '[secret redacted]' https://x",
		"machine h login bob password hunter2\nmachine i":   "machine h login bob password [secret redacted]\nmachine i",
		"https://h/x?sig=abcdefghij1234567890&x=1":          "https://h/x?sig=[secret redacted]&x=1",
		"Private-Lines: 2\nAAAAIHq1\nBBBB=\nPrivate-MAC: 0": "Private-Lines: 2\n[secret redacted]\nPrivate-MAC: 0",
		"- --api-key\n- hunter2\n- --port\n":                "- --api-key\n- [secret redacted]\n- --port\n",
	} {
		if got := string(e.Text([]byte(text)).Out); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}
